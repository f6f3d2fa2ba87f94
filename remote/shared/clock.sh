#!/usr/bin/env bash
# shellcheck disable=SC2154 # proc: of a part that stands before this one
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
