#!/usr/bin/env bash
# `podtether supervise …` with this computer kept awake (caffeinate on macOS, systemd-inhibit on
# Linux) until the pod is stopped and read back. Arguments, signals and exit code pass through.
set -euo pipefail

file=${BASH_SOURCE[0]}
while [ -L "$file" ]; do
  link=$(readlink "$file")
  case $link in
    /*) file=$link ;;
    *) file=$(dirname "$file")/$link ;;
  esac
done
exec "$(dirname "$file")/run.sh" awake supervise ${1+"$@"}
