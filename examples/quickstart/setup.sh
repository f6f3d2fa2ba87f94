#!/usr/bin/env bash
# Sets a pod up for the quickstart: a Python environment on the network volume, where a stop leaves it,
# and the training beside it.
# usage: setup.sh <folder on the volume>
# Safe to repeat. Whether it worked is told by what can be imported, not by pip's exit code.
set -u
target=${1:?usage: setup.sh <folder on the volume>}
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
python=$target/venv/bin/python

tell() { echo "podtether-step $*"; }
fail() {
  tell "$1 failed $2"
  exit 1
}
works() { "$python" -c 'import gymnasium, numpy; gymnasium.make("CartPole-v1")' 2>/dev/null; }

tell 1/3 running "training: copying"
{ mkdir -p "$target" && cp "$here/train.py" "$here/requirements.txt" "$target/"; } ||
  fail 1/3 "training: $target cannot be written"
tell 1/3 ok "training: $target/train.py"

if works && cmp -s "$here/requirements.txt" "$target/venv/made-from.txt"; then
  tell 2/3 ok "environment: was there"
else
  tell 2/3 running "environment: installing"
  rm -rf "$target/venv"
  made=
  for candidate in python3 python3.13 python3.12 python3.11 python3.10; do
    "$candidate" -c 'import sys, ensurepip; sys.exit(sys.version_info < (3, 9))' 2>/dev/null || continue
    "$candidate" -m venv "$target/venv" && made=1 && break
  done
  [ -n "$made" ] || fail 2/3 "environment: no Python of 3.9 or newer with venv is here"
  "$python" -m pip install --quiet --disable-pip-version-check -r "$here/requirements.txt"
  works || fail 2/3 "environment: gymnasium and numpy cannot be imported after pip install"
  cp "$here/requirements.txt" "$target/venv/made-from.txt"
  tell 2/3 ok "environment: installed"
fi

"$python" "$target/train.py" --help >/dev/null || fail 3/3 "check: train.py does not start"
tell 3/3 ok "check: train.py starts"
