# SPDX-License-Identifier: BSD-3-Clause
# Instructions of the library in rank 0 of a job of tests/bench/growth, by callgrind: those whose source is in conduit/. Inlined code counts for
# where it was written. What softhca does in place of a device is not counted. Left out, with a line, where valgrind is missing.
import glob
import os
import re
import shutil

from job import BenchError, virtual

RANK = """#!/bin/sh
[ "$PMIX_RANK" = 0 ] || exec "{program}" "$@"
LD_PRELOAD="${{LD_PRELOAD:+$LD_PRELOAD:}}{preload}"
export LD_PRELOAD
exec valgrind -q --fair-sched=try --tool=callgrind --callgrind-out-file="{out}" --collect-atstart=no --toggle-collect=measured \\
    --dump-after=measured "{program}" "$@"
"""
# Regions are kept, but not watched: valgrind 3.19 does not know userfaultfd.
SETTINGS = {"GASNET_FIREHOSE_LEAST": "64K", "GASNET_FIREHOSE_MONITOR": "none", "GASNET_USE_FIREHOSE": "1"}


def instructions(path):
    """Of the library in one of callgrind's files. "fl=(7) FILE" names a file once, "(7)" means it then; the line after calls= is what
    was called, which has lines of its own."""
    names, total, inside, skip = {}, 0, False, False
    with open(path, encoding="utf-8") as file:
        for line in file:
            found = re.match(r"f[lie]=(\(\d+\))(?: (.*))?", line)
            if found:
                names.setdefault(found.group(1), found.group(2) or "")
                inside = "conduit/" in names[found.group(1)]
            elif re.match(r"c(?:fi|fl)=(\(\d+\)) (.*)", line):
                number, name = re.match(r"c(?:fi|fl)=(\(\d+\)) (.*)", line).groups()
                names.setdefault(number, name)
            elif line.startswith("calls="):
                skip = True
            elif re.match(r"[+*\d-]", line):
                total += int(line.split()[1]) if inside and not skip and len(line.split()) > 1 else 0
                skip = False
    return total


def is_here(told=[]):
    if shutil.which("valgrind"):
        return True
    if not told:
        print("instructions are left out: there is no callgrind (Debian package valgrind)")
        told.append(True)
    return False


NAMES = {"region": "put of a region"}
COUNTED = {"messages": ("messages of a {}", "count"), "bytes": ("bytes of a {}", "count"), "us": ("us of a {}", "time")}


def count(bench, curves, mode, ranks):
    """The same job without callgrind: queue pairs, and messages, bytes and the time of a put, of three jobs the least."""
    least = {}
    for _ in range(3):
        for words in map(str.split, bench.run(ranks, [bench.built("tests/bench/growth"), mode], SETTINGS)):
            if words[0] != "counted" or words[1] == "poll":
                continue
            for name, value in zip(words[3::2], words[4::2]):
                key = name, words[1], int(words[2])
                least[key] = min(float(value), least.get(key, 1e18))
    for (name, what, x), value in least.items():
        if name == "queue_pairs":
            if mode != "threads":
                curves.add("queue pairs", x, value)
        else:
            text, kind = COUNTED[name]
            curves.add(text.format(NAMES.get(what, what)), x, value, kind)


def add(bench, curves, mode, ranks, place=lambda x: x, hosts=None):
    """Curves of one job: instructions of a poll, a put and so on, and counts that rank 0 prints beside them."""
    if not is_here():
        return
    out, script = os.path.join(bench.work, "callgrind"), os.path.join(bench.work, "rank")
    with open(script, "w", encoding="utf-8") as file:
        file.write(RANK.format(program=bench.built("tests/bench/growth"), preload=bench.built("tests/bench/libnopidfd.so"), out=out))
    os.chmod(script, 0o755)
    settings = {**SETTINGS, "GASNET_SUPERNODE_MAXSIZE": "0"} if hosts else SETTINGS
    lines = bench.run(ranks, [script, mode], settings, virtual(ranks, hosts) if hosts else ())
    files = iter(sorted(glob.glob(out + ".*"), key=lambda name: int(name.rsplit(".", 1)[1])))
    for line in lines:
        words = line.split()
        if words[0] == "measured":
            name, x, times = words[1], int(words[2]), int(words[3])
            # Blocks are put one by one, a file for each.
            parts = [next(files, None) for _ in range(times if name == "region" else 1)]
            if None in parts:
                raise BenchError(f"callgrind has written too few files for {mode}")
            curves.add(f"instructions of a {NAMES.get(name, name)}", place(x), sum(instructions(part) for part in parts) / times)
        elif words[0] == mode and words[2] in ("messages", "queue_pairs"):
            curves.add("messages of a split" if words[2] == "messages" else "queue pairs", int(words[1]), float(words[3]))
    for name in glob.glob(out + "*"):
        os.remove(name)
