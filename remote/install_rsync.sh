#!/usr/bin/env bash
# Installs rsync where it is missing: a pod's container disk, and what was installed on it, is emptied by
# every stop.
#
#   install_rsync.sh SECONDS
#
# Gives up after SECONDS. Exit: 0 rsync is there, 2 usage, 3 no apt-get, 4 apt-get could not, its last
# words on stderr.
set -u

if [ $# -ne 1 ]; then
  echo "usage: install_rsync.sh SECONDS" >&2
  exit 2
fi
if command -v rsync >/dev/null; then exit 0; fi
if ! command -v apt-get >/dev/null; then
  echo "there is no apt-get" >&2
  exit 3
fi
export DEBIAN_FRONTEND=noninteractive
end=$((SECONDS + $1))

# Bounded, since it would live on when nobody waits for it any more.
apt() {
  local left=$((end - SECONDS))
  if [ "$left" -lt 1 ]; then return 124; fi
  if command -v timeout >/dev/null; then
    timeout -k 5 "$left" apt-get -qq -o DPkg::Lock::Timeout="$left" "$@" </dev/null 2>&1
  else
    apt-get -qq "$@" </dev/null 2>&1
  fi
}

# Images come without the lists of packages, so the first one is likely to fail.
said=$(apt install -y --no-install-recommends rsync) ||
  { said=$(apt update) && said=$(apt install -y --no-install-recommends rsync); }
hash -r
if ! command -v rsync >/dev/null; then
  printf '%s\n' "$said" | tail -n 3 >&2
  exit 4
fi
