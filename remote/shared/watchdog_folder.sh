#!/usr/bin/env bash
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
