#!/usr/bin/env bash
# shellcheck disable=SC2154 # key: of a part that stands before this one
# Arguments can be read by every process, so curl reads the key on stdin.
key_for_curl() {
  local quoted=${key//\\/\\\\}
  printf 'header = "Authorization: Bearer %s"\n' "${quoted//\"/\\\"}"
}
