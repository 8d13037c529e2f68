# SPDX-License-Identifier: BSD-3-Clause
# Writes SVG, and knows the box of all that it wrote: problems() names texts that overlap something or leave the picture.
from xml.sax.saxutils import escape

import style

# From the baseline, in sizes of the font
ASCENT = 0.80
DESCENT = 0.22
MARGIN = 4


class Box:
    def __init__(self, left, top, right, bottom):
        self.left, self.top, self.right, self.bottom = left, top, right, bottom

    def grown(self, x, y):
        return Box(self.left - x, self.top - y, self.right + x, self.bottom + y)

    def meets(self, other):
        return self.left < other.right and other.left < self.right and self.top < other.bottom and other.top < self.bottom

    def holds(self, other):
        return self.left <= other.left and other.right <= self.right and self.top <= other.top and other.bottom <= self.bottom

    def is_crossed(self, x1, y1, x2, y2):
        """Whether the line passes through the box (Liang and Barsky)."""
        first, last = 0.0, 1.0
        for step, space in ((x1 - x2, x1 - self.left), (x2 - x1, self.right - x1), (y1 - y2, y1 - self.top), (y2 - y1, self.bottom - y1)):
            if step == 0:
                if space <= 0:
                    return False
            elif step < 0:
                first = max(first, space / step)
            else:
                last = min(last, space / step)
        return first < last


def number(value):
    """Short, and the same everywhere."""
    text = f"{value:.1f}"
    return text[:-2] if text.endswith(".0") else text


class Canvas:
    """A picture in the making."""

    def __init__(self, width, height, title, about):
        self.width, self.height, self.title, self.about = width, height, title, about
        self.body = []
        self.texts = []     # (box, text)
        self.lines = []     # (x1, y1, x2, y2, what)
        self.solids = []    # (box, what): no text may touch it
        self.frames = []    # (box, what): a text is inside or outside, with space around it

    # ---- Text ----

    def text(self, x, y, words, size=12, anchor="start", bold=False, kind="text"):
        """One line of text; y is its baseline. The box that is checked is as wide as the widest common font makes it."""
        width = style.text_width(words, size, bold)
        left = x - {"start": 0, "middle": width / 2, "end": width}[anchor]
        self.texts.append((Box(left, y - ASCENT * size, left + width, y + DESCENT * size), words))
        extra = ("" if anchor == "start" else f' text-anchor="{anchor}"') + (' font-weight="bold"' if bold else "")
        self.body.append(f'<text class="{kind}" x="{number(x)}" y="{number(y)}" font-size="{number(size)}"{extra}>{escape(words)}</text>')
        return width

    # ---- Ink ----

    def line(self, points, kind, width=1.0, dash="", what="a line", faint=False):
        for (x1, y1), (x2, y2) in zip(points, points[1:]):
            self.lines.append((x1, y1, x2, y2, what))
        path = "M" + "L".join(f"{number(x)},{number(y)}" for x, y in points)
        extra = (f' stroke-dasharray="{dash}"' if dash else "") + (' stroke-opacity="0.65"' if faint else "")
        self.body.append(f'<path class="{kind}" d="{path}" fill="none" stroke-width="{number(width)}"{extra}/>')

    def bar(self, left, top, right, bottom, kind, what="a bar"):
        self.solids.append((Box(left, min(top, bottom), right, max(top, bottom)), what))
        place = (f'x="{number(left)}" y="{number(min(top, bottom))}" width="{number(right - left)}" height="{number(abs(bottom - top))}"')
        # Pale, so that whiskers are seen on it, and nothing shines through.
        self.body.append(f'<rect class="page" {place}/><rect class="{kind}" {place} fill-opacity="0.72"/>')

    def frame(self, left, top, right, bottom, kind, what="a box"):
        self.frames.append((Box(left, top, right, bottom), what))
        self.body.append(f'<rect class="{kind}" x="{number(left)}" y="{number(top)}" width="{number(right - left)}" '
                         f'height="{number(bottom - top)}" rx="5"/>')

    def keep_out(self, left, top, right, bottom, what):
        """An area for data: text stays out of it."""
        self.solids.append((Box(left, top, right, bottom), what))

    def arrow(self, x1, y1, x2, y2, kind="arrow", width=1.4, what="an arrow"):
        length = ((x2 - x1) ** 2 + (y2 - y1) ** 2) ** 0.5
        dx, dy = (x2 - x1) / length, (y2 - y1) / length
        x0, y0 = x2 - 8 * dx, y2 - 8 * dy
        self.line([(x1, y1), (x0, y0)], kind, width, what=what)
        corners = [(x2, y2), (x0 - 3.5 * dy, y0 + 3.5 * dx), (x0 + 3.5 * dy, y0 - 3.5 * dx)]
        self.solids.append((Box(min(x for x, _ in corners), min(y for _, y in corners), max(x for x, _ in corners), max(y for _, y in corners)), what))
        self.body.append(f'<path class="{kind}-head" d="M{"L".join(f"{number(x)},{number(y)}" for x, y in corners)}z"/>')

    def marker(self, x, y, series, what="a point"):
        """The sign of a series, by its number."""
        r, kind = 4.2, f"m{series % len(style.SERIES)}"
        shape = (series + series // len(style.SERIES)) % len(style.SERIES)
        outline = [None, [(-1, -1), (1, -1), (1, 1), (-1, 1)], [(0, -1.25), (1.15, 0.85), (-1.15, 0.85)], [(0, -1.35), (1.35, 0), (0, 1.35), (-1.35, 0)],
                   [(0, 1.25), (1.15, -0.85), (-1.15, -0.85)], [(-1.3, -0.6), (1.3, -0.6), (1.3, 0.6), (-1.3, 0.6)],
                   [(-0.6, -1.35), (0.6, -1.35), (0.6, 1.35), (-0.6, 1.35)], [(-1.2, -0.5), (0, -1.3), (1.2, -0.5), (0.75, 1.1), (-0.75, 1.1)]][shape]
        self.solids.append((Box(x - 1.35 * r, y - 1.35 * r, x + 1.35 * r, y + 1.35 * r), what))
        if outline is None:
            self.body.append(f'<circle class="{kind}" cx="{number(x)}" cy="{number(y)}" r="{r}"/>')
        else:
            path = "L".join(f"{number(x + r * a)},{number(y + r * b)}" for a, b in outline)
            self.body.append(f'<path class="{kind}" d="M{path}z"/>')

    def open_group(self, name):
        self.body.append(f'<g class="{name}">')

    def close_group(self):
        self.body.append("</g>")

    # ---- The check ----

    def problems(self):
        """What a reader could not read: a line for each."""
        wrong = []
        page = Box(MARGIN, MARGIN, self.width - MARGIN, self.height - MARGIN)
        for i, (box, words) in enumerate(self.texts):
            if not page.holds(box):
                wrong.append(f"'{words}' leaves the picture")
            wrong += [f"'{words}' overlaps '{other}'" for near, other in self.texts[:i] if box.grown(2, 0).meets(near)]
            wrong += [f"'{words}' overlaps {what}" for near, what in self.solids if box.meets(near)]
            wrong += [f"'{words}' overlaps {what}" for *ends, what in self.lines if box.is_crossed(*ends)]
            wrong += [f"'{words}' overlaps the edge of {what}" for near, what in self.frames
                      if box.grown(3, 1).meets(near) and not near.grown(-3, -1).holds(box)]
        picture = Box(0, 0, self.width, self.height)
        for box, what in self.solids + self.frames:
            if not picture.holds(box):
                wrong.append(f"{what} leaves the picture")
        for x1, y1, x2, y2, what in self.lines:
            if not (picture.holds(Box(min(x1, x2), min(y1, y2), max(x1, x2), max(y1, y2)))):
                wrong.append(f"{what} leaves the picture")
        return wrong

    def svg(self):
        w, h = number(self.width), number(self.height)
        return "\n".join(['<?xml version="1.0" encoding="utf-8"?>', "<!-- made by contrib/pictures/make-pictures; not edited by hand -->",
                          f'<svg xmlns="http://www.w3.org/2000/svg" width="{w}" height="{h}" viewBox="0 0 {w} {h}" role="img" '
                          'font-family="Helvetica, Arial, sans-serif">',
                          f"<title>{escape(self.title)}</title>", f"<desc>{escape(self.about)}</desc>", style.sheet(),
                          f'<rect class="page" width="{w}" height="{h}"/>', *self.body, "</svg>", ""])
