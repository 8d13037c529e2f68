# SPDX-License-Identifier: BSD-3-Clause
# Draws a Picture of data.py: panels in rows, each with its legend above its axes, or one legend for all that have the same series.
import math

import style
from canvas import Canvas

WIDTH = 980
EDGE = 20
GAP = 26                # between panels
PLOT_HEIGHT = 210
LEFT, RIGHT = 38, 8     # of a plot inside its panel: names of ticks; the last whisker
LINE = 17               # of text
RATIO_TICKS = [0.25, 0.35, 0.5, 0.6, 0.8, 1.0, 1.25, 1.5, 2.0, 2.5, 3.0, 4.0, 6.0, 8.0]


def linear_ticks(least, largest):
    """Round numbers from at most the least to at least the largest, 4 to 8 of them."""
    span = (largest - least) or abs(largest) or 1.0
    step = 10.0 ** math.floor(math.log10(span / 4))
    step = next(step * factor for factor in (1, 2, 2.5, 5, 10) if span / (step * factor) <= 6)
    first, last = math.floor(least / step + 1e-9), math.ceil(largest / step - 1e-9)
    return [step * i for i in range(first, last + 1)]


def ratio_ticks(least, largest):
    """From the last tick below the least value to the first one above the largest."""
    below = [tick for tick in RATIO_TICKS if tick <= least] or [least]
    above = [tick for tick in RATIO_TICKS if tick >= largest] or [largest]
    return [below[-1]] + [tick for tick in RATIO_TICKS if below[-1] < tick < above[0]] + [above[0]]


def log_ticks(least, largest):
    """1, 2, 5 and so on, or powers of ten where that is many; at least up to 2."""
    largest = max(largest, 2 * least)
    for steps in ((1, 2, 5), (1,)):
        ticks = [step * 10.0 ** power for power in range(-6, 13) for step in steps]
        first = max(i for i, tick in enumerate(ticks) if tick <= least * (1 + 1e-9))
        last = min(i for i, tick in enumerate(ticks) if tick >= largest * (1 - 1e-9))
        if last - first < 8:
            break
    return ticks[first:last + 1]


def values(panels):
    return [value for panel in panels for points in panel.series.values() for _, *three in points for value in three]


def ticks_of(panel, panels):
    """Panels with one unit share an axis, so that they can be compared. It begins at 0 where one of them has bars."""
    alike = [one for one in panels if (one.y, one.ratio, one.log) == (panel.y, panel.ratio, panel.log)]
    seen = values(alike)
    if panel.ratio:
        return ratio_ticks(min(seen), max(seen))
    if panel.log:
        return log_ticks(min(seen), max(seen))
    from_zero = any(one.has_bars() for one in alike) or min(seen) < max(seen) / 2
    return linear_ticks(0.0 if from_zero else min(seen), max(seen))


def tick_name(value):
    return f"{value:.4g}"


def size_name(text):
    """A power of two as people write it."""
    value = float(text)
    for unit, name in ((1 << 20, "Mi"), (1 << 10, "Ki")):
        if value >= unit and value % unit == 0:
            return f"{value / unit:.0f}{name}"
    return text


def colour(kind, i):
    """The class of lines (s) or bars (b) of series i. A ninth series has the first colour and another shape."""
    return f"{kind}{i % len(style.SERIES)}"


class Legend:
    """Names of series, in as many rows as the width asks for."""

    def __init__(self, panel, width):
        self.rows, used = [[]], 0
        for i, name in enumerate(panel.series):
            needs = 24 + style.text_width(name, 12) + 18
            if self.rows[-1] and used + needs - 18 > width:
                self.rows.append([])
                used = 0
            self.rows[-1].append((i, name, used))
            used += needs
        self.height = LINE * len(self.rows)

    def draw(self, canvas, left, top):
        for at, row in enumerate(self.rows):
            y = top + LINE * at + 12
            for i, name, x in row:
                canvas.line([(left + x, y - 4), (left + x + 18, y - 4)], colour("s", i), 2, what="the legend's line")
                canvas.marker(left + x + 9, y - 4, i, "the legend's sign")
                canvas.text(left + x + 24, y, name)


class Plot:
    """The axes and data of one panel."""

    def __init__(self, canvas, panel, box, ticks):
        self.canvas, self.panel, self.ticks = canvas, panel, ticks
        self.left, self.top, self.right, self.bottom = box
        self.places = panel.places()

    def y(self, value):
        low, high = self.ticks[0], self.ticks[-1]
        assert low <= value <= high, f"{value} is outside of the axis of '{self.panel.title}'"
        share = math.log(value / low) / math.log(high / low) if self.panel.ratio or self.panel.log else (value - low) / (high - low)
        return self.bottom - share * (self.bottom - self.top)

    def x(self, place):
        """The axis begins and ends where the data do."""
        inside = 22
        if self.panel.has_bars():
            return self.left + (self.places.index(place) + 0.5) * (self.right - self.left) / len(self.places)
        first, last, at = float(self.places[0]), float(self.places[-1]), float(place)
        # Sweeps double their parameters; no logarithm shows a 0.
        share = math.log(at / first) / math.log(last / first) if first > 0 else (at - first) / (last - first)
        return self.left + inside + share * (self.right - self.left - 2 * inside)

    def axes(self):
        c = self.canvas
        c.keep_out(self.left, self.top, self.right, self.bottom, f"the data of '{self.panel.title}'")
        for tick in self.ticks:
            c.line([(self.left, self.y(tick)), (self.right, self.y(tick))], "grid", what="the grid")
            c.text(self.left - 7, self.y(tick) + 4, tick_name(tick), 11, "end", kind="muted")
        c.line([(self.left, self.bottom), (self.right, self.bottom)], "axis", what="the x axis")
        begin = math.inf
        for place in reversed(self.places):
            name = size_name(place) if self.panel.x == "bytes" else place
            half = style.text_width(name, 11) / 2
            c.line([(self.x(place), self.bottom), (self.x(place), self.bottom + 4)], "axis", what="a tick")
            # Of a long row those that fit are named, the last one in any case.
            if self.x(place) + half < begin - 4 or self.panel.has_bars():
                c.text(self.x(place), self.bottom + 16, name, 11, "middle", kind="muted")
                begin = self.x(place) - half
        c.text((self.left + self.right) / 2, self.bottom + 34, self.panel.x, 12, "middle")
        if self.panel.line:
            y = self.y(self.panel.line[0])
            c.line([(self.left, y), (self.right, y)], "axis", 1.5, "5,4", "the line to compare with")

    def whisker(self, x, least, largest, kind, half):
        low, high = self.y(least), self.y(largest)
        if low - high < 0.5:
            return
        faint = kind != "arrow"
        self.canvas.line([(x, low), (x, high)], kind, 1.3, what="a whisker", faint=faint)
        for y in (low, high):
            self.canvas.line([(x - half, y), (x + half, y)], kind, 1.3, what="a whisker", faint=faint)

    def lines(self):
        count = len(self.panel.series)
        for i, points in enumerate(self.panel.series.values()):
            shift = (i - (count - 1) / 2) * min(5.0, 24 / count)
            points = sorted(points, key=lambda point: float(point[0]))
            self.canvas.open_group("series")
            for at, _, least, largest in points:
                self.whisker(self.x(at) + shift, least, largest, colour("s", i), 2.5)
            self.canvas.line([(self.x(at) + shift, self.y(middle)) for at, middle, *_ in points], colour("s", i), 2, what="a curve")
            for at, middle, *_ in points:
                self.canvas.marker(self.x(at) + shift, self.y(middle), i)
            self.canvas.close_group()

    def bars(self):
        base = self.y(1.0 if self.panel.ratio else self.ticks[0])
        group = 0.84 * (self.right - self.left) / len(self.places)
        there = {place: [i for i, points in enumerate(self.panel.series.values()) if place in [at for at, *_ in points]] for place in self.places}
        width = min(34.0, group / max(len(some) for some in there.values()))
        for i, points in enumerate(self.panel.series.values()):
            self.canvas.open_group("series")
            for at, middle, least, largest in points:
                x = self.x(at) + (there[at].index(i) - (len(there[at]) - 1) / 2) * width
                self.canvas.bar(x - 0.44 * width, base, x + 0.44 * width, self.y(middle), colour("b", i))
                self.whisker(x, least, largest, "arrow", min(3.5, 0.3 * width))
                self.canvas.marker(x, self.y(middle), i)
            self.canvas.close_group()

    def draw(self):
        self.axes()
        if self.panel.has_bars():
            self.bars()
        else:
            self.lines()


def y_title(canvas, panel, left, y):
    """Unit, and which direction is better, above the axis."""
    end = left + canvas.text(left, y, panel.y, 12)
    tip, tail = (y - 10, y + 1) if panel.better == "higher" else (y + 2, y - 9)
    canvas.arrow(end + 16, tail, end + 16, tip, "back", 1.6, "the arrow of what is better")
    canvas.text(end + 26, y, f"{panel.better} is better", 11, kind="muted")


def draw_panel(canvas, panel, panels, box, legend):
    """Title, what is fixed, legend, axes: as high as panel_height() says."""
    left, top, right = box
    canvas.text(left, top + 14, panel.title, 13, bold=True)
    y = top + 16
    if any(one.under for one in panels):
        canvas.text(left, y + 14, panel.under, 11, kind="muted")
        y += LINE
    if legend:
        legend.draw(canvas, left, y + 6)
        y += 6 + max(LINE * len(Legend(one, right - left).rows) for one in panels)
    y_title(canvas, panel, left, y + 20)
    y += 32
    Plot(canvas, panel, (left + LEFT, y, right - RIGHT, y + PLOT_HEIGHT), ticks_of(panel, panels)).draw()


def panel_height(panels, shared, width):
    height = 16 + 32 + PLOT_HEIGHT + 38
    if any(one.under for one in panels):
        height += LINE
    if not shared:
        height += 6 + max(Legend(one, width).height for one in panels)
    return height


def draw(picture):
    """The canvas of a picture of data."""
    panels = picture.panels
    columns = picture.columns or (2 if len(panels) == 4 else min(len(panels), 3))
    rows = -(-len(panels) // columns)
    cell = (WIDTH - 2 * EDGE - (columns - 1) * GAP) / columns
    shared = len(panels) > 1 and len({tuple(panel.series) for panel in panels}) == 1
    spare = shared and rows * columns > len(panels)
    notes = [(line, "text") for line in style.wrap(picture.note, cell if spare else WIDTH - 2 * EDGE, 12)]
    notes += [(line, "muted") for line in style.wrap("Measured " + picture.measured, cell if spare else WIDTH - 2 * EDGE, 11)]
    legend = Legend(panels[0], cell - 20 if spare else WIDTH - 2 * EDGE) if shared else None
    top = 44 + (legend.height + 8 if shared and not spare else 0)
    height = panel_height(panels, shared, cell)
    bottom = top + rows * height + (rows - 1) * 14
    canvas = Canvas(WIDTH, bottom + (12 if spare else 14 + LINE * len(notes)), picture.title, f"{picture.note} Measured {picture.measured}")
    canvas.text(EDGE, 28, picture.title, 16, bold=True)
    if shared and not spare:
        legend.draw(canvas, EDGE, 42)
    for i, panel in enumerate(panels):
        left = EDGE + i % columns * (cell + GAP)
        draw_panel(canvas, panel, panels, (left, top + i // columns * (height + 14), left + cell), None if shared else Legend(panel, cell))
    left, y = EDGE, bottom + 6
    if spare:
        # The empty place at the end of the last row has the legend and the notes.
        left, y = EDGE + len(panels) % columns * (cell + GAP) + 10, top + (rows - 1) * (height + 14) + 40
        legend.draw(canvas, left, y)
        y += legend.height
        for name in dict.fromkeys(panel.line[1] for panel in panels if panel.line):
            canvas.line([(left, y + 8), (left + 18, y + 8)], "axis", 1.5, "5,4", "the legend's line")
            canvas.text(left + 24, y + 12, f"{name} = 1")
            y += LINE
        y += 12
    for i, (line, kind) in enumerate(notes):
        canvas.text(left, y + LINE * i + 12, line, 12 if kind == "text" else 11, kind=kind)
    return canvas
