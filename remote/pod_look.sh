#!/usr/bin/env bash
# One look at a pod, for a program to read: which pod this is, what it has and does, which jobs live,
# and how one job is.
# usage: pod_look.sh <mount> <pod_id> <token> <seconds> <read|write|who> <job id|-> <max_bytes> <log_offset|->
# Prints "key=value" lines; contents of files are base64. With an offset the log of the job from there
# on, with "-" its end, at most <max_bytes> of it. <token> becomes the volume's identity if it has none
# and the pod is the expected one: a stale address may lead to somebody else's pod (F01). With "write"
# the volume is written to; with "who" only who answers is told. The last line is "end=pod_look.sh": without it nothing counts.
#
# What can hang runs beside this process, which waits for it until <seconds> are over: a volume may put
# whoever touches it into a sleep that no signal ends (E14), and so may the driver of a sick GPU. Then
# "volume=unresponsive" or "gpu_state=unresponsive" stands where "answers" would, and the rest is told
# all the same. Nothing in this process itself touches the volume.
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

# --- verdict: the same text in every script that needs it; a unit test compares them ---
# Prints when file $1 was written, in seconds by the clock of its file system.
written() { stat -c %Y -- "$1" 2>/dev/null || stat -f %m -- "$1" 2>/dev/null; }

# Seconds since the file $1 of the job folder $2 was written, never below 0. The launch left a note of
# the machine's uptime: against it and against the note's own time neither a clock that was set nor a
# volume whose clock is another can make a file hours older or younger than it is (A14).
age_of() {
  local at='' boot='' now='' note age
  age=$(written "$1") && [ -n "$age" ] || return 0
  { read -r at boot <"$2/launched/at" && read -r now _ <"$proc/uptime"; } 2>/dev/null
  case $at in '' | *[!0-9]*) at= ;; esac
  now=${now%%.*}
  if [ -n "$at" ] && [ -n "$now" ] && [ "$boot" = "$(boot_id)" ] && note=$(written "$2/launched/at"); then
    age=$((now - at - (age - note)))
  else
    age=$(($(date +%s) - age))
  fi
  echo "$((age > 0 ? age : 0))"
}

# What is known of the job in folder $1: live, over or unknown.
verdict() {
  local line='' code='' age
  # With an exit code the job is over, though its wrapper may still be stopping the pod.
  { read -r -n 64 code <"$1/exit_code"; } 2>/dev/null
  case $code in '' | *[!0-9]*) ;; *) echo over && return ;; esac
  if ! [ -e "$1/pid" ]; then
    # Not launched yet, or launched this minute, or never come up.
    age=
    if [ -d "$1/launched" ]; then age=$(age_of "$1/launched" "$1"); fi
    if [ "${age:-60}" -lt 60 ]; then echo live; else echo over; fi
    return
  fi
  line=$(cat -- "$1/pid" 2>/dev/null) || { echo unknown && return; }
  case $(liveness "$line") in
    alive) echo live ;;
    dead) if [ "$(lives_on "${line%% *}")" = yes ]; then echo live; else echo over; fi ;;
    malformed) echo unknown ;;
    *) echo over ;;
  esac
}
# --- end of verdict ---

# GNU's breaks lines unless it is told not to, and BSD's cannot be told.
if base64 -w 0 </dev/null >/dev/null 2>&1; then
  encoded() { base64 -w 0; }
else
  encoded() { base64 | tr -d '\n'; }
fi

free_kib() { df -Pk -- "$1" 2>/dev/null | { read -r _ && read -r _ _ _ free _ && echo "$free"; }; }
device_of() { stat -c %d -- "$1" 2>/dev/null || stat -f %d -- "$1" 2>/dev/null; }

# Prints "$1=absent", "$1=unreadable" or "$1=present", then the start of the file $2 as "$1_b64".
show_file() {
  local content
  if ! [ -e "$2" ] && is_absent "$2"; then
    echo "$1=absent"
  elif content=$(head -c "$3" -- "$2" 2>/dev/null | encoded && [ "${PIPESTATUS[0]}" -eq 0 ]); then
    echo "$1=present"
    echo "$1_b64=$content"
  elif is_absent "$2"; then
    echo "$1=absent" # it went meanwhile
  else
    echo "$1=unreadable"
  fi
}

# Whether $1 is not there, as far as its folder can tell: an unmounted or stale volume cannot.
is_absent() { ! [ -e "$1" ] && ! [ -L "$1" ] && ls -- "${1%/*}/." >/dev/null 2>&1; }

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

gpus() {
  nvidia-smi --query-gpu=driver_version,utilization.gpu,memory.used,memory.total \
    --format=csv,noheader,nounits | sed -n 's/^\([0-9].*,.*,.*,.*\)$/gpu=\1/p'
}

# Prints what the container uses of its memory, and how much it has, in KiB. A limit of the container
# counts before what the machine has; a cache that would be given back is not in use.
memory() {
  local group=/sys/fs/cgroup used='' total='' stat='' key value available=0 machine=''
  while read -r key value _; do
    case $key in MemTotal:) machine=$value ;; MemAvailable:) available=$value ;; esac
  done <"$proc/meminfo"
  if [ -r "$group/memory.current" ]; then
    read -r used <"$group/memory.current"
    read -r total <"$group/memory.max"
    stat=$group/memory.stat
  elif [ -r "$group/memory/memory.usage_in_bytes" ]; then
    read -r used <"$group/memory/memory.usage_in_bytes"
    read -r total <"$group/memory/memory.limit_in_bytes"
    stat=$group/memory/memory.stat
  fi
  case $total in '' | *[!0-9]* | ????????????????*) total=$((${machine:-0} * 1024)) ;; esac
  if [ -n "$used" ]; then
    while read -r key value; do
      case $key in inactive_file | total_inactive_file) used=$((used > value ? used - value : 0)) ;; esac
    done <"$stat"
  elif [ -n "$machine" ]; then
    used=$(((machine - available) * 1024))
  fi
  [ -z "$used" ] || echo "memory_used_kib=$((used / 1024))"
  [ "$total" = 0 ] || echo "memory_total_kib=$((total / 1024))"
} 2>/dev/null

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

# Says whether the volume takes a small file, and why not: a quota or a full disk shows in no other way.
writable() {
  local file="$1/.podtether/writable" said
  if said=$({ mkdir -p -- "$1/.podtether" && printf '%4096s\n' x >"$file.$$" &&
    { sync "$file.$$" || :; } && mv -f -- "$file.$$" "$file"; } 2>&1); then
    echo writable=yes
  else
    echo writable=no
    echo "writable_b64=$(printf '%s' "$said" | tail -c 300 | encoded)"
  fi
  rm -f -- "$file.$$" "$file"
}

# Prints "live=<id>", or "unknown=<id>" where nobody could say, and last "jobs=whole": without it the
# volume could not be listed, which must not look like one without jobs (E14).
jobs_of() {
  local dir word
  # With a dot: of a link that leads nowhere ls else lists the link itself.
  ls -- "$1/." >/dev/null || return
  if [ -e "$1/jobs" ]; then ls -- "$1/jobs/." >/dev/null || return; fi
  for dir in "$1"/jobs/*/; do
    [ -d "$dir" ] || continue
    dir=${dir%/}
    word=$(verdict "$dir")
    [ "$word" = over ] || echo "$word=${dir##*/}"
  done
  echo jobs=whole
}

# Everything about the job in folder $1. The order of the looks matters. Liveness before exit code: a
# wrapper writes the code and then ends, so no code after a dead wrapper means that none will come.
# Exit code before log: with a code, the log that follows is complete (D01).
job() {
  local dir=$1 max=$2 offset=$3 line='' process=none size copy="$beside/${1##*/}.exit_code"
  if ! [ -d "$dir" ]; then
    if is_absent "$dir" || { is_absent "${dir%/*}"; }; then echo exists=no; else echo exists=unknown; fi
    return
  fi
  echo exists=yes
  if [ -d "$dir/launched" ]; then echo "launch_age_s=$(age_of "$dir/launched" "$dir")"; fi
  if line=$(cat -- "$dir/pid" 2>/dev/null); then
    process=$(liveness "$line")
    if [ "$process" = dead ]; then echo "lives_on=$(lives_on "${line%% *}")"; fi
  elif ! is_absent "$dir/pid"; then
    process=unreadable
  fi
  echo "process=$process"
  show_file exit_code "$dir/exit_code" 64
  # The copy off the volume; only our own, since anyone may write in a shared /tmp.
  if [ -O "$copy" ]; then show_file exit_code_copy "$copy" 64; fi
  if [ -e "$dir/ceiling_struck" ] || [ -O "${copy%.exit_code}.ceiling_struck" ]; then echo ceiling_struck=yes; fi
  show_file meta "$dir/meta.json" 65536
  show_file leftovers "$dir/leftovers" 4096
  if size=$(wc -c <"$dir/out.log" 2>/dev/null); then
    size=$((size))
    if [ "$offset" = - ]; then offset=$((size > max ? size - max : 0)); fi
    if [ "$offset" -gt "$size" ]; then offset=$size; fi
    echo "log_size=$size"
    echo "log_age_s=$(age_of "$dir/out.log" "$dir")"
    echo "log_offset=$offset"
    echo "log_b64=$(tail -c "+$((offset + 1))" -- "$dir/out.log" | head -c "$max" | encoded)"
  fi
}

# What the wrapper of job $1 left beside the volume, for when that does not answer.
job_beside() {
  local file="$beside/$1" line
  if [ -O "$file.pid" ] && line=$(cat -- "$file.pid"); then
    echo "beside_process=$(liveness "$line")"
  fi
  if [ -O "$file.exit_code" ]; then show_file beside_exit_code "$file.exit_code" 64; fi
  if [ -O "$file.ceiling_struck" ]; then echo beside_ceiling_struck=yes; fi
}

volume() {
  local kind=missing
  if [ -L "$mount" ] && [ -d "$mount" ]; then
    kind=symlink
  elif [ -d "$mount" ]; then
    if [ "$(device_of "$mount")" = "$(device_of /)" ]; then kind=same_device; else kind=device; fi
  fi
  echo "mount=$kind"
  echo "mount_free_kib=$(free_kib "$mount")"
  if [ "$kind" != missing ]; then
    echo "identity=$(identity "$mount" "$1")"
    if [ "$how" = write ]; then writable "$mount"; fi
  fi
  [ "$how" != who ] || return 0
  jobs_of "$mount"
  if [ "$id" != - ]; then job "$mount/jobs/$id" "$max" "$offset"; fi
}

# Passes on what comes on descriptor $1 to its end, or until the time is over; then says so about $2.
pass_on() {
  local passing rounds=0
  cat <&"$1" &
  passing=$!
  # What has come already is passed on in any case.
  while kill -0 "$passing" 2>/dev/null; do
    if [ "$SECONDS" -ge "$seconds" ] && [ "$rounds" -ge 20 ]; then
      { kill -KILL "$passing" && wait "$passing"; } 2>/dev/null
      printf '\n%s=unresponsive\n' "$2"
      hangs=1
      return
    fi
    rounds=$((rounds + 1))
    sleep 0.01
  done
}

# Ends what this look has started and what still hangs. What no signal ends will end when the volume
# answers; it holds neither the answer's stream nor anything else open.
end_hanging() {
  local family=" $$ " file stat more=1 pid
  while [ -n "$more" ]; do
    more=
    for file in "$proc"/[0-9]*/stat; do
      pid=${file#"$proc/"} pid=${pid%/stat} stat=
      { IFS= read -r -d '' stat <"$file"; } 2>/dev/null
      # shellcheck disable=SC2086
      set -- ${stat##*) }
      case $family in *" $pid "*) continue ;; esac
      case $family in *" ${2:-none} "*) family="$family$pid " more=1 ;; esac
    done
  done
  family=${family#" $$ "}
  [ -d "$proc/self" ] || family=$(ps -axo pid=,ppid= | awk -v top="$$" '$2 == top { print $1 }')
  # shellcheck disable=SC2086
  kill -KILL $family
} 2>/dev/null

main() {
  mount=$1 seconds=$4 how=$5 id=$6 max=$7 offset=$8 hangs=
  local token=$3 uptime='' own
  beside="${TMPDIR:-/tmp}/podtether"
  exec </dev/null
  own=$(pod_variable RUNPOD_POD_ID)
  [ "$own" = "$2" ] || token=''
  exec 3< <({ [ "$how" = who ] || gpus 2>/dev/null; } && echo gpu_state=answers)
  exec 4< <(exec 3<&- 2>/dev/null && volume "$token" && echo volume=answers)
  echo "pod_id=$own"
  [ "$id" = - ] || echo "job=$id"
  echo "disk_free_kib=$(free_kib /)"
  if command -v rsync >/dev/null; then echo rsync=yes; else echo rsync=no; fi
  { read -r uptime _ <"$proc/uptime"; } 2>/dev/null
  echo "uptime_s=${uptime%%.*}"
  memory
  # Its heartbeat lies on the container disk, like all that this process reads.
  [ "$how" = who ] || report_watchdog
  pass_on 4 volume
  pass_on 3 gpu_state
  if [ -n "$hangs" ]; then
    [ "$id" = - ] || job_beside "$id"
    end_hanging
  fi
  echo end=pod_look.sh
}

case ${4:-x}${7:-x}${8:-x} in *[!0-9-]*) set -- ;; esac
case ${5:-x} in read | write | who) ;; *) set -- ;; esac
case ${6:-x} in */*) set -- ;; esac
if [ $# -ne 8 ]; then
  echo "usage: pod_look.sh <mount> <pod_id> <token> <seconds> <read|write|who> <job id|-> <max_bytes> <log_offset|->" >&2
  exit 2
fi
main "$@"
