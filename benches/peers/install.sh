#!/usr/bin/env bash
# Installs the servers that `cargo bench --bench mcp_start` compares with, pinned, into .tools/bench.
# Nothing outside that folder is touched; delete it to be rid of them. Needs npm and python3 (3.10 or
# newer); of the two, what is missing is said and left out.
# usage: benches/peers/install.sh
set -eu

runpod='@runpod/mcp-server@4.0.0'
python_sdk='mcp==2.3.0'

here=$(cd "$(dirname "$0")/../.." && pwd)
to=$here/.tools/bench
mkdir -p "$to"
status=0

if command -v npm >/dev/null 2>&1; then
  npm install --silent --no-audit --no-fund --no-save --prefix "$to" "$runpod" >&2
else
  echo "install.sh: npm is missing, so $runpod was left out" >&2
  status=1
fi

if command -v python3 >/dev/null 2>&1; then
  [ -x "$to/venv/bin/python" ] || python3 -m venv "$to/venv" >&2
  "$to/venv/bin/python" -m pip install --quiet --disable-pip-version-check "$python_sdk" >&2
else
  echo "install.sh: python3 is missing, so $python_sdk was left out" >&2
  status=1
fi

exit "$status"
