# SPDX-License-Identifier: BSD-3-Clause
# The table of bench-peers: medians over the turns, the ratio of ours to the fastest other one, and first of all the rows in which
# another one is faster.
import json
import os
import statistics

from tools import NETWORK, OPERATIONS, SHARED, SIZES

WHERE = {SHARED: "shared memory", NETWORK: "network"}
RATES = ("puts", "gets", "messages")


def unit(operation, size):
    if operation not in RATES:
        return "ns"
    return "kop/s" if size <= 4096 else "MB/s"


def in_unit(microseconds, operation, size):
    return {"ns": 1e3 * microseconds, "kop/s": 1e3 / microseconds, "MB/s": size / microseconds}[unit(operation, size)]


def spread(values):
    ordered = sorted(values)
    return {"median": statistics.median(ordered), "q1": ordered[len(ordered) // 4], "q3": ordered[-1 - len(ordered) // 4]}


class Row:
    """One operation of one size, here or there. `times` are microseconds by library, of which ours is the first, and by number of the turn."""

    def __init__(self, where, operation, size, times):
        self.where, self.operation, self.size = where, operation, size
        self.unit, names = unit(operation, size), list(times)
        values = {name: {turn: in_unit(time, operation, size) for turn, time in times[name].items()} for name in names}
        self.values = {name: spread(list(values[name].values())) for name in names}
        self.fastest = min(names[1:], key=lambda name: statistics.median(times[name].values()), default=None)
        self.ratio = self.is_slower = None
        if self.fastest:
            ours = values[names[0]]
            self.ratio = spread([ours[turn] / other for turn, other in values[self.fastest].items()])
            lag = self.ratio["median"] - 1
            self.is_slower = lag > 0 if self.unit == "ns" else lag < 0

    def loss(self):
        """How many times faster the other one is."""
        return self.ratio["median"] if self.unit == "ns" else 1 / self.ratio["median"]

    def is_sure(self):
        """Whether the quartiles of the ratio say the same as its median."""
        return self.ratio["q1"] > 1 or self.ratio["q3"] < 1


def all_rows(turns, names):
    """`turns`: for each turn a dict by (library, where) of microseconds by (operation, bytes). Libraries that have no such row are left out."""
    rows = []
    for where in WHERE:
        for operation in OPERATIONS:
            for size in SIZES:
                times = {name: {i: turn[name, where][operation, size] for i, turn in enumerate(turns)
                                if (operation, size) in turn.get((name, where), {})} for name in names}
                rows.append(Row(where, operation, size, {name: found for name, found in times.items() if found}))
    return rows


def show_row(row, names):
    shown = " ".join(f"{row.values[name]['median']:12.1f}" if name in row.values else f"{'-':>12}" for name in names)
    line = f"{WHERE[row.where]:13} {row.operation:8} {row.size:8} {row.unit:5} {shown}"
    if row.fastest:
        ratio = row.ratio
        line += f"  {ratio['median']:6.3f} ({ratio['q1']:.3f}-{ratio['q3']:.3f}) to {row.fastest}"
        line += ", within the spread" if row.is_slower and not row.is_sure() else ""
    print(line)


def show(rows, names):
    slower = sorted((row for row in rows if row.is_slower), key=lambda row: -row.loss())
    heading = f"{'':13} {'':8} {'bytes':>8} {'unit':5} " + " ".join(f"{name:>12}" for name in names) + "  ours to the fastest other"
    print(f"Others are faster in {len(slower)} of {len(rows)} rows" + (":" if slower else "."))
    if slower:
        print(heading)
        for row in slower:
            show_row(row, names)
    rest = [row for row in rows if not row.is_slower]
    print(f"The other {len(rows) - len(slower)} of {len(rows)} rows:")
    print(heading)
    for row in rest:
        show_row(row, names)


def write(path, rows, versions, notes, turns):
    """The same as JSON, with the quartiles of each library."""
    found = {"cpus": os.cpu_count(), "turns": turns, "versions": versions, "notes": notes, "results": [
        {"where": row.where, "operation": row.operation, "bytes": row.size, "unit": row.unit, "values": row.values, "fastest_other": row.fastest,
         "ratio": row.ratio, "other_is_faster": row.is_slower} for row in rows]}
    with open(path, "w", encoding="utf-8") as file:
        json.dump(found, file, indent=1)
