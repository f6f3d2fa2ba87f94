"""A small terminal for tests: runs a program on a pty and shows what its screen shows.

terminal.py COLUMNS ROWS PROGRAM [ARGUMENT...]; then one command a line on stdin, one JSON object back:
show, type TEXT, size COLUMNS ROWS, signal NAME, end (waits for the program).
"""

import codecs
import fcntl
import json
import os
import pty
import re
import select
import signal
import struct
import sys
import termios

DECODER = codecs.getincrementaldecoder("utf-8")("replace")
CSI = re.compile(r"\x1b\[([?>]?)([0-9;]*)([A-Za-z])")


class Screen:
    """What is written, on the usual and on the alternate screen."""

    def __init__(self, columns, rows):
        self.size = (columns, rows)
        self.alternate, self.cursor = False, True
        self.cells = {False: {}, True: {}}
        self.at = {False: [0, 0], True: [0, 0]}
        self.rest = ""
        self.took_alternate = False

    def put(self, text):
        text, self.rest = self.rest + text, ""
        i = 0
        while i < len(text):
            c = text[i]
            at = self.at[self.alternate]
            if c == "\x1b":
                found = CSI.match(text, i)
                if not found:
                    if len(text) - i < 32:
                        self.rest = text[i:]
                        return
                    i += 2
                    continue
                self.control(*found.groups())
                i = found.end()
                continue
            if c == "\r":
                at[0] = 0
            elif c == "\n":
                at[1] += 1
            elif c >= " ":
                self.cells[self.alternate][(at[0], at[1])] = c
                at[0] += 1
            i += 1

    def control(self, private, numbers, word):
        at, cells = self.at[self.alternate], self.cells[self.alternate]
        given = [int(number or 0) for number in numbers.split(";")] if numbers else []
        first = given[0] if given else 0
        if private == "?" and first == 1049:
            self.alternate = word == "h"
            self.took_alternate |= self.alternate
            if self.alternate:
                self.cells[True] = {}
        elif private == "?" and first == 25:
            self.cursor = word == "h"
        elif word == "H":
            at[:] = [(given[1] if len(given) > 1 else 1) - 1, max(first, 1) - 1]
        elif word == "J":
            cells.clear()
        elif word == "K":
            for x in range(at[0], self.size[0]):
                cells.pop((x, at[1]), None)
        elif word in "ABCD":
            dx, dy = {"A": (0, -1), "B": (0, 1), "C": (1, 0), "D": (-1, 0)}[word]
            at[0] += dx * max(first, 1)
            at[1] += dy * max(first, 1)

    def lines(self):
        cells = self.cells[self.alternate]
        rows = max([y for _, y in cells], default=-1) + 1
        width = max([x for x, _ in cells], default=-1) + 1
        return ["".join(cells.get((x, y), " ") for x in range(width)).rstrip() for y in range(rows)]


def main():
    columns, rows = int(sys.argv[1]), int(sys.argv[2])
    child, master = pty.fork()
    if child == 0:
        # Not before the terminal has its size.
        sys.stdin.readline()
        os.execv(sys.argv[3], sys.argv[3:])
    screen = Screen(columns, rows)
    size(master, columns, rows)
    os.write(master, b"\n")
    commands = b""
    is_open = True
    while True:
        ready = select.select([0] + ([master] if is_open else []), [], [])[0]
        if master in ready:
            is_open = read(master, screen)
        if 0 in ready:
            piece = os.read(0, 4096)
            if not piece:
                os.kill(child, signal.SIGKILL)
                return
            commands += piece
            while b"\n" in commands:
                line, commands = commands.split(b"\n", 1)
                word, _, rest = line.decode().partition(" ")
                answer = {}
                if word == "type":
                    os.write(master, rest.encode().decode("unicode_escape").encode())
                elif word == "size":
                    screen.size = tuple(int(number) for number in rest.split())
                    screen.cells[True] = {}
                    size(master, *screen.size)
                elif word == "signal":
                    os.kill(child, getattr(signal, "SIG" + rest))
                elif word == "end":
                    while is_open:
                        is_open = read(master, screen)
                    status = os.waitpid(child, 0)[1]
                    answer["code"] = os.waitstatus_to_exitcode(status)
                elif word == "hangup":
                    os.close(master)
                    is_open = False
                    status = os.waitpid(child, 0)[1]
                    answer["code"] = os.waitstatus_to_exitcode(status)
                answer.update(
                    lines=screen.lines(),
                    alternate=screen.alternate,
                    took_alternate=screen.took_alternate,
                    cursor=screen.cursor,
                    keys_are_lines=keys_are_lines(master),
                )
                print(json.dumps(answer), flush=True)


def keys_are_lines(master):
    """Whether the terminal is as a shell has it; null when it is gone."""
    try:
        flags = termios.tcgetattr(master)[3]
    except termios.error:
        return None
    return bool(flags & termios.ICANON) and bool(flags & termios.ECHO) and bool(flags & termios.ISIG)


def size(master, columns, rows):
    fcntl.ioctl(master, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))


def read(master, screen):
    try:
        piece = os.read(master, 65536)
    except OSError:
        piece = b""
    screen.put(DECODER.decode(piece))
    return bool(piece)


main()
