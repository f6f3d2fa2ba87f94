#!/usr/bin/env bash
# `podtether watch …` with this computer kept awake (caffeinate on macOS, systemd-inhibit on
# Linux) until there is a verdict. Arguments, signals and exit code pass through.
set -euo pipefail

file=${BASH_SOURCE[0]}
while [ -L "$file" ]; do
  link=$(readlink "$file")
  case $link in
    /*) file=$link ;;
    *) file=$(dirname "$file")/$link ;;
  esac
done
exec "$(dirname "$file")/run.sh" awake watch ${1+"$@"}
