#!/usr/bin/env bash
# run_in.sh <folder> <mark> <command line>: runs a command line by bash in a folder.
# The command line is somebody else's; it is passed on as one word and not looked at. The mark is for
# end_exec.sh, beside the numbers of the process group and the session in which it all begins.
cd -- "$1" || { printf 'podtether: there is no folder %s on this pod\n' "$1" >&2; exit 125; }
mark=$2 line=$3 stat=''
{ IFS= read -r -d '' stat <"/proc/$$/stat"; } 2>/dev/null
# shellcheck disable=SC2086
set -- ${stat##*) }
export PODTETHER_EXEC="$mark:${3:-}:${4:-}"
exec bash -c "$line"
