#!/usr/bin/env bash
# Puts stdin into a file, all of it or nothing.
# usage: place_file.sh <path> <octal mode> <bytes>
# <bytes> is what must arrive: a lost connection looks like an early end of file.
set -u

main() {
  local path=$1 mode=$2 bytes=$3 part="$1.part.$$" got
  mkdir -p -- "$(dirname -- "$path")" || return 1
  if cat >"$part" && chmod "$mode" "$part" && got=$(wc -c <"$part") && [ "$((got))" -eq "$bytes" ]; then
    mv -f -- "$part" "$path" && return 0
  fi
  rm -f -- "$part"
  echo "place_file.sh: $path was not written: ${got:-no} of $bytes bytes arrived" >&2
  return 1
}

if [ $# -ne 3 ]; then
  echo "usage: place_file.sh <path> <octal mode> <bytes>" >&2
  exit 2
fi
main "$@"
