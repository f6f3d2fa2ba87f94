#!/usr/bin/env bash
# shellcheck disable=SC2154 # proc: of a part that stands before this one
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
