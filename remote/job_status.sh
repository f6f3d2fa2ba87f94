#!/usr/bin/env bash
# Tells everything about one job in one look, for a program to read.
# usage: job_status.sh <job dir> <max_bytes> <log_offset|->
# Prints "key=value" lines; contents of files are base64. With an offset the log from there on, with
# "-" its end, at most <max_bytes> of it. The last line is "end=job_status.sh": without it nothing counts.
#
# The order of the looks matters. Liveness before exit code: a wrapper writes the code and then
# ends, so no code after a dead wrapper means that none will come. Exit code before log: with a
# code, the log that follows is complete (D01).
set -u

# --- identity: the same text in every script that needs it; a unit test compares them ---
# Where there is no such folder, as on a Mac that stands in for a pod, ps is asked.
proc=${PODTETHER_PROC:-/proc}

# Prints when process $1 started, as one word; fails when it is gone. A zombie is gone: it answers
# `kill -0` for ever in a container whose first process never reaps (A16).
start_of() {
  local stat
  if [ -d "$proc/self" ]; then
    stat=
    { IFS= read -r -d '' stat <"$proc/$1/stat"; } 2>/dev/null
    [ -n "$stat" ] || return 1
    # The name in parentheses may hold anything; what follows it are plain words, 20th is the start.
    # shellcheck disable=SC2086
    set -- ${stat##*) }
    case $1 in Z | X) return 1 ;; esac
    printf '%s\n' "${20}"
  else
    case $(ps -o stat= -p "$1" 2>/dev/null) in '' | Z*) return 1 ;; esac
    LC_ALL=C ps -o lstart= -p "$1" | tr -s ' \n' '_'
  fi
}

# Prints what tells this boot from every other.
boot_id() {
  local id
  id=$(cat "$proc/sys/kernel/random/boot_id" 2>/dev/null) ||
    id=$(sysctl -n kern.bootsessionuuid 2>/dev/null) ||
    id=$(sysctl -n kern.boottime 2>/dev/null | tr -cd '0-9')
  printf '%s\n' "${id:-unknown-boot}"
}
# --- end of identity ---

# --- liveness: the same text in every script that needs it; a unit test compares them ---
# Says what became of the process that wrote the pid line $1: alive, dead, reused, other_boot or
# malformed. Never by the bare pid: containers hand out low numbers again (A17).
liveness() {
  local now
  # shellcheck disable=SC2086
  set -f && set -- $1 && set +f
  case ${1:-x} in *[!0-9]*) set -- ;; esac
  [ $# -eq 3 ] || { echo malformed && return; }
  [ "$3" = "$(boot_id)" ] || { echo other_boot && return; }
  now=$(start_of "$1") || { echo dead && return; }
  if [ "$now" = "$2" ]; then echo alive; else echo reused; fi
}

# Says whether processes of a job live on whose wrapper is gone: members of its session outside the
# wrapper's own process group. A session's number is not given out again while it has members.
lives_on() {
  local stat file
  for file in "$proc"/[0-9]*/stat; do
    stat=
    { IFS= read -r -d '' stat <"$file"; } 2>/dev/null
    # shellcheck disable=SC2086
    set -- "$1" ${stat##*) }
    case ${2:-X} in Z | X) continue ;; esac
    [ "$5" != "$1" ] || [ "$4" = "$1" ] || { echo yes && return; }
  done
  echo no
}
# --- end of liveness ---

encoded() { base64 | tr -d '\n'; }

# Prints "$1=absent", "$1=unreadable" or "$1=present", then the start of the file $2 as "$1_b64".
show_file() {
  local content
  if content=$(head -c "$3" -- "$2" 2>/dev/null | encoded && [ "${PIPESTATUS[0]}" -eq 0 ]); then
    echo "$1=present"
    echo "$1_b64=$content"
  elif is_absent "$2"; then
    echo "$1=absent"
  else
    echo "$1=unreadable"
  fi
}

# Whether $1 is not there, as far as its folder can tell: an unmounted or stale volume cannot.
is_absent() { ! [ -e "$1" ] && ! [ -L "$1" ] && ls -- "$(dirname -- "$1")" >/dev/null 2>&1; }

# Seconds since $1 was written, never below 0: clocks disagree (A14).
age_of() {
  local age
  age=$(stat -c %Y -- "$1" 2>/dev/null || stat -f %m -- "$1" 2>/dev/null) || return 0
  age=$(($(date +%s) - age))
  echo "$((age > 0 ? age : 0))"
}

main() {
  local dir=$1 max=$2 offset=$3 line='' process=none size copy="${TMPDIR:-/tmp}/podtether/${1##*/}.exit_code"
  if ! [ -d "$dir" ]; then
    if is_absent "$dir" || { is_absent "$(dirname -- "$dir")"; }; then echo exists=no; else echo exists=unknown; fi
    echo end=job_status.sh
    return
  fi
  echo exists=yes
  if [ -d "$dir/launched" ]; then echo "launch_age_s=$(age_of "$dir/launched")"; fi
  if line=$(cat -- "$dir/pid" 2>/dev/null); then
    process=$(liveness "$line")
    echo "pid_b64=$(printf '%s' "$line" | encoded)"
    if [ "$process" = dead ]; then echo "lives_on=$(lives_on "${line%% *}")"; fi
  elif ! is_absent "$dir/pid"; then
    process=unreadable
  fi
  echo "process=$process"
  show_file exit_code "$dir/exit_code" 64
  # The copy off the volume; only our own, since anyone may write in a shared /tmp.
  if [ -O "$copy" ]; then show_file exit_code_copy "$copy" 64; fi
  if [ -e "$dir/ceiling_struck" ] || [ -O "${copy%.exit_code}.ceiling_struck" ]; then echo ceiling_struck=yes; fi
  show_file meta "$dir/meta.json" 65536
  show_file leftovers "$dir/leftovers" 4096
  if size=$(wc -c <"$dir/out.log" 2>/dev/null); then
    size=$((size))
    if [ "$offset" = - ]; then offset=$((size > max ? size - max : 0)); fi
    if [ "$offset" -gt "$size" ]; then offset=$size; fi
    echo "log_size=$size"
    echo "log_age_s=$(age_of "$dir/out.log")"
    echo "log_offset=$offset"
    echo "log_b64=$(tail -c "+$((offset + 1))" -- "$dir/out.log" | head -c "$max" | encoded)"
  fi
  echo end=job_status.sh
}

case ${2:-x}${3:-x} in *[!0-9-]*) set -- ;; esac
if [ $# -ne 3 ]; then
  echo "usage: job_status.sh <job dir> <max_bytes> <log_offset|->" >&2
  exit 2
fi
main "$@"
