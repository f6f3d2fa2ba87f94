#!/usr/bin/env bash
# What a launch of a training must know of the pod's files.
# usage: recipe_look.sh <seconds> <max bytes> [marker <path> | file <path> | sha256 <path> | same <path> <path> | runs <folder> | since <folder> <name>]...
# Answers in the order in which it was asked:
#   marker=yes|no              whether there is such a file
#   file=b64:<base64>          its content; or file=absent, file=unreadable, file=large
#   sha256=<hex>              of its content; or sha256=absent, sha256=unreadable
#   same=yes|other|absent      whether both paths lead to one and the same file
#   runs=<count>               folders in a folder, 0 when it is not there; last of their names in run=<base64>
#   since=<count> <n>          the same, and n names that come after a name, at most 16, each in new=<base64>
# The volume may hang: what it has not told within the seconds is not told at all, and state=unresponsive
# stands in place of state=whole. Nothing is changed. Runs with bash 3.2 and BSD tools too.
set -u

tell_file() {
  local size content
  if [ ! -e "$1" ]; then
    echo file=absent
  elif [ ! -f "$1" ] || ! size=$(wc -c <"$1" 2>/dev/null); then
    echo file=unreadable
  elif [ "$((size))" -gt "$max" ]; then
    echo file=large
  elif content=$(encoded <"$1" 2>/dev/null); then
    echo "file=b64:$content"
  else
    echo file=unreadable
  fi
}

tell_sha256() {
  local hash
  if [ ! -e "$1" ]; then
    echo sha256=absent
  elif [ ! -f "$1" ] || ! hash=$(sha256_of "$1") || [ "${#hash}" -ne 64 ]; then
    echo sha256=unreadable
  else
    echo "sha256=$hash"
  fi
}

sha256_of() {
  if command -v sha256sum >/dev/null; then sha256sum <"$1"; else shasum -a 256 <"$1"; fi 2>/dev/null | cut -c 1-64
}

tell_runs() {
  local entry count=0 last=''
  for entry in "$1"/*/; do
    [ -d "$entry" ] || continue
    count=$((count + 1)) entry=${entry%/} last=${entry##*/}
  done
  echo "runs=$count"
  echo "run=$(printf '%s' "$last" | encoded)"
}

tell_since() {
  local entry count=0 new=() name
  for entry in "$1"/*/; do
    [ -d "$entry" ] || continue
    count=$((count + 1)) entry=${entry%/} name=${entry##*/}
    if [ "${#new[@]}" -lt 16 ] && [[ "$name" > "$2" ]]; then new+=("$name"); fi
  done
  echo "since=$count ${#new[@]}"
  # An empty list is an error to bash 3.2 under set -u.
  [ "${#new[@]}" -eq 0 ] || for name in "${new[@]}"; do echo "new=$(printf '%s' "$name" | encoded)"; done
}

look() {
  while [ $# -ge 2 ]; do
    case $1 in
      marker) if [ -e "$2" ]; then echo marker=yes; else echo marker=no; fi ;;
      file) tell_file "$2" ;;
      sha256) tell_sha256 "$2" ;;
      same)
        if [ ! -e "$2" ] || [ ! -e "${3:-}" ]; then
          echo same=absent
        elif [ "$2" -ef "${3:-}" ]; then
          echo same=yes
        else
          echo same=other
        fi
        shift
        ;;
      runs) tell_runs "$2" ;;
      since)
        tell_since "$2" "${3-}"
        shift
        ;;
    esac
    shift 2
  done
  echo state=whole
}

main() {
  local seconds=$1 line
  max=$2
  shift 2
  exec </dev/null
  export LC_ALL=C
  # By a process that can be left behind: what hangs in the kernel ends when the volume answers, and
  # holds nothing of this answer open.
  exec 3< <(look "$@" 2>/dev/null)
  SECONDS=0
  while [ "$SECONDS" -lt "$seconds" ] && IFS= read -r -t "$((seconds - SECONDS))" line <&3; do
    echo "$line"
    if [ "$line" = state=whole ]; then
      echo end=recipe_look.sh
      return 0
    fi
  done
  printf 'state=unresponsive\nend=recipe_look.sh\n'
}

case ${1:-x}${2:-x} in *[!0-9]*) set -- ;; esac
if [ $# -lt 2 ]; then
  echo "usage: recipe_look.sh <seconds> <max bytes> [marker <path> | file <path> | same <path> <path> | runs <folder> | since <folder> <name>]..." >&2
  exit 2
fi
main "$@"
