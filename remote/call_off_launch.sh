#!/usr/bin/env bash
# Calls off a launch whose command may still be on its way: what has not started by now never will.
# usage: call_off_launch.sh <job dir> <0|1>
# Prints one line: "called_off", "over", or "live"; the last is an error unless the second word is 1.
set -u

# Left in $answer: called_off, over, or live.
call_off() {
  # Nothing of it was placed, and it is launched only after that.
  if ! [ -d "$1" ] && ls -- "${1%/*/*}/." >/dev/null 2>&1; then answer=called_off && return; fi
  # First the word, then the lock of launch_job.sh: whoever has the lock already may have seen the word
  # in time, and then says so.
  : >"$1/called_off" || return 1
  if mkdir "$1/launched" 2>/dev/null; then : >"$1/launched/refused" || return 1; fi
  for ((round = 0; round < 40; round++)); do
    if is_called_off "$1"; then answer=called_off && return; fi
    if [ -e "$1/launched/at" ] || [ -e "$1/pid" ]; then break; fi
    sleep 0.05
  done
  verdict "$1"
  [ "$answer" = over ] || answer=live
}

if [ $# -ne 2 ]; then
  echo "usage: call_off_launch.sh <job dir> <0|1>" >&2
  exit 2
fi
call_off "$1" || {
  echo "call_off_launch.sh: cannot write in $1" >&2
  exit 1
}
echo "$answer"
if [ "$answer" = live ] && [ "$2" != 1 ]; then
  echo "the launch of job ${1##*/}, whose outcome was not known, has started it meanwhile; ask job_status" >&2
  exit 6
fi
