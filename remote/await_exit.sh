#!/usr/bin/env bash
# await_exit.sh <job folder> <seconds>: waits until the job has published its exit code, at most so
# long. Prints `ended` or `waiting`. Held open over one connection, so that the end of a job is
# noticed at once without asking again and again.
dir=$1
end=$((SECONDS + $2))
while [ ! -e "$dir/exit_code" ]; do
  if [ "$SECONDS" -ge "$end" ]; then
    echo waiting
    exit 0
  fi
  sleep 0.5
done
echo ended
