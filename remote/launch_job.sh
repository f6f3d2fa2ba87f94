#!/usr/bin/env bash
# shellcheck disable=SC2154 # answer, proc: of a part that stands before this one
# Starts a placed job, at most once, and returns as soon as its wrapper has shown itself.
# usage: launch_job.sh <job dir> <script dir> <pod_id> <ceiling_sec> <0|1> <workdir>
# Prints one line: "launched <pid>" or "already_started". A launch that was called off is an error.
set -u
# A connection that is lost now must not leave a lock without a job. Handlers, not '': the job would
# inherit ignored signals and could not change that.
trap : HUP PIPE

# Notes the machine's uptime and boot: against them ages are told, whatever clocks do (A14).
note_time() {
  local uptime=''
  { read -r uptime _ <"$proc/uptime"; } 2>/dev/null || return
  boot_id
  printf '%s %s\n' "${uptime%%.*}" "$answer" >"$1"
} 2>/dev/null

# Another session did not wait for this launch any longer (call_off_launch.sh).
called_off() {
  echo "launch_job.sh: this launch was called off, since a later one could not know of it" >&2
  exit 1
}

main() {
  local dir=$1 scripts=$2 round
  shift 2
  if ! [ -r "$dir/cmd.sh" ] || ! [ -r "$scripts/job_wrapper.sh" ]; then
    echo "launch_job.sh: $dir/cmd.sh or $scripts/job_wrapper.sh is missing" >&2
    return 1
  fi
  # The lock that makes a launch with an unknown outcome safe to repeat (F04).
  if [ -e "$dir/pid" ] || ! mkdir "$dir/launched" 2>/dev/null; then
    # Whoever has the lock says within a moment what it took it for.
    for ((round = 0; round < 20; round++)); do
      [ ! -e "$dir/launched/refused" ] || called_off
      if [ -e "$dir/launched/at" ] || [ -e "$dir/pid" ]; then break; fi
      sleep 0.05
    done
    if [ -e "$dir/pid" ] || [ -d "$dir/launched" ]; then echo already_started && return 0; fi
    echo "launch_job.sh: cannot write in $dir" >&2
    return 1
  fi
  if [ -e "$dir/called_off" ]; then
    : >"$dir/launched/refused"
    called_off
  fi
  note_time "$dir/launched/at"
  # All three are redirected: a child that holds one of them keeps the SSH channel open. INT and QUIT
  # go back to normal, which a shell ignores for what it starts with `&`.
  (trap - INT QUIT && exec setsid bash "$scripts/job_wrapper.sh" "$dir" "$@") </dev/null >>"$dir/wrapper.log" 2>&1 &
  for ((round = 0; round < 400; round++)); do
    if [ -s "$dir/pid" ]; then
      echo "launched $(cut -d ' ' -f 1 "$dir/pid")"
      return 0
    fi
    sleep 0.05
  done
  echo "launch_job.sh: the wrapper did not start within 20 s: $(tail -c 500 "$dir/wrapper.log")" >&2
  return 1
}

if [ $# -ne 6 ]; then
  echo "usage: launch_job.sh <job dir> <script dir> <pod_id> <ceiling_sec> <0|1> <workdir>" >&2
  exit 2
fi
main "$@"
