#!/usr/bin/env bash
# Runs a program behind a mark on stdout, so that what the shell's start-up files wrote before it can be
# told from the program's own bytes: rsync and tar break at the first byte that is not theirs.
#
#   clean_stream.sh MARK PROGRAM [ARGUMENT…]
#
# Exit: the program's own; 127 when it is not there; 2 usage.
set -u

if [ $# -lt 2 ]; then
  echo "usage: clean_stream.sh MARK PROGRAM [ARGUMENT…]" >&2
  exit 2
fi
printf '%s' "$1"
shift
exec "$@"
