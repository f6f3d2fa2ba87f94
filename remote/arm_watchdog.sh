#!/usr/bin/env bash
# shellcheck disable=SC2154 # answer, folder: of a part that stands before this one
# Puts the watchdog on this pod, finds out what its stop path has, and starts it.
# usage: arm_watchdog.sh <pod id> <mount> <idle s> <tick s> <deadline s> <version> [<idle s after a lease>]
# stdin: the texts of idle_watchdog.sh and stop_pod.sh and the word "whole", with a NUL after each.
# Prints "key=value" lines, last "end=arm_watchdog.sh". One that watches with the same terms is left
# alone and only its deadline put off; another one is replaced. A deadline is never brought nearer, but
# for a drill, which alone gives the last argument: its watchdog is to strike within minutes.
set -u

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
