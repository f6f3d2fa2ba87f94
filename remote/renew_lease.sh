#!/usr/bin/env bash
# Says to the watchdog that somebody supervises this pod for the next seconds.
# usage: renew_lease.sh <seconds>      0 takes the lease back
# Prints "key=value" lines, last "end=renew_lease.sh".
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

# --- clock: the same text in every script that needs it; a unit test compares them ---
# Hundredths of a second on a clock that is never set back, where there is one.
ticks() {
  local uptime
  if { read -r uptime _ <"$proc/uptime"; } 2>/dev/null; then
    echo $((10#${uptime/./}))
  else
    echo $(($(date +%s) * 100))
  fi
}
# --- end of clock ---

# --- watchdog folder: the same text in every script that needs it; a unit test compares them ---
# On the container disk: a volume that hangs must not keep the watchdog from anything, and what a boot
# left behind is gone with the next one.
folder="${TMPDIR:-/tmp}/podtether/watchdog"

# Prints what tells this start of the container from every other.
this_boot() { echo "$(boot_id)/$(start_of 1)"; }

# Prints in how many seconds the moment in file $1 comes, below 0 when it has passed; nothing when the
# file holds none of this boot. Moments are counted on the machine's uptime: no clock that is set
# moves them.
seconds_to() {
  local boot='' at='' now
  { read -r boot at <"$folder/$1"; } 2>/dev/null
  case $at in '' | *[!0-9]* | ???????????????*) return ;; esac
  now=$(ticks)
  [ "$boot" != "$(this_boot)" ] || echo $(((at - now) / 100))
}

# Writes the moment in $2 seconds into file $1, whole or not at all.
set_moment() {
  printf '%s %s\n' "$(this_boot)" "$(($(ticks) + $2 * 100))" >"$folder/$1.part.$$" &&
    mv -f "$folder/$1.part.$$" "$folder/$1"
}
# --- end of watchdog folder ---

# --- watchdog report: the same text in every script that needs it; a unit test compares them ---
# What is known of the watchdog, as "watchdog…=" lines.
report_watchdog() {
  local at='' boot='' name
  if ! [ -O "$folder/pid" ]; then
    echo watchdog=none
    return
  fi
  echo "watchdog=$(liveness "$(cat "$folder/pid" 2>/dev/null)")"
  for name in terms verdict heartbeat; do
    # tr: a decision may hold anything, an answer has one line for each value.
    { head -c 4096 -- "$folder/$name" | tr -d '\r'; } 2>/dev/null | sed -n 's/^\([a-z_]*=\)/watchdog_\1/p'
  done
  echo "watchdog_deadline_in_s=$(seconds_to deadline)"
  echo "watchdog_lease_in_s=$(seconds_to lease)"
  echo "watchdog_probed_in_s=$(seconds_to probed)"
  { read -r boot at <"$folder/looked"; } 2>/dev/null
  if [ "$boot" = "$(this_boot)" ]; then echo "watchdog_age_s=$((($(ticks) - at) / 100))"; fi
}
# --- end of watchdog report ---

case ${1:-x} in
  *[!0-9]* | ????????*) echo "usage: renew_lease.sh <seconds>" >&2 && exit 2 ;;
  0) rm -f "$folder/lease" ;;
  *) [ ! -d "$folder" ] || set_moment lease "$1" || exit 1 ;;
esac
report_watchdog
echo end=renew_lease.sh
