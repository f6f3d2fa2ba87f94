#!/usr/bin/env bash
# run_in.sh <folder> <command line>: runs a command line by bash in a folder.
# The command line is somebody else's; it is passed on as one word and not looked at.
cd -- "$1" || { printf 'podtether: there is no folder %s on this pod\n' "$1" >&2; exit 125; }
exec bash -c "$2"
