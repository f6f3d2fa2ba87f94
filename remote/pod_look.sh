#!/usr/bin/env bash
# shellcheck disable=SC2154 # proc: of a part that stands before this one
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

# What is free on the file system of $1, in KiB.
free_kib() {
  answer=
  { read -r _ && read -r _ _ _ answer _; } < <(exec df -Pk -- "$1" 2>/dev/null)
}

# Prints the devices of the files, and ends this process.
devices() {
  case $OSTYPE in
    linux*) exec stat -c %d -- "$@" ;;
    *) exec stat -f %d -- "$@" ;;
  esac
} 2>/dev/null

# Prints the start of file $2 as "$1=present" and "$1_b64", or "$1=unreadable".
show_file() {
  local content
  if content=$(head -c "$3" -- "$2" 2>/dev/null | encoded && [ "${PIPESTATUS[0]}" -eq 0 ]); then
    echo "$1=present"
    echo "$1_b64=$content"
  else
    echo "$1=unreadable"
  fi
}

# The same for an exit code: a file of digits and nothing else is told as it is, "$1=0".
show_code() {
  local text=''
  if { IFS= read -r -d '' -n 64 text <"$2"; } 2>/dev/null; then text=; fi
  text=${text%$'\n'}
  case $text in '' | *[!0-9]*) show_file "$1" "$2" 64 ;; *) echo "$1=$text" ;; esac
}

# Whether $1 is not there, as far as its folder can tell: an unmounted or stale volume cannot.
is_absent() { ! [ -e "$1" ] && ! [ -L "$1" ] && ls -- "${1%/*}/." >/dev/null 2>&1; }

gpus() {
  local line
  while IFS= read -r line; do
    case $line in [0-9]*,*,*,*) echo "gpu=$line" ;; esac
  done < <(exec nvidia-smi --query-gpu=driver_version,utilization.gpu,memory.used,memory.total \
    --format=csv,noheader,nounits)
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
  local file="$1/.podtether/identity" part token=''
  if ! [ -s "$file" ] && [ -n "$2" ]; then
    part="$file.part.$$"
    mkdir -p -- "$1/.podtether" && printf '%s\n' "$2" >"$part" && mv -n -- "$part" "$file"
    rm -f -- "$part"
  fi
  { IFS= read -r -n 256 token <"$file"; } 2>/dev/null
  echo "identity=$token"
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
# volume could not be listed, which must not look like one without jobs (E14). Of the first eight that
# live "live_meta=<id> <json>" tells what they were launched with, and "live_lost=<id>" that the wrapper
# is gone.
jobs_of() {
  local dir id shown=0
  # With a dot: of a link that leads nowhere ls else lists the link itself.
  set -- "$1" "$1/."
  [ ! -e "$1/jobs" ] || set -- "$1" "$2" "$1/jobs/."
  ls -- "${@:2}" >/dev/null || return
  for dir in "$1"/jobs/*/; do
    [ -d "$dir" ] || continue
    dir=${dir%/}
    verdict "$dir"
    [ "$answer" != over ] || continue
    # One line, whatever somebody named it.
    id=${dir##*/} id=${id//[[:cntrl:]]/?}
    echo "$answer=$id"
    if [ "$answer" != live ] || [ "$shown" -ge 8 ]; then continue; fi
    shown=$((shown + 1))
    [ -z "$lost" ] || echo "live_lost=$id"
    short_meta "$id" "$dir/meta.json"
  done
  echo jobs=whole
}

# Prints what file $2 remembers of the launch of job $1, but for its command, when it fits in 8 KiB.
# JSON has no line break but between its words, so it stays the same on one line.
short_meta() {
  local line text=''
  while [ ${#text} -le 8192 ] && { IFS= read -r -n 65536 line || [ -n "$line" ]; }; do
    case $line in '  "command": '*) ;; *) text="$text${line%$'\r'} " ;; esac
  done 2>/dev/null <"$2"
  [ ${#text} -gt 8192 ] || echo "live_meta=$1 $text"
}

# Everything about the job in folder $1. The order of the looks matters. Liveness before exit code: a
# wrapper writes the code and then ends, so no code after a dead wrapper means that none will come.
# Exit code before log: with a code, the log that follows is complete (D01).
job() {
  local dir=$1 line='' meta='' process='' code='' copy="$beside/${1##*/}.exit_code"
  if ! [ -d "$dir" ]; then
    if is_absent "$dir" || { is_absent "${dir%/*}"; }; then echo exists=no; else echo exists=unknown; fi
    return
  fi
  if is_called_off "$dir"; then echo exists=no && return; fi
  echo exists=yes
  if [ -e "$dir/pid" ]; then
    { IFS= read -r -d '' -n 256 line <"$dir/pid"; } 2>/dev/null
    liveness "$line"
    process=$answer
    if [ "$process" = dead ] && lives_on "${line%% *}"; then echo lives_on=yes; fi
  fi
  if [ -e "$dir/exit_code" ]; then code=there; fi
  # What is missing is missing only as far as the folder can be listed.
  if [ -z "$process" ] || [ -z "$code" ]; then
    if ls -- "$dir/." >/dev/null 2>&1; then line=absent; else line=unreadable; fi
  fi
  if [ -z "$process" ]; then
    process=none
    [ "$line" = absent ] || process=unreadable
  fi
  echo "process=$process"
  if [ -n "$code" ]; then show_code exit_code "$dir/exit_code"; else echo "exit_code=$line"; fi
  # The copy off the volume; only our own, since anyone may write in a shared /tmp.
  if [ -O "$copy" ]; then show_code exit_code_copy "$copy"; fi
  if [ -e "$dir/ceiling_struck" ] || [ -O "${copy%.exit_code}.ceiling_struck" ]; then echo ceiling_struck=yes; fi
  { IFS= read -r -d '' -n 65536 meta <"$dir/meta.json"; } 2>/dev/null
  [ -z "$meta" ] || echo "meta_json=${meta//[$'\r\n']/ }"
  if [ -e "$dir/leftovers" ]; then show_file leftovers "$dir/leftovers" 4096; fi
  if [ -e "$dir/out.log" ]; then log_of "$dir" <"$dir/out.log"; else log_of "$dir"; fi
}

# The ages of the job in folder $1, and of its log on stdin the piece that was asked for. The log is open
# when its size is asked, so that a network's copy of it is none from before.
log_of() {
  local size='' written='' launched='' note='' bytes time name
  while read -r bytes time name; do
    case $name in
      */launched) launched=$time ;;
      */launched/at) note=$time ;;
      */out.log) size=$bytes written=$time ;;
    esac
  done < <(stats "$1/out.log" "$1/launched" "$1/launched/at")
  if [ -n "$launched" ]; then
    age_of "$1" "$launched" "$note"
    echo "launch_age_s=$answer"
  fi
  [ -n "$size" ] || return
  if [ "$offset" = - ]; then offset=$((size > max ? size - max : 0)); fi
  if [ "$offset" -gt "$size" ]; then offset=$size; fi
  age_of "$1" "$written" "$note"
  printf 'log_size=%s\nlog_age_s=%s\nlog_offset=%s\nlog_b64=' "$size" "$answer" "$offset"
  tail -c "+$((offset + 1))" | head -c "$max" | encoded
  # What could not be encoded must not look like an empty log: this is no base64.
  case "${PIPESTATUS[*]}" in *' 0 0') echo ;; *) echo '!' ;; esac
}

# What the wrapper of job $1 left beside the volume, for when that does not answer.
job_beside() {
  local file="$beside/$1" line=''
  if [ -O "$file.pid" ]; then
    { IFS= read -r -d '' -n 256 line <"$file.pid"; } 2>/dev/null
    liveness "$line"
    echo "beside_process=$answer"
  fi
  if [ -O "$file.exit_code" ]; then show_code beside_exit_code "$file.exit_code"; fi
  if [ -O "$file.ceiling_struck" ]; then echo beside_ceiling_struck=yes; fi
}

volume() {
  local kind=missing root='' device='' token
  if [ -L "$mount" ] && [ -d "$mount" ]; then
    kind=symlink
  elif [ -d "$mount" ]; then
    { read -r root && read -r device; } < <(devices / "$mount")
    if [ "$device" = "$root" ]; then kind=same_device; else kind=device; fi
  fi
  echo "mount=$kind"
  free_kib "$mount"
  echo "mount_free_kib=$answer"
  if [ "$kind" != missing ]; then
    # D08: an identity on the container disk would make a pull take it for the volume. A local pod is no
    # container; its mount is a folder of this machine.
    if [ "$kind" != same_device ] || [ -n "${PODTETHER_LOCAL_POD:-}" ]; then token=$1; else token=; fi
    identity "$mount" "$token"
    if [ "$how" = write ]; then writable "$mount"; fi
  fi
  [ "$how" != who ] || return 0
  jobs_of "$mount"
  if [ "$id" != - ]; then job "$mount/jobs/$id"; fi
  return 0
}

# How long is left, in $answer. Beyond the time a moment, for what has come already; bash 3.2 takes
# whole seconds only.
time_left() {
  answer=$((seconds - SECONDS))
  [ "$answer" -lt 1 ] || return 0
  if [ "${BASH_VERSINFO[0]}" -lt 4 ]; then answer=1; else answer=0.2; fi
}

# Passes on what the volume tells to its end, or until the time is over; then says so. By a process that
# can be ended, whose end is read from a pipe: to wait for it costs nothing.
pass_on_volume() {
  local passing
  exec 6>&1
  exec 5< <(
    exec 2>/dev/null
    cat <&4 >&6 &
    echo "$!"
    wait
    echo over
  )
  read -r passing <&5
  time_left
  if ! read -r -t "$answer" _ <&5; then
    { kill -KILL "$passing" && read -r _ <&5; } 2>/dev/null
    printf '\nvolume=unresponsive\n'
    hangs=1
  fi
}

# The same for what the GPU's driver tells, which is short.
pass_on_gpu() {
  local line=''
  while time_left && IFS= read -r -t "$answer" line <&3; do
    echo "$line"
    [ "$line" != gpu_state=answers ] || return 0
  done
  echo gpu_state=unresponsive
  hangs=1
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
  # Lengths count bytes.
  export LC_ALL=C
  own=$(pod_variable RUNPOD_POD_ID)
  [ "$own" = "$2" ] || token=''
  exec 3< <([ "$how" = who ] || gpus 2>/dev/null; echo gpu_state=answers)
  exec 4< <(exec 3<&- 2>/dev/null && volume "$token" && echo volume=answers)
  echo "pod_id=$own"
  [ "$id" = - ] || echo "job=$id"
  free_kib /
  echo "disk_free_kib=$answer"
  if command -v rsync >/dev/null; then echo rsync=yes; else echo rsync=no; fi
  { read -r uptime _ <"$proc/uptime"; } 2>/dev/null
  echo "uptime_s=${uptime%%.*}"
  memory
  # Its heartbeat lies on the container disk, like all that this process reads.
  [ "$how" = who ] || report_watchdog
  pass_on_volume
  pass_on_gpu
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
