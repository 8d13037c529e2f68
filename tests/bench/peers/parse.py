# SPDX-License-Identifier: BSD-3-Clause
# What the programs of bench-peers print, as microseconds of an operation by (operation, bytes). Output in which nothing is found, or
# less than was asked for, is an error that quotes it: a table must not show 0 for what was not measured.
import math


class Unreadable(Exception):
    """One line: what was not found, and what was found instead."""


def last_line(text):
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return lines[-1][:150] if lines else "(nothing)"


def checked(found, wanted, program, text):
    """`found`, if it has all rows that are wanted, each more than nothing and finite."""
    missing = [row for row in wanted if not 0 < found.get(row, 0) < math.inf]
    if missing or not found:
        what = " and others".join([" ".join(map(str, missing[0])), *([""] if len(missing) > 1 else [])]) if missing else "any row"
        raise Unreadable(f"{program} printed no time of {what}; its last line: {last_line(text)}")
    return found


def number(word):
    try:
        return float(word)
    except ValueError:
        return 0.0


def rows(text, wanted, program):
    """peers_ours and mpi_pingpong: "operation bytes us"."""
    lines = [line.split() for line in text.splitlines()]
    found = {(line[0], int(line[1])): number(line[2]) for line in lines if len(line) == 3 and line[1].isdigit()}
    return checked(found, wanted, program, text)


# Tests that count how many operations end in a time, and those that measure how long one takes
UCX_STREAMS = ("puts", "get", "gets", "messages")


def ucx(text, wanted):
    """ucx_perftest -v -f with a batch: a heading, then for each test "name,iterations,percentile,average,overall" of the time in us, two of
    the bandwidth and two of the rate, the last one overall. Names are "operation:bytes". Of a latency the lower one of percentile, which
    ignores pauses, and average, which has more digits."""
    found = {}
    for line in text.splitlines():
        words = [word.strip() for word in line.split(",")]
        operation, _, size = words[0].partition(":")
        if len(words) != 9 or not size.isdigit():
            continue
        rate, times = number(words[8]), [number(words[2]), number(words[4])]
        if operation in UCX_STREAMS:
            found[operation, int(size)] = 1e6 / rate if rate > 0 else 0.0
        else:
            found[operation, int(size)] = min(times)
    return checked(found, wanted, "ucx_perftest", text)


def libfabric(text, size):
    """fi_pingpong: a heading, then a line for each size, of which we ask one at a time: half of a round trip. "usec/xfer" has two decimals."""
    heading, time = [], 0.0
    for line in text.splitlines():
        words = line.split()
        if "usec/xfer" in words:
            heading = words
        elif heading and len(words) == len(heading):
            time = number(words[heading.index("usec/xfer")])
    return checked({("message", size): time}, [("message", size)], "fi_pingpong", text)["message", size]
