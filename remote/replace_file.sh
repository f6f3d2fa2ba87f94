#!/usr/bin/env bash
# Replaces a file by stdin, all of it or nothing, and only while it is what somebody read before.
# usage: replace_file.sh <path> <sha256 before> <sha256 after> <bytes>
# Prints one line: "replaced <sha256>", or "already <sha256>" when the content is there, so that a call
# whose answer was lost can be made again. Exit 6: the file is neither, and was left alone.
set -u

# The SHA-256 of a file; nothing when it cannot be read.
sum_of() {
  if command -v sha256sum >/dev/null; then sha256sum <"$1"; else shasum -a 256 <"$1"; fi 2>/dev/null | cut -c 1-64
}

main() {
  local path=$1 before=$2 after=$3 bytes=$4 part got target found rounds=0
  # A link stays a link: what it leads to is replaced.
  while [ -L "$path" ] && [ "$((rounds += 1))" -le 20 ]; do
    target=$(readlink -- "$path") || return 1
    case $target in /*) path=$target ;; *) path=$(dirname -- "$path")/$target ;; esac
  done
  part="$path.podtether.$$"
  found=$(sum_of "$path")
  if [ "$found" = "$after" ]; then echo "already $after" && return 0; fi
  if [ "$found" != "$before" ]; then
    echo "replace_file.sh: $1 changed since it was read (sha256 ${found:-of no file}, expected $before); nothing was written, ask again" >&2
    return 6
  fi
  # The copy brings mode and owner; then its content is written anew.
  if cp -p -- "$path" "$part" && cat >"$part" && got=$(wc -c <"$part") && [ "$((got))" -eq "$bytes" ] &&
    [ "$(sum_of "$part")" = "$after" ]; then
    # Once more, now that only the rename is left.
    if [ "$(sum_of "$path")" != "$before" ]; then
      rm -f -- "$part"
      echo "replace_file.sh: $1 changed while it was being written; nothing was replaced, ask again" >&2
      return 6
    fi
    if mv -f -- "$part" "$path" && [ "$(sum_of "$path")" = "$after" ]; then
      echo "replaced $after"
      return 0
    fi
  fi
  rm -f -- "$part"
  echo "replace_file.sh: $1 was not written whole: ${got:-no} of $bytes bytes arrived, or its content is another; is the volume full?" >&2
  return 1
}

if [ $# -ne 4 ]; then
  echo "usage: replace_file.sh <path> <sha256 before> <sha256 after> <bytes>" >&2
  exit 2
fi
main "$@"
