#!/usr/bin/env bash
# Stops this pod from inside, by every way there is, until it is gone.
# usage: stop_pod.sh <pod_id>        writes one line for each try on stdout
#
# No answer is believed: runpodctl exits 0 on a failed stop (A03), the API answers 200 and does
# nothing (A04). Only the end of this process, with the pod, is success; so returning is failure.
# Here for itself, whatever the volume does: it needs no file but the pod's environment.
set -u
trap '' PIPE HUP # a log that cannot be written, or a caller that leaves, is no reason to stop trying

# --- environment: the same text in every script that needs it; a unit test compares them ---
# Prints the value of variable $1 of this pod: from the environment file, else from the first
# process, else from our own environment. The file is read and never run: the provider's images write
# it line by line while SSH already answers, so it may end in the middle of a word, and a value with
# a quote or a `$` makes it something else than it says. Taken are `export NAME="…"`, `NAME='…'` and
# `NAME=…`; the last one counts. A value whose end is missing is none.
pod_variable() {
  local line value found='' whole=1 quote='"' dollar='$' tick='`' slash="\\"
  while IFS= read -r line || { whole='' && [ -n "$line" ]; }; do
    line=${line%$'\r'}
    line=${line#"${line%%[![:space:]]*}"}
    line=${line#export }
    line=${line#declare -x }
    case $line in "$1="*) value=${line#*=} ;; *) continue ;; esac
    case $value in
      '"'*'"')
        value=${value#\"} value=${value%\"}
        value=${value//"$slash$quote"/$quote}
        value=${value//"$slash$dollar"/$dollar}
        value=${value//"$slash$tick"/$tick}
        value=${value//"$slash$slash"/$slash}
        ;;
      "'"*"'") value=${value#\'} value=${value%\'} ;;
      '"'* | "'"*) continue ;;
      *) [ -n "$whole" ] || continue && value=${value%%[[:space:]]*} ;;
    esac
    found=$value
  done 2>/dev/null <"${PODTETHER_RP_ENVIRONMENT:-/etc/rp_environment}"
  # The first process of a local pod is the user's machine, whose key is none of ours.
  if [ -z "$found" ] && [ -z "${PODTETHER_LOCAL_POD:-}" ]; then
    found=$({ tr '\0' '\n' <"${PODTETHER_PROC:-/proc}/1/environ" | sed -n "s/^$1=//p" | head -n 1; } 2>/dev/null)
  fi
  printf '%s\n' "${found:-${!1:-}}"
}
# --- end of environment ---

# --- key for curl: the same text in every script that needs it; a unit test compares them ---
# Arguments can be read by every process, so curl reads the key on stdin.
key_for_curl() {
  local quoted=${key//\\/\\\\}
  printf 'header = "Authorization: Bearer %s"\n' "${quoted//\"/\\\"}"
}
# --- end of key for curl ---

try() {
  local output code
  echo "$(date -u +%Y-%m-%dT%H:%M:%SZ) try $round of $rounds: $1"
  shift
  if command -v timeout >/dev/null; then set -- timeout 60 "$@"; fi
  output=$(set -o pipefail && "$@" 2>&1 </dev/null | head -c 300)
  code=$?
  # An error may show the URL, and the key in it (H01).
  if [ -n "$key" ]; then output=${output//"$key"/[secret]}; fi
  echo "  exit code $code (not believed): $output"
}

# Sends body $2 to address $1. A user agent, because the provider's edge turns away requests without
# one (A10). The answer's body is dropped: it repeats the pod's environment.
post() {
  if [ -z "$key" ]; then
    echo "try $round of $rounds: no RUNPOD_API_KEY, so no call of $1"
    return
  fi
  echo "$(date -u +%Y-%m-%dT%H:%M:%SZ) try $round of $rounds: POST $1"
  echo "  $(key_for_curl | curl -sS -X POST -K - --max-time 30 -A podtether -o /dev/null -w 'HTTP %{http_code}' \
    -H 'Content-Type: application/json' -d "$2" "$1" 2>&1) (not believed)"
}

main() {
  pod=${1:-}
  case $pod in '' | *[!A-Za-z0-9_-]*) echo "stop_pod.sh: '$pod' is no pod id" >&2 && exit 2 ;; esac
  key=$(pod_variable RUNPOD_API_KEY)
  api=$(pod_variable PODTETHER_API_URL)
  api=${api:-https://api.runpod.io}
  # runpodctl knows no other way to the key than its environment.
  [ -z "$key" ] || export RUNPOD_API_KEY="$key"
  rounds=${PODTETHER_STOP_TRIES:-28}
  local gap=${PODTETHER_STOP_GAP_SEC:-5} way
  for ((round = 1; round <= rounds; round++)); do
    way=$(((round - 1) % 4))
    case $way in
      0) post "$api/v2/pods/$pod/action" '{"action":"stop"}' ;;
      1) post "$api/graphql" "{\"query\":\"mutation { podStop(input: {podId: \\\"$pod\\\"}) { id desiredStatus } }\"}" ;;
      2) try "runpodctl pod stop $pod" runpodctl pod stop "$pod" ;;
      3) try "runpodctl stop pod $pod" runpodctl stop pod "$pod" ;;
    esac
    sleep "$gap"
    # All ways once quickly, then ever more slowly: the API limits calls by the day (A09).
    [ "$way" -lt 3 ] || gap=$((gap * 2 > 600 ? 600 : gap * 2))
  done
  echo "$(date -u +%Y-%m-%dT%H:%M:%SZ) gave up after $rounds tries; this pod still runs and bills"
  exit 1
}

main "$@"
