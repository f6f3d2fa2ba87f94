#!/usr/bin/env bash
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
