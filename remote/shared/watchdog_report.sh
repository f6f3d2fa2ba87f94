#!/usr/bin/env bash
# shellcheck disable=SC2154 # answer, folder: of a part that stands before this one
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
