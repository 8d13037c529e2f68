#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
# Looks at reports in a browser: the numbers are those of the files, no text overlaps another, keys work, nothing complains, no name
# becomes markup. Pictures stay in OUTPUT for people.
# usage: page.py GASNET_REPORT SCRATCH OUTPUT     SCRATCH: a folder for each job, with its files
import glob
import json
import os
import subprocess
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import browser

tool, scratch, output = sys.argv[1:4]
failures = 0


def failed(name, text):
    global failures
    failures += 1
    print("FAILED: %s: %s" % (name, text))


def lines_of(pattern):
    for path in sorted(glob.glob(pattern)):
        with open(path, errors="replace") as file:
            yield from file


def parts_of(args):
    if "rails" in args:
        return [tuple(map(int, part.split(":"))) for part in args["rails"].split(",")]
    return [(args["rail"], args.get("bytes", 0))] if "rail" in args else []


def path_of(kind, args):
    if "rail" in args:
        return "rail %d" % args["rail"] if args["rail"] < 7 else "rails from 7"
    if "rails" in args:
        return "several rails"
    if args.get("path") == "self" or args["peer"] == args["rank"]:
        return "to itself"
    if args.get("path") in ("shared", "kernel"):
        return "in shared memory"
    return "over the network" if kind in "PG" else "path not in the file"


# What the table of rails has of an event
def add_to_rails(rails, event):
    kind, args = event["cat"], event["args"]
    for rail, size in parts_of(args):
        row = rails.setdefault(rail, [0] * 6)
        if event["name"] == "connect":
            row[5] += 1
        else:
            row[0] += 1
            row["PGA".find(kind) + 1 if kind in "PGA" else 4] += size


# Sums of counters by the statistics, (operations, bytes) by layer of the trace, and what went over each rail
def expected(folder):
    counters, ranks, layers, rails = {}, set(), {}, {}
    for text in lines_of(folder + "/stats*.json"):
        line = json.loads(text)
        if "counters" in line and "rank" in line:
            ranks.add(line["rank"])
            for name, value in line["counters"].items():
                counters[name] = counters.get(name, 0) + value
    for text in lines_of(folder + "/trace*.json"):
        if ('"ph":"X"' not in text and '"ph":"b"' not in text) or '"peer"' not in text:
            continue
        event = json.loads(text.rstrip().rstrip(","))
        kind, args = event["cat"], event["args"]
        add_to_rails(rails, event)
        if kind not in "PGARV" or "handler" == event["name"][-7:] or (kind in "PG" and "path" not in args):
            continue
        layer = {"A": "messages", "P": "puts and gets", "G": "puts and gets"}.get(kind, "atomics, non-contiguous") + ", " + path_of(kind, args)
        number, size = layers.get(layer, (0, 0))
        layers[layer] = number + 1, size + args.get("bytes", 0)
    return counters, ranks, layers, rails


# What the page shows; rows of its tables, once they are open
PAGE = """(async () => {
    for (const part of document.querySelectorAll("details")) part.open = true;
    await new Promise((done) => setTimeout(done, 60));
    const rows = (id) => [...document.querySelectorAll("#" + id + " tbody tr")].map((row) => [...row.cells].map((cell) => cell.textContent));
    const overlaps = [];
    for (const image of document.querySelectorAll("main svg")) {
        const area = image.getBoundingClientRect(), name = image.getAttribute("aria-label");
        const boxes = [...image.querySelectorAll("text")].map((text) => [text.textContent, text.getBoundingClientRect()]);
        boxes.forEach(([text, a], i) => {
            if (a.left < area.left - 1 || a.right > area.right + 1 || a.top < area.top - 1 || a.bottom > area.bottom + 1)
                overlaps.push(`${name}: '${text}' is cut`);
            for (const [other, b] of boxes.slice(i + 1))
                if (a.left < b.right - 1 && b.left < a.right - 1 && a.top < b.bottom - 4 && b.top < a.bottom - 4)
                    overlaps.push(`${name}: '${text}' over '${other}'`);
        });
    }
    return { sums: Object.fromEntries([...document.querySelectorAll("[data-sum]")].map((e) => [e.dataset.sum, e.textContent])),
        parts: [...document.querySelectorAll("main section")].map((part) => part.id), findings: [...document.querySelectorAll("[data-rule]")].map((e) => [e.dataset.rule, e.querySelector(".sentence").textContent]),
        nothing: Boolean(document.getElementById("nothing")), ranks: rows("ranks").length, matrix: rows("matrix-table"), rails: rows("matrix-rails"), moved: rows("rails-table"), connections: rows("timeline-connections"), settings: rows("settings"), keys: [...document.querySelectorAll("#timeline .keys li")].map((key) => key.textContent),
        bars: document.querySelectorAll("#timeline .connection").length, lines: rows("lines"),
        layers: Object.fromEntries([...document.querySelectorAll("#matrix-paths tr")].map((r) => [r.cells[0].textContent, r.cells[1].textContent])),
        errors: document.getElementById("errors").textContent, wide: document.documentElement.scrollWidth - innerWidth, overlaps,
        scripts: document.scripts.length, images: document.images.length, title: document.title };
})()"""


def number(text):
    return int(text.replace(",", ""))


def check_numbers(name, folder, shown):
    counters, ranks, layers, rails = expected(folder)
    sums = {key: value for key, value in counters.items() if value}
    if {key: number(value) for key, value in shown["sums"].items()} != sums:
        failed(name, "counters %s, not %s" % (shown["sums"], sums))
    if shown["ranks"] < len(ranks):
        failed(name, "%d ranks of %d" % (shown["ranks"], len(ranks)))
    if layers and {key: number(value) for key, value in shown["layers"].items()} != {key: value[0] for key, value in layers.items()}:
        failed(name, "the matrix has %s, not %s" % (shown["layers"], layers))
    if {number(row[0]): [number(cell) for cell in row[1:]] for row in shown["rails"]} != rails:
        failed(name, "rails %s, not %s" % (shown["rails"], rails))
    moved = {rail: sum(row[1:5]) for rail, row in rails.items() if sum(row[1:5]) and rail < 7}
    if {number(row[0]): number(row[1]) for row in shown["moved"] if number(row[0]) < 7} != moved:
        failed(name, "over time %s, not %s" % (shown["moved"], moved))
    connections = sum(row[5] for row in rails.values())
    if len(shown["connections"]) != min(connections, 200):
        failed(name, "%d connections, not %d" % (len(shown["connections"]), connections))


def make(name, title=None):
    folder = os.path.join(scratch, name)
    page = os.path.join(output, name + ".html")
    files = sorted(glob.glob(folder + "/*"))
    made = subprocess.run([tool, "-o", page] + (["--title", title] if title else []) + files, stderr=subprocess.PIPE, text=True)
    if made.returncode or made.stderr:
        failed(name, "status %d: %s" % (made.returncode, made.stderr))
    return folder, page


# The same data draws the same page.
STABLE = """(async () => {
    for (const part of document.querySelectorAll("details")) part.open = false;
    await new Promise((done) => setTimeout(done, 60));
    draw();
    const main = document.getElementById("main"), before = main.innerHTML;
    render(current);
    return before === main.innerHTML;
})()"""


# Once more, for the picture and the console alone
def look_dark(chromium, name, width=1280):
    chromium.open(os.path.join(output, name + ".html"), width, True)
    for text in chromium.complaints():
        failed(name, text)
    chromium.picture(os.path.join(output, name + "-dark.png"), 2000)


def look(chromium, name, wanted=(), unwanted=(), title=None):
    folder, page = make(name, title)
    chromium.open(page, 1280)
    chromium.run('chosen.metric = "count"; draw()')
    shown = chromium.run(PAGE)
    for text in chromium.complaints() + shown["overlaps"][:5] + ([shown["errors"]] if shown["errors"] else []):
        failed(name, text)
    if shown["wide"] > 0:
        failed(name, "the page is %d pixels wider than the window" % shown["wide"])
    check_numbers(name, folder, shown)
    for part in wanted:
        if part not in shown["parts"]:
            failed(name, "no part %s: %s" % (part, shown["parts"]))
    for part in unwanted:
        if part in shown["parts"]:
            failed(name, "a part %s, of which the files have nothing" % part)
    if shown["nothing"] != (not shown["findings"]):
        failed(name, "findings %s" % shown["findings"])
    if name != "made1024" and not chromium.run(STABLE):
        failed(name, "the second drawing differs")
    chromium.run('chosen.metric = "bytes"; draw()')
    if chromium.picture(os.path.join(output, name + "-light.png"), {"seq4": 6000, "rails6": 3600, "made64": 3000, "made1024": 2000}.get(name, 1500)) < 20000:
        failed(name, "the picture is empty")
    return shown


# On the screen of a telephone
def look_narrow(chromium, name):
    chromium.open(os.path.join(output, name + ".html"), 420)
    shown = chromium.run(PAGE)
    for text in chromium.complaints() + shown["overlaps"][:5]:
        failed(name + ", narrow", text)
    if shown["wide"] > 0:
        failed(name, "the page is %d pixels wider than a narrow window" % shown["wide"])
    chromium.picture(os.path.join(output, name + "-narrow.png"), 2500)


# Everything can be reached and done by keys.
def check_keys(chromium, name):
    seen = []
    chromium.run("document.activeElement.blur(); scrollTo(0, 0)")
    for _ in range(60):
        chromium.press("Tab")
        where = chromium.run("document.activeElement.id + '/' + document.activeElement.tagName + '/' + "
                             "getComputedStyle(document.activeElement).outlineStyle")
        if where.startswith("/BODY"):
            break
        seen.append(where)
    for wanted in "nav-findings/A/solid", "matrix-metric/SELECT/solid", "matrix-picture/svg/solid", "time-in/BUTTON/solid", "timeline-picture/svg/solid":
        if wanted not in seen:
            failed(name, "Tab does not come to %s, or it does not show: %s" % (wanted, seen))
    chromium.run("document.getElementById('matrix-picture').focus()")
    for key in "ArrowDown", "ArrowRight", "ArrowRight":
        chromium.press(key)
    if not chromium.run("document.querySelector('#matrix .readout').textContent").startswith("rank 1 → rank 2: "):
        failed(name, "arrow keys do not move through the matrix")
    chromium.run("document.getElementById('timeline-picture').focus()")
    span = chromium.run("current.timeline.span")
    chromium.press("+", "+")
    chromium.press("+", "+")
    view = chromium.run("chosen.view")
    if abs(view[1] - view[0] - span / 4) > 2 or chromium.run("document.activeElement.id") != "timeline-picture":
        failed(name, "+ does not zoom, or focus is lost: %s of %s" % (view, span))
    chromium.press("ArrowRight")
    if chromium.run("chosen.view[0]") <= view[0]:
        failed(name, "an arrow key does not move the time line")
    chromium.press("ArrowDown")
    if not chromium.run("document.querySelector('#timeline .readout').textContent").startswith("rank 1, "):
        failed(name, "an arrow key does not choose a row")
    for _ in range(3):
        chromium.press("+", "+")
    if chromium.run("document.querySelectorAll('#timeline .call').length") < 1:
        failed(name, "no single calls after zooming in")
    chromium.run("document.getElementById('time-arrows').click()")
    for _ in range(3):
        chromium.press("-", "-")
    if chromium.run("document.getElementById('time-arrows').checked") is not True:
        failed(name, "messages can't be shown")
    chromium.run("document.getElementById('timeline-picture').focus()")
    chromium.press("Home")
    if chromium.run("chosen.view") is not None or chromium.run("document.querySelectorAll('#timeline .arrow').length") < 1:
        failed(name, "Home does not show all, or there are no arrows")
    chromium.picture(os.path.join(output, name + "-arrows-light.png"), 1800)


# Two rails, connections on demand, of which some were waited for
def check_rails(shown):
    sums = {name: number(value) for name, value in shown["sums"].items()}
    made = len(shown["connections"])
    if made != sums["connections_made"] or len(shown["rails"]) != 2 or not all(number(row[1]) for row in shown["rails"]):
        failed("rails6", "rails %s, %d connections, not %d" % (shown["rails"], made, sums["connections_made"]))
    layers = shown["layers"]
    if not {"puts and gets, several rails", "puts and gets, rail 0", "puts and gets, rail 1", "messages, rail 0", "messages, rail 1"} <= set(layers):
        failed("rails6", "layers %s" % layers)
    for wanted in "waits for connections", "registration":
        if wanted not in shown["keys"]:
            failed("rails6", "the time line has no %s: %s" % (wanted, shown["keys"]))
    if shown["bars"] != made:
        failed("rails6", "%d connections are drawn, not %d" % (shown["bars"], made))


def main():
    traced = bool(glob.glob(scratch + "/seq4/trace*"))
    trace_parts = ("matrix", "timeline", "times", "lines") if traced else ()
    chromium = browser.Browser(60)
    try:
        seq = look(chromium, "seq4", wanted=("sizes", "balance", "counters", "settings") + trace_parts, unwanted=("samples",) if not traced else ())
        if ["GASNET_AM_CREDITS_PP", "4"] not in seq["settings"]:
            failed("seq4", "settings %s" % seq["settings"])
        if traced and not any(row[0].startswith("ring.c:") for row in seq["lines"]):
            failed("seq4", "source lines %s" % seq["lines"])
        look_dark(chromium, "seq4")
        if traced:
            check_rails(look(chromium, "rails6", wanted=trace_parts + ("samples",)))
            look_dark(chromium, "rails6")
        look(chromium, "par2", wanted=("sizes", "counters") + trace_parts)
        aborted = look(chromium, "aborted")
        if "bad-end" not in dict(aborted["findings"]):
            failed("aborted", "findings %s" % aborted["findings"])
        empty = look(chromium, "empty", unwanted=("matrix", "timeline", "sizes", "balance", "samples", "lines"))
        if not empty["nothing"]:
            failed("empty", "findings %s" % empty["findings"])
        made = look(chromium, "made64", wanted=("matrix", "timeline", "sizes", "times", "balance", "samples", "lines", "counters", "ranks"))
        if dict(made["findings"]).get("credits") != "Rank 63 waited 41 % of its time for credits of rank 0.":
            failed("made64", "findings %s" % made["findings"])
        if os.path.getsize(os.path.join(output, "made64.html")) > 2 << 20:
            failed("made64", "the report is larger than 2 MiB")
        check_keys(chromium, "made64")
        look_narrow(chromium, "made64")
        look(chromium, "made1024", wanted=("matrix", "timeline", "samples"))
        look_dark(chromium, "made1024", 900)
        hostile = look(chromium, "hostile", title="<img src=x onerror=alert(1)>")
        if hostile["scripts"] != 2 or hostile["images"] or hostile["title"] != "<img src=x onerror=alert(1)>":
            failed("hostile", "a name became markup: %s" % hostile)
        if not any("<b>" in cell for row in hostile["lines"] for cell in row):
            failed("hostile", "source lines %s" % hostile["lines"])
    finally:
        chromium.close()
    return 1 if failures else 0


sys.exit(main())
