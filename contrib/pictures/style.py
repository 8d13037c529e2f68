# SPDX-License-Identifier: BSD-3-Clause
# The style of all pictures: colours for a light and a dark page, and widths of characters.

# Name: (on a light page, on a dark page). A picture paints its own background, because a page may be dark where the reader's
# system is light.
COLOURS = {
    "page": ("#ffffff", "#0d1117"),
    "text": ("#1f2328", "#e6edf3"),
    "muted": ("#59636e", "#9198a1"),
    "grid": ("#d9dee3", "#2d333b"),
    "axis": ("#818b98", "#7d8590"),
    "arrow": ("#40474f", "#c2cad3"),
    "back": ("#2f7d43", "#57c276"),
    "panel": ("#f4f6f8", "#161b22"),
    "fill0": ("#e3eefb", "#13294a"),
    "fill1": ("#fdf0dc", "#3d2b0f"),
    "fill2": ("#e2f5ea", "#10331f"),
    "fill3": ("#f6e8f3", "#3a1a33"),
    "fill4": ("#ebedf0", "#252b33"),
}
# Of data, in the order of use: after Okabe and Ito, with 3:1 against the page. Shapes tell them apart as well.
SERIES = [("#0072b2", "#56b4e9"), ("#cc5200", "#ff8c42"), ("#008a63", "#2fc79b"), ("#b0417f", "#e08bbd"),
          ("#555d66", "#c3cad2"), ("#a07000", "#e6b422"), ("#5b4fc4", "#a49bff"), ("#7a5340", "#cfa98c")]
CONTRAST_OF_TEXT = 4.5
CONTRAST_OF_DATA = 3.0

# Advance widths in thousandths of the font's size. They are those of DejaVu Sans, the widest of the fonts that "sans-serif"
# commonly means, so that what fits here fits with others.
REGULAR = {280: "'ijl", 300: "IJ", 320: " ,.", 340: "/:;\\|", 360: "f", 370: "-", 390: "()[]", 400: "t", 410: "!", 420: "r", 460: '"',
           500: "*_`", 530: "sz", 540: "?", 550: "c", 560: "L", 580: "Fk", 600: "vxy", 610: "P", 620: "TYaeo", 640: "$0123456789ESbdghnpqu{}",
           660: "K", 690: "ABVXZ", 700: "CR", 740: "U", 750: "N", 760: "H", 770: "D", 780: "&G", 790: "OQ", 820: "w", 840: "#+<=>^~",
           870: "M", 950: "%", 980: "m", 990: "W", 1000: "@"}
BOLD = {310: "'", 350: " ijl", 370: "/\\|", 380: ",.IJ", 400: ":;", 420: "-", 440: "f", 460: "!()[]", 480: "t", 500: "_`r", 530: '"*',
        580: "?", 590: "z", 600: "cs", 640: "L", 650: "x", 660: "vy", 670: "k", 680: "ae", 690: "EFTo", 700: "$0123456789",
        720: "Sbdghnpqu{}", 730: "YZ", 740: "CP", 770: "BR", 780: "AKVX", 820: "U", 830: "DG", 840: "#+<=>HN^~", 850: "OQ", 880: "&",
        930: "w", 1000: "@M", 1010: "%", 1050: "m", 1110: "W"}
WIDTHS = [{letter: width for width, letters in table.items() for letter in letters} for table in (REGULAR, BOLD)]


def text_width(text, size, bold=False):
    """In pixels, never too small. A character that is not in the tables is a KeyError: pictures have ASCII only."""
    return sum(WIDTHS[bold][letter] for letter in text) * size / 1000


def wrap(text, width, size):
    """Lines of at most that width."""
    lines = [""]
    for word in text.split():
        longer = f"{lines[-1]} {word}".strip()
        if lines[-1] and text_width(longer, size) > width:
            lines.append(word)
        else:
            lines[-1] = longer
    return lines


def contrast(a, b):
    """Of two colours, as WCAG 2 defines it."""
    def light(colour):
        parts = [int(colour[at:at + 2], 16) / 255 for at in (1, 3, 5)]
        parts = [part / 12.92 if part <= 0.03928 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
        return 0.2126 * parts[0] + 0.7152 * parts[1] + 0.0722 * parts[2]
    high, low = sorted((light(a), light(b)), reverse=True)
    return (high + 0.05) / (low + 0.05)


def faint_colours():
    """Colours that a reader might not see, light or dark."""
    faint = []
    for which, page in enumerate(COLOURS["page"]):
        grounds = [page] + [COLOURS[name][which] for name in COLOURS if name.startswith(("fill", "panel"))]
        for name, least, behind in [("text", CONTRAST_OF_TEXT, grounds), ("muted", CONTRAST_OF_TEXT, grounds), ("arrow", CONTRAST_OF_DATA, grounds),
                                    ("back", CONTRAST_OF_DATA, grounds), ("axis", CONTRAST_OF_DATA, [page])]:
            faint += [f"{name} {COLOURS[name][which]} on {ground}" for ground in behind if contrast(COLOURS[name][which], ground) < least]
        faint += [f"series {one[which]} on {page}" for one in SERIES if contrast(one[which], page) < CONTRAST_OF_DATA]
    return faint


def sheet():
    """The style sheet of every picture."""
    def rules(which):
        colour = {name: pair[which] for name, pair in COLOURS.items()}
        lines = [f".page{{fill:{colour['page']}}}", f".text{{fill:{colour['text']}}}", f".muted{{fill:{colour['muted']}}}",
                 f".grid{{stroke:{colour['grid']}}}", f".axis{{stroke:{colour['axis']}}}",
                 f".arrow{{stroke:{colour['arrow']}}}", f".arrow-head{{fill:{colour['arrow']}}}",
                 f".back{{stroke:{colour['back']}}}", f".back-head{{fill:{colour['back']}}}",
                 f".panel{{fill:{colour['panel']};stroke:{colour['grid']}}}"]
        lines += [f".fill{i}{{fill:{colour[f'fill{i}']};stroke:{colour['axis']}}}" for i in range(5)]
        for i, one in enumerate(SERIES):
            lines += [f".s{i}{{stroke:{one[which]}}}", f".m{i}{{fill:{one[which]};stroke:{colour['page']}}}", f".b{i}{{fill:{one[which]}}}"]
        return "".join(lines)
    return f"<style>{rules(0)}\n@media(prefers-color-scheme:dark){{{rules(1)}}}</style>"
