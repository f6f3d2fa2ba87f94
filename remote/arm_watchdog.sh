#!/usr/bin/env bash
# Puts the watchdog on this pod, finds out what its stop path has, and starts it.
# usage: arm_watchdog.sh <pod id> <mount> <idle s> <tick s> <deadline s> <version> [<idle s after a lease>]
# stdin: the texts of idle_watchdog.sh and stop_pod.sh and the word "whole", with a NUL after each.
# Prints "key=value" lines, last "end=arm_watchdog.sh". One that watches with the same terms is left
# alone and only its deadline put off; another one is replaced. A deadline is never brought nearer, but
# for a drill, which alone gives the last argument: its watchdog is to strike within minutes.
set -u

# --- identity: the same text in every script that needs it; a unit test compares them ---
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
# --- end of identity ---

# --- liveness: the same text in every script that needs it; a unit test compares them ---
# What became of the process that wrote the pid line $1: alive, dead, reused, other_boot or
# malformed. Never by the bare pid: containers hand out low numbers again (A17).
liveness() {
  # shellcheck disable=SC2086
  set -f && set -- $1 && set +f
  case ${1:-x} in *[!0-9]*) set -- ;; esac
  [ $# -eq 3 ] || { answer=malformed && return; }
  boot_id
  [ "$3" = "$answer" ] || { answer=other_boot && return; }
  start_of "$1" || { answer=dead && return; }
  if [ "$answer" = "$2" ]; then answer=alive; else answer=reused; fi
}

# Whether processes of a job live on whose wrapper is gone: members of its session outside the
# wrapper's own process group. A session's number is not given out again while it has members.
lives_on() {
  local stat file
  for file in "$proc"/[0-9]*/stat; do
    stat=
    { IFS= read -r -d '' stat <"$file"; } 2>/dev/null
    # shellcheck disable=SC2086
    set -- "$1" ${stat##*) }
    case ${2:-X} in Z | X) continue ;; esac
    [ "$5" != "$1" ] || [ "$4" = "$1" ] || return 0
  done
  return 1
}
# --- end of liveness ---

# --- clock: the same text in every script that needs it; a unit test compares them ---
# Hundredths of a second on a clock that is never set back, where there is one.
ticks() {
  answer=
  { read -r answer _ <"$proc/uptime"; } 2>/dev/null
  answer=${answer/./}
  case $answer in
    '' | *[!0-9]*) answer=$(($(date +%s) * 100)) ;;
    *) answer=$((10#$answer)) ;;
  esac
}
# --- end of clock ---

# --- watchdog folder: the same text in every script that needs it; a unit test compares them ---
# On the container disk: a volume that hangs must not keep the watchdog from anything, and what a boot
# left behind is gone with the next one.
folder="${TMPDIR:-/tmp}/podtether/watchdog"

# What tells this start of the container from every other.
this_boot() {
  local boot
  boot_id
  boot=$answer
  start_of 1
  answer=$boot/$answer
}

# In how many seconds the moment in file $1 comes, below 0 when it has passed; nothing when the
# file holds none of this boot. Moments are counted on the machine's uptime: no clock that is set
# moves them.
seconds_to() {
  local boot='' at=''
  { read -r boot at <"$folder/$1"; } 2>/dev/null
  this_boot
  [ "$boot" = "$answer" ] || at=
  answer=
  case $at in '' | *[!0-9]* | ???????????????*) return ;; esac
  ticks
  answer=$(((10#$at - answer) / 100))
}

# Writes the moment in $2 seconds into file $1, whole or not at all.
set_moment() {
  local boot
  this_boot
  boot=$answer
  ticks
  printf '%s %s\n' "$boot" "$((answer + $2 * 100))" >"$folder/$1.part.$$" &&
    mv -f "$folder/$1.part.$$" "$folder/$1"
}
# --- end of watchdog folder ---

# --- watchdog report: the same text in every script that needs it; a unit test compares them ---
# Prints what is known of the watchdog, as "watchdog…=" lines.
report_watchdog() {
  local at='' boot='' line='' name room
  if ! [ -O "$folder/pid" ]; then
    echo watchdog=none
    return
  fi
  { IFS= read -r -d '' -n 256 line <"$folder/pid"; } 2>/dev/null
  liveness "$line"
  echo "watchdog=$answer"
  for name in terms verdict heartbeat; do
    room=4096
    while [ "$room" -gt 0 ] && { IFS= read -r -n "$room" line || [ -n "$line" ]; }; do
      room=$((room - ${#line} - 1))
      # A decision may hold anything, an answer has one line for each value.
      line=${line//$'\r'/}
      case ${line%%=*} in "$line" | *[!a-z_]*) ;; *) echo "watchdog_$line" ;; esac
    done 2>/dev/null <"$folder/$name"
  done
  for name in deadline lease probed; do
    seconds_to "$name"
    echo "watchdog_${name}_in_s=$answer"
  done
  { read -r boot at <"$folder/looked"; } 2>/dev/null
  this_boot
  if [ "$boot" = "$answer" ]; then
    ticks
    echo "watchdog_age_s=$(((answer - at) / 100))"
  fi
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
    liveness "$1"
    [ "$answer" = alive ] || return
    sleep 0.05
  done
}

main() {
  pod=$1 mount=$2
  local idle=$3 tick=$4 limit=$5 version=$6 after_lease=${7:-} watchdog='' stopper='' whole='' line left round terms
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
  if [ -n "$after_lease" ]; then
    terms="$terms
after_lease_s=$after_lease"
    rm -f "$folder/deadline"
  fi
  seconds_to deadline
  left=$answer
  if [ -z "$left" ] || [ "$left" -lt "$limit" ]; then set_moment deadline "$limit"; fi
  set_moment wanted 0
  line=$(cat "$folder/pid" 2>/dev/null)
  liveness "$line"
  if [ "$answer" != alive ] || [ "$(cat "$folder/terms" 2>/dev/null)" != "$terms" ]; then
    [ "$answer" != alive ] || replace "$line"
    printf '%s' "$watchdog" >"$folder/idle_watchdog.sh" && printf '%s' "$stopper" >"$folder/stop_pod.sh" || return 1
    printf '%s\n' "$terms" >"$folder/terms"
    rm -f "$folder/looked" "$folder/heartbeat"
    (exec env -i "${keep[@]}" setsid bash "$folder/idle_watchdog.sh" \
      watch "$pod" "$mount" "$idle" "$tick" "$limit" ${after_lease:+"$after_lease"}) </dev/null >>"$folder/log" 2>&1 &
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

case $# in 6 | 7) ;; *)
  echo "usage: arm_watchdog.sh <pod id> <mount> <idle s> <tick s> <deadline s> <version> [<idle s after a lease>]" >&2
  exit 2
  ;;
esac
main "$@"
