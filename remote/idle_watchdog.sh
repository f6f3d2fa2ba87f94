#!/usr/bin/env bash
# Stops this pod when nobody uses it, when its deadline has passed, or when a job outlived its ceiling.
# usage: idle_watchdog.sh watch <pod id> <mount> <idle s> <tick s> <deadline s> [<idle s after a lease>]
#        idle_watchdog.sh probe <pod id>     what the stop path has: "key=value" lines
# The rules, files and thresholds are described in remote/README.md.
#
# No `set -e` and no `set -u`: no line that fails may end it (A19). All of it is read before it runs,
# and stop_pod.sh is read at its start: from then on it needs no file but the pod's environment (E14).
# shellcheck disable=SC2317 # much is called through on_volume

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

# --- verdict: the same text in every script that needs it; a unit test compares them ---
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
    if [ -d "$1/launched" ]; then
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
# --- end of verdict ---

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
  done 2>/dev/null <"${PODTETHER_RP_ENVIRONMENT:-/etc/rp_environment}"
  # The first process of a local pod is the user's machine, whose key is none of ours.
  if [ -z "$found" ] && [ -z "${PODTETHER_LOCAL_POD:-}" ]; then
    found=$({ tr '\0' '\n' <"${PODTETHER_PROC:-/proc}/1/environ" | sed -n "s/^$1=//p" | head -n 1; } 2>/dev/null)
  fi
  printf '%s\n' "${found:-${!1:-}}"
}
# --- end of environment ---

# --- key for curl: the same text in every script that needs it; a unit test compares them ---
# Arguments can be read by every process, so curl reads the key on stdin.
key_for_curl() {
  local quoted=${key//\\/\\\\}
  printf 'header = "Authorization: Bearer %s"\n' "${quoted//\"/\\\"}"
}
# --- end of key for curl ---

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

self=$$
here=$(dirname "$0")

# Bytes and processor time that count as use, averaged over the time between two looks.
busy_cpu=${PODTETHER_BUSY_CPU_PERCENT:-5}
busy_disk=${PODTETHER_BUSY_DISK_KIB:-10240}
busy_net=${PODTETHER_BUSY_NET_KIB:-1024}

say() {
  printf '%s %s\n' "$(date -u +%Y-%m-%dT%H:%M:%SZ)" "$1" >>"$folder/log"
  # At one line in five minutes the log of a month fits; a loop gone wild does not fill the disk.
  if [ "$(wc -c <"$folder/log")" -gt 1000000 ]; then mv -f "$folder/log" "$folder/log.1"; fi
} 2>/dev/null

# Writes stdin to $1, whole or not at all.
publish() { cat >"$1.part.$$" && mv -f "$1.part.$$" "$1"; } 2>/dev/null

# Runs a command that may touch the volume for at most $1 seconds. A process that hangs there cannot be
# killed, so while one does no second one is started.
on_volume() {
  local limit=$(($1 * 10))
  shift
  if [ -n "$hung" ] && kill -0 "$hung" 2>/dev/null; then return 1; fi
  "$@" &
  hung=$!
  while kill -0 "$hung" 2>/dev/null; do
    [ "$limit" -gt 0 ] || return 1
    limit=$((limit - 1))
    sleep 0.1
  done
  wait "$hung"
  hung=
}

# Prints when file $1 was written, in seconds by the clock of its file system.
written() { stat -c %Y -- "$1" 2>/dev/null || stat -f %m -- "$1" 2>/dev/null; }

# Everything that is asked of the volume. Every live job with its ceiling and the start of its wrapper.
look() {
  local job word ceiling start
  ls -- "$mount" >/dev/null || return
  if [ -e "$mount/jobs" ]; then ls -- "$mount/jobs" >/dev/null || return; fi
  for job in "$mount"/jobs/*/; do
    [ -d "$job" ] || continue
    job=${job%/} start=
    verdict "$job"
    word=$answer
    [ "$word" != over ] || continue
    ceiling=$(sed -n 's/.*"max_runtime_sec": *\([0-9]\{1,9\}\).*/\1/p' "$job/meta.json" | head -n 1)
    { read -r _ start _ <"$job/pid"; } 2>/dev/null
    echo "job $word ${ceiling:-0} ${start:-0}"
  done
  echo "keepalive $(written "$mount/.keepalive")"
  echo end
} 2>/dev/null

# Every process as "P pid name state parent session terminal start cpu bytes"; cpu in hundredths of a
# second with that of the children it has waited for, bytes as they passed through read and write.
# "J pid" are processes of jobs, "L pid" those of this pod where the machine is shared.
scan() {
  local file stat pid name bytes key value
  for file in "$proc"/[0-9]*/stat; do
    stat='' bytes=0
    { IFS= read -r -d '' stat <"$file"; } 2>/dev/null
    [ -n "$stat" ] || continue
    pid=${file%/stat} pid=${pid##*/}
    name=${stat#*(} name=${name%) *} name=${name//[[:space:]]/_}
    { while read -r key value; do
      case $key in rchar: | wchar:) bytes=$((bytes + value)) ;; esac
    done <"$proc/$pid/io"; } 2>/dev/null
    # shellcheck disable=SC2086
    set -- ${stat##*) }
    [ $# -lt 20 ] || echo "P $pid ${name:-?} $1 $2 $4 $5 ${20} $((${12} + ${13} + ${14} + ${15})) $bytes"
  done
  marked J '^PODTETHER_JOB='
  [ -z "$PODTETHER_LOCAL_POD" ] || marked L "^PODTETHER_LOCAL_POD=$PODTETHER_LOCAL_POD\$"
}

# The processes with a line $2 in their environment.
marked() {
  grep -lzse "$2" "$proc"/[0-9]*/environ | sed "s|.*/\([0-9]*\)/environ\$|$1 \1|"
}

# From two scans, the earlier one as "O pid start cpu bytes": what was used between them, the terminals,
# whether a process of a job is there; and this scan to remember. Not counted are the watchdog's own
# session, the SSH server, the first process, and what is younger than ten seconds (so our own looks at
# the pod).
# A terminal counts when the SSH server or something outside of the container has opened it; a tmux
# that nobody is attached to counts by what it does (D13).
# shellcheck disable=SC2016
compare='
  function opened_by_somebody(p,  steps) {
    if (shared) return 1
    for (steps = 0; steps < 60; steps++) {
      if (name[p] ~ /^sshd/ || parent[p] == 0 && p != 1) return 1
      if (p == 1 || !(parent[p] in name)) return 0
      p = parent[p]
    }
    return 0
  }
  $1 == "O" { before = 1; old_cpu[$2, $3] = $4; old_bytes[$2, $3] = $5 }
  $1 == "J" { job[$2] = 1 }
  $1 == "L" { local_to_pod[$2] = 1 }
  $1 == "P" && $4 !~ /^[ZX]/ {
    name[$2] = $3; parent[$2] = $5; session[$2] = $6; terminal[$2] = $7
    start[$2] = $8; cpu[$2] = $9; bytes[$2] = $10
  }
  END {
    for (p in name) {
      if (shared && !(p in local_to_pod) || session[p] == self) continue
      if (p in job) marked = 1
      major = int(terminal[p] / 256) % 4096
      if (major >= 136 && major <= 143 && !(terminal[p] in seen) && opened_by_somebody(p)) {
        seen[terminal[p]] = 1; terminals++
      }
      if (p == 1 || name[p] ~ /^sshd/) continue
      printf "O %s %s %.0f %.0f\n", p, start[p], cpu[p], bytes[p]
      if (!before || start[p] <= now && now - start[p] < 1000) continue
      if (cpu[p] > old_cpu[p, start[p]]) used_cpu += cpu[p] - old_cpu[p, start[p]]
      if (bytes[p] > old_bytes[p, start[p]]) used_bytes += bytes[p] - old_bytes[p, start[p]]
    }
    printf "R %.0f %.0f %d %d\n", used_cpu, used_bytes, terminals, marked
  }'

# Bytes that came and went over the network. A machine that is shared does not say whose they are.
network_bytes() {
  [ -z "$PODTETHER_LOCAL_POD" ] || { echo 0 && return; }
  awk -F '[: ]+' '{ sub(/^ +/, "") } NR > 2 && $1 != "lo" { sum += $2 + $10 } END { printf "%.0f\n", sum }' \
    "$proc/net/dev" 2>/dev/null || echo 0
}

# $1 tenths as a number with one digit after the point.
tenths() { echo "$(($1 / 10)).$(($1 % 10))"; }

number() { case $1 in '' | *[!0-9]* | ????????????????*) echo "$2" ;; *) echo "$1" ;; esac; }

# One look, and what follows from it. Every number has a default: no source that fails ends it (A19).
tick() {
  local now since key a b c d live=0 overdue=0 unknown=0 volume=yes
  ticks
  now=$(number "$answer" $((looked + tick * 100)))
  since=$((now - looked)) looked=$now rounds=$((rounds + 1))
  [ "$since" -gt 0 ] || since=1

  # What the volume tells.
  on_volume 60 look >"$folder/look"
  if [ "$(tail -n 1 "$folder/look" 2>/dev/null)" != end ]; then volume=no; fi
  while read -r key a b c; do
    case $key,$a in
      job,live)
        b=$(number "$b" 0) c=$(number "$c" 0)
        # A ceiling is kept by the job's own keeper; ten minutes after it nobody keeps it any more (E06).
        d=$((c + (b + 60 + 600) * 100))
        if [ "$b" -gt 0 ] && [ "$c" -gt 0 ] && [ "$now" -gt "$d" ]; then
          overdue=$((overdue + 1))
        else
          live=$((live + 1))
          [ "$b" -eq 0 ] || last_live=$now
          if [ "$b" -gt 0 ] && [ "$c" -gt 0 ] && [ "$d" -gt "$promised" ]; then promised=$d; fi
        fi
        ;;
      job,*) unknown=$((unknown + 1)) ;;
      keepalive,*) [ "$volume" = no ] || keepalive "$a" ;;
    esac
  done <"$folder/look"

  # What the machine tells.
  local used_cpu=0 used_bytes=0 terminals=0 job_processes=0 net used_net=0 result
  if [ -d "$proc/self" ]; then
    result=$({ printf '%s\n' "$snapshot"; scan 2>/dev/null; } |
      awk -v self="$self" -v now="$now" -v shared="${PODTETHER_LOCAL_POD:+1}" "$compare" 2>/dev/null)
    snapshot=$(printf '%s\n' "$result" | sed -n '/^O /p')
    read -r key used_cpu used_bytes terminals job_processes < <(printf '%s\n' "$result" | sed -n '/^R /p')
    net=$(number "$(network_bytes)" 0)
    [ -z "$net_before" ] || [ "$net" -lt "$net_before" ] || used_net=$((net - net_before))
    net_before=$net
  else
    without_proc
  fi
  used_cpu=$(number "$used_cpu" 0) used_bytes=$(number "$used_bytes" 0)
  terminals=$(number "$terminals" 0) job_processes=$(number "$job_processes" 0)
  # In thousandths of one processor, and tenths of a KiB a minute.
  local cpu=$((used_cpu * 1000 / since)) disk net
  disk=$((used_bytes * 60000 / since / 1024)) net=$((used_net * 60000 / since / 1024))

  # What cannot be read on the volume is there when a process of a job is there.
  if [ "$live" -eq 0 ] && [ "$job_processes" -gt 0 ]; then
    if [ "$volume" = no ] || [ "$unknown" -gt 0 ]; then
      live=1
      [ "$now" -gt "$promised" ] || last_live=$now
    fi
  fi
  if [ "$live" -gt 0 ] || [ "$terminals" -gt 0 ] || [ "$cpu" -ge $((busy_cpu * 10)) ] ||
    [ "$disk" -ge $((busy_disk * 10)) ] || [ "$net" -ge $((busy_net * 10)) ]; then
    used=$now
  fi
  # Whoever arms the watchdog means to use the pod.
  seconds_to wanted
  d=$answer
  if [ -n "$d" ] && [ $((now + d * 100)) -gt "$used" ]; then used=$((now + d * 100)); fi
  decide
}

# The time of the last touch of .keepalive, which has the date $1. A date in the future, and one that
# is new since the last look, is now: clocks disagree, the file server's with the pod's, too (A14).
keepalive() {
  local date=$1 today
  [ -n "$date" ] || return
  [ "$date" != "$keepalive_date" ] || return
  today=$(number "$(date +%s)" 0)
  if [ "$date" -gt "$today" ]; then
    say "warning: .keepalive is dated $((date - today)) s in the future; taken for now"
    kept=$looked
  elif [ -n "$keepalive_date" ]; then
    kept=$looked
  else
    kept=$((looked - (today - date) * 100))
  fi
  keepalive_date=$date
} 2>/dev/null

# A Mac that stands in for a pod: jobs and terminals only.
without_proc() {
  terminals=0 job_processes=0
  # shellcheck disable=SC2009 # pgrep shows no environment
  if ps -axwwE -o command= 2>/dev/null | grep -q 'PODTETHER_JOB='; then job_processes=1; fi
}

decide() {
  local quiet window=$idle lease left why='' words kept_words=none grace=900 after
  quiet=$(((now - (kept > used ? kept : used)) / 100))
  [ -z "$keepalive_date" ] || kept_words="$(((now - kept) / 6000)) min"
  # A supervisor that has gone silent is no user any more: what it left is waited for, not an hour more.
  seconds_to lease
  lease=$answer
  if [ -n "$lease" ]; then
    if [ "$lease" -le 0 ]; then
      [ "$window" -le "$after_lease" ] || window=$after_lease
    else
      grace=4500 # it may still pull the results of a job
    fi
  fi
  # The deadline waits for a job within its ceiling, and a while after it for whoever pulls its results. A file that is none, or of
  # another boot, leaves the deadline that was known: never none.
  seconds_to deadline
  left=$answer
  if [ -n "$left" ]; then deadline=$((now + left * 100)); fi
  after=$deadline
  if [ "$last_live" -gt 0 ] && [ $((last_live + grace * 100)) -gt "$after" ]; then after=$((last_live + grace * 100)); fi
  words="idle $((quiet / 60)) of $((window / 60)) min: jobs $live"
  [ "$overdue" -eq 0 ] || words="$words ($overdue past the ceiling)"
  [ "$unknown" -eq 0 ] || words="$words ($unknown unreadable)"
  [ "$volume" = yes ] || words="$words (the volume does not answer)"
  words="$words, terminals $terminals, keepalive $kept_words, cpu $(tenths "$cpu") %"
  words="$words, disk $(tenths "$disk") KiB/min, network $(tenths "$net") KiB/min"
  words="$words, deadline in $(((deadline - now) / 6000)) min"
  if [ -n "$lease" ]; then words="$words, lease $lease s"; fi
  if [ "$overdue" -gt 0 ] && [ "$live" -eq 0 ]; then
    why="a job is ten minutes past its ceiling"
  elif [ "$now" -ge "$after" ]; then
    why="the deadline has passed"
  elif [ "$quiet" -ge "$window" ]; then
    why="nobody uses it"
  fi
  if [ -n "$why" ]; then words="stop, $why: $words"; else words="stay: $words"; fi
  say "$words"
  beat "$words"
  [ -z "$why" ] || fire "$words"
}

# What others read: how it is, and when it was.
beat() {
  this_boot
  printf '%s %s\n' "$answer" "$looked" | publish "$folder/looked"
  printf 'ticks=%s\nquiet_s=%s\nstops=%s\nvolume=%s\ndecision=%s\n' \
    "$rounds" "${quiet:-0}" "$stops" "${volume:-unknown}" "$1" | publish "$folder/heartbeat"
  on_volume 5 beat_on_volume "$1"
}

beat_on_volume() {
  mkdir -p "$mount/.podtether/watchdog" &&
    printf 'pod=%s\nat=%s\ndecision=%s\n' "$pod" "$(date -u +%Y-%m-%dT%H:%M:%SZ)" "$1" |
    publish "$mount/.podtether/watchdog/heartbeat"
} 2>/dev/null

# Tries to stop the pod by every way once. Who comes back from this has failed and tries again at the
# next look (A03). The mark on the volume, without the one on this disk, tells the next boot that the
# pod really went.
fire() {
  stops=$((stops + 1))
  echo "$pod" >"$folder/fired"
  on_volume 5 notice "$1"
  PODTETHER_STOP_TRIES=4 bash -c "$stop_script" stop_pod.sh "$pod" >>"$folder/log" 2>&1
  say "still here after stop $stops"
  on_volume 5 rm -f "$mount/.podtether/watchdog/fired"
}

notice() {
  mkdir -p "$mount/.podtether/watchdog"
  printf '%s pod %s: %s\n' "$(date -u +%Y-%m-%dT%H:%M:%SZ)" "$pod" "$1" >>"$mount/.podtether/watchdog/notices"
  echo "$pod" | publish "$mount/.podtether/watchdog/fired"
} 2>/dev/null

# Whether this is the one watchdog of the pod; takes the place when it is free. A lock file that was
# removed is written again.
own() {
  local line tries
  for tries in 1 2 3; do
    line=$(cat "$folder/pid" 2>/dev/null)
    [ "$line" != "$mine" ] || return 0
    liveness "$line"
    [ "$answer" != alive ] || return 1
    rm -f "$folder/pid"
    mkdir -p "$folder"
    echo "$mine" >"$folder/pid.$$"
    ln "$folder/pid.$$" "$folder/pid" 2>/dev/null
    rm -f "$folder/pid.$$"
  done
  return 0 # a lock that cannot be written is no reason to go
}

watch() {
  pod=$1 mount=$2 idle=$3 tick=$4 after_lease=${6:-600}
  case $pod in '' | *[!A-Za-z0-9_-]*) echo "idle_watchdog.sh: '$pod' is no pod id" >&2 && exit 2 ;; esac
  for key in "$3" "$4" "$5" "$after_lease"; do
    case $key in '' | 0* | *[!0-9]* | ????????*)
      echo "idle_watchdog.sh: '$key' s is no time: give a whole number from 1 (A21)" >&2 && exit 2 ;;
    esac
  done
  stop_script=$(cat "$here/stop_pod.sh") && [ -n "$stop_script" ] || exit 92
  exec </dev/null
  trap '' HUP PIPE INT QUIT
  umask 077
  mkdir -p "$folder"
  start_of "$self"
  mine="$self $answer"
  boot_id
  mine="$mine $answer"
  own || { echo "another one watches" && exit 0; }
  ticks
  looked=$(number "$answer" 0)
  rounds=0 stops=0 hung='' snapshot='' net_before='' keepalive_date='' kept=0 last_live=0 promised=0
  used=$looked deadline=$((looked + $5 * 100))
  beat starting
  while :; do
    own || exit 0
    tick
    if [ "$stops" -gt 0 ] && [ "$tick" -gt 60 ]; then sleep 60; else sleep "$tick"; fi
  done
}

# Asks the API with method $1 and path $2, sends $3 if given; prints the status, 000 for no answer.
ask() {
  key_for_curl | curl -sS -X "$1" -K - --max-time 5 -A podtether -o /dev/null -w '%{http_code}' \
    -H 'Content-Type: application/json' ${3:+-d "$3"} "$api$2" 2>/dev/null
}

# What the stop path has here, found out without stopping anything. The write goes to a pod that does not
# exist: 404 says that it was looked for, 401 and 403 that this was not even tried (A07).
probe() {
  local code=0 tries read=000 write=000
  pod=$1
  for tries in 1 2 3 4 5; do
    key=$(pod_variable RUNPOD_API_KEY)
    # The file is written some seconds after SSH answers.
    [ -z "$key" ] || break
    [ "$tries" -eq 5 ] || sleep 1
  done
  api=$(pod_variable PODTETHER_API_URL)
  api=${api:-https://api.runpod.io}
  if command -v curl >/dev/null; then echo curl=yes; else echo curl=no; fi
  if command -v runpodctl >/dev/null; then echo runpodctl=yes; else echo runpodctl=no && code=90; fi
  if [ -n "$key" ]; then
    read=$(ask GET "/v2/pods/$pod")
    write=$(ask POST /v2/pods/podtether-no-such-pod/action '{"action":"stop"}')
  else
    code=91
  fi
  [ -r "$here/stop_pod.sh" ] || code=92
  echo "read=$(number "$read" 000)"
  echo "write=$(number "$write" 000)"
  echo "code=$code"
}

case $1,$# in
  watch,6 | watch,7) shift && watch "$@" ;;
  probe,2) probe "$2" ;;
  *) echo "usage: idle_watchdog.sh watch <pod id> <mount> <idle s> <tick s> <deadline s> [<idle s after a lease>] | probe <pod id>" >&2 && exit 2 ;;
esac
exit
