#!/usr/bin/env bash
# shellcheck disable=SC2154 # folder: of a part that stands before this one
# Says to the watchdog that somebody supervises this pod for the next seconds.
# usage: renew_lease.sh <seconds>      0 takes the lease back
# Prints "key=value" lines, last "end=renew_lease.sh".
set -u

case ${1:-x} in
  *[!0-9]* | ????????*) echo "usage: renew_lease.sh <seconds>" >&2 && exit 2 ;;
  0) rm -f "$folder/lease" ;;
  *) [ ! -d "$folder" ] || set_moment lease "$1" || exit 1 ;;
esac
report_watchdog
echo end=renew_lease.sh
