#!/usr/bin/env python3
"""Drives one thruster after the other and compares the signs of the motion with the geometry.

usage: axis_sweep.py --geometry FILE --marker FILE --backend isaac|simulated [...]

What must come is reckoned from the geometry file (z-down axes): force and torque of a thruster alone,
over mass and inertia. What does come is told by a backend: the Isaac environment that is trained in,
or a small simulated vehicle for a rehearsal without one, which takes its thrusters from the drop-in
module (z-up axes). A thruster that pushes or turns the wrong way is named. The marker is taken away at
the start and written only when every sign was right.

Exit code 0: passed; 1: a sign is wrong; 2: it could not be told.
"""

import argparse
import ast
import hashlib
import json
import os
import re
import sys
import time

AXES = ("x", "y", "z", "roll", "pitch", "yaw")
# From z-up to z-down axes and back: y and z change their signs, and so do the turns about them.
TURNED = (1.0, -1.0, -1.0, 1.0, -1.0, -1.0)
# What is below this share of an axis' largest acceleration has no sign worth comparing.
SHARE = 0.15


class Unknown(Exception):
    """It could not be told whether the signs are right."""


def cross(a, b):
    return [a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]]


def numbers(text, count, what):
    found = [float(word) for word in text.split(",")]
    if len(found) != count or any(value != value or abs(value) > 1e6 for value in found):
        raise Unknown("%s: %r is no list of %d numbers" % (what, text, count))
    return found


class Geometry:
    """Mass, inertia and thrusters of a vehicle, in z-down axes. Reads the few lines that it needs and
    no other YAML: what does not look as expected is an error, never a default."""

    def __init__(self, path):
        with open(path, "rb") as file:
            data = file.read()
        self.sha256 = hashlib.sha256(data).hexdigest()
        text = re.sub(r"(?m)(^|\s)#.*$", "", data.decode("utf-8"))
        mass = self.one(text, r"^  mass: *(\S+) *$", "mass")
        inertia = self.one(text, r"^  inertia: *\[([^\]]*)\] *$", "inertia")
        added = self.one(text, r"^  added_mass: *\[([^\]]*)\] *$", "added_mass")
        rigid = [float(mass)] * 3 + numbers(inertia, 3, "inertia")
        self.inertia = [a + b for a, b in zip(rigid, numbers(added, 6, "added_mass"))]
        if any(value <= 0 for value in self.inertia):
            raise Unknown("a mass or a moment of inertia is not above 0")
        pattern = r"^  - \{id: *(\d+), *position: *\[([^\]]*)\], *direction: *\[([^\]]*)\]\} *$"
        self.thrusters = []
        for number, position, direction in re.findall(pattern, text, re.M):
            if int(number) != len(self.thrusters) + 1:
                raise Unknown("thruster %s stands where %d should" % (number, len(self.thrusters) + 1))
            thruster = (numbers(position, 3, "position"), numbers(direction, 3, "direction"))
            self.thrusters.append(thruster)
        listed = len(re.findall(r"^  - ", text.partition("\nthrusters:")[2].partition("\ndomain")[0], re.M))
        if not self.thrusters or listed != len(self.thrusters):
            raise Unknown("%d of %d thrusters could be read" % (len(self.thrusters), listed))

    @staticmethod
    def one(text, pattern, name):
        found = re.findall(pattern, text, re.M)
        if len(found) != 1:
            raise Unknown("%s is there %d times, and not once" % (name, len(found)))
        return found[0]

    def expected(self):
        """Six accelerations for each thruster alone, at a thrust of 1 N."""
        loads = [direction + cross(position, direction) for position, direction in self.thrusters]
        return [[load / heavy for load, heavy in zip(six, self.inertia)] for six in loads]


class Simulated:
    """A vehicle of six equations in place of Isaac: mass, added mass, drag and its righting moment.
    Thrusters are those of the drop-in; `flip` turns some of them round, to see them caught."""

    STEP_S = 0.01

    def __init__(self, drop_in, flip):
        with open(drop_in, encoding="utf-8") as file:
            tree = ast.parse(file.read())
        found = [
            ast.literal_eval(node.value)
            for node in tree.body
            if isinstance(node, ast.Assign) and node.targets[0].id == "THRUSTERS"
        ]
        if len(found) != 1:
            raise Unknown("%s has no THRUSTERS" % drop_in)
        self.loads = []
        for number, (position, direction) in enumerate(found[0], 1):
            sign = -1.0 if number in flip else 1.0
            force = [sign * part for part in direction]
            self.loads.append(force + cross(position, force))
        # Kept apart from the geometry file on purpose: a mistake there must not cancel itself.
        self.inertia = (19.9, 20.6, 32.2, 0.45, 0.36, 0.59)
        self.drag = (13.7, 5.0, 33.0, 0.3, 0.8, 0.3)
        self.count = len(self.loads)

    def accelerations(self, commands):
        """Mean accelerations over the first steps from rest, z-up axes."""
        speed, steps = [0.0] * 6, 5
        for _ in range(steps):
            load = [0.0] * 6
            for command, six in zip(commands, self.loads):
                newtons = 0.0 if abs(command) < 0.08 else 40.0 * command * abs(command)
                load = [sum_ + newtons * part for sum_, part in zip(load, six)]
            load[2] -= 1.0  # a trim that is not perfect: what was before the push is taken off
            for axis in range(6):
                force = load[axis] - self.drag[axis] * speed[axis]
                speed[axis] += self.STEP_S * force / self.inertia[axis]
        return [value / (steps * self.STEP_S) for value in speed]


class Isaac:
    """The environment that is trained in, with one vehicle, no randomisation and no goal to spawn
    around. Written from the sources of Isaac Lab 2.2 and of isaac-auv-env; not tried yet."""

    def __init__(self, task):
        from isaaclab.app import AppLauncher

        self.app = AppLauncher(headless=True).app
        # Only importable once the app runs.
        import gymnasium
        import isaaclab_tasks  # noqa: F401  (registers the task)
        import torch
        from isaaclab_tasks.utils import parse_env_cfg

        self.torch = torch
        cfg = parse_env_cfg(task, num_envs=1)
        cfg.eval_mode = True
        cfg.debug_vis = False
        cfg.domain_randomization.use_custom_randomization = False
        self.env = gymnasium.make(task, cfg=cfg).unwrapped
        self.count = self.env.cfg.num_actions

    def accelerations(self, commands):
        """Change of the body's velocities over the first step from rest, z-up axes."""
        self.env.reset()
        robot = self.env._robot
        before = self.speeds(robot)
        action = self.torch.tensor([commands], dtype=self.torch.float32, device=self.env.device)
        self.env.step(action)
        time_s = self.env.cfg.sim.dt * self.env.cfg.decimation
        return [(after - then) / time_s for after, then in zip(self.speeds(robot), before)]

    @staticmethod
    def speeds(robot):
        return [*robot.data.root_lin_vel_b[0].tolist(), *robot.data.root_ang_vel_b[0].tolist()]


def compare(number, command, expected, found, largest, largest_found):
    """The axes of one push whose sign is wrong, in words."""
    wrong = []
    for axis, name in enumerate(AXES):
        want = expected[axis] * (1.0 if command > 0 else -1.0)
        matters = abs(want) >= SHARE * largest[axis] and largest[axis] > 1e-6
        shows = abs(found[axis]) >= SHARE * largest_found[axis] and largest_found[axis] > 1e-6
        if matters and not shows:
            wrong.append("%s: expected %s, and it did not move" % (name, "+" if want > 0 else "-"))
        elif matters and want * found[axis] < 0:
            wrong.append("%s: expected %s, found %+.3f" % (name, "+" if want > 0 else "-", found[axis]))
        elif shows and not matters:
            wrong.append("%s: expected none, found %+.3f" % (name, found[axis]))
    return wrong


def sweep(geometry, vehicle, command):
    """Every thruster, forwards and backwards; each wrong sign in words."""
    expected = geometry.expected()
    if vehicle.count != len(expected):
        raise Unknown("the vehicle has %d thrusters and the geometry %d" % (vehicle.count, len(expected)))
    still = vehicle.accelerations([0.0] * vehicle.count)
    pushes = []
    for index in range(vehicle.count):
        for sign in (1.0, -1.0):
            commands = [0.0] * vehicle.count
            commands[index] = sign * command
            moved = vehicle.accelerations(commands)
            found = [turn * (a - b) for turn, a, b in zip(TURNED, moved, still)]
            if any(value != value for value in found):
                raise Unknown("thruster %d: the motion is not a number" % (index + 1))
            pushes.append((index, sign * command, found))
    largest = [max(abs(six[axis]) for six in expected) for axis in range(6)]
    largest_found = [max(abs(found[axis]) for _, _, found in pushes) for axis in range(6)]
    results, failures = [], []
    for index, given, found in pushes:
        wrong = compare(index + 1, given, expected[index], found, largest, largest_found)
        word = "ok" if not wrong else "; ".join(wrong)
        print("thruster %d %+.2f: %s" % (index + 1, given, word), flush=True)
        results.append({"thruster": index + 1, "command": given, "found": [round(v, 4) for v in found]})
        failures += ["thruster %d %+.2f: %s" % (index + 1, given, word)] if wrong else []
    return results, failures


def publish(path, text):
    """A file that is there whole or not at all."""
    os.makedirs(os.path.dirname(os.path.abspath(path)), exist_ok=True)
    part = "%s.part.%d" % (path, os.getpid())
    with open(part, "w", encoding="utf-8") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
    os.replace(part, path)


def main():
    parser = argparse.ArgumentParser(description="Checks the signs of the thrusters.")
    parser.add_argument("--geometry", required=True)
    parser.add_argument("--marker", required=True)
    parser.add_argument("--backend", required=True, choices=["isaac", "simulated"])
    parser.add_argument("--drop-in", help="simulated: the module with THRUSTERS")
    parser.add_argument("--flip", type=int, action="append", default=[], help="simulated: turn one round")
    parser.add_argument("--task", default="Isaac-WarpAUV-Direct-v1")
    parser.add_argument("--command", type=float, default=0.5, help="0.1 to 1")
    options = parser.parse_args()
    if not 0.1 <= options.command <= 1.0:
        parser.error("--command is from 0.1 to 1")
    try:
        os.unlink(options.marker)
        print("the marker of an earlier sweep was taken away", flush=True)
    except FileNotFoundError:
        pass
    try:
        geometry = Geometry(options.geometry)
        if options.backend == "isaac":
            vehicle = Isaac(options.task)
        elif options.drop_in is None:
            raise Unknown("the simulated vehicle needs --drop-in")
        else:
            vehicle = Simulated(options.drop_in, options.flip)
        results, failures = sweep(geometry, vehicle, options.command)
        if failures:
            print("FAIL: %d of %d pushes have a wrong sign" % (len(failures), len(results)), flush=True)
            return 1
        with open(os.path.abspath(__file__), "rb") as file:
            script = hashlib.sha256(file.read()).hexdigest()
        marker = {
            "passed_at": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
            "backend": options.backend,
            "script_sha256": script,
            "geometry_sha256": geometry.sha256,
            "results": results,
        }
        publish(options.marker, json.dumps(marker, indent=1) + "\n")
        print("PASS: %d pushes, %s" % (len(results), options.marker), flush=True)
        return 0
    except (Unknown, OSError, ValueError, SyntaxError, ImportError, AttributeError) as error:
        print("it could not be told: %s" % error, file=sys.stderr, flush=True)
        return 2


if __name__ == "__main__":
    code = main()
    sys.stdout.flush()
    sys.stderr.flush()
    # Not sys.exit: Isaac Sim's own way out ends with 0, whatever was found.
    os._exit(code)
