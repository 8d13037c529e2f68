# SPDX-License-Identifier: BSD-3-Clause
# The pictures that have no numbers: boxes and arrows.
import style
from canvas import Canvas
from data import DataError, read_text

# ---- The architecture ----


def read_levels(path):
    """Rooms of the library, a list for each level, top down."""
    lines = [line for line in read_text(path).splitlines() if line and not line.startswith(("#", "in "))]
    return [line.split() for line in lines]


def read_words(path, levels):
    """bands: [(name, [rooms])], what each room does, what it reaches outside. All rooms are there, in the order of the levels."""
    bands, words, outside = [], {}, {}
    for at, line in enumerate(read_text(path).splitlines(), 1):
        if not line or line.startswith("#"):
            continue
        name, colon, rest = line.partition(": ")
        if not colon:
            raise DataError(f"{path}:{at}: '{line}' is not NAME: WORDS")
        if name.startswith("band "):
            bands.append((name[5:], rest.split()))
        elif name.startswith("outside "):
            outside[name[8:]] = rest
        else:
            words[name] = rest
    rooms = [room for level in levels for room in level]
    if [room for _, some in bands for room in some] != rooms:
        raise DataError(f"{path}: the bands do not have the rooms of layers.txt, in their order: {' '.join(rooms)}")
    for room in rooms:
        if room not in words:
            raise DataError(f"{path}: it says nothing of the room {room}: a line '{room}: WORDS' is missing")
    for room in [*words, *outside]:
        if room not in rooms:
            raise DataError(f"{path}: there is no room {room}")
    return bands, words, outside


class Architecture:
    """Levels of rooms in bands; at the right what they reach outside of the library."""
    WIDTH, EDGE, LABEL = 980, 20, 96
    LEVEL, TWO_LINES, TRANSPORT, GAP = 30, 42, 98, 5
    BAND_GAP = 11
    OUTSIDE = 178

    def __init__(self, levels, bands, words, outside):
        self.levels, self.bands, self.words, self.outside = levels, bands, words, outside
        self.left = self.EDGE + self.LABEL
        self.right = self.WIDTH - self.EDGE - self.OUTSIDE - 44
        below = sum(self.height(level) for level in levels) + self.GAP * (len(levels) - len(bands))
        height = 66 + 34 + 26 + below + len(bands) * (12 + self.BAND_GAP) + 8
        self.canvas = Canvas(self.WIDTH, height, "The layers of the library",
                             "Rooms of conduit, top down: a file includes headers of its own room and of rooms on lower levels.")

    def room(self, room, left, box, fill, two):
        """Name and words, on one line or on two."""
        c, (top, right, bottom) = self.canvas, box
        c.frame(left, top, right, bottom, fill, f"the box of {room}")
        y = (top + bottom) / 2 + 4
        width = c.text(left + 9, y - 7 if two else y, room, 12, bold=True)
        c.text(left + 9 if two else left + 9 + width + 9, y + 8 if two else y, self.words[room], 11)

    def widths(self, rooms, two):
        """What the rooms of a level need; they do not fit when the space that is left is negative, which is the second value."""
        names, words = [style.text_width(room, 12, True) for room in rooms], [style.text_width(self.words[room], 11) for room in rooms]
        needs = [max(name, some) + 18 if two else name + some + 27 for name, some in zip(names, words)]
        return needs, (self.right - self.left - 16 - 6 * (len(rooms) - 1) - sum(needs)) / len(rooms)

    def height(self, rooms):
        if rooms == ["transport"]:
            return self.TRANSPORT
        return self.LEVEL if self.widths(rooms, False)[1] >= 0 else self.TWO_LINES

    def transport(self, top, bottom, fill):
        """The table of functions, and who fills it in."""
        c = self.canvas
        c.frame(self.left + 8, top, self.right - 8, bottom, fill, "the box of transport")
        width = c.text(self.left + 17, top + 19, "transport", 12, bold=True)
        c.text(self.left + 17 + width + 9, top + 19, self.words["transport"] + ", filled in by", 11)
        parts = [("self", ["the rank itself"], 0.20), ("shm", ["rings between ranks", "of one host"], 0.27),
                 ("verbs", ["queue pairs, credits, stripes, failover;", "connections on first use, by librdmacm too"], 0.53)]
        left, whole = self.left + 17, self.right - self.left - 34 - 2 * 8
        for name, lines, share in parts:
            right = left + share * whole
            c.frame(left, top + 29, right, bottom - 8, "panel", f"the box of {name}")
            c.text(left + 8, top + 45, name, 12, bold=True)
            for i, line in enumerate(lines):
                c.text(left + 8, top + 59 + 13 * i, line, 10.5)
            left = right + 8

    def reach(self, words, y, half, kind="fill4", both=False):
        """A box outside of the library at this height, and the arrow to it."""
        c = self.canvas
        left, right = self.WIDTH - self.EDGE - self.OUTSIDE, self.WIDTH - self.EDGE
        lines = style.wrap(words, right - left - 16, 11)
        c.frame(left, y - half, right, y + half, kind, f"the box of '{words}'")
        for i, line in enumerate(lines):
            c.text(left + 8, y + 4 + 14 * (i - (len(lines) - 1) / 2), line, 11)
        c.arrow(self.right + 1, y, left - 1, y)
        if both:
            c.arrow(left - 20, y, self.right + 1, y)

    def level(self, rooms, top, fill):
        """Draws one level; returns its height."""
        height = self.height(rooms)
        if rooms == ["transport"]:
            self.transport(top, top + height, fill)
            self.reach("libibverbs, librdmacm: RDMA ports, or softhca in software", top + height / 2 + 24, 22, both=True)
            self.reach("memory that the ranks of a host share", top + height / 2 - 26, 22, both=True)
            return height
        two = height == self.TWO_LINES
        needs, spare = self.widths(rooms, two)
        left = self.left + 8
        for room, need in zip(rooms, needs):
            self.room(room, left, (top, left + need + spare, top + height), fill, two)
            left += need + spare + 6
        for room in rooms:
            if room in self.outside:
                lines = len(style.wrap(self.outside[room], self.OUTSIDE - 16, 11))
                self.reach(self.outside[room], top + height / 2, 3 + 9 * lines)
        return height

    def draw(self):
        c = self.canvas
        c.text(self.EDGE, 28, "The layers of the library", 16, bold=True)
        c.text(self.EDGE, 48, "A file includes headers of its own room and of rooms on lower levels; make check enforces it.", 12, kind="muted")
        c.frame(self.left, 62, self.right, 94, "fill4", "the box of clients")
        c.text(self.left + 12, 82, "clients", 12, bold=True)
        c.text(self.left + 72, 82, "UPC++, Chapel, Legion/Realm, OpenSHMEM, coarray Fortran ...", 11)
        middle = (self.left + self.right) / 2
        c.arrow(middle, 96, middle, 119)
        c.text(middle + 12, 111, "gex_*, gasnet_*", 11, kind="muted")
        levels, y = list(self.levels), 120
        for i, (name, rooms) in enumerate(self.bands):
            top = y + 6
            heights = sum(self.height(level) for level in self.of_band(levels, rooms))
            count = len(self.of_band(levels, rooms))
            bottom = top + heights + self.GAP * (count - 1) + 6
            c.frame(self.left, y, self.right, bottom, "panel", f"the band {name}")
            c.text(self.left - 10, (y + bottom) / 2 + 4, name, 12, "end", kind="muted")
            for level in self.of_band(levels, rooms):
                top += self.level(level, top, f"fill{i % 4}") + self.GAP
            y = bottom + self.BAND_GAP
        return c

    @staticmethod
    def of_band(levels, rooms):
        return [level for level in levels if level[0] in rooms]


def architecture(levels_path, words_path):
    levels = read_levels(levels_path)
    return Architecture(levels, *read_words(words_path, levels)).draw()


# ---- Multicast ----


def multicast_broadcast():
    """Who sends what in a broadcast over the switch, from top to bottom."""
    about = "A root sends a control, data and a release; the switch copies to each receiver and combines their acknowledgements."
    c = Canvas(860, 504, "Messages of a broadcast over the switch", about)
    c.text(20, 28, "Messages of a broadcast over the switch", 16, bold=True)
    root, switch, receivers = 110, 390, [580, 690, 800]
    for x, name in [(root, "root: SQP"), (switch, "switch"), *zip(receivers, ("RQP 1", "RQP 2", "RQP 3"))]:
        half = style.text_width(name, 13, True) / 2 + 12
        c.frame(x - half, 46, x + half, 72, "fill0" if x == root else "fill1" if x == switch else "fill2", f"the box of {name}")
        c.text(x, 63, name, 13, "middle", bold=True)
        c.line([(x, 72), (x, 440)], "axis", what=f"the life line of {name}")

    def send(y, words, copies):
        """A message of the root, and what the switch sends on."""
        c.arrow(root + 2, y, switch - 2, y + 12)
        c.text((root + switch) / 2, y - 3, words, 12, "middle")
        for i, x in enumerate(receivers if copies else []):
            c.arrow(switch + 2, y + 26 + 8 * i, x - 2, y + 38 + 8 * i)
        if copies:
            c.text((switch + receivers[0]) / 2, y + 22, copies, 12, "middle")

    def acknowledge(y, words, combined):
        """Acknowledgements of all receivers, and the one that the root gets."""
        for i, x in enumerate(receivers):
            c.arrow(x - 2, y + 12 * i, switch + 2, y + 12 + 12 * i, "back")
        c.text((switch + receivers[0]) / 2, y - 4, words, 12, "middle")
        c.arrow(switch - 2, y + 44, root + 2, y + 56, "back")
        c.text((root + switch) / 2, y + 41, combined, 12, "middle")

    send(100, "p: control (acquire, ranks)", "write of 0 bytes")
    send(166, "p+1: data", "data")
    send(232, "p+2: release", None)
    c.text(switch - 10, 132, "lock, link, offsets", 11, "end", kind="muted")
    c.text(switch - 10, 264, "kept until all have p+1", 11, "end", kind="muted")
    acknowledge(280, "ACKs of p", "ACK p (the last of three)")
    acknowledge(366, "ACKs of p+1", "ACK p+2: all have it")
    c.text(switch - 10, 396, "unlock", 11, "end", kind="muted")
    c.text(20, 466, "PSNs are the root's own; each copy carries p + offset of its receiver, each ACK comes back minus that offset.", 12)
    c.text(20, 485, "One message on the root's link for the data, two small ones around it; nothing waits for a round trip.", 12)
    return c


GROUP = [
    ("senders, one a member", "fill0", ["fixed: IP, MAC, port, QPN", "epsn: next PSN", "msn: messages completed", "fenced: lost the lock", "nak_sent"],
     "They persist while another member has the lock, so a repeat is known as finished or as too early."),
    ("group", "fill1", ["hold: holder, its last packet", "topo: version, links, mask", "agg: all have this PSN; MSN", "rel: a RELEASE that waits",
                        "inside: within a message", "dirty: ranks to be reset", "list[k]: rank of round k", "minh: holder of the minimum"],
     "One lock: one broadcast at a time; the switch sends RNR NAKs to the others."),
    ("receivers, one a member", "fill2", ["fixed: IP, MAC, port, QPN", "off, psn_out: numbers to it", "msn_off, msn_out", "base, rkey of writes",
                                          "acked, its MSN", "version: linked by this"],
     "Linked when its version is the group's: no list of those left out is needed."),
]


def multicast_group():
    """What the switch keeps of a group."""
    c = Canvas(860, 358, "State of a group in the switch", "Senders, the group and receivers: data goes from left to right, acknowledgements back.")
    c.text(20, 28, "State of a group in the switch", 16, bold=True)
    width, gap = 228, 68
    for i, (name, fill, fields, words) in enumerate(GROUP):
        left = 20 + i * (width + gap)
        c.frame(left, 46, left + width, 338, fill, f"the box of {name}")
        c.text(left + 12, 68, name, 13, bold=True)
        for at, line in enumerate(fields):
            c.text(left + 12, 92 + 19 * at, line, 12)
        for at, line in enumerate(style.wrap(words, width - 24, 12)):
            c.text(left + 12, 264 + 19 * at, line, 12, kind="muted")
        if i:
            middle = left - gap / 2
            c.arrow(left - gap + 3, 120, left - 3, 120)
            c.text(middle, 112, "data" if i == 1 else "copies", 11, "middle")
            c.arrow(left - 3, 200, left - gap + 3, 200, "back")
            c.text(middle, 192, "ACK" if i == 1 else "ACKs", 11, "middle")
    return c
