#!/usr/bin/env bash
# Stops this pod from inside, by every way there is, until it is gone.
# usage: stop_pod.sh <pod_id>        writes one line for each try on stdout
#
# No answer is believed: runpodctl exits 0 on a failed stop (A03), the API answers 200 and does
# nothing (A04). Only the end of this process, with the pod, is success; so returning is failure.
# Here for itself, whatever the volume does: it needs no file but the pod's environment.
set -u
trap '' PIPE HUP # a log that cannot be written, or a caller that leaves, is no reason to stop trying

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
