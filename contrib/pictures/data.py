# SPDX-License-Identifier: BSD-3-Clause
# What the charts show: read from a file of doc/pictures/data, or from a page of benchmarks. The format is in contrib/pictures/README.
import math
import re


class DataError(Exception):
    """One line: where, what and the remedy."""


class Panel:
    """One chart: lines for more than three places on the x axis, else bars."""

    def __init__(self, title):
        self.title, self.under, self.x, self.y, self.better = title, "", "", "", ""
        self.line = None        # (value, name): a horizontal line to compare with
        self.ratio = False      # the y axis is logarithmic around 1
        self.log = False        # the y axis is logarithmic
        self.series = {}        # name: [(x as written, median, least, largest)]

    def places(self):
        """The values of x, in order: numbers by size, words as they came."""
        all_of = list(dict.fromkeys(at for points in self.series.values() for at, *_ in points))
        return sorted(all_of, key=float) if all(is_number(at) for at in all_of) else all_of

    def are_numbers(self):
        return all(is_number(at) for at in self.places())

    def has_bars(self):
        return len(self.places()) <= 3 or not self.are_numbers()


class Picture:
    """Several panels, with where their data come from."""

    def __init__(self):
        self.title, self.note, self.measured, self.columns = "", "", "", 0
        self.panels = []


def is_number(text):
    try:
        return math.isfinite(float(text))
    except ValueError:
        return False


def read_text(path):
    try:
        with open(path, encoding="utf-8") as file:
            return file.read()
    except OSError as error:
        raise DataError(f"{path}: {error.strerror}") from None
    except UnicodeDecodeError:
        raise DataError(f"{path}: it is not text in UTF-8") from None


def read_point(words, where):
    """x, median, least, largest"""
    if len(words) != 4 or not all(is_number(word) for word in words[1:]):
        raise DataError(f"{where}: '{' '.join(words)}' is not X MEDIAN LEAST LARGEST")
    at, middle, least, largest = words[0], *(float(word) for word in words[1:])
    if not least <= middle <= largest:
        raise DataError(f"{where}: the median {middle:g} is not between {least:g} and {largest:g}")
    if least < 0 or largest == 0:
        raise DataError(f"{where}: {least:g} to {largest:g}: what was measured is above 0")
    return at, middle, least, largest


def read_file(path):
    """The picture that a data file describes."""
    picture, panel, points = Picture(), None, None
    for at, line in enumerate(read_text(path).splitlines(), 1):
        where, (word, _, rest) = f"{path}:{at}", line.strip().partition(" ")
        if not word or word.startswith("#"):
            continue
        if word == "panel":
            panel, points = Panel(rest), None
            picture.panels.append(panel)
        elif word in ("title", "note", "measured") and not panel:
            setattr(picture, word, f"{getattr(picture, word)} {rest}".strip())
        elif word in ("under", "x", "y", "better") and panel and points is None:
            setattr(panel, word, rest)
        elif word == "series" and panel:
            points = panel.series.setdefault(rest, [])
        elif points is not None:
            points.append(read_point(line.split(), where))
        else:
            raise DataError(f"{where}: '{word}' is no word of this format, or not expected here: see contrib/pictures/README")
    check(picture, path)
    return picture


def check(picture, path):
    """A picture without date and machine, units or data says nothing."""
    if not re.match(r"20\d\d-\d\d-\d\d.*, .*CPU", picture.measured):
        raise DataError(f"{path}: 'measured' does not begin with a date and name the CPUs")
    if not picture.title or not picture.note or not picture.panels:
        raise DataError(f"{path}: it lacks a title, a note or panels")
    for panel in picture.panels:
        if not panel.x or not panel.y or panel.better not in ("higher", "lower") or not any(panel.series.values()):
            raise DataError(f"{path}: panel '{panel.title}' lacks x, y, better (higher or lower) or data")


# ---- Curves of make bench-scaling ----

CURVE_PANELS = [("Messages and connections", "ranks", ("messages", "queue pairs", "connections")),
                ("Bytes and memory", "ranks", ("bytes of a", "memory")),
                ("Start, and instructions", "ranks", ("bytes read", "bytes of the launcher", "page faults", "CPU ms", "instructions")),
                ("More ranks a host, 4 hosts", "ranks a host", ("messages", "bytes", "connections")),
                ("More hosts, 4 ranks each", "hosts", ("messages", "bytes", "connections")),
                ("Instructions, registered regions", "registered regions", ("instructions",)),
                ("Instructions, connections", "connections", ("instructions",)),
                ("Instructions, teams", "teams", ("instructions",)),
                ("Instructions, threads", "threads", ("instructions",))]


def read_curves(path):
    """How much each curve of doc/scaling/measured.txt has grown since its first point, in panels by what it grows with."""
    picture = Picture()
    picture.title = "What grows, and with what"
    picture.columns = 3
    picture.note = ("Each curve divided by its first point, both axes logarithmic: a straight line is a power, and its slope the exponent. "
                    "Counts are of the busiest rank.")
    for line in read_text(path).splitlines():
        if line.startswith("measured "):
            picture.measured = line[len("measured "):]
    for title, against, words in CURVE_PANELS:
        panel = Panel(title)
        panel.x, panel.y, panel.better, panel.log = against, "times the first point", "lower", True
        for cells in (line[len("curve "):].split(" | ") for line in read_text(path).splitlines() if line.startswith("curve ")):
            points = [tuple(map(float, point.split(":"))) for point in cells[3].split()]
            if cells[1] == against and cells[0].startswith(words) and all(y > 0 for _, y in points):
                panel.series[cells[0]] = [(f"{x:g}", *[y / points[0][1]] * 3) for x, y in points]
        if panel.series:
            picture.panels.append(panel)
    check(picture, path)
    return picture


# ---- Pages of benchmarks ----

KINDS = ["put latency", "get latency", "Short round trip", "Medium round trip", "Long round trip"]
RATIO = re.compile(r"([\d.]+) \(([\d.]+)-([\d.]+)\)")


def section(page, part):
    """Lines of a part of the page."""
    lines, on = [], False
    for line in page.splitlines():
        if line.startswith("## "):
            on = f"`make bench-{part}`" in line
        if on:
            lines.append(line)
    return lines


def read_benchmarks(path):
    """Ratios to raw verbs, of the parts verbs and par of a page."""
    page = read_text(path)
    picture = Picture()
    picture.title = "Time of the interface, divided by that of raw verbs"
    picture.columns = 3
    modes = {"SEQ": section(page, "verbs"), "PAR": section(page, "par")}
    measured = {}
    for name, lines in modes.items():
        dated = [line for line in lines if re.match(r"20\d\d-\d\d-\d\d, commit ", line)]
        if not dated:
            raise DataError(f"{path}: no section of {name} with date and commit: make bench BENCH='verbs par' writes it")
        measured[name] = re.sub(r"; before it [\d.]+ of the CPUs' time was in use", "", dated[0]).rstrip(".")
        rounds = re.search(r"medians of (\d+)", "\n".join(lines))
    if len(set(measured.values())) == 1:
        picture.measured = measured["SEQ"]
    else:
        picture.measured = ", ".join(f"{text} ({name})" for name, text in measured.items())
    picture.measured += "; over softhca, a software device"
    picture.note = (f"Medians of {rounds.group(1) if rounds else 'several'} ratios of neighbouring measurements; whiskers are quartiles. "
                    "Below 1 the interface is faster.")
    for kind in KINDS:
        panel = Panel(kind[0].upper() + kind[1:])
        panel.x, panel.y, panel.better, panel.line, panel.ratio = "bytes", "times raw verbs", "lower", (1.0, "raw verbs"), True
        for name, lines in modes.items():
            rows = [(line.split(kind, 1)[1].split()[0], RATIO.search(line)) for line in lines if line.strip().startswith(kind + " ")]
            panel.series[name] = [read_point([at, *found.groups()], path) for at, found in rows if found]
            if not panel.series[name]:
                raise DataError(f"{path}: no rows of '{kind}' for {name}")
        picture.panels.append(panel)
    check(picture, path)
    return picture
