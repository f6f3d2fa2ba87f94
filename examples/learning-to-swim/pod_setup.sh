#!/usr/bin/env bash
# Sets a pod up for "Learning to Swim": Isaac Sim 4.5.0 and Isaac Lab 2.2.0 on the network volume, the
# system's packages on the container disk, and isaac-auv-env at its pinned commit.
# usage: pod_setup.sh <mount>
#
# Safe to repeat, and to be repeated after every start of the pod, since a stop wipes the container
# disk: what is there already is skipped. A step counts as done by what is there after it, never by an
# exit code: isaaclab.sh --install ends with 0 although a package failed (IsaacLab issue 5388). Each
# step says how it is in one line, which job_status shows:
#   podtether-step <n>/<of> running|ok|failed <name>: <words>
# What the installers print goes into one log per step, beside this script.
#
# Written from the two projects' documentation and issues and played against stand-ins for the programs
# it calls. The real download and installation (60 GB of volume, half an hour or more) is untried.
set -u
export TERM=${TERM:-xterm} # isaaclab.sh asks the terminal for its width (IsaacLab issue 4151)

mount=${1:?usage: pod_setup.sh <mount>}
logs=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)/logs

# What may be set from outside, in setup.command of the config.
min_driver=${MIN_DRIVER:-535.129.03}
sim_url=${ISAACSIM_URL:-https://download.isaacsim.omniverse.nvidia.com/isaac-sim-standalone-4.5.0-linux-x86_64.zip}
lab_url=${ISAACLAB_URL:-https://github.com/isaac-sim/IsaacLab.git}
lab_ref=${ISAACLAB_REF:-v2.2.0}
task_url=${TASK_URL:-https://github.com/warplab/isaac-auv-env.git}
task_commit=${TASK_COMMIT:-7c5ebe7f7a08acd2570b5fba328e92b7f59f6794}
need_gb=${NEED_GB:-35}                # the archive and what comes out of it, side by side for a while
stat_max_ms=${STAT_MAX_MS:-2000}      # a healthy volume answers in a few milliseconds
find_max_ms=${FIND_MAX_MS:-10000}     # healthy 2 to 3 s, degraded 17 s and more
beat_sec=${BEAT_SEC:-60}              # how often a long step says that it lives

sim=$mount/isaacsim
lab=$mount/IsaacLab
task=$mount/isaac-auv-env
link=$lab/source/isaaclab_tasks/isaaclab_tasks/direct/isaac-auv-env

steps=(driver volume source packages isaacsim isaaclab python task verify)
at=0 name=

tell() { printf 'podtether-step %s/%s %s %s: %s\n' "$at" "${#steps[@]}" "$1" "$name" "$2"; }
fail() {
  tell failed "$1"
  exit $((10 + at))
}
done_with() { tell ok "$1"; }

# The last line of a step's log that says something.
last_line() { tr '\r' '\n' <"$logs/$name.log" | grep -v '^[[:space:]]*$' | tail -n 1 | cut -c 1-160; }

# Runs a command with its output in the step's log, and says every now and then that it lives. With a
# number first, for at most so many seconds: what a hanging volume holds cannot even be killed, and is
# left behind.
quietly() {
  local limit=$1 begun=$SECONDS told=$SECONDS worker
  shift
  "$@" >>"$logs/$name.log" 2>&1 </dev/null &
  worker=$!
  while kill -0 "$worker" 2>/dev/null; do
    if [ "$limit" -gt 0 ] && [ $((SECONDS - begun)) -ge "$limit" ]; then
      kill -KILL "$worker" 2>/dev/null
      return 124
    fi
    if [ $((SECONDS - told)) -ge "$beat_sec" ]; then
      told=$SECONDS
      tell running "$((SECONDS - begun)) s, $(last_line)"
    fi
    sleep 0.1
  done
  wait "$worker"
}

now_ms() {
  local time=${EPOCHREALTIME:-}
  if [ -n "$time" ]; then echo $((10#${time//[!0-9]/} / 1000)); else echo $(($(date +%s) * 1000)); fi
}

# Milliseconds that a command takes, in $took; fails when it fails or takes longer than $1 seconds.
timed() {
  local begun
  begun=$(now_ms)
  quietly "$@" || return
  took=$(($(now_ms) - begun))
}

# A boot of Isaac that hangs is the volume, not the driver: so the volume is timed, not the boot.
healthy() {
  local found
  timed $((stat_max_ms / 1000 + 10)) stat "$sim" || fail "the volume did not answer a stat of $sim: stop the pod and start it again, elsewhere if it stays so"
  [ "$took" -le "$stat_max_ms" ] || fail "a stat of $sim took $took ms, and a healthy volume needs less than $stat_max_ms: stop the pod and start it again"
  health="stat $took ms"
  timed $((find_max_ms / 1000 + 30)) extensions || fail "the volume did not list $sim within $((find_max_ms / 1000 + 30)) s: stop the pod and start it again"
  found=$(cat "$logs/extensions")
  [ "$found" -gt 0 ] || fail "$sim has no extension.toml: remove it and run the setup again"
  [ "$took" -le "$find_max_ms" ] || fail "listing $sim took $took ms, and a healthy volume needs less than $find_max_ms: stop the pod and start it again"
  health="$health, $found extensions in $took ms"
}
extensions() { find "$sim" -maxdepth 3 -name extension.toml | wc -l >"$logs/extensions"; }

sim_is_there() { [ -x "$sim/python.sh" ] && [ -x "$sim/kit/python/bin/python3" ]; }

step_driver() {
  local have
  have=$(nvidia-smi --query-gpu=driver_version --format=csv,noheader 2>>"$logs/$name.log" | head -n 1)
  case $have in [0-9]*.[0-9]*) ;; *) fail "nvidia-smi shows no driver: stop the pod and have another host" ;; esac
  printf '%s\n' "$min_driver" "$have" | sort -V -C ||
    fail "driver $have is older than $min_driver, which Isaac Sim needs: terminate the pod and have another host"
  done_with "$have"
}

step_volume() {
  local probe=$mount/.podtether-setup.$$
  [ -d "$mount" ] || fail "there is no $mount"
  { echo probe >"$probe" && [ "$(cat "$probe")" = probe ]; } 2>>"$logs/$name.log" ||
    fail "$mount takes no file: the volume is full or not healthy"
  rm -f "$probe"
  if ! sim_is_there; then done_with "takes files, Isaac Sim is not there yet" && return; fi
  healthy
  done_with "$health"
}

# Everything that can be known to fail is asked for before anything is fetched.
step_source() {
  local free
  if sim_is_there; then done_with "not needed" && return; fi
  free=$(df -Pk "$mount" | awk 'NR == 2 { print int($4 / 1048576) }')
  case $free in '' | *[!0-9]*) fail "df does not tell how much is free on $mount" ;; esac
  [ "$free" -ge "$need_gb" ] || fail "$free GB are free on $mount and $need_gb are needed: enlarge the volume, it can grow"
  length=
  command -v curl >/dev/null || fail "there is no curl in this image"
  if ! curl -fsSIL --retry 3 --connect-timeout 20 "$sim_url" >"$logs/head" 2>>"$logs/$name.log"; then
    fail "$sim_url is gone or out of reach ($(last_line)): name where the archive is in ISAACSIM_URL"
  fi
  length=$(tr -d '\r' <"$logs/head" | awk 'tolower($1) == "content-length:" { n = $2 } END { print n }')
  done_with "$free GB free, archive of ${length:-unknown} bytes"
}

programs=(git unzip cmake rsync g++)
libraries=(libSM.so.6 libGLU.so.1 libXt.so.6 libXext.so.6 libGL.so.1 libEGL.so.1 libvulkan.so.1 libgomp.so.1)
packages=(git unzip cmake rsync build-essential libsm6 libglu1-mesa libxt6 libxext6 libgl1 libegl1 libvulkan1 libgomp1 ca-certificates)

# What of the programs and libraries is not there.
missing() {
  local one known
  for one in "${programs[@]}"; do command -v "$one" >/dev/null || echo "$one"; done
  known=$(ldconfig -p 2>/dev/null)
  for one in "${libraries[@]}"; do case $known in *"$one"*) ;; *) echo "$one" ;; esac; done
}

step_packages() {
  local lacks
  lacks=$(missing | tr '\n' ' ')
  if [ -z "$lacks" ]; then done_with "were there" && return; fi
  tell running "installing, for ${lacks% }"
  quietly 0 apt-get update
  quietly 0 apt-get install -y --no-install-recommends "${packages[@]}"
  lacks=$(missing | tr '\n' ' ')
  [ -z "$lacks" ] || fail "still missing after apt-get: ${lacks% } ($(last_line))"
  done_with installed
}

size_of() { if [ -f "$1" ]; then wc -c <"$1" | tr -d ' '; else echo 0; fi; }

step_isaacsim() {
  local archive=$mount/isaacsim.zip got code
  if sim_is_there; then done_with "was there" && return; fi
  got=$(size_of "$archive")
  # More than there is: the rest of another archive, on which no download can go on.
  if [ -n "$length" ] && [ "$got" -gt "$length" ]; then rm -f "$archive" && got=0; fi
  if [ -z "$length" ] || [ "$got" != "$length" ]; then
    tell running "downloading, $got of ${length:-unknown} bytes are there"
    # -C - goes on where an earlier try ended.
    quietly 0 curl -fSL --retry 10 --retry-delay 5 --connect-timeout 20 -C - -o "$archive" "$sim_url"
    code=$?
    got=$(size_of "$archive")
    if [ "$code" != 0 ] || { [ -n "$length" ] && [ "$got" != "$length" ]; }; then
      fail "$got of ${length:-unknown} bytes came (curl $code, $(last_line)): run the setup again, it goes on from there"
    fi
  fi
  tell running unpacking
  rm -rf "$sim.part"
  quietly 0 unzip -q -o "$archive" -d "$sim.part"
  code=$?
  if [ "$code" != 0 ] || ! [ -f "$sim.part/python.sh" ] || ! [ -f "$sim.part/kit/python/bin/python3" ]; then
    # What is broken would be taken for whole by the next try.
    rm -rf "$sim.part" "$archive"
    fail "the archive did not unpack to an Isaac Sim (unzip $code, $(last_line)); it was removed: run the setup again"
  fi
  rm -rf "$sim"
  mv "$sim.part" "$sim" || fail "$sim.part could not be renamed"
  sim_is_there || fail "$sim/python.sh does not run: the archive was unpacked without its modes"
  rm -f "$archive"
  done_with unpacked
}

# The commit that a checkout is at. The volume's files may belong to another user.
head_of() { git -c safe.directory='*' -C "$1" rev-parse --verify -q "${2:-HEAD}^{commit}" 2>>"$logs/$name.log"; }

step_isaaclab() {
  local head word='was there'
  if ! [ -f "$lab/isaaclab.sh" ]; then
    [ ! -e "$lab" ] || fail "$lab is there and is no Isaac Lab: move it away"
    tell running "cloning $lab_ref"
    rm -rf "$lab.part"
    quietly 0 git clone --depth 1 --branch "$lab_ref" "$lab_url" "$lab.part"
    { [ -f "$lab.part/isaaclab.sh" ] && mv "$lab.part" "$lab"; } ||
      fail "the clone of $lab_url at $lab_ref has no isaaclab.sh ($(last_line))"
    word=cloned
  fi
  head=$(head_of "$lab")
  { [ -n "$head" ] && [ "$head" = "$(head_of "$lab" "$lab_ref")" ]; } ||
    fail "$lab is not at $lab_ref: move it away, or name the version in ISAACLAB_REF"
  ln -sfn "$sim" "$lab/_isaac_sim"
  [ -x "$lab/_isaac_sim/python.sh" ] || fail "$lab/_isaac_sim does not lead to Isaac Sim"
  done_with "$word, at $lab_ref"
}

# Modules that need Isaac Sim to run are only looked up, the others are imported.
imports='
import importlib, importlib.util, sys
wrong = []
for name in ("torch", "gymnasium", "rsl_rl", "flatdict"):
    try:
        importlib.import_module(name)
    except Exception as error:
        wrong.append("%s (%s)" % (name, error))
for name in ("isaaclab", "isaaclab_tasks", "isaaclab_assets", "isaaclab_rl"):
    if importlib.util.find_spec(name) is None:
        wrong.append(name)
print("imports: " + ("; ".join(wrong) or "all there"))
'
unimportable() {
  local said
  said=$(cd "$lab" && ./isaaclab.sh -p -c "$imports" 2>>"$logs/$name.log" </dev/null | grep '^imports: ' | tail -n 1)
  case $said in
    'imports: all there') ;;
    'imports: '*) echo "${said#imports: }" | cut -c 1-300 ;;
    *) echo "python did not say: $(last_line)" ;;
  esac
}

install_lab() { cd "$lab" && PIP_CONSTRAINT=$logs/constraints.txt ./isaaclab.sh --install rsl_rl; }

step_python() {
  local wrong
  wrong=$(unimportable)
  if [ -z "$wrong" ]; then done_with "were there" && return; fi
  tell running "installing, since missing: $wrong"
  # setuptools 82 has no pkg_resources any more, which flatdict 4.0.1 is built with (IsaacLab 4577).
  echo 'setuptools<82' >"$logs/constraints.txt"
  quietly 0 "$sim/kit/python/bin/python3" -m pip install --upgrade pip
  quietly 0 install_lab
  wrong=$(unimportable)
  [ -z "$wrong" ] || fail "after isaaclab.sh --install python still lacks: $wrong; see logs/python.log of this job"
  done_with installed
}

step_task() {
  local word='was there'
  if ! [ -e "$task" ]; then
    rm -rf "$task.part"
    quietly 0 git clone "$task_url" "$task.part"
    quietly 0 git -C "$task.part" checkout --detach "$task_commit"
    { [ "$(head_of "$task.part")" = "$task_commit" ] && mv "$task.part" "$task"; } ||
      fail "$task_url could not be cloned at $task_commit ($(last_line))"
    word=cloned
  fi
  # Changed files are left alone: they are the patches and the chosen level.
  [ "$(head_of "$task")" = "$task_commit" ] || fail "$task is not at $task_commit: move it away and run the setup again"
  [ -L "$link" ] || [ ! -e "$link" ] || fail "$link is a second checkout: move it away"
  ln -sfn "$task" "$link"
  [ -f "$link/warpauv_env.py" ] || fail "$link does not lead to $task"
  done_with "$word, at ${task_commit:0:12}"
}

step_verify() {
  local wrong
  healthy
  wrong=$(unimportable)
  [ -z "$wrong" ] || fail "python lacks: $wrong"
  done_with "$health, imports work"
}

mkdir -p "$logs" || exit 1
length='' took=0 health=''
for name in "${steps[@]}"; do
  at=$((at + 1))
  : >"$logs/$name.log"
  tell running "begins"
  "step_$name"
done
