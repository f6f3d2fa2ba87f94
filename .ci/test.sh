#!/usr/bin/env bash
# Every check of this repository, one after the other; stops at the first that fails. ./run.sh test
# is the way in. Headings and times go to stderr, what the tools print stays theirs. What could not
# be checked here is said as SKIPPED, at the end once more. Written for bash 3.2.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

# Kept between runs and between clones: tools that take minutes to build, keyed by version.
cache=${XDG_CACHE_HOME:-${HOME:?}/.cache}/podtether-ci
deny_version=0.20.2
# Tools for checking the code for macOS from Linux; they lie beside the project, not in it.
mac_tools=../shared/tools/macos
# Seconds at the most for asking the advisory database, which may be out of reach.
fetch_sec=90
mkdir -p "$cache" target
# A terminal gets cargo's progress bar, a log none of its lines.
quiet=()
[ -t 2 ] || quiet=(--quiet)

skips=$(mktemp)
trap 'rm -f "$skips"' EXIT

say() { printf '%s\n' "$*" >&2; }

skip() {
  say "SKIPPED: $*"
  printf '%s\n' "SKIPPED: $*" >>"$skips"
}

# step NAME COMMAND … runs one check. In a subshell of its own, not behind `||`: there bash would
# go on after a command that failed.
step() {
  local name=$1 begun=$SECONDS code=0
  shift
  say "== $name"
  set +e
  (
    set -e
    "$@"
  )
  code=$?
  set -e
  if [ "$code" != 0 ]; then
    say "FAILED: $name (exit code $code, after $((SECONDS - begun)) s)"
    exit 1
  fi
  say "-- $name: $((SECONDS - begun)) s"
}

# Ends COMMAND after SEC seconds; macOS has no timeout(1).
within() { perl -e 'alarm shift; exec @ARGV or die "$ARGV[0]: $!\n"' "$@"; }

shell_scripts() {
  printf '%s\n' .ci/run
  find . -name '*.sh' -not -path './target/*' -not -path './.tools/*' -not -path './.git/*'
}

shell_syntax() {
  local script
  while read -r script; do bash -n "$script"; done < <(shell_scripts)
}

shell_lint() {
  command -v shellcheck >/dev/null || {
    skip "shellcheck is not installed"
    return 0
  }
  shell_scripts | tr '\n' '\0' | xargs -0 shellcheck
}

# On a Mac the check before this one was it. Its std comes with the toolchain, or is built once.
clippy_for_macos() {
  local sysroot target=aarch64-apple-darwin
  [ "$(uname -s)" = Linux ] || return 0
  [ -d "$mac_tools" ] || {
    skip "clippy for macOS: $mac_tools is not here"
    return 0
  }
  sysroot=$(rustc --print sysroot)
  if [ ! -d "$sysroot/lib/rustlib/$target/lib" ]; then
    command -v apt-get >/dev/null || {
      skip "clippy for macOS: std for $target is not installed, and without apt-get it can not be built"
      return 0
    }
    sysroot=$cache/macos-sysroot-$(rustc -V | cut -d' ' -f2)
    bash "$mac_tools/macos-sysroot.sh" "$sysroot" $target || {
      local code=$?
      [ "$code" != 3 ] || say "no std source for exactly this compiler: the code for macOS can not be checked"
      return "$code"
    }
  fi
  # A folder of its own: the same one would be a second build of what both share, each time.
  MAC_TARGET=$target MAC_TARGET_DIR=target/macos-check \
    bash "$mac_tools/macos-check.sh" "$sysroot" --locked --all-targets -- -D warnings
}

# The Python that the MCP client's tests use, in a venv that is made anew when its pins change.
python_client() {
  local venv=.tools/venv python candidate
  if cmp -s .ci/python.txt "$venv/made-from.txt" && "$venv/bin/python" -c 'import mcp' 2>/dev/null; then
    return 0
  fi
  python=
  for candidate in python3 python3.14 python3.13 python3.12 python3.11 python3.10; do
    if "$candidate" -c 'import sys, venv, ensurepip; sys.exit(sys.version_info < (3, 10))' 2>/dev/null; then
      python=$candidate
      break
    fi
  done
  rm -rf "$venv"
  if [ -z "$python" ]; then
    no_python_client "no Python 3.10 or newer with venv is here"
  elif ! { "$python" -m venv "$venv" && "$venv/bin/python" -m pip install --quiet -r .ci/python.txt; } >&2; then
    rm -rf "$venv"
    no_python_client "its packages could not be installed"
  else
    cp .ci/python.txt "$venv/made-from.txt"
  fi
}

# A person may go on without it, CI may not.
no_python_client() {
  [ -z "${CI:-}" ] || {
    say "$*"
    return 1
  }
  skip "tests with the MCP client in Python: $*"
}

# What a test skipped stands in its own output, which cargo shows for the ones that passed only
# when asked.
rust_tests() {
  local log=target/tests.log
  # Tests mostly wait, for processes and ceilings: with a thread per core of a small machine the run
  # would take twice as long.
  [ "$(getconf _NPROCESSORS_ONLN)" -ge 6 ] || export RUST_TEST_THREADS="${RUST_TEST_THREADS:-6}"
  [ ! -x .tools/venv/bin/python ] || export PODTETHER_TEST_PYTHON=$PWD/.tools/venv/bin/python
  cargo test --locked -- --show-output </dev/null | tee "$log"
  { grep -hi '^skipped' "$log" || true; } | sort -u >>"$skips"
}

docs() { RUSTDOCFLAGS=-Dwarnings cargo doc ${quiet[@]+"${quiet[@]}"} --no-deps --locked; }

deny=$cache/cargo-deny-$deny_version/bin/cargo-deny

# From its published source, unoptimised: it runs for a second, so what counts is its build.
install_cargo_deny() {
  [ ! -x "$deny" ] || return 0
  local build
  build=$(mktemp -d)
  CARGO_TARGET_DIR=$build CARGO_INCREMENTAL=0 CARGO_PROFILE_DEV_DEBUG=0 \
    cargo install ${quiet[@]+"${quiet[@]}"} --locked --debug --root "$cache/cargo-deny-$deny_version" "cargo-deny@$deny_version" ||
    { rm -rf "$build"; return 1; }
  rm -rf "$build"
}

dependencies() { "$deny" --locked check --hide-inclusion-graph licenses bans sources; }

advisories() {
  within "$fetch_sec" "$deny" --locked fetch db >target/advisories.log 2>&1 || {
    skip "advisories: the database is unreachable"
    return 0
  }
  "$deny" --locked check --disable-fetch advisories
}

step "bash -n" shell_syntax
step "shellcheck" shell_lint
step "cargo fmt" cargo fmt --check
step "cargo clippy" cargo clippy ${quiet[@]+"${quiet[@]}"} --locked --all-targets -- -D warnings
step "cargo doc" docs
step "Python client" python_client
step "cargo test" rust_tests
step "clippy for macOS" clippy_for_macos
step "cargo-deny $deny_version" install_cargo_deny
step "licences, bans, sources" dependencies
step "advisories" advisories

cat "$skips" >&2
say "all checks passed in $SECONDS s"
