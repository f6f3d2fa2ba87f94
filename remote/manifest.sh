#!/usr/bin/env bash
# Lists what is in a folder, for comparing with what was received.
#
#   manifest.sh DIR [MARKER TOKEN] <PATHS
#
# MARKER is a file whose first line has to be TOKEN: without it the volume is not the one that is meant,
# or not mounted. PATHS on stdin, each with NUL behind it, are hashed; none is a list without hashes.
# Records end with NUL, since a path may hold anything else:
#   podtether-list   the first one; what stands before it, the shell's start-up files wrote
#   t SECONDS - -    the pod's clock, before anything was looked at
#   v BYTES - -      free on the folder's file system
#   f SIZE STAMP PATH  a regular file, its size in bytes, and what changes whenever it does:
#                    times of its content and of its inode, and the inode's number
#   l 0 - PATH       a symbolic link
#   o 0 - PATH       anything else that is no folder
#   SHA256  ./PATH   the hash of a regular file, as sha256sum -z writes it
#   end              the last record
# A file without a hash vanished or could not be read while it was being hashed.
# Exit: 0 listed, 2 usage, 3 no such folder, 5 the marker is not there, other: not listed whole.
# Runs with bash 5 and GNU tools on a pod, and with bash 3.2 and BSD tools on a Mac.
set -u -o pipefail

if [[ $# -ne 1 && $# -ne 3 ]]; then
  echo "usage: manifest.sh DIR [MARKER TOKEN]" >&2
  exit 2
fi
if [[ $# -eq 3 ]]; then
  if ! [[ -s $2 ]]; then
    echo "there is no $2" >&2
    exit 5
  fi
  found=$(head -n 1 -- "$2")
  if [[ $found != "$3" ]]; then
    echo "$2 names $found" >&2
    exit 5
  fi
fi
if [[ ! -d $1 ]]; then
  echo "no such folder: $1" >&2
  exit 3
fi
cd -- "$1" || exit 3
export LC_ALL=C

list() {
  # GNU find knows everything itself; elsewhere one stat per file has to do.
  if find . -maxdepth 0 -printf '' 2>/dev/null; then
    find . ! -type d \( -type f -printf 'f %s %T@/%C@/%i %P\0' \
      -o -type l -printf 'l 0 - %P\0' -o -printf 'o 0 - %P\0' \)
    return
  fi
  find . ! -type d -print0 | while IFS= read -r -d '' path; do
    if [[ -L $path ]]; then
      printf 'l 0 - %s\0' "${path#./}"
    elif [[ ! -f $path ]]; then
      printf 'o 0 - %s\0' "${path#./}"
    elif fields=$(stat -f '%z %Fm/%Fc/%i' -- "$path"); then
      printf 'f %s %s\0' "$fields" "${path#./}"
    fi
  done
}

hash_named() {
  # -z leaves names as they are. Without it a name with a newline would come out escaped.
  if printf '' | sha256sum -z >/dev/null 2>&1; then
    xargs -0 -r sha256sum -z --
    return
  fi
  while IFS= read -r -d '' path; do
    if line=$(shasum -a 256 <"$path"); then
      printf '%s  %s\0' "${line:0:64}" "$path"
    fi
  done
}

free_kib=$(df -Pk . 2>/dev/null | awk 'NR == 2 { print $4 }')
printf 'podtether-list\0t %s - -\0v %s - -\0' "$(date +%s)" "$((${free_kib:-0} * 1024))"
list || exit 4
# What cannot be read is not hashed, and missed on the other side.
hash_named
printf 'end\0'
