#!/usr/bin/env bash
# Proves which pod this is and tells what it has, for a program to read.
# usage: pod_probe.sh <mount> <pod_id> <token>
# Prints "key=value" lines, last "end=pod_probe.sh". <token> becomes the volume's identity if it has none
# and the pod is the expected one: a stale address may lead to somebody else's pod (F01).
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

# --- environment: the same text in every script that needs it; a unit test compares them ---
# Prints the value of variable $1 of this pod: from the environment file, else from the first
# process, else from our own environment. The file is read and never run: the provider's images write
# it line by line while SSH already answers, so it may end in the middle of a word, and a value with
# a quote or a `$` makes it something else than it says. Taken are `export NAME="…"`, `NAME='…'` and
# `NAME=…`; the last one counts. A value whose end is missing is none.
pod_variable() {
  local line value found='' whole=1 quote='"' dollar='$' tick='`' slash="\\"
  while IFS= read -r line || { whole='' && [ -n "$line" ]; }; do
    line=${line%$'\r'}
    line=${line#"${line%%[![:space:]]*}"}
    line=${line#export }
    line=${line#declare -x }
    case $line in "$1="*) value=${line#*=} ;; *) continue ;; esac
    case $value in
      '"'*'"')
        value=${value#\"} value=${value%\"}
        value=${value//"$slash$quote"/$quote}
        value=${value//"$slash$dollar"/$dollar}
        value=${value//"$slash$tick"/$tick}
        value=${value//"$slash$slash"/$slash}
        ;;
      "'"*"'") value=${value#\'} value=${value%\'} ;;
      '"'* | "'"*) continue ;;
      *) [ -n "$whole" ] || continue && value=${value%%[[:space:]]*} ;;
    esac
    found=$value
  done < <(cat -- "${PODTETHER_RP_ENVIRONMENT:-/etc/rp_environment}" 2>/dev/null)
  # The first process of a local pod is the user's machine, whose key is none of ours.
  if [ -z "$found" ] && [ -z "${PODTETHER_LOCAL_POD:-}" ]; then
    found=$({ tr '\0' '\n' <"${PODTETHER_PROC:-/proc}/1/environ" | sed -n "s/^$1=//p" | head -n 1; } 2>/dev/null)
  fi
  printf '%s\n' "${found:-${!1:-}}"
}
# --- end of environment ---

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
    tr -d '\r' <"$folder/$name" 2>/dev/null | sed -n 's/^\([a-z_]*=\)/watchdog_\1/p'
  done
  echo "watchdog_deadline_in_s=$(seconds_to deadline)"
  echo "watchdog_lease_in_s=$(seconds_to lease)"
  { read -r boot at <"$folder/looked"; } 2>/dev/null
  if [ "$boot" = "$(this_boot)" ]; then echo "watchdog_age_s=$((($(ticks) - at) / 100))"; fi
}
# --- end of watchdog report ---

free_kib() { df -Pk -- "$1" 2>/dev/null | awk 'NR == 2 { print $4 }'; }
device_of() { stat -c %d -- "$1" 2>/dev/null || stat -f %d -- "$1" 2>/dev/null; }

# nvidia-smi hangs on a sick GPU; the rest must be told all the same.
gpus() {
  set -- nvidia-smi
  if command -v timeout >/dev/null; then set -- timeout 10 nvidia-smi; fi
  "$@" --query-gpu=driver_version,utilization.gpu,memory.used,memory.total \
    --format=csv,noheader,nounits 2>/dev/null </dev/null | sed -n 's/^\([0-9].*,.*,.*,.*\)$/gpu=\1/p'
}

# Prints the volume's token, after giving it $2 when it has none.
identity() {
  local file="$1/.podtether/identity" part
  if ! [ -s "$file" ] && [ -n "$2" ]; then
    part="$file.part.$$"
    mkdir -p -- "$1/.podtether" && printf '%s\n' "$2" >"$part" && mv -n -- "$part" "$file"
    rm -f -- "$part"
  fi
  head -n 1 -- "$file" 2>/dev/null
}

main() {
  local mount=$1 token=$3 kind=missing uptime='' id
  if [ -L "$mount" ] && [ -d "$mount" ]; then
    kind=symlink
  elif [ -d "$mount" ]; then
    if [ "$(device_of "$mount")" = "$(device_of /)" ]; then kind=same_device; else kind=device; fi
  fi
  id=$(pod_variable RUNPOD_POD_ID)
  [ "$id" = "$2" ] || token=''
  echo "pod_id=$id"
  gpus
  echo "mount=$kind"
  echo "mount_free_kib=$(free_kib "$mount")"
  echo "disk_free_kib=$(free_kib /)"
  if command -v rsync >/dev/null; then echo rsync=yes; else echo rsync=no; fi
  { read -r uptime _ </proc/uptime; } 2>/dev/null
  echo "uptime_s=${uptime%%.*}"
  if [ "$kind" != missing ]; then echo "identity=$(identity "$mount" "$token")"; fi
  report_watchdog
  echo end=pod_probe.sh
}

if [ $# -ne 3 ]; then
  echo "usage: pod_probe.sh <mount> <pod_id> <token>" >&2
  exit 2
fi
main "$@"
