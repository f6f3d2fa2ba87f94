#!/usr/bin/env bash
# Proves which pod this is and tells what it has, for a program to read.
# usage: pod_probe.sh <mount> <pod_id> <token> [who]
# "who" asks only which pod it is, and nothing that may take long.
# Prints "key=value" lines, last "end=pod_probe.sh". <token> becomes the volume's identity if it has none
# and the pod is the expected one: a stale address may lead to somebody else's pod (F01).
set -u

free_kib() { df -Pk -- "$1" 2>/dev/null | awk 'NR == 2 { print $4 }'; }
device_of() { stat -c %d -- "$1" 2>/dev/null || stat -f %d -- "$1" 2>/dev/null; }

# The pod's id: the provider's start script writes the environment file some seconds after sshd is
# up, so the first process is asked too.
pod_id() {
  local file=${PODTETHER_RP_ENVIRONMENT:-/etc/rp_environment} id=''
  if [ -r "$file" ]; then
    # shellcheck disable=SC1090,SC2030
    id=$(unset RUNPOD_POD_ID && set +u && . "$file" >/dev/null 2>&1 && printf '%s' "$RUNPOD_POD_ID")
  fi
  if [ -z "$id" ]; then
    id=$({ tr '\0' '\n' </proc/1/environ | sed -n 's/^RUNPOD_POD_ID=//p'; } 2>/dev/null)
  fi
  # shellcheck disable=SC2031 # only the subshell above forgot it
  printf '%s\n' "${id:-${RUNPOD_POD_ID:-}}"
}

# nvidia-smi hangs on a sick GPU; the rest must be told all the same.
gpus() {
  set -- nvidia-smi
  if command -v timeout >/dev/null; then set -- timeout 10 nvidia-smi; fi
  "$@" --query-gpu=driver_version,utilization.gpu,memory.used,memory.total \
    --format=csv,noheader,nounits 2>/dev/null </dev/null | sed -n 's/^\([0-9].*,.*,.*,.*\)$/gpu=\1/p'
}

# Prints the volume's token, after giving it $2 when it has none.
identity() {
  local file="$1/.podtether/identity" part
  if ! [ -s "$file" ] && [ -n "$2" ]; then
    part="$file.part.$$"
    mkdir -p -- "$1/.podtether" && printf '%s\n' "$2" >"$part" && mv -n -- "$part" "$file"
    rm -f -- "$part"
  fi
  head -n 1 -- "$file" 2>/dev/null
}

main() {
  local mount=$1 token=$3 kind=missing uptime='' id
  if [ -L "$mount" ] && [ -d "$mount" ]; then
    kind=symlink
  elif [ -d "$mount" ]; then
    if [ "$(device_of "$mount")" = "$(device_of /)" ]; then kind=same_device; else kind=device; fi
  fi
  id=$(pod_id)
  [ "$id" = "$2" ] || token=''
  echo "pod_id=$id"
  if [ $# -lt 4 ]; then gpus; fi
  echo "mount=$kind"
  echo "mount_free_kib=$(free_kib "$mount")"
  echo "disk_free_kib=$(free_kib /)"
  if command -v rsync >/dev/null; then echo rsync=yes; else echo rsync=no; fi
  { read -r uptime _ </proc/uptime; } 2>/dev/null
  echo "uptime_s=${uptime%%.*}"
  if [ "$kind" != missing ]; then echo "identity=$(identity "$mount" "$token")"; fi
  echo end=pod_probe.sh
}

if [ $# -ne 3 ] && [ "${4:-}" != who ]; then
  echo "usage: pod_probe.sh <mount> <pod_id> <token> [who]" >&2
  exit 2
fi
main "$@"
