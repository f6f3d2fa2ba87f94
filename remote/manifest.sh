#!/usr/bin/env bash
# Lists what is in a folder, for comparing with what was received.
#
#   manifest.sh DIR hashes|sizes
#
# Records end with NUL, since a path may hold anything else:
#   f SIZE PATH    a regular file, its size in bytes
#   l 0 PATH       a symbolic link
#   o 0 PATH       anything else that is no folder
#   SHA256  ./PATH the hash of a regular file (only with "hashes"), as sha256sum -z writes it
#   end            the last record
# A file without a hash vanished or could not be read while it was being hashed.
# Exit: 0 listed, 2 usage, 3 no such folder, other: not listed whole.
# Runs with bash 5 and GNU tools on a pod, and with bash 3.2 and BSD tools on a Mac.
set -u -o pipefail

if [[ $# -ne 2 || ( $2 != hashes && $2 != sizes ) ]]; then
  echo "usage: manifest.sh DIR hashes|sizes" >&2
  exit 2
fi
if [[ ! -d $1 ]]; then
  echo "no such folder: $1" >&2
  exit 3
fi
cd -- "$1" || exit 3
export LC_ALL=C

list() {
  # GNU find knows sizes itself; elsewhere one stat per file has to do.
  if find . -maxdepth 0 -printf '' 2>/dev/null; then
    find . ! -type d \( -type f -printf 'f %s %P\0' \
      -o -type l -printf 'l 0 %P\0' -o -printf 'o 0 %P\0' \)
    return
  fi
  find . ! -type d -print0 | while IFS= read -r -d '' path; do
    if [[ -L $path ]]; then
      printf 'l 0 %s\0' "${path#./}"
    elif [[ ! -f $path ]]; then
      printf 'o 0 %s\0' "${path#./}"
    elif size=$(stat -f %z -- "$path"); then
      printf 'f %s %s\0' "$size" "${path#./}"
    fi
  done
}

hash_all() {
  # -z leaves names as they are. Without it a name with a newline would come out escaped.
  if printf '' | sha256sum -z >/dev/null 2>&1; then
    find . -type f -print0 | xargs -0 -r sha256sum -z --
    return
  fi
  find . -type f -print0 | while IFS= read -r -d '' path; do
    if line=$(shasum -a 256 <"$path"); then
      printf '%s  %s\0' "${line:0:64}" "$path"
    fi
  done
}

list || exit 4
if [[ $2 == hashes ]]; then
  # What cannot be read is not hashed, and missed on the other side.
  hash_all || true
fi
printf 'end\0'
