#!/usr/bin/env bash
# Puts the watchdog on this pod, finds out what its stop path has, and starts it.
# usage: arm_watchdog.sh <pod id> <mount> <idle s> <tick s> <deadline s> <version>
# stdin: the texts of idle_watchdog.sh and stop_pod.sh and the word "whole", with a NUL after each.
# Prints "key=value" lines, last "end=arm_watchdog.sh". One that watches with the same terms is left
# alone and only its deadline put off; another one is replaced. A deadline is never brought nearer.
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

# What is left of the environment: what every SSH session here has, and our own variables. The probe
# has the same as the watchdog, so what it finds is what the watchdog will find.
keep=()
for name in HOME USER LANG PATH TMPDIR $(compgen -e | grep '^PODTETHER_' | grep -v '^PODTETHER_JOB$'); do
  # A name that is not set must not become one that is empty.
  if [ -n "${!name+set}" ]; then keep[${#keep[@]}]="$name=${!name}"; fi
done

# The stop path's verdict, and whether an earlier watchdog of this pod has stopped it: its mark is on
# the volume and not on this disk, which was wiped since. In a process of its own for a volume that hangs.
verdict_lines() {
  local found=no round
  env -i "${keep[@]}" bash "$folder/idle_watchdog.sh" probe "$pod" 2>/dev/null || echo code=92
  if ! [ -e "$folder/fired" ]; then
    { [ "$(head -n 1 "$mount/.podtether/watchdog/fired" 2>/dev/null)" = "$pod" ] && echo yes >"$folder/proof"; } </dev/null >/dev/null 2>&1 &
    for ((round = 0; round < 30; round++)); do
      kill -0 $! 2>/dev/null || break
      sleep 0.1
    done
  fi
  if [ -s "$folder/proof" ]; then found=yes; fi
  echo "fired=$found"
}

# Ends the watchdog that $1 is the pid line of, with everything in its group.
replace() {
  local round
  kill -KILL -- "-${1%% *}" 2>/dev/null
  for ((round = 0; round < 100; round++)); do
    [ "$(liveness "$1")" = alive ] || return
    sleep 0.05
  done
}

main() {
  pod=$1 mount=$2
  local idle=$3 tick=$4 limit=$5 version=$6 watchdog='' stopper='' whole='' line left round terms
  IFS= read -r -d '' watchdog
  IFS= read -r -d '' stopper
  IFS= read -r -d '' whole
  if [ "$whole" != whole ]; then
    echo "arm_watchdog.sh: its scripts did not arrive whole" >&2
    return 1
  fi
  umask 077
  mkdir -p "$folder" && [ -O "$folder" ] || return 1
  terms="idle_s=$idle
tick_s=$tick
version=$version"
  left=$(seconds_to deadline)
  if [ -z "$left" ] || [ "$left" -lt "$limit" ]; then set_moment deadline "$limit"; fi
  set_moment wanted 0
  line=$(cat "$folder/pid" 2>/dev/null)
  if [ "$(liveness "$line")" != alive ] || [ "$(cat "$folder/terms" 2>/dev/null)" != "$terms" ]; then
    [ "$(liveness "$line")" != alive ] || replace "$line"
    printf '%s' "$watchdog" >"$folder/idle_watchdog.sh" && printf '%s' "$stopper" >"$folder/stop_pod.sh" || return 1
    printf '%s\n' "$terms" >"$folder/terms"
    rm -f "$folder/looked" "$folder/heartbeat"
    (exec env -i "${keep[@]}" setsid bash "$folder/idle_watchdog.sh" \
      watch "$pod" "$mount" "$idle" "$tick" "$limit") </dev/null >>"$folder/log" 2>&1 &
    for ((round = 0; round < 200; round++)); do
      [ ! -s "$folder/looked" ] || break
      sleep 0.05
    done
  fi
  set_moment probed 0
  verdict_lines >"$folder/verdict"
  report_watchdog
  echo end=arm_watchdog.sh
}

if [ $# -ne 6 ]; then
  echo "usage: arm_watchdog.sh <pod id> <mount> <idle s> <tick s> <deadline s> <version>" >&2
  exit 2
fi
main "$@"
