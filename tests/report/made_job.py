#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
# Writes the files of a job that never ran: statistics, traces as JSON and records of --top, in the form of the library and of the
# launcher, for numbers of ranks that a test can't run. The same arguments give the same files. On standard output: "name sum" of each
# counter, for the test to compare with the page.
# usage: made_job.py COUNTERS.json RANKS RANKS_PER_HOST DIRECTORY   (COUNTERS.json: statistics of one rank, for the names)
import json
import random
import sys

names = list(json.loads(open(sys.argv[1]).readline())["counters"])
ranks, per_host, folder = int(sys.argv[2]), int(sys.argv[3]), sys.argv[4]
draw = random.Random(ranks)
sums = dict.fromkeys(names, 0)
seconds = 2.5


def host(rank):
    return "node%d" % (rank // per_host)


def counters(rank, share):
    values = dict.fromkeys(names, 0)
    slow = rank == ranks - 1
    for path, number in ("puts_inline", 4000), ("puts_bounce", 2500), ("puts_shared", 9000), ("gets_segment", 1200), ("gets_shared", 800):
        values[path] = int(number * share)
    values["put_bytes_network"] = int(6500000 * share) + rank
    values["put_bytes_neighbours"] = int(9000000 * share)
    values["get_bytes_network"] = int(4800000 * share)
    for message in "short_requests", "medium_requests", "short_replies":
        values[message] = int(5000 * share) + rank % 7
    values["shorts_received"] = values["short_requests"]
    values["mediums_received"] = values["medium_requests"]
    values["message_bytes_network"] = 512 * values["medium_requests"]
    values["barriers"] = int(40 * share)
    values["connections_made"] = 16
    values["credit_waits"] = int(90 * share)
    values["credit_wait_ns"] = int(seconds * share * (0.41e9 if slow else 0.002e9))
    return values


def spread(total, first):
    sizes, left = {}, total
    for class_ in range(first, first + 6):
        part = left // 2
        if part:
            sizes[str(1 << class_)] = part
        left -= part
    sizes[str(1 << first + 6)] = left
    return sizes


def statistics():
    with open(folder + "/stats.json", "w") as out:
        for rank in range(ranks):
            values = counters(rank, 1)
            for name in names:
                sums[name] += values[name]
            sizes = {path: spread(values[path], 3 if path.endswith("inline") else 8)
                     for path in names if path.startswith(("puts_", "gets_")) and values[path]}
            print(json.dumps({"rank": rank, "ranks": ranks, "host": host(rank), "pid": 1000 + rank, "seconds": 1, "end": "exit",
                              "counters": values, "sizes": sizes}, separators=(",", ":")).replace('"seconds":1,', '"seconds":%.6f,' % seconds), file=out)


def top():
    with open(folder + "/top.json", "w") as out:
        records = 12 if ranks <= 64 else 4
        for record in range(0, 12, 12 // records):
            share = (record + 1) / 12
            down = 4 < record < 9
            line = {"job": 1, "program": "made", "size": ranks, "hosts": (ranks + per_host - 1) // per_host, "silent_hosts": 0, "ranks": []}
            for rank in range(ranks):
                values = counters(rank, share * (0.9 if down else 1))
                values["failovers"], values["connections_back"] = int(record > 4 and rank == 1), int(record > 8 and rank == 1)
                line["ranks"].append({"rank": rank, "host": host(rank), "pid": 1000 + rank, "state": "running", "waits_for": None,
                                      "seconds": "T", "threads": 1, "rails": 1 if down and rank == 1 else 2, "memory_kb": 81920 + rank, "private_kb": 4096,
                                      "counters": values})
            print(json.dumps(line, separators=(",", ":")).replace('"T"', "%.6f" % (seconds * share)), file=out)


# An event as conduit/trace/format.c has it; times in us
def event(out, rank, name, letter, begin, length, **args):
    more = "".join(',"%s":%s' % (key, json.dumps(value)) for key, value in args.items())
    out.write(',\n{"name":"%s","cat":"%s","ph":"X","pid":%d,"tid":0,"ts":%.3f,"dur":%.3f,"args":{"rank":%d%s}}' % (name, letter, rank, begin, length, rank, more))


def step(out, rank, at, number):
    late = rank == ranks - 1
    near = rank // per_host * per_host + (rank + 1) % per_host
    far = (rank + per_host) % ranks
    event(out, rank, "put", "P", at, 40 + draw.random() * 60, peer=min(near, ranks - 1), bytes=8192, path="shared", at="halo.c:31")
    event(out, rank, "put", "P", at + 200, 180 + draw.random() * 400, peer=far, bytes=4096 << rank % 3, path="bounce", rail=rank % 3, at="halo.c:34")
    if number % 8 == 0:
        event(out, rank, "put_nb", "P", at + 800, 30, peer=far, bytes=65536, path="striped", rails="0:30000,1:20000,2:15536", at="halo.c:36")
        event(out, rank, "register", "I", at + 850, 25, bytes=65536, path="region")
    event(out, rank, "get", "G", at + 900, 300 + draw.random() * 300, peer=(rank * 7 + number) % ranks, bytes=4000, path="segment", rail=number % 2, at="halo.c:38")
    event(out, rank, "credit_wait", "S", at + 1310, 350 if late else 20, peer=0, at="queue.c:90")
    event(out, rank, "request_medium", "A", at + 1300, 400, peer=0, bytes=512, path="inline", rail=0, handler=200, seq=number + 1, at="queue.c:90")
    for peer in range(1, min(ranks, 64) if rank == 0 else 0):
        event(out, 0, "request_handler", "A", at + 1720 + peer, 0.5, peer=peer, bytes=512, handler=200, seq=number + 1, at="queue.c:12")
    event(out, rank, "barrier_wait", "B", at + (4600 if late else 2200 + draw.random() * 500), 5000 - (4600 if late else 2700), at="main.c:55")


def trace():
    steps = 40 if ranks <= 64 else 3
    with open(folder + "/trace.json", "w") as out:
        out.write('[\n{"name":"trunkline","ph":"M","pid":0}')
        for rank in range(ranks):
            out.write(',\n{"name":"start","cat":"I","ph":"i","s":"p","pid":%d,"tid":0,"ts":1000000.000,"args":{"rank":%d,"size":%d,"pid":%d,'
                      '"monotonic":1000000000,"realtime":5,"offset":0,"error":100,"host":"%s","boot":"b"}}' % (rank, rank, ranks, 1000 + rank, host(rank)))
            for rail in range(2):
                out.write(',\n{"name":"connect","cat":"I","ph":"b","id":"%d.%d","pid":%d,"tid":0,"ts":%.3f,"dur":%.3f,"args":{"rank":%d,"peer":%d,"rail":%d}}'
                          % (rank, rail, rank, 1000010 + rank, 2000 + rank * 10, rank, (rank + 1) % ranks, rail))
            for number in range(steps):
                step(out, rank, 1000000 + number * 5000, number)
            out.write(',\n{"name":"end","cat":"I","ph":"i","s":"p","pid":%d,"tid":0,"ts":2000000.000,"args":{"rank":%d,"monotonic":2000000000,'
                      '"realtime":6,"lost":0,"how":"exit"}}' % (rank, rank))
        out.write("\n]\n")


statistics()
top()
trace()
for name in names:
    print(name, sums[name])
