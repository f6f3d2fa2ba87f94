#!/usr/bin/env bash
# `podtether deadman …` with this computer kept awake (caffeinate on macOS, systemd-inhibit on
# Linux) as long as the call takes. The fuse that it arms lives on and does not keep anything awake:
# it fires when this computer wakes. Arguments, signals and exit code pass through.
set -euo pipefail

file=${BASH_SOURCE[0]}
while [ -L "$file" ]; do
  link=$(readlink "$file")
  case $link in
    /*) file=$link ;;
    *) file=$(dirname "$file")/$link ;;
  esac
done
exec "$(dirname "$file")/run.sh" awake deadman ${1+"$@"}
