#!/usr/bin/env bash
# Tells what an earlier boot of this pod left on the volume about who stopped it.
# usage: drill_evidence.sh <mount> <job dir|->
# Prints "key=value" lines, last "end=drill_evidence.sh". Counts, not times: no clock matters (A14).
set -u

if [ $# -ne 2 ]; then
  echo "usage: drill_evidence.sh <mount> <job dir|->" >&2
  exit 2
fi

# How many lines file $1 has, and its last one.
count=0 last=''
tally() {
  local line
  count=0 last=''
  while IFS= read -r line || [ -n "$line" ]; do
    count=$((count + 1)) last=${line//$'\r'/}
  done 2>/dev/null <"$1"
}

tally "$1/.podtether/watchdog/notices"
echo "notices=$count"
echo "notice=${last:0:1000}"
tally "$2/exit_code"
echo "exit_code=${last:0:20}"
tally "$2/stop.log"
echo "stop_lines=$count"
echo "stop=${last:0:300}"
echo end=drill_evidence.sh
