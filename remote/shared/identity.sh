#!/usr/bin/env bash
# What is asked here is left in $answer: printing it would cost whoever asks a process.
# Where there is no such folder, as on a Mac that stands in for a pod, ps is asked.
proc=${PODTETHER_PROC:-/proc}

# When process $1 started, as one word; fails when it is gone. A zombie is gone: it answers
# `kill -0` for ever in a container whose first process never reaps (A16).
start_of() {
  local stat=''
  answer=
  if [ -d "$proc/self" ]; then
    { IFS= read -r -d '' stat <"$proc/$1/stat"; } 2>/dev/null
    [ -n "$stat" ] || return 1
    # The name in parentheses may hold anything; what follows it are plain words, 20th is the start.
    # shellcheck disable=SC2086
    set -- ${stat##*) }
    case $1 in Z | X) return 1 ;; esac
    answer=${20}
  else
    case $(ps -o stat= -p "$1" 2>/dev/null) in '' | Z*) return 1 ;; esac
    answer=$(LC_ALL=C ps -o lstart= -p "$1" | tr -s ' \n' '_')
  fi
}

# What tells this boot from every other.
boot_id() {
  answer=
  { read -r answer <"${PODTETHER_BOOT_ID:-}"; } 2>/dev/null
  [ -n "$answer" ] || { read -r answer <"$proc/sys/kernel/random/boot_id"; } 2>/dev/null
  [ -n "$answer" ] || answer=$(sysctl -n kern.bootsessionuuid 2>/dev/null) ||
    answer=$(sysctl -n kern.boottime 2>/dev/null | tr -cd '0-9')
  answer=${answer:-unknown-boot}
}
