#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Checks the data in a page of gasnet_report, for report.sh and web.sh.
   report_check.py FILE [stats=RANK,...] [top=RANK,...] [hosts=N] [title=TEXT] [timeline=yes|no] [marks=FILE] [how=RANK:TEXT] [no_setting=NAME]...
   stats, top: just these ranks have counters from statistics or from samples; marks: the counters are those of top.c"""
import json
import re
import sys


def fail(text):
    print(text)
    sys.exit(1)


def model_of(text, name):
    """Of a page, or of data.json."""
    if text.startswith("{"):
        return json.loads(text)
    data = re.search(r'<script type="application/json" id="data">(.*?)</script>', text, re.S)
    if not data or not text.rstrip().endswith("</html>"):
        fail(f"{name}: not a whole page")
    return json.loads(data.group(1))


def counter(model, rank, name):
    """`puts` and `put_bytes` stand for all paths."""
    names = [column[0] for column in model["counters"]]
    if name in names:
        return rank["counters"][names.index(name)]
    return sum(value for key, value in zip(names, rank["counters"]) if key.startswith(name + "_"))


def check_marks(model, marks):
    for rank in model["ranks"]:
        with open(f"{marks}.{rank['rank']}", encoding="ascii") as lines:
            for line in lines:
                name, wanted = line.split()
                shown = rank["pid"] if name == "pid" else counter(model, rank, name)
                if shown != int(wanted):
                    fail(f"rank {rank['rank']}: {name} is {shown}, not {wanted}")


def check(model, key, value):
    if key in ("stats", "top"):
        ranks = [str(rank["rank"]) for rank in model["ranks"] if rank["source"] == key]
        if ",".join(ranks) != value:
            fail(f"ranks of {key}: {','.join(ranks)}, not {value}")
    elif key == "hosts":
        if len(model["hosts"]) != int(value):
            fail(f"hosts: {model['hosts']}, not {value}")
    elif key == "title":
        if model["title"] != value:
            fail(f"title: {model['title']}, not {value}")
    elif key == "timeline":
        if (model["timeline"] is not None) != (value == "yes"):
            fail(f"a time line: not {value}")
    elif key == "marks":
        check_marks(model, value)
    elif key == "no_setting":
        if value in (name for name, _ in model["settings"]):
            fail(f"settings: {model['settings']}, with {value}")
    elif key == "how":
        number, text = value.split(":")
        how = [rank["how"] for rank in model["ranks"] if rank["rank"] == int(number)]
        if how != [text]:
            fail(f"rank {number} ended by {how}, not {text}")
    else:
        fail(f"{key}: no such check")


with open(sys.argv[1], encoding="utf-8") as page:
    report = model_of(page.read(), sys.argv[1])
for argument in sys.argv[2:]:
    check(report, *argument.split("=", 1))
