# SPDX-License-Identifier: BSD-3-Clause
"""Replays the traces of a job of counters-seq or counters-par: every message that was sent has its handler on the rank that it
was sent to, every handler its message, a handler does not run before the call that sent its message began (as far as clocks were
aligned), calls of a thread
are inside of each other or apart, and there are as many as the program counted; paths of transfers, waits and registrations are those of the
statistics (EXPECTED-PREFIX-stats.RANK.json); what went over the network names its rails. TRACE_CHECK=connections: so are connections,
all of which were made on demand, over two rails.

usage: trace_check.py RANKS EXPECTED-PREFIX FILE...      files of text, or one or several .json"""
import json
import os
import sys

OPS = {"request_short": "short_requests", "request_medium": "medium_requests", "request_long": "long_requests",
       "reply_short": "short_replies", "reply_medium": "medium_replies"}
errors = []
arrows = {}


def wrong(text):
    errors.append(text)


def number(text):
    return int(text) if text.isdigit() else text


def read_text(path):
    for line in open(path, encoding="latin-1"):
        if line.startswith("#"):
            words = line.split()
            yield dict([("op", words[1])] + [w.split("=", 1) for w in words[2:] if "=" in w])
            continue
        at, rank, thread, letter, op, rest = line.rstrip("\n").split(None, 5)
        seconds, fraction = at.split(".")
        event = {"op": op, "rank": int(rank), "thread": int(thread), "letter": letter,
                 "begin": int(seconds) * 10**9 + int(fraction)}
        for word in rest.split(" "):
            name, _, value = word.partition("=")
            event[name] = number(value)
        yield event


def ns(microseconds):
    whole, _, part = microseconds.partition(".")
    return int(whole) * 1000 + int(part or 0)


def read_json(path):
    for event in json.load(open(path), parse_float=str):
        args = event.get("args", {})
        if event["ph"] in "sf":
            arrows.setdefault(event["id"], []).append(event["ph"])
        elif event["ph"] in "Xb":
            yield {"op": event["name"], "rank": event["pid"], "thread": event["tid"], "letter": event["cat"],
                   "begin": ns(event["ts"]), "ns": ns(event["dur"]), **args}
        elif event["name"] in ("start", "end"):
            yield {"op": event["name"], **args}


def check_arrows():
    for name, ends in arrows.items():
        if sorted(ends) != ["f", "s"]:
            wrong(f"arrow {name} has the ends {ends}")
    if not arrows:
        wrong("no arrows")


def check_messages(events):
    sent, handled = {}, {}
    for e in events:
        if e.get("seq") and e["op"] in list(OPS) + ["reply_long"]:
            key, table = (e["rank"], e["peer"], e["seq"]), sent
        elif e["op"].endswith("_handler"):
            key, table = (e["peer"], e["rank"], e.get("seq")), handled
        else:
            continue
        if key in table:
            wrong(f"two messages {key}")
        table[key] = e
    for key in sent.keys() ^ handled.keys():
        wrong(f"message {key} was {'sent' if key in sent else 'handled'} only")
    errors_of = {int(e["rank"]): int(e["error"]) for e in events if e["op"] == "end" and "error" in e}
    for key in sent.keys() & handled.keys():
        s, h = sent[key], handled[key]
        early = s["begin"] - h["begin"]
        if early > errors_of.get(s["rank"], 0) + errors_of.get(h["rank"], 0):
            wrong(f"message {key} was handled {early} ns before it was sent; errors of the clocks: {errors_of}")
        if s["handler"] != h["handler"] or s.get("bytes") != h.get("bytes"):
            wrong(f"message {key}: {s} is not {h}")
        if s["op"].startswith("request") != (h["op"] == "request_handler"):
            wrong(f"message {key}: {s['op']} ran a {h['op']}")


def check_numbers(events):
    """A rank of one thread uses each number once, and none for what was not sent."""
    numbers, threads = {}, {}
    for e in events:
        if e["op"] in OPS and e.get("seq"):
            numbers.setdefault((e["rank"], e["peer"]), []).append(e["seq"])
            threads.setdefault(e["rank"], set()).add(e["thread"])
    for (rank, peer), used in numbers.items():
        if len(threads[rank]) == 1 and (len(set(used)) != len(used) or max(used) != len(used) + max(used) // 65536):
            wrong(f"rank {rank} has sent {len(used)} messages to {peer} with numbers up to {max(used)}")


def check_nesting(events):
    threads = {}
    for e in events:
        if "begin" in e and e["op"] != "connect":
            threads.setdefault((e["rank"], e["thread"]), []).append((e["begin"], -e["ns"], e["op"]))
    for calls in threads.values():
        outer = []
        for begin, minus, op in sorted(calls):
            while outer and outer[-1] <= begin:
                outer.pop()
            if outer and begin - minus > outer[-1]:
                wrong(f"{op} at {begin} ends {begin - minus - outer[-1]} ns behind the call that it is in")
            outer.append(begin - minus)


def check_counts(events, rank, path):
    expected = dict(line.split() for line in open(path))
    found = dict.fromkeys(["puts", "put_bytes", "gets", "get_bytes", *OPS.values()], 0)
    for e in events:
        if e.get("rank") != rank or "begin" not in e:
            continue
        kind = {"P": "put", "G": "get"}.get(e["letter"])
        if kind and e.get("path"): # else it was refused (GEX_FLAG_IMMEDIATE), or of no bytes
            found[kind + "s"] += 1
            found[kind + "_bytes"] += e["bytes"]
        if e["op"] in OPS and e.get("seq"):
            found[OPS[e["op"]]] += 1
    for name, count in found.items():
        if int(expected[name]) != count:
            wrong(f"rank {rank}: {count} {name}, the program counted {expected[name]}")


def check_paths(events, rank, path):
    """Each transfer went where the statistics have it, and each wait that they count is there."""
    expected = json.loads(open(path).readline())["counters"]
    found = dict.fromkeys((name for name in expected if name.startswith(("puts_", "gets_"))), 0)
    found.update(credit_waits=0, room_waits=0, regions_registered=0, segments_registered=0)
    registered = {"region": "regions_registered", "segment": "segments_registered"}
    for e in events:
        if e.get("rank") != rank or "begin" not in e:
            continue
        kind = {"P": "puts_", "G": "gets_"}.get(e["letter"])
        if kind and e.get("path"):
            found[kind + e["path"]] += 1
        if e["op"] in ("credit_wait", "room_wait"):
            found[e["op"] + "s"] += 1
        if e["op"] == "connect_wait":
            found["room_waits"] += 1
        if e["op"] == "register" and e["path"] in registered:
            found[registered[e["path"]]] += 1
    for name, count in found.items():
        if expected[name] != count:
            wrong(f"rank {rank}: {count} {name}, the statistics have {expected[name]}")
    return sum(found[name] for name in ("credit_waits", "room_waits"))


def rails_of(event):
    """Bytes by rail; empty: the event has no rail."""
    if "rails" in event:
        return {int(rail): int(size) for rail, size in (part.split(":") for part in event["rails"].split(","))}
    return {event["rail"]: event.get("bytes", 0)} if "rail" in event else {}


def check_rails(events, two_rails):
    """What went over the network names its rails, whose bytes are those of the call; a striped transfer has several."""
    bytes_by_rail, several = {}, 0
    for e in events:
        if "begin" not in e or e["letter"] not in "PGA" or e["op"].endswith("_handler"):
            continue
        rails = rails_of(e)
        is_message = e["letter"] == "A" and e.get("seq")
        if is_message and not e.get("path"):
            wrong(f"a message without a path: {e}")
        if not e.get("path") or e["letter"] == "A" and not e.get("seq"):
            continue
        if bool(rails) != (e["path"] not in ("shared", "kernel", "self")):
            wrong(f"rails {rails} of {e}")
        if rails and sum(rails.values()) != e.get("bytes", 0):
            wrong(f"rails {rails} have not the bytes of {e}")
        if len(rails) > 1 and e["path"] != "striped":
            wrong(f"several rails: {e}")
        # the primary of a pair of ranks, of two rails: tk_primary_number()
        if two_rails and rails and e["path"] != "striped" and list(rails) != [(e["rank"] + e["peer"]) % 2]:
            wrong(f"not over the primary: {e}")
        several += len(rails) > 1
        for rail, size in rails.items():
            bytes_by_rail[rail] = bytes_by_rail.get(rail, 0) + size
    return bytes_by_rail, several


def check_connections(events, rank, path):
    """Each connection that the statistics have was made on demand, on one of the rails, and is there."""
    made = json.loads(open(path).readline())["counters"]["connections_made"]
    found = [e for e in events if e.get("rank") == rank and e["op"] == "connect"]
    if len(found) != made:
        wrong(f"rank {rank}: {len(found)} connections, the statistics have {made}")
    if any("rail" not in e or "peer" not in e or e["ns"] <= 0 for e in found):
        wrong(f"rank {rank}: a connection without a peer, a rail or a duration")
    return len(found)


def main():
    ranks, prefix, files = int(sys.argv[1]), sys.argv[2], sys.argv[3:]
    events = [e for f in files for e in (read_json if f.endswith(".json") else read_text)(f)]
    for mark in ("start", "end"):
        if sorted(int(e["rank"]) for e in events if e["op"] == mark) != list(range(ranks)):
            wrong(f"not one {mark} of each rank")
    if any(int(e["lost"]) for e in events if e["op"] == "end"):
        wrong("events were lost")
    if files[0].endswith(".json"):
        check_arrows()
    check_messages(events)
    check_nesting(events)
    check_numbers(events)
    waits = connections = 0
    two_rails = os.environ.get("TRACE_CHECK") == "connections"
    bytes_by_rail, several = check_rails(events, two_rails)
    for rank in range(ranks):
        check_counts(events, rank, f"{prefix}.{rank}")
        waits += check_paths(events, rank, f"{prefix}-stats.{rank}.json")
        if two_rails:
            connections += check_connections(events, rank, f"{prefix}-stats.{rank}.json")
    if two_rails and (len(bytes_by_rail) < 2 or not several or not connections):
        wrong(f"bytes by rail {bytes_by_rail}, {several} striped, {connections} connections")
    print(*errors[:20], sep="\n")
    print(len(events), "events,", waits, "waits for credits and room")
    sys.exit(bool(errors))


main()
