#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
# The check of contrib/pictures finds each kind of overlap, and nothing where there is none; colours that are hard to see are found;
# data without date, machine or order are refused.
import os
import sys
import tempfile
import unittest

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "contrib", "pictures"))

import charts
import data
import diagrams
import style
from canvas import Canvas

HEAD = "title T\nnote N\nmeasured 2026-01-02, 2 CPUs\n"
PANEL = "panel P\nx n\ny million op/s\nbetter higher\n"


def canvas():
    return Canvas(200, 100, "a picture", "about")


class Overlap(unittest.TestCase):
    def finds(self, picture, words):
        self.assertTrue(any(words in problem for problem in picture.problems()), picture.problems())

    def test_text_beside_everything_is_right(self):
        c = canvas()
        c.frame(5, 5, 195, 40, "panel")
        c.text(15, 25, "inside")
        c.line([(5, 60), (195, 60)], "axis")
        c.text(15, 80, "below")
        c.marker(100, 76, 0)
        self.assertEqual(c.problems(), [])

    def test_text_on_text(self):
        c = canvas()
        c.text(20, 50, "median")
        c.text(40, 55, "range")
        self.finds(c, "'range' overlaps 'median'")

    def test_text_on_a_line_that_only_passes_through(self):
        c = canvas()
        c.text(80, 50, "rate")
        c.line([(10, 10), (190, 90)], "s0", what="a curve")
        self.finds(c, "'rate' overlaps a curve")

    def test_text_on_a_bar_a_marker_and_the_data(self):
        c = canvas()
        c.text(20, 50, "legend")
        c.bar(15, 20, 30, 90, "b0")
        c.marker(45, 47, 1)
        c.keep_out(10, 10, 60, 90, "the data")
        for what in ("a bar", "a point", "the data"):
            self.finds(c, f"'legend' overlaps {what}")

    def test_text_over_the_edge_of_a_box(self):
        c = canvas()
        c.frame(20, 20, 60, 70, "fill0", "the box of rma")
        c.text(25, 50, "puts and gets")
        self.finds(c, "overlaps the edge of the box of rma")

    def test_text_that_leaves_the_picture(self):
        c = canvas()
        c.text(150, 50, "million operations")
        self.finds(c, "leaves the picture")

    def test_a_line_that_leaves_the_picture(self):
        c = canvas()
        c.line([(10, 10), (210, 10)], "axis", what="the x axis")
        self.finds(c, "the x axis leaves the picture")

    def test_bold_and_wide_letters_count(self):
        c = canvas()
        c.text(10, 50, "W" * 10, 12)
        c.text(135, 50, "x")
        self.assertEqual(c.problems(), [])
        c = canvas()
        c.text(10, 50, "W" * 10, 12, bold=True)
        c.text(135, 50, "x")
        self.finds(c, "overlaps")


class Charts(unittest.TestCase):
    def drawn(self, text):
        with tempfile.NamedTemporaryFile("w", suffix=".txt") as file:
            file.write(text)
            file.flush()
            return charts.draw(data.read_file(file.name))

    def refused(self, text, words):
        with self.assertRaisesRegex(data.DataError, words):
            self.drawn(text)

    def test_a_chart_is_right(self):
        for points in ("1 5 4 6\n2 7 6 8\n", "1 5 4 6\n2 7 6 8\n4 9 9 9\n8 12 11 13\n", "0 5 4 6\n2 7 6 8\n4 9 9 9\n8 12 11 13\n"):
            self.assertEqual(self.drawn(HEAD + PANEL + "series a\n" + points).problems(), [])

    def test_curves_of_growth_are_right(self):
        with tempfile.NamedTemporaryFile("w", suffix=".txt") as file:
            file.write("measured 2026-01-02, 2 CPUs\ncurve messages | ranks | count | 2:3 4:6 8:9 16:4000\n"
                       "curve connections | ranks | count | 2:1 4:1 8:1 16:1\ncurve bytes of a split | hosts | count | 2:4 4:2 8:1 16:1\n")
            file.flush()
            picture = data.read_curves(file.name)
        self.assertEqual([panel.x for panel in picture.panels], ["ranks", "hosts"])
        self.assertEqual(charts.draw(picture).problems(), [])

    def test_a_ninth_series_is_drawn(self):
        text = HEAD + PANEL + "".join(f"series s{i}\n1 5 4 6\n" for i in range(9))
        self.assertEqual(self.drawn(text).problems(), [])

    def test_a_name_that_is_too_long(self):
        wrong = self.drawn(HEAD + PANEL + f"series {'transport ' * 30}\n1 5 4 6\n").problems()
        self.assertTrue(any("leaves the picture" in problem for problem in wrong), wrong)

    def test_words_of_an_axis_that_do_not_fit(self):
        points = "".join(f"hotspot:0.{i}:0.99999999999 5 4 6\n" for i in range(9))
        panels = "".join(PANEL.replace("panel P", f"panel P{i}") + "series a\n" + points for i in range(3))
        wrong = self.drawn(HEAD + panels).problems()
        self.assertTrue(any("overlaps 'hotspot" in problem for problem in wrong), wrong)

    def test_data_that_are_refused(self):
        series = "series a\n"
        self.refused(HEAD.replace("2026-01-02, ", "") + PANEL + series + "1 5 4 6\n", "does not begin with a date")
        self.refused(HEAD.replace("2 CPUs", "a machine") + PANEL + series + "1 5 4 6\n", "name the CPUs")
        self.refused(HEAD + PANEL + series + "1 5 6 7\n", "median 5 is not between")
        self.refused(HEAD + PANEL + series + "1 5 4 inf\n", "not X MEDIAN LEAST LARGEST")
        self.refused(HEAD + PANEL + series + "1 -5 -6 -4\n", "above 0")
        self.refused(HEAD + PANEL + series + "1 0 0 0\n", "above 0")
        self.refused(HEAD + PANEL + series + "1 5\n", "not X MEDIAN LEAST LARGEST")
        self.refused(HEAD + PANEL.replace("y million op/s\n", "") + series + "1 5 4 6\n", "lacks x, y, better")
        self.refused(HEAD + PANEL + "colour red\n", "no word of this format")


class Architecture(unittest.TestCase):
    def test_a_room_without_words_or_out_of_order(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "words.txt")
            for text, words in (("band all: api base\napi: calls\n", "says nothing of the room base"),
                                ("band all: base api\napi: calls\nbase: locks\n", "in their order"),
                                ("band all: api base\napi: calls\nbase: locks\nattic: old\n", "no room attic")):
                with open(path, "w", encoding="utf-8") as file:
                    file.write(text)
                with self.assertRaisesRegex(data.DataError, words):
                    diagrams.read_words(path, [["api"], ["base"]])


class Colours(unittest.TestCase):
    def test_all_can_be_seen(self):
        self.assertEqual(style.faint_colours(), [])

    def test_a_faint_one_is_found(self):
        old = style.COLOURS["muted"]
        style.COLOURS["muted"] = ("#cccccc", old[1])
        self.assertTrue(any("muted #cccccc" in one for one in style.faint_colours()))
        style.COLOURS["muted"] = old


unittest.main(verbosity=0)
