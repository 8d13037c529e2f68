#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Checks what gasnetrun_ibv --top prints, for top.sh.
   top_check.py counts JSON MARKS HOST...: each rank has what its file MARKS.RANK says, and runs on that host
   top_check.py state JSON RANK STATE... [waits WHAT]: the rank is in one of these states, and waits for that (none: nothing)
   top_check.py terminal RANKS COMMAND...: on a terminal, a second table is drawn over the first, with a row for each rank"""
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
import time


def fail(text):
    print(text)
    sys.exit(1)


def value(counters, name):
    """`puts` and `put_bytes` stand for all paths."""
    if name in counters:
        return counters[name]
    return sum(number for key, number in counters.items() if key.startswith(name + "_"))


def counts(file, marks, hosts):
    with open(file, encoding="utf-8") as source:
        job = json.load(source)
    if job["size"] != len(hosts) or [rank["rank"] for rank in job["ranks"]] != list(range(len(hosts))):
        fail("not all ranks")
    for number, rank in enumerate(job["ranks"]):
        if rank["host"] != hosts[number]:
            fail(f"rank {number} is on {rank['host']}, not on {hosts[number]}")
        if rank["memory_kb"] <= 0 or rank["private_kb"] > rank["memory_kb"] or rank["threads"] < 1 or rank["rails"] < 1:
            fail(f"rank {number}: memory {rank['memory_kb']}, private {rank['private_kb']}, threads {rank['threads']}, "
                 f"rails {rank['rails']}")
        with open(f"{marks}.{number}", encoding="utf-8") as source:
            expected = dict(line.split() for line in source)
        if rank["pid"] != int(expected.pop("pid")):
            fail(f"rank {number} is not process {rank['pid']}")
        for name, wanted in expected.items():
            found = value(rank["counters"], name)
            if found != int(wanted):
                fail(f"rank {number}: {name} is {found}, not {wanted}")


def state(file, number, words):
    with open(file, encoding="utf-8") as source:
        rank = json.load(source)["ranks"][number]
    waits = None
    if "waits" in words:
        waits = words[words.index("waits") + 1]
        words = words[:words.index("waits")]
    if rank["state"] not in words or (waits and rank["waits_for"] != (None if waits == "none" else waits)):
        fail(f"rank {number} is {rank['state']}, waits for {rank['waits_for']}")


def read_until(terminal, wanted):
    """The time bounds a failure only."""
    text, end = "", time.monotonic() + 60
    while not re.search(wanted, text, re.S):
        if time.monotonic() > end or not select.select([terminal], [], [], 60)[0]:
            fail(f"not on the terminal: {wanted}\n{text!r}")
        try:
            text += os.read(terminal, 4096).decode()
        except OSError:
            fail(f"it ended: {text!r}")
    return text


def on_terminal(ranks, command):
    pid, terminal = pty.fork()
    if pid == 0:
        time_to_size = sys.stdin.readline()  # the window has its size before the program looks
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        os.execv(command[0], command if time_to_size else [])
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 90, 0, 0))
    os.write(terminal, b"\n")
    rows = "".join(rf"\n +{rank} [^\n]*" for rank in range(ranks))
    text = read_until(terminal, r"\x1b\[H\x1b\[2J.*since the start.*\x1b\[J\x1b\[H[^\n]*per second[^\n]*"
                      r"\n[^\n]*" + rows + r"\n +all [^\n]*\n\x1b\[J")
    for line in text.split("\n"):
        shown = re.sub(r"\x1b\[[0-9]*[A-Z]|\r", "", line)
        if len(shown) > 90:
            fail(f"longer than the terminal is wide: {shown!r}")
    os.kill(pid, signal.SIGINT)
    os.waitpid(pid, 0)


if sys.argv[1] == "counts":
    counts(sys.argv[2], sys.argv[3], sys.argv[4:])
elif sys.argv[1] == "state":
    state(sys.argv[2], int(sys.argv[3]), sys.argv[4:])
else:
    on_terminal(int(sys.argv[2]), sys.argv[3:])
