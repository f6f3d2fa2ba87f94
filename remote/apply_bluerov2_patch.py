#!/usr/bin/env python3
"""Patches a checkout of isaac-auv-env so that it trains a BlueROV2 Heavy: all of it or nothing.

usage: apply_bluerov2_patch.py check|apply --checkout DIR --commit SHA --marker FILE
           [--drop-in-sha256 SHA256] [--void FILE]... DROP_IN

Fourteen edits, each anchored on text that must occur exactly as often as it says; a drop-in module
beside the patched file; a marker with time, commit and count. `check` changes nothing. What it did
stands in the second but last line, as JSON behind "podtether-patch "; the last line is
"podtether-patch-end". With --drop-in-sha256 a drop-in that is not that one is not taken, and `check`
can tell of one that is not placed yet. --void names markers that speak of the tree as it was, such as
that of a sweep: they are taken away when the tree is changed. Exit code 0: applied, or there before; 3: refused, nothing was changed; 1: it
failed on the way and everything was put back.

Nothing is written into the checkout before every edit fits and compiles. Then what is there is kept
in <git dir>/podtether-patch, the files are renamed into place, the marker is written, and the copy
goes. A run that was killed in between is put back by the next one. Standard library only: the pod has
nothing else before it is set up.
"""

import argparse
import glob
import hashlib
import json
import os
import py_compile
import re
import shutil
import signal
import subprocess
import sys
import time

ENV = "warpauv_env.py"
ASSET = "assets/warpauv.py"
DROP_IN = "bluerov2_thruster_dynamics.py"

NAMES = "DynamicsFirstOrder, ConversionFunctionBasic, get_thruster_com_and_orientations"
ZEROS = "torch.zeros((self.num_envs, {}, 3), device=self.device, dtype=torch.float)"


class Edit:
    """Text that must be there `count` times, and what takes its place. `stands` recognises an edit
    whose value may have been changed since: the two lines that choose a DR level."""

    def __init__(self, what, path, before, after, count=1, stands=None):
        self.what, self.path, self.before, self.after = what, path, before, after
        self.count, self.stands = count, stands

    def fits(self, text):
        return text.count(self.before) == self.count

    def is_in(self, text):
        if self.stands is not None:
            return len(re.findall(self.stands, text, re.M)) == self.count
        return text.count(self.after) == self.count and self.before not in text

    def told(self, text):
        line = text[: text.index(self.before)].count("\n") + 1
        line += self.before.startswith("\n")
        words = " ".join(self.after.split())
        return "%s:%d %s: %s" % (self.path, line, self.what, words[:120])


# The values are those of a BlueROV2 Heavy in fresh water (von Benzon et al., J. Mar. Sci. Eng. 10
# (2022) 1898) and of its level "small": the randomisation of the original vehicle, scaled.
EDITS = (
    Edit(
        "thrusters from the drop-in", ENV,
        "\nfrom .thruster_dynamics import " + NAMES + "\n",
        "\nfrom .bluerov2_thruster_dynamics import " + NAMES + "\n",
    ),
    Edit(
        "actions of the space", ENV,
        "high=1.0, shape=(6,), dtype=np.float64)",
        "high=1.0, shape=(8,), dtype=np.float64)",
    ),
    Edit("number of actions", ENV, "\n    num_actions = 6\n", "\n    num_actions = 8\n"),
    Edit(
        "action buffer", ENV,
        "self._actions = torch.zeros(self.num_envs, 6, device=self.device)",
        "self._actions = torch.zeros(self.num_envs, 8, device=self.device)",
    ),
    Edit(
        "thruster dynamics", ENV,
        "DynamicsFirstOrder(self.num_envs, 6, self.cfg.dyn_time_constant, self.device)",
        "DynamicsFirstOrder(self.num_envs, 8, self.cfg.dyn_time_constant, self.device)",
    ),
    Edit("buffers of forces and torques", ENV, ZEROS.format(6), ZEROS.format(8), count=2),
    Edit("volume in m3", ENV, "\n    volume = 0.022747843530591776 #", "\n    volume = 0.0134 #"),
    Edit("mass in kg", ENV, "\n    mass = 2.2701e+01 # kg", "\n    mass = 13.5 # kg"),
    Edit(
        "inertia about x", ENV,
        "self.inertia_tensors[:, 0] = 0.37\n", "self.inertia_tensors[:, 0] = 0.26\n",
    ),
    Edit(
        "inertia about y", ENV,
        "self.inertia_tensors[:, 1] = 0.97\n", "self.inertia_tensors[:, 1] = 0.23\n",
    ),
    Edit(
        "inertia about z", ENV,
        "self.inertia_tensors[:, 2] = 1.19\n", "self.inertia_tensors[:, 2] = 0.37\n",
    ),
    Edit(
        "DR radius, level small", ENV,
        "\n        com_to_cob_offset_radius = 0.05 #",
        "\n        com_to_cob_offset_radius = 0.0164285714 #",
        stands=r"^        com_to_cob_offset_radius = [^#\s]+ #",
    ),
    Edit(
        "DR volumes, level small", ENV,
        "\n        volume_range = [0.019747843530591773, 0.02574784353059178] #",
        "\n        volume_range = [0.0125164, 0.0142836] #",
        stands=r"^        volume_range = \[[^#\n]+\] #",
    ),
    # PhysX keeps the moments of inertia of the original's mesh; only the mass is set.
    Edit(
        "mass in PhysX", ASSET,
        "\n        copy_from_source=False,\n    ),",
        "\n        copy_from_source=False,\n"
        "        mass_props=sim_utils.MassPropertiesCfg(mass=13.5),\n    ),",
    ),
)


class Refused(Exception):
    """Nothing was changed: why, and what to do."""

    def __init__(self, reason, fix):
        super().__init__(reason)
        self.reason, self.fix = reason, fix


class Interrupted(Exception):
    """A signal that ends the run."""


def say(status, code, **more):
    """The answer, for whoever called."""
    try:
        print("podtether-patch " + json.dumps(dict(status=status, **more)))
        print("podtether-patch-end", flush=True)
    except OSError:
        # Whoever asked is gone; what was done stands.
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    return code


def sha256(data):
    return hashlib.sha256(data).hexdigest()


def read(path):
    with open(path, "rb") as file:
        return file.read()


def write(path, data, mode=0o644):
    with open(path, "wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())
    os.chmod(path, mode)


def publish(path, data):
    """A file that is there whole or not at all."""
    os.makedirs(os.path.dirname(path), exist_ok=True)
    part = "%s.part.%d" % (path, os.getpid())
    write(part, data)
    os.replace(part, path)


def git(checkout, *words):
    """Git's answer. The volume's files may belong to another user, as on every network volume."""
    clean = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    command = ["git", "--no-optional-locks", "-c", "safe.directory=*", "-C", checkout]
    try:
        return subprocess.run(
            command + list(words), env=clean, stdin=subprocess.DEVNULL, check=True, timeout=25,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, universal_newlines=True,
        ).stdout.strip()
    except FileNotFoundError:
        raise Refused("git is not on this pod", "call run_pod_setup first")
    except subprocess.TimeoutExpired:
        raise Refused(
            "git did not answer within 25 s in %s" % checkout,
            "the volume may hang: look at pod_status, stop and start the pod",
        )
    except subprocess.CalledProcessError as error:
        last = (error.stderr.strip().splitlines() or ["no message"])[-1]
        raise Refused("%s is no checkout that git can read: %s" % (checkout, last), "clone it anew: call run_pod_setup")


def start_of(pid):
    """What tells this process from a later one with its number; nothing when it is gone."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return None
    except PermissionError:
        pass
    try:
        with open("/proc/%d/stat" % pid, encoding="ascii", errors="replace") as file:
            return file.read().rpartition(")")[2].split()[19]
    except (OSError, IndexError):
        return "-"


class Tree:
    """The checkout, and the copy that is kept of it while it is changed."""

    def __init__(self, given):
        if not os.path.isdir(given):
            raise Refused("there is no checkout at %s" % given, "call run_pod_setup first")
        self.root = os.path.realpath(given)
        self.git_dir = git(self.root, "rev-parse", "--absolute-git-dir")
        top = git(self.root, "rev-parse", "--show-toplevel")
        if os.path.realpath(top) != self.root:
            raise Refused(
                "%s is no checkout of its own but a folder of %s" % (self.root, top),
                "clone isaac-auv-env there: call run_pod_setup",
            )
        self.journal = os.path.join(self.git_dir, "podtether-patch")

    def at(self, path):
        return os.path.join(self.root, *path.split("/"))

    def others(self):
        """Other checkouts from which the training could be loaded."""
        mount = os.path.dirname(self.root)
        places = [(mount, "*", ENV), (mount, "IsaacLab", "source", "*", "*", "direct", "*", ENV)]
        found = set()
        for place in places:
            for path in glob.glob(os.path.join(*place)):
                folder = os.path.realpath(os.path.dirname(path))
                if folder != self.root:
                    found.add(os.path.dirname(path))
        return sorted(found)

    def texts(self, kept=None):
        """The files that are edited, as text; `kept` has the bytes of an interrupted run."""
        texts = {}
        for path in sorted({edit.path for edit in EDITS}):
            full = self.at(path)
            if os.path.islink(full) or not os.path.isfile(full):
                raise Refused("%s is not a plain file" % full, "restore it: git -C %s checkout -- %s" % (self.root, path))
            data = (kept or {}).get(path)
            try:
                texts[path] = (read(full) if data is None else data).decode("utf-8")
            except UnicodeDecodeError:
                raise Refused("%s is not UTF-8 text" % full, "restore it: git -C %s checkout -- %s" % (self.root, path))
        return texts

    def interrupted(self, marker):
        """What a run that was killed has kept: path to bytes, or None for a file that was not there.
        Nothing when there was none, or when it came as far as its marker, which is its last step.
        Refuses while that run is alive."""
        if not os.path.isdir(self.journal) or os.path.isfile(marker):
            return None
        with open(os.path.join(self.journal, "journal.json"), encoding="utf-8") as file:
            journal = json.load(file)
        if start_of(journal["pid"]) == journal["start"] and journal["pid"] != os.getpid():
            raise Refused("another run (process %d) is at it" % journal["pid"], "call again in a minute")
        kept = {}
        for number, (path, was_there) in enumerate(journal["files"]):
            name = os.path.join(self.journal, "old.%d" % number)
            kept[path] = read(name) if was_there else None
        return kept

    def keep(self, new):
        """Keeps what is there, and puts what is to come beside it. The last step makes it count."""
        for left in glob.glob(self.journal + ".*"):
            pid = left.rpartition(".")[2]
            if not pid.isdigit() or int(pid) == os.getpid() or start_of(int(pid)) is None:
                shutil.rmtree(left, ignore_errors=True)
        part = "%s.%d" % (self.journal, os.getpid())
        os.mkdir(part)
        files = []
        for number, (path, data) in enumerate(new.items()):
            full = self.at(path)
            was_there = os.path.exists(full)
            mode = os.stat(full).st_mode & 0o777 if was_there else 0o644
            if was_there:
                write(os.path.join(part, "old.%d" % number), read(full), mode)
            ready = os.path.join(part, "new.%d.py" % number)
            write(ready, data, mode)
            try:
                py_compile.compile(ready, cfile=ready + "c", dfile=path, doraise=True)
            except py_compile.PyCompileError as error:
                shutil.rmtree(part, ignore_errors=True)
                raise Refused("%s would not compile: %s" % (path, " ".join(str(error).split())), "mend the drop-in or the edits")
            files.append([path, was_there])
        journal = {"pid": os.getpid(), "start": start_of(os.getpid()), "files": files}
        write(os.path.join(part, "journal.json"), json.dumps(journal).encode())
        try:
            os.rename(part, self.journal)
        except OSError:
            shutil.rmtree(part, ignore_errors=True)
            raise Refused("another run is at it", "call again in a minute")

    def put_back(self, marker):
        """What was kept takes its place again."""
        kept = self.interrupted(marker)
        if kept is None:
            if os.path.isdir(self.journal):
                self.forget()
            return
        with open(os.path.join(self.journal, "journal.json"), encoding="utf-8") as file:
            files = json.load(file)["files"]
        for number, (path, was_there) in enumerate(files):
            full = self.at(path)
            if was_there:
                old = os.path.join(self.journal, "old.%d" % number)
                back = os.path.join(self.journal, "back.%d" % number)
                write(back, kept[path], os.stat(old).st_mode & 0o777)
                os.replace(back, full)
            elif os.path.exists(full):
                os.unlink(full)
        self.forget()

    def forget(self):
        """The copy goes in one step: half of it would be put back by nobody."""
        gone = "%s.%d" % (self.journal, os.getpid())
        os.rename(self.journal, gone)
        shutil.rmtree(gone, ignore_errors=True)


def look(tree, commit, expected, kept):
    """Whether the edits are in, or every one of them fits: (is_in, texts). `expected` is the SHA-256 of
    the drop-in, where it is known."""
    head = git(tree.root, "rev-parse", "HEAD")
    if head != commit:
        raise Refused(
            "%s is at commit %s, and the edits are for %s" % (tree.root, head, commit),
            "git -C %s checkout --detach %s" % (tree.root, commit),
        )
    others = tree.others()
    if others:
        raise Refused(
            "there is a second checkout at %s beside %s" % (others[0], tree.root),
            "keep one of them: it is not told which one the training loads",
        )
    texts = tree.texts(kept)
    present = tree.at(DROP_IN)
    if kept is not None and DROP_IN in kept:
        there = kept[DROP_IN]
    else:
        there = read(present) if os.path.isfile(present) else None
    if all(edit.is_in(texts[edit.path]) for edit in EDITS):
        if expected is not None and (there is None or sha256(there) != expected):
            raise Refused(
                "%s is patched, with another %s" % (tree.root, DROP_IN),
                "git -C %s checkout -- . and remove %s, then call again" % (tree.root, present),
            )
        return True, texts
    dirty = [] if kept else git(tree.root, "status", "--porcelain", "--untracked-files=no").splitlines()
    if dirty:
        names = ", ".join(line.split(None, 1)[-1] for line in dirty[:5])
        raise Refused(
            "%s has changes of somebody: %s" % (tree.root, names),
            "commit them elsewhere, or drop them: git -C %s checkout -- ." % tree.root,
        )
    for number, edit in enumerate(EDITS, 1):
        if not edit.fits(texts[edit.path]):
            raise Refused(
                "edit %d/%d (%s) does not fit: its anchor is %d times in %s, and not %d"
                % (number, len(EDITS), edit.what, texts[edit.path].count(edit.before), edit.path, edit.count),
                "the file is not that of the pinned commit: git -C %s checkout -- ." % tree.root,
            )
    return False, texts


def edited(texts):
    """The new texts, and each edit in words."""
    new, told = dict(texts), []
    for number, edit in enumerate(EDITS, 1):
        told.append("%d/%d %s" % (number, len(EDITS), edit.told(texts[edit.path])))
        new[edit.path] = new[edit.path].replace(edit.before, edit.after)
    for edit in EDITS:
        if not edit.is_in(new[edit.path]):
            raise Refused("edit %r did not take" % edit.what, "two edits meet: this is a mistake of the script")
    return new, told


def marker_text(commit, new):
    marker = {
        "patched_at": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        "commit": commit,
        "edits": len(EDITS),
        "sha256": {path: sha256(data) for path, data in sorted(new.items())},
    }
    return (json.dumps(marker, indent=2) + "\n").encode()


def stop(number, _):
    raise Interrupted("signal %d" % number)


ENDING = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)


def apply(tree, options):
    """All of it, or nothing."""
    for number in ENDING:
        signal.signal(number, stop)
    tree.put_back(options.marker)
    if not os.path.isfile(options.drop_in):
        raise Refused("there is no %s" % options.drop_in, "place the drop-in module there")
    drop_in = read(options.drop_in)
    expected = sha256(drop_in)
    if options.drop_in_sha256 not in (None, expected):
        raise Refused("%s is not the drop-in that was sent" % options.drop_in, "call again, which places it anew")
    is_in, texts = look(tree, options.commit, expected, None)
    if is_in:
        if os.path.isfile(options.marker):
            return say("already", 0, edits=[])
        # Somebody took the marker away, or a run was killed just before it.
        now = {path: text.encode() for path, text in texts.items()}
        publish(options.marker, marker_text(options.commit, dict(now, **{DROP_IN: drop_in})))
        return say("applied", 0, edits=["the edits were in; the marker was missing"])
    new, told = edited(texts)
    # The drop-in first and the file that imports it last.
    files = {DROP_IN: drop_in, ASSET: new[ASSET].encode(), ENV: new[ENV].encode()}
    tree.keep(files)
    try:
        # From here on the marker means that all of it is done; one from before speaks of another tree.
        for marker in [options.marker] + options.void:
            if os.path.isfile(marker):
                os.unlink(marker)
        for number, path in enumerate(files):
            os.replace(os.path.join(tree.journal, "new.%d.py" % number), tree.at(path))
        publish(options.marker, marker_text(options.commit, files))
    except BaseException:
        for number in ENDING:
            signal.signal(number, signal.SIG_IGN)
        tree.put_back(options.marker)
        raise
    for number in ENDING:
        signal.signal(number, signal.SIG_IGN)
    tree.forget()
    return say("applied", 0, edits=told)


def check(tree, options):
    """What apply would do; changes nothing."""
    kept = tree.interrupted(options.marker)
    expected = options.drop_in_sha256
    if expected is None and os.path.isfile(options.drop_in):
        expected = sha256(read(options.drop_in))
    is_in, texts = look(tree, options.commit, expected, kept)
    if is_in and os.path.isfile(options.marker):
        return say("already", 0, edits=[])
    if is_in:
        return say("would_apply", 0, edits=["the edits are in; the marker is missing"])
    told = edited(texts)[1]
    if kept is not None:
        told.insert(0, "an earlier run was killed half-way: what it changed is put back first")
    return say("would_apply", 0, edits=told)


def main():
    parser = argparse.ArgumentParser(description="Patches isaac-auv-env for the BlueROV2.")
    parser.add_argument("verb", choices=["check", "apply"])
    parser.add_argument("--checkout", required=True)
    parser.add_argument("--commit", required=True)
    parser.add_argument("--marker", required=True)
    parser.add_argument("--drop-in-sha256")
    parser.add_argument("--void", action="append", default=[])
    parser.add_argument("drop_in", metavar="DROP_IN")
    options = parser.parse_args()
    try:
        if os.path.basename(options.drop_in) != DROP_IN:
            raise Refused("the drop-in is %s, and not %s" % (options.drop_in, DROP_IN), "name it so under patches.files")
        tree = Tree(options.checkout)
        return (check if options.verb == "check" else apply)(tree, options)
    except Refused as refused:
        return say("refused", 3, reason=refused.reason, fix=refused.fix)
    except Interrupted as error:
        return say("failed", 1, reason="it was interrupted (%s)" % error, fix="call again")
    except OSError as error:
        return say("failed", 1, reason=str(error), fix="look at the volume, then call again")


if __name__ == "__main__":
    sys.exit(main())
