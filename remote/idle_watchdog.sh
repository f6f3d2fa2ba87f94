#!/usr/bin/env bash
# shellcheck disable=SC2154 # answer, folder, proc: of a part that stands before this one
# Stops this pod when nobody uses it, when its deadline has passed, or when a job outlived its ceiling.
# usage: idle_watchdog.sh watch <pod id> <mount> <idle s> <tick s> <deadline s> [<idle s after a lease>]
#        idle_watchdog.sh probe <pod id>     what the stop path has: "key=value" lines
# The rules, files and thresholds are described in remote/README.md.
#
# No `set -e` and no `set -u`: no line that fails may end it (A19). All of it is read before it runs,
# and stop_pod.sh is read at its start: from then on it needs no file but the pod's environment (E14).
# shellcheck disable=SC2317 # much is called through on_volume

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

# The processes with a line $2 in their environment. Bounded: whoever reads the environment of a process
# that hangs in the kernel may hang with it, and the watchdog must not (E14).
marked() {
  local kind=$1
  set -- grep -lzse "$2" --line-buffered "$proc"/[0-9]*/environ
  if command -v timeout >/dev/null; then set -- timeout --foreground -k 1 10 "$@"; fi
  "$@" | sed "s|.*/\([0-9]*\)/environ\$|$kind \1|"
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
