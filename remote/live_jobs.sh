#!/usr/bin/env bash
# Lists the jobs that live, for a program to read.
# usage: live_jobs.sh <mount>
# Prints "live=<id>", or "unknown=<id>" where nobody could say, and last "end=live_jobs.sh".
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

# --- verdict: the same text in every script that needs it; a unit test compares them ---
# What is known of the job in folder $1: live, over or unknown.
verdict() {
  local line pid=$1/pid
  # With an exit code the job is over, though its wrapper may still be stopping the pod.
  case $(head -c 64 -- "$1/exit_code" 2>/dev/null) in '' | *[!0-9]*) ;; *) echo over && return ;; esac
  if ! [ -e "$pid" ]; then
    # Not launched yet, or launched this minute, or never come up.
    if [ -d "$1/launched" ] && [ -n "$(find "$1/launched" -prune -mmin -1 2>/dev/null)" ]; then echo live; else echo over; fi
    return
  fi
  line=$(cat -- "$pid" 2>/dev/null) || { echo unknown && return; }
  case $(liveness "$line") in
    alive) echo live ;;
    dead) if [ "$(lives_on "${line%% *}")" = yes ]; then echo live; else echo over; fi ;;
    malformed) echo unknown ;;
    *) echo over ;;
  esac
}
# --- end of verdict ---

main() {
  local dir word
  # A volume that is not there must not look like one without jobs (E14).
  ls -- "$1" >/dev/null || exit 1
  if [ -e "$1/jobs" ]; then ls -- "$1/jobs" >/dev/null || exit 1; fi
  for dir in "$1"/jobs/*/; do
    [ -d "$dir" ] || continue
    dir=${dir%/}
    word=$(verdict "$dir")
    [ "$word" = over ] || echo "$word=${dir##*/}"
  done
  echo end=live_jobs.sh
}

if [ $# -ne 1 ]; then
  echo "usage: live_jobs.sh <mount>" >&2
  exit 2
fi
main "$@"
