#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Asks gasnet_report --serve as browsers and others do, for web.sh: web_check.py ADDRESS MARKS, where ranks of top.c left MARKS.RANK."""
import http.client
import json
import re
import socket
import sys
import time

ADDRESS, MARKS = sys.argv[1:]
PORT, KEY = re.fullmatch(r"http://127\.0\.0\.1:(\d+)/([0-9a-f]{40})/", ADDRESS).groups()
PORT = int(PORT)


def check(good, text):
    if not good:
        print(text)
        sys.exit(1)


def ask(path, method="GET", host=None, body=None):
    """Status, headers and body of an answer."""
    connection = http.client.HTTPConnection("127.0.0.1", PORT, timeout=30)
    connection.putrequest(method, path, skip_host=True)
    connection.putheader("Host", host or f"127.0.0.1:{PORT}")
    if body:
        connection.putheader("Content-Length", str(len(body)))
    connection.endheaders(body)
    answer = connection.getresponse()
    text = answer.read()
    connection.close()
    return answer.status, answer.headers, text


def raw(text):
    """The first line of the answer to these bytes."""
    with socket.create_connection(("127.0.0.1", PORT), timeout=30) as s:
        s.sendall(text)
        return s.recv(1000).split(b"\r\n")[0].decode()


def data():
    """Once the first sample has come."""
    while True:
        status, headers, text = ask(f"/{KEY}/data.json")
        if status == 200:
            check(headers["Content-Type"].startswith("application/json"), headers["Content-Type"])
            return json.loads(text)
        check(status == 503, f"data.json: {status}")
        time.sleep(0.05)


def check_page():
    status, headers, text = ask(f"/{KEY}/")
    check(status == 200 and text.rstrip().endswith(b"</html>"), f"the page: {status}")
    wanted = {"Cache-Control": "no-store", "X-Content-Type-Options": "nosniff", "X-Frame-Options": "DENY",
              "Referrer-Policy": "no-referrer"}
    for name, value in wanted.items():
        check(headers[name] == value, f"{name}: {headers[name]}")
    policy = headers["Content-Security-Policy"]
    for part in ("default-src 'none'", "script-src 'sha256-", "connect-src 'self'", "frame-ancestors 'none'"):
        check(part in policy, f"the policy lacks {part}: {policy}")
    check("unsafe" not in policy, policy)
    check("Access-Control-Allow-Origin" not in headers, "other sites may read")


def check_numbers():
    """Those of the marks, and a time that moves."""
    first = data()
    names = [column[0] for column in first["counters"]]
    for rank in first["ranks"]:
        with open(f"{MARKS}.{rank['rank']}", encoding="ascii") as lines:
            wanted = dict(line.split() for line in lines)
        for name in ("short_requests", "mediums_received"):
            shown = rank["counters"][names.index(name)]
            check(shown == int(wanted[name]), f"rank {rank['rank']}: {name} is {shown}, not {wanted[name]}")
        check(rank["pid"] == int(wanted["pid"]), f"rank {rank['rank']}: pid {rank['pid']}")
    until = time.monotonic() + 60
    while data()["ranks"][0]["micros"] <= first["ranks"][0]["micros"]:
        check(time.monotonic() < until, "the numbers do not move")
        time.sleep(0.1)


def check_refusals():
    page = f"/{KEY}/"
    for method in ("POST", "PUT", "DELETE", "OPTIONS", "HEAD", "CONNECT"):
        status, headers, _ = ask(page, method, body=b"x" if method == "POST" else None)
        check(status == 405 and headers["Allow"] == "GET", f"{method}: {status}")
    for host in ("evil.example", f"evil.example:{PORT}", "127.0.0.1", f"127.0.0.1:{PORT + 1}", f"localhost:{PORT}0"):
        check(ask(page, host=host)[0] == 403, f"Host {host}")
    check(ask(page, host=f"localhost:{PORT}")[0] == 200, "Host localhost")
    wrong = ("0" if KEY[-1] != "0" else "1")
    for path in ("/", "/data.json", f"/{KEY[:-1]}{wrong}/", f"/{KEY[:-1]}/", f"/{KEY}", f"//{KEY}/", f"/?{KEY}/"):
        status, _, text = ask(path)
        check(status == 403 and KEY.encode() not in text, f"{path}: {status}")
    for path in (f"/{KEY}/x", f"/{KEY}/../etc/passwd", f"/{KEY}/data.json/"):
        check(ask(path)[0] == 404, path)
    check(" 400 " in raw(b"nonsense\r\n\r\n"), "nonsense")
    check(" 431 " in raw(b"GET / HTTP/1.1\r\nX: " + b"a" * 16384), "a long request")


def check_slow():
    """Clients that say nothing, or read nothing, are in nobody's way."""
    idle = [socket.create_connection(("127.0.0.1", PORT)) for _ in range(10)]
    deaf = socket.create_connection(("127.0.0.1", PORT))
    deaf.sendall(f"GET /{KEY}/data.json HTTP/1.1\r\nHost: 127.0.0.1:{PORT}\r\n\r\n".encode())
    began = time.monotonic()
    check(ask(f"/{KEY}/")[0] == 200 and time.monotonic() - began < 4, "idle connections delay others")
    for s in idle + [deaf]:
        s.close()


def check_address():
    """On this one alone."""
    with socket.socket() as s:
        s.settimeout(5)
        check(s.connect_ex(("127.0.0.2", PORT)) != 0, "it listens elsewhere too")


check_page()
check_numbers()
check_refusals()
check_slow()
check_address()
