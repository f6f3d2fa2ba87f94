#!/usr/bin/env bash
# Ends a command that was run through run_in.sh and took too long.
# usage: end_exec.sh <mark> <seconds>
# TERM to every process of it, and KILL after <seconds>. Prints "found=", "left=" and "away=" with
# numbers of processes, last "end=end_exec.sh". Away are those that took a session of their own: whoever
# does that means to stay, as with a job.
#
# An SSH server delivers no signals for root, and a closed channel ends nothing: so the command is
# looked for by the mark in its environment.
set -u
proc=${PODTETHER_PROC:-/proc}

# Prints the command's processes, and those that went away as "away".
members() {
  local pid file stat home='' group=''
  if ! [ -d "$proc/self" ]; then
    ps -axwwE -o pid=,command= 2>/dev/null | awk -v m="PODTETHER_EXEC=$mark:" 'index($0, m) { print $1 }'
    return
  fi
  while IFS= read -r file; do
    pid=${file%/environ} pid=${pid##*/}
    IFS=: read -r _ group home <<<"$(tr '\0' '\n' <"$file" 2>/dev/null | sed -n "s/^PODTETHER_EXEC=$mark:/:/p")"
    stat=
    { IFS= read -r -d '' stat <"$proc/$pid/stat"; } 2>/dev/null
    # shellcheck disable=SC2086
    set -- ${stat##*) }
    case ${1:-X} in Z | X) continue ;; esac
    # Without a session noted it is just ending, and its environment is gone already.
    [ -n "$home" ] || continue
    if [ "$4" = "$home" ]; then echo "$pid"; else echo away; fi
  done < <(grep -lzF -- "PODTETHER_EXEC=$mark:" "$proc"/[0-9]*/environ 2>/dev/null)
  # Also those that emptied their environment and stayed in the group.
  [ -n "$group" ] || return
  for file in "$proc"/[0-9]*/stat; do
    stat=
    { IFS= read -r -d '' stat <"$file"; } 2>/dev/null
    # shellcheck disable=SC2086
    set -- ${stat##*) }
    case ${1:-X} in Z | X) continue ;; esac
    if [ "$3" = "$group" ]; then pid=${file%/stat} && echo "${pid##*/}"; fi
  done
}

here() { members | grep -v away | sort -u; }
count() { printf '%s' "$1" | grep -c .; }

main() {
  local mark=$1 rounds=$(($2 * 10)) found pids
  found=$(here)
  pids=$found
  # shellcheck disable=SC2086
  [ -z "$pids" ] || { kill -TERM $pids; kill -CONT $pids; } 2>/dev/null
  while [ -n "$pids" ] && [ "$rounds" -gt 0 ]; do
    sleep 0.1
    rounds=$((rounds - 1))
    pids=$(here)
  done
  rounds=30
  while [ -n "$pids" ] && [ "$rounds" -gt 0 ]; do
    # shellcheck disable=SC2086
    kill -KILL $pids 2>/dev/null
    sleep 0.1
    rounds=$((rounds - 1))
    pids=$(here)
  done
  echo "found=$(count "$found")"
  echo "left=$(count "$pids")"
  echo "away=$(members | grep -c away)"
  echo end=end_exec.sh
}

case ${1:-/} in *[!0-9a-f]*) set -- ;; esac
if [ $# -ne 2 ]; then
  echo "usage: end_exec.sh <mark> <seconds>" >&2
  exit 2
fi
main "$@"
