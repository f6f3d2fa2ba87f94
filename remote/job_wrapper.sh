#!/usr/bin/env bash
# shellcheck disable=SC2154 # answer, proc: of a part that stands before this one
# Runs one job under its ceiling, records how it ended, then stops the pod if asked to.
# usage: job_wrapper.sh <dir> <pod_id> <ceiling_sec> <0|1> [workdir]
# The files it writes into <dir> are described in remote/README.md.
#
# The wrapper leads a session. In it run the job, in a process group of its own, and the keeper,
# which holds the ceiling; so whatever is in the session but not in the wrapper's group is the job.
# The volume may be full or hang: nothing below waits for it without a bound before the pod stops.
set -u

# Runs a command for at most $1 seconds. It may live on: a process in D state cannot be killed (E14).
within() {
  local limit=$(($1 * 20)) worker
  shift
  "$@" &
  worker=$!
  while kill -0 "$worker" 2>/dev/null; do
    [ "$limit" -gt 0 ] || return 1
    limit=$((limit - 1))
    sleep 0.05
  done
  wait "$worker"
}

# Writes $2 as the one line of file $1: a reader sees all of it or nothing (E05), and a full disk
# leaves no empty file behind (E04).
publish() {
  local part="$1.part.$$"
  if printf '%s\n' "$2" >"$part" && { sync "$part" || :; } && mv -f "$part" "$1"; then return 0; fi 2>/dev/null
  rm -f "$part"
  return 1
}

say() { printf '\npodtether: %s\n' "$1" >>"$dir/out.log"; }

# Closes what is open beside stdin, stdout and stderr. A job that inherited a pipe or a lock of whoever
# launched it would hold it for hours. 255 is the script itself, which bash does not pass on. Nothing
# here may be redirected: bash keeps what it puts aside for that in a descriptor, too.
close_inherited() {
  local fd
  for fd in /dev/fd/*; do
    fd=${fd##*/}
    case $fd in [012] | 255 | *[!0-9]*) ;; *) eval "exec $fd>&-" ;; esac
  done
}

# Every process as "pid ppid group session state"; a system without /proc has no session to show.
processes() {
  local file stat pid
  [ -d "$proc/self" ] || { ps -axo pid=,ppid=,pgid=,stat= | awk '{print $1, $2, $3, "-", $4}' && return; }
  for file in "$proc"/[0-9]*/stat; do
    stat=
    { IFS= read -r -d '' stat <"$file"; } 2>/dev/null
    pid=${file#"$proc/"}
    # shellcheck disable=SC2086
    set -- ${stat##*) }
    [ $# -lt 4 ] || echo "${pid%/stat} $2 $3 $4 $1"
  done
}

# The processes that carry the job's marker in their environment, wherever they have moved (E02). Bounded:
# whoever reads the environment of a process that hangs in the kernel may hang with it, and neither the
# ceiling nor the stop may. In the foreground, since `timeout` else takes a group of its own: a part of the job.
marked() {
  if [ -d "$proc/self" ]; then
    set -- grep -lzxF --line-buffered -- "PODTETHER_JOB=$marker" "$proc"/[0-9]*/environ
    if command -v timeout >/dev/null; then set -- timeout --foreground -k 1 5 "$@"; fi
    "$@" 2>/dev/null | sed 's|.*/\([0-9]*\)/environ$|mark \1|'
  else
    ps -axwwE -o pid=,command= 2>/dev/null | awk -v m="PODTETHER_JOB=$marker" 'index($0, m) { print "mark", $1 }'
  fi
}

# The job's living processes: with "session" those of its session, with "all" also those that left it
# and the children of either.
members() {
  { processes && { [ "$1" = session ] || marked; }; } | awk -v lead="$self" -v job="${job:-0}" -v scope="$1" '
    $1 == "mark" { mark[$2] = 1; next }
    { parent[$1] = $2; group[$1] = $3; session[$1] = $4; state[$1] = $5 }
    END {
      for (p in parent) {
        if (group[p] == lead) continue
        if (session[p] == lead || (p in mark)) hit[p] = 1
        if (session[p] == "-" && (p == job || group[p] == job)) hit[p] = 1
      }
      do {
        more = 0
        for (p in parent) {
          if ((p in hit) || group[p] == lead || !(parent[p] in hit)) continue
          if (scope == "all" || session[p] == lead || session[p] == "-") { hit[p] = 1; more = 1 }
        }
      } while (more)
      for (p in hit) if (state[p] !~ /^[ZX]/) print p
    }'
}

# The command line of process $1.
words_of() { { tr '\0' ' ' <"$proc/$1/cmdline" || ps -o args= -p "$1"; } 2>/dev/null | tr '\n' ' ' | head -c 200; }

# Notes the processes $2… in `leftovers` with what became of them.
# shellcheck disable=SC2317 # called through `within`
note_leftovers() {
  local word=$1 pid
  shift
  for pid in "$@"; do
    printf '%s %s %s\n' "$pid" "$word" "$(words_of "$pid")" >>"$dir/leftovers"
  done
}

# Ends the job's processes of scope $1: TERM, $2 seconds of grace, then KILL until none is left or
# nothing helps. CONT, because a stopped process does not see its TERM.
end_processes() {
  local scope=$1 until pids round
  ticks
  until=$((answer + $2 * 100))
  pids=$(members "$scope")
  [ -n "$pids" ] || return 0
  # shellcheck disable=SC2086
  { kill -TERM $pids; kill -CONT $pids; } 2>/dev/null
  while [ -n "$pids" ] && ticks && [ "$answer" -lt "$until" ]; do
    sleep 0.2
    pids=$(members "$scope")
  done
  [ -n "$pids" ] || return 0
  # shellcheck disable=SC2086
  within 10 note_leftovers killed $pids
  for ((round = 0; round < 30; round++)); do
    # shellcheck disable=SC2086
    kill -KILL $pids 2>/dev/null
    sleep 0.2
    pids=$(members "$scope")
    [ -n "$pids" ] || return 0
  done
  # shellcheck disable=SC2086
  within 10 note_leftovers alive $pids
}

# Ends the job because its time is over. The flag comes first, and off the volume where possible: a
# job that itself ends with 124 must not look like this one.
strike() {
  : >"$struck"
  within 10 publish "$dir/ceiling_struck" "$ceiling"
  within 10 say "the ceiling of $ceiling s is reached, ending the job"
  end_processes all "$grace"
}

# Records the exit code: first off the volume, where a full or hanging one cannot lose it.
record() {
  publish "$copy" "$1"
  within 30 publish "$dir/exit_code" "$1"
}

# Stops the pod. The script was read before the job began, and its words go through a pipe: a volume
# that hangs now can keep neither from running.
stop_pod() {
  [ "$auto_stop" = 1 ] || return 0
  bash -c "$stop_script" stop_pod.sh "$pod" 2>&1 | cat >>"$dir/stop.log"
}

# Ends the job because somebody sent TERM to the wrapper. The work is done in the handler itself: a
# mere flag would be overlooked when the signal comes just before the `wait` for the job.
asked_to_end() {
  asked=1
  end_processes all "$grace"
}

# Sends TERM until it is heard: one that comes while bash still sets up the keeper may get lost.
end_keeper() {
  while ! [ -e "$struck" ] && kill -TERM "$1" 2>/dev/null; do sleep 0.05; done
}

# Holds the ceiling in a process of its own, which outlives a wrapper that was killed (E06): then it
# also stops the pod once the job has ended.
keeper() {
  local left nap='' alone=''
  trap 'kill $nap 2>/dev/null; exit 0' TERM
  while ticks && left=$((deadline - answer)) && [ "$left" -gt 0 ]; do
    [ "$left" -le 500 ] || left=500
    sleep "$((left / 100)).$(printf '%02d' $((left % 100)))" &
    nap=$!
    wait "$nap"
    start_of "$self"
    [ "$answer" = "$started" ] || alone=1
    [ -z "$alone" ] || [ -n "$(members all)" ] || break
  done
  [ "$left" -gt 0 ] || strike
  start_of "$self"
  [ "$answer" = "$started" ] || alone=1
  if [ -n "$alone" ]; then
    [ "$left" -gt 0 ] || record 124
    stop_pod
  elif [ "$left" -le 0 ]; then
    kill -USR1 "$self" # it may wait for a process that nothing can end
  fi
}

main() {
  case $# in 4 | 5) ;; *) echo "usage: job_wrapper.sh <dir> <pod_id> <ceiling_sec> <0|1> [workdir]" >&2 && exit 2 ;; esac
  dir=$1 pod=$2 ceiling=$3 auto_stop=$4
  local workdir=${5:-$1} environment=${PODTETHER_RP_ENVIRONMENT:-/etc/rp_environment}
  local code scope=session cannot_enter='' keeper
  case $ceiling in '' | 0* | *[!0-9]* | ????????*)
    echo "job_wrapper.sh: a ceiling of '$ceiling' s is none: give a whole number from 1 (A21)" >&2 && exit 2 ;;
  esac
  case $auto_stop in 0 | 1) ;; *) echo "job_wrapper.sh: auto-stop is 0 or 1, not '$auto_stop'" >&2 && exit 2 ;; esac
  if [ -e "$dir/pid" ] || [ -e "$dir/exit_code" ] || ! [ -r "$dir/cmd.sh" ]; then
    echo "job_wrapper.sh: $dir has no cmd.sh, or was run before" >&2 && exit 2
  fi

  exec </dev/null
  # Named before the pod's environment is read, which a reader of the copy may not share.
  copy="${TMPDIR:-/tmp}/podtether"
  struck="$dir/ceiling_struck"
  mkdir -p "$copy" 2>/dev/null
  if [ -w "$copy" ]; then struck="$copy/${dir##*/}.ceiling_struck"; fi
  copy="$copy/${dir##*/}.exit_code"
  rm -f "$copy" "$struck"
  close_inherited
  if [ -r "$environment" ]; then
    set +u
    # shellcheck disable=SC1090
    . "$environment"
    set -u
  fi
  export PYTHONUNBUFFERED="${PYTHONUNBUFFERED-1}" # E11: else a log in a file looks frozen for minutes
  grace=${PODTETHER_KILL_GRACE_SEC:-60}
  case $grace in *[!0-9]*) grace=60 ;; esac
  self=$$ asked=
  start_of "$self"
  started=$answer
  marker="${dir##*/}:$self:$started"
  # An auto-stop that cannot happen must not be promised: without its script nothing starts.
  stop_script=
  if [ "$auto_stop" = 1 ]; then
    stop_script=$(cat "$(dirname "$0")/stop_pod.sh") && [ -n "$stop_script" ] || exit 2
  fi

  cd "$workdir" 2>/dev/null || cannot_enter=1
  boot_id
  # Before anybody can find this process: a TERM that ends it now would take the stop with it.
  trap asked_to_end TERM INT
  trap : USR1
  publish "${copy%.exit_code}.pid" "$self $started $answer"
  publish "$dir/pid" "$self $started $answer" || exit 2
  ticks
  deadline=$((answer + ceiling * 100))
  if [ -n "$cannot_enter" ]; then
    within 10 say "cannot enter the working directory '$workdir'"
    code=1
  else
    set -m # a process group of its own for the job
    PODTETHER_JOB="$marker" bash -o pipefail "$dir/cmd.sh" >>"$dir/out.log" 2>&1 &
    job=$!
    set +m
    keeper &
    keeper=$!
    [ -z "$asked" ] || asked_to_end # it came before there was a job to end
    wait "$job"
    code=$?
    [ -z "$asked" ] || code=143 scope=all
    end_keeper "$keeper"
    wait "$keeper"
    if [ -e "$struck" ]; then
      code=124 scope=all
    elif [ "$grace" -gt 10 ]; then
      grace=10 # the job has ended by itself, what it left behind had its time
    fi
    end_processes "$scope" "$grace"
    # shellcheck disable=SC2046
    [ "$scope" = all ] || within 10 note_leftovers left $(members all)
  fi
  record "$code"
  stop_pod
}

# Whether this process leads its session; without /proc, at least its process group.
leads() {
  local stat=''
  { IFS= read -r -d '' stat <"$proc/$$/stat"; } 2>/dev/null
  # shellcheck disable=SC2086
  if [ -n "$stat" ]; then set -- ${stat##*) }; else set -- - - - "$(ps -o pgid= -p $$ | tr -d ' ')"; fi
  [ "$4" = "$$" ]
}

# One compound command: all of it is read before any of it runs, so that a volume that hangs later
# cannot stop it half-way.
if [ -n "${PODTETHER_IN_SESSION:-}" ] || leads; then
  unset PODTETHER_IN_SESSION
  main "$@"
  exit
else
  PODTETHER_IN_SESSION=1 exec setsid bash "$0" "$@"
fi
