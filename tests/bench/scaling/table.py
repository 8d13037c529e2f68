# SPDX-License-Identifier: BSD-3-Clause
# The table of promises in doc/scaling.md, and the measured curves beside it in doc/scaling/measured.txt: reading, writing, and whether
# they agree. The promise of a row is written by hand; exponent and date follow from the curves.
#
# measured.txt; # begins a comment:
#     measured DATE, MACHINE
#     curve QUANTITY | AGAINST | count or time | X:Y X:Y ...
import re

from growth import PROMISES, TOLERANCE, Growth

HEAD = """# How things grow, measured by make bench-scaling SCALING=--update; the table of doc/scaling.md has the exponents.
# curve QUANTITY | AGAINST | count or time | X:Y X:Y ... Counts are of the busiest rank, unless the quantity says otherwise.
"""
BEGIN, END = "<!-- curves: make bench-scaling -->", "<!-- end of curves -->"


class TableError(Exception):
    """One line: where, what and the remedy."""


class Row:
    def __init__(self, line):
        cells = [cell.strip() for cell in line.strip().strip("|").split("|")]
        if len(cells) != 5:
            raise TableError(f"doc/scaling.md: '{line}' has {len(cells)} columns, not 5: quantity, against, promise, measured exponent, date")
        self.line = line
        self.quantity, self.against, self.promise, self.measured, self.date = cells
        if self.promise not in PROMISES:
            raise TableError(f"doc/scaling.md: '{self.promise}' is no promise; there are {', '.join(PROMISES)}")

    def key(self):
        return self.quantity, self.against

    def filled(self, measured, date):
        return f"| {self.quantity} | {self.against} | {self.promise} | {measured} | {date} |"


class Curve:
    def __init__(self, quantity, against, kind, points, line=""):
        self.quantity, self.against, self.kind, self.points, self.line = quantity, against, kind, points, line

    def key(self):
        return self.quantity, self.against

    def text(self):
        return f"curve {self.quantity} | {self.against} | {self.kind} | " + " ".join(f"{x:g}:{y:.6g}" for x, y in self.points)


def read(path):
    try:
        with open(path, encoding="utf-8") as file:
            return file.read()
    except OSError as error:
        raise TableError(f"{path}: {error.strerror}") from None


def rows(page):
    lines = page.splitlines()
    if BEGIN not in lines or END not in lines:
        raise TableError(f"doc/scaling.md: there is no line '{BEGIN}' or no line '{END}' around the table")
    inside = [line for line in lines[lines.index(BEGIN) + 1:lines.index(END)] if line.startswith("|")]
    # The first two are the heading.
    return [Row(line) for line in inside[2:]]


def curve_of(line, where):
    cells = [cell.strip() for cell in line[len("curve "):].split("|")]
    if len(cells) != 4 or cells[2] not in TOLERANCE:
        raise TableError(f"{where}: '{line}' is not: curve QUANTITY | AGAINST | count or time | X:Y ...")
    points = [re.fullmatch(r"([\d.e+-]+):([\d.e+-]+)", word) for word in cells[3].split()]
    if not all(points):
        raise TableError(f"{where}: '{cells[3]}' is no list of X:Y")
    return Curve(*cells[:3], [(float(point.group(1)), float(point.group(2))) for point in points], line)


def curves(text):
    """(measured, curves)"""
    measured, found = "", []
    for at, line in enumerate(text.splitlines(), 1):
        where = f"doc/scaling/measured.txt:{at}"
        if line.startswith("measured "):
            measured = line[len("measured "):]
        elif line.startswith("curve "):
            found.append(curve_of(line, where))
        elif line and not line.startswith("#"):
            raise TableError(f"{where}: '{line}' begins with no word of this format: measured, curve")
    if not re.match(r"20\d\d-\d\d-\d\d, .*CPU", measured):
        raise TableError("doc/scaling/measured.txt: 'measured' does not begin with a date and name the CPUs")
    return measured, found


def judge(page, found):
    """Lines about curves that break the promise of their row, or have none."""
    promised, wrong = {row.key(): row.promise for row in rows(page)}, []
    for curve in found:
        name, promise = f"{curve.quantity} against {curve.against}", promised.get(curve.key())
        if promise is None:
            wrong.append(f"{name}: has no row in doc/scaling.md; add one with what is promised")
            continue
        grows = Growth(curve.points, curve.kind)
        if not grows.keeps(promise):
            wrong.append(f"{name}: grows faster than promised: exponent {grows.text()}; doc/scaling.md promises {promise}")
    return wrong


def problems(page, data):
    """Everything that is wrong with a page and the curves that are kept beside it."""
    measured, found = curves(data)
    wrong, by_key = judge(page, found), {curve.key(): curve for curve in found}
    for row in rows(page):
        curve, name = by_key.get(row.key()), f"{row.quantity} against {row.against}"
        if not curve:
            wrong.append(f"{name}: has no curve in doc/scaling/measured.txt: run make bench-scaling SCALING=--update")
            continue
        expected = Growth(curve.points, curve.kind).text(), measured.split(",")[0]
        if (row.measured, row.date) != expected:
            wrong.append(f"{name}: the curve gives '{expected[0]}' of {expected[1]}, not '{row.measured}' of {row.date}")
    return wrong


def updated(page, measured, found):
    """The page with exponents and dates of these curves."""
    by_key = {curve.key(): curve for curve in found}
    for row in rows(page):
        if row.key() in by_key:
            curve = by_key[row.key()]
            page = page.replace(row.line, row.filled(Growth(curve.points, curve.kind).text(), measured.split(",")[0]))
    return page
