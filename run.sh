#!/usr/bin/env bash
# Builds podtether when its sources have changed, then becomes it.
#
#   ./run.sh                  the MCP server, on stdin and stdout
#   ./run.sh demo             all of it on the local cloud, for $0
#   ./run.sh test             every check of this repository
#   ./run.sh awake COMMAND …  any subcommand, with this computer kept awake as long as it runs
#   ./run.sh COMMAND …        any subcommand of podtether
#
# stdout belongs to the binary: an MCP client reads it as protocol, so everything else goes to
# stderr. It ends in exec: an MCP client that goes away leaves no shell behind (C10), signals reach
# the binary, and its exit code is ours. Written for bash 3.2, which is what macOS has.
set -euo pipefail

say() { printf 'podtether: %s\n' "$*" >&2; }

# Where this file really is. Links are followed by hand, because older readlinks have no -f.
home_of() {
  local file=$1 link
  while [ -L "$file" ]; do
    link=$(readlink "$file")
    case $link in
      /*) file=$link ;;
      *) file=$(dirname "$file")/$link ;;
    esac
  done
  # With CDPATH set, cd prints.
  (CDPATH='' cd -P -- "$(dirname "$file")" && pwd)
}

root=$(home_of "${BASH_SOURCE[0]}")
binary=$root/target/release/podtether
stamp=$root/target/release/.built-by-run.sh

# With root and apt-get a missing program can be had without asking; 1 when it can not.
install_quietly() {
  [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null || return 1
  say "installing $*"
  export DEBIAN_FRONTEND=noninteractive
  { apt-get -qq update && apt-get -qq install -y --no-install-recommends "$@"; } </dev/null >&2
}

# Whether apt's cargo is as new as rust-version in Cargo.toml asks.
apt_cargo_suffices() {
  local wanted offered
  command -v apt-cache >/dev/null || return 1
  wanted=$(sed -n 's/^rust-version = "1\.\([0-9]*\).*/\1/p' "$root/Cargo.toml")
  offered=$(apt-cache policy cargo 2>/dev/null | sed -n 's/.*Candidate: 1\.\([0-9]*\)\..*/\1/p')
  [ -n "$wanted" ] && [ -n "$offered" ] && [ "$offered" -ge "$wanted" ]
}

# cargo on PATH or where rustup and Homebrew put it: a program started from the Dock or by a service
# has a PATH without either.
find_cargo() {
  local folder
  command -v cargo >/dev/null && return 0
  for folder in "${CARGO_HOME:-${HOME:-}/.cargo}/bin" /opt/homebrew/bin /usr/local/bin; do
    if [ -x "$folder/cargo" ]; then
      export PATH="$folder:$PATH"
      return 0
    fi
  done
  apt_cargo_suffices && install_quietly cargo && command -v cargo >/dev/null
}

need_cargo() {
  find_cargo && return 0
  say "cargo is missing: install Rust (curl --proto '=https' --tlsv1.2 -sSf https://sh.rustup.rs | sh), then run this again"
  return 127
}

need_cc() {
  command -v cc >/dev/null && return 0
  install_quietly gcc libc6-dev && return 0
  say "a C compiler is missing: run 'xcode-select --install' on macOS, 'sudo apt-get install gcc libc6-dev' on Debian or Ubuntu"
  return 127
}

# Nothing depends on rsync alone: without it results come by tar, which can not resume.
want_rsync() {
  command -v rsync >/dev/null && return 0
  case $1 in
    # Only where some seconds more do no harm: an MCP client waits for an answer.
    install) install_quietly rsync && return 0 ;;
  esac
  say "rsync is missing, pulls that break off can not resume: run 'brew install rsync' on macOS, 'sudo apt-get install rsync' on Debian or Ubuntu"
}

# A few milliseconds, where asking cargo takes some hundred. Folders count too, so that a file that
# was removed or renamed is noticed.
is_fresh() {
  [ -x "$binary" ] && [ -f "$stamp" ] || return 1
  [ -z "$(cd "$root" && find src remote Cargo.toml Cargo.lock rust-toolchain.toml -newer "$stamp" 2>/dev/null)" ]
}

build() {
  need_cargo && need_cc || return
  [ -x "$binary" ] || say "building podtether, once; this takes some minutes"
  # A terminal gets cargo's progress bar, a log none of its lines.
  local quiet=--quiet
  [ ! -t 2 ] || quiet=--color=auto
  mkdir -p "$root/target/release"
  # The moment before the build counts: what is edited while it goes on belongs to the next one.
  : >"$stamp.$$"
  # From the root, where rustup reads rust-toolchain.toml; and never from the MCP client's stdin.
  if (cd "$root" && cargo build $quiet --release --locked --bin podtether --target-dir "$root/target") </dev/null >&2; then
    mv -f "$stamp.$$" "$stamp"
  else
    local code=$?
    rm -f "$stamp.$$"
    return "$code"
  fi
}

ready() {
  local code=0
  is_fresh && return 0
  build || code=$?
  [ "$code" = 0 ] && return 0
  [ -x "$binary" ] || exit "$code"
  # A stop must not wait for sources that compile. And who has no cargo did not change the sources.
  if [ "$1" = stop ] || [ "$code" = 127 ]; then
    say "going on with the binary of an earlier build"
    return 0
  fi
  exit "$code"
}

# Holds sleep off from beside, not from around: the holder watches this process, which becomes the
# binary, so nothing stands between the binary and its signals or its exit code. The holder ignores
# what a terminal or a supervisor sends to the whole group, because the binary goes on after an
# interrupt until the pod is stopped.
keep_awake() {
  if command -v caffeinate >/dev/null; then
    (
      trap '' HUP INT QUIT TERM
      exec caffeinate -i -w $$
    ) </dev/null >/dev/null 2>&1 &
  elif command -v systemd-inhibit >/dev/null &&
    systemd-inhibit --what=sleep:idle --who=podtether --why=probe true </dev/null >/dev/null 2>&1; then
    (
      trap '' HUP INT QUIT TERM
      # The trap again, because systemd-inhibit resets signals for what it runs.
      # shellcheck disable=SC2016  # the inner shell's words
      exec systemd-inhibit --what=sleep:idle --who=podtether --why="podtether $1" \
        sh -c 'trap "" HUP INT QUIT TERM; while kill -0 "$1"; do sleep 2 || exit; done' sh $$
    ) </dev/null >/dev/null 2>&1 &
  else
    say "nothing here holds off sleep (caffeinate, systemd-inhibit): keep this computer awake yourself. Asleep it stops no pod: its fuse fires when it wakes, and until then only the pod's own watchdog does"
  fi
}

if [ "${1-}" = awake ]; then
  shift
  [ $# -gt 0 ] || { say "usage: run.sh awake COMMAND …"; exit 2; }
  keep_awake "$1"
fi

command=${1-mcp}
[ $# -gt 0 ] && shift
case $command in
  test)
    need_cargo && need_cc || exit
    want_rsync install
    exec "$root/.ci/test.sh" ${1+"$@"}
    ;;
  demo)
    want_rsync install
    ready demo
    for word in ${1+"$@"}; do
      case $word in --dir | --dir=*) exec "$binary" demo "$@" ;; esac
    done
    exec "$binary" demo --dir "$root/target/demo" ${1+"$@"}
    ;;
  *)
    want_rsync tell
    ready "$command"
    exec "$binary" "$command" ${1+"$@"}
    ;;
esac
