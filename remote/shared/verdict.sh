#!/usr/bin/env bash
# shellcheck disable=SC2154 # proc: of a part that stands before this one
# Prints "<bytes> <seconds of the last write> <name>" for each of the files, and ends this process.
stats() {
  case $OSTYPE in
    linux*) exec stat -L -c '%s %Y %n' -- "$@" ;;
    *) exec stat -L -f '%z %m %N' -- "$@" ;;
  esac
} 2>/dev/null

# Seconds since a file of the job folder $1 was written at $2, never below 0. The launch left a note of
# the machine's uptime, written at $3 by the same clock: against it and against the note's own time
# neither a clock that was set nor a volume whose clock is another can make a file hours older or
# younger than it is (A14).
age_of() {
  local at='' boot='' now=''
  { read -r at boot <"$1/launched/at" && read -r now _ <"$proc/uptime"; } 2>/dev/null
  now=${now%%.*}
  case $at$now in *[!0-9]*) at= ;; esac
  boot_id
  if [ -n "$at" ] && [ -n "$now" ] && [ -n "$3" ] && [ "$boot" = "$answer" ]; then
    answer=$((10#$now - 10#$at - ($2 - $3)))
  else
    answer=$(($(date +%s) - $2))
  fi
  [ "$answer" -ge 0 ] || answer=0
}

# Whether the launch of the job in folder $1 was called off before it began.
is_called_off() { [ -e "$1/launched/refused" ]; }

# What is known of the job in folder $1: live, over or unknown. $lost is yes for one that lives on
# without its wrapper. No process is started for a job that has an exit code, or a wrapper.
verdict() {
  local line='' code='' written='' note='' time name
  lost=
  # With an exit code the job is over, though its wrapper may still be stopping the pod.
  { read -r -n 64 code <"$1/exit_code"; } 2>/dev/null
  case $code in '' | *[!0-9]*) ;; *) answer=over && return ;; esac
  if ! [ -e "$1/pid" ]; then
    # Not launched yet, or launched this minute, or never come up.
    answer=60
    if [ -d "$1/launched" ] && ! is_called_off "$1"; then
      while read -r _ time name; do
        case $name in */launched/at) note=$time ;; *) written=$time ;; esac
      done < <(stats "$1/launched" "$1/launched/at")
      [ -z "$written" ] || age_of "$1" "$written" "$note"
    fi
    if [ "$answer" -lt 60 ]; then answer=live; else answer=over; fi
    return
  fi
  # What cannot be read is no pid line.
  { IFS= read -r -d '' -n 256 line <"$1/pid"; } 2>/dev/null
  liveness "$line"
  # shellcheck disable=SC2034 # only one of the scripts tells of $lost
  case $answer in
    alive) answer=live ;;
    dead) if lives_on "${line%% *}"; then answer=live lost=yes; else answer=over; fi ;;
    malformed) answer=unknown ;;
    *) answer=over ;;
  esac
}
