#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
# The fits of growth.py: exponents of known curves, a logarithm beside a power, growth that a constant hides at first, and promises that
# planted mistakes break. The table of doc/scaling.md and the measured curves agree, and a table that is wrong in any way is refused.
import math
import os
import sys
import unittest

sys.dont_write_bytecode = True
HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)

import growth
import table
from growth import Growth

RANKS = [2 << i for i in range(8)]
TOP = os.path.join(HERE, "..", "..", "..")


def curve(function):
    return [(x, function(x)) for x in RANKS]


def shaken(function, share):
    """The same with errors of this share, up and down in turns of three."""
    return [(x, function(x) * (1 + share * (-1, 1, 0.3)[i % 3])) for i, x in enumerate(RANKS)]


class Fits(unittest.TestCase):
    def test_exponents_of_known_curves(self):
        for exponent in (0.0, 0.5, 1.0, 1.5, 2.0):
            fit = Growth(curve(lambda x: 3 * x ** exponent)).all
            self.assertAlmostEqual(fit.exponent, exponent, 6)
            self.assertLess(fit.half, 1e-6)

    def test_the_range_holds_the_exponent_and_is_not_empty(self):
        for share in (0.02, 0.1, 0.2):
            fit = Growth(shaken(lambda x: 7 * x, share)).all
            self.assertLess(abs(fit.exponent - 1), fit.half)
            self.assertGreater(fit.half, share / 10)
        # By hand: slope 0.98, residuals 0.03 and 0.09, t of two degrees of freedom 4.30
        fit = Growth([(math.exp(x), math.exp(y)) for x, y in ((0, 0), (1, 1.1), (2, 1.9), (3, 3))]).all
        self.assertAlmostEqual(fit.exponent, 0.98, 6)
        self.assertAlmostEqual(fit.half, 0.182, 3)

    def test_each_promise_is_kept_by_its_curves(self):
        kept = {"constant": [lambda x: 5, lambda x: 640 + x % 7, lambda x: 0],
                "logarithmic": [math.log2, lambda x: 3 + 2 * math.log2(x), lambda x: math.ceil(math.log(x, 4)) + 1, lambda x: 5,
                                lambda x: 4 * math.log2(x) + 1],
                "linear": [lambda x: x, lambda x: 1000 + 40 * x, lambda x: math.log2(x), lambda x: x - 1, lambda x: 9]}
        for promise, functions in kept.items():
            for i, function in enumerate(functions):
                self.assertTrue(Growth(curve(function)).keeps(promise), f"{promise} {i}")

    def test_each_promise_is_broken_by_faster_ones(self):
        broken = {"constant": [math.log2, lambda x: x, lambda x: 10 + x, lambda x: x ** 0.25],
                  "logarithmic": [lambda x: x, lambda x: x ** 0.25, math.sqrt, lambda x: 100 + x, lambda x: 20 * math.log2(x) + x],
                  "linear": [lambda x: x * x, lambda x: x * math.log2(x), lambda x: 100 * x + x * x, lambda x: 4000 + x * x]}
        for promise, functions in broken.items():
            for i, function in enumerate(functions):
                self.assertFalse(Growth(curve(function)).keeps(promise), f"{promise} {i}")

    def test_a_logarithm_and_a_power_are_told_apart_in_noise(self):
        self.assertEqual(Growth(shaken(math.log2, 0.05)).word(), "logarithmic")
        self.assertEqual(Growth(shaken(math.sqrt, 0.02)).word(), "power")
        self.assertFalse(Growth(shaken(lambda x: x, 0.9), "time").is_logarithm)

    def test_times_are_judged_by_the_lower_end(self):
        self.assertTrue(Growth(shaken(lambda x: x ** 1.55, 0.2), "time").keeps("linear"))
        self.assertFalse(Growth(curve(lambda x: x ** 1.55), "time").keeps("linear"))
        self.assertFalse(Growth(shaken(lambda x: x * x, 0.2), "time").keeps("linear"))

    def test_too_few_points_are_refused(self):
        with self.assertRaisesRegex(ValueError, "3 points are too few"):
            Growth([(1, 1), (2, 2), (4, 4)])
        with self.assertRaisesRegex(ValueError, "no kind"):
            Growth(curve(math.log2), "guess")


class Table(unittest.TestCase):
    def setUp(self):
        self.page, self.data = table.read(os.path.join(TOP, "doc", "scaling.md")), table.read(os.path.join(TOP, "doc", "scaling", "measured.txt"))

    def wrong(self, page, data, words):
        found = table.problems(page, data)
        self.assertTrue(any(words in line for line in found), found)

    def test_the_table_agrees_with_the_curves(self):
        self.assertEqual(table.problems(self.page, self.data), [])

    def test_a_changed_exponent_or_date(self):
        row = table.rows(self.page)[0]
        self.wrong(self.page.replace(row.measured, "0.77 ± 0.01, power", 1), self.data, "not '0.77")
        self.wrong(self.page.replace(row.line, row.line.replace(row.date, "1999-01-01")), self.data, "1999-01-01")

    def test_a_promise_that_the_curves_break(self):
        row = next(row for row in table.rows(self.page) if row.promise == "linear" and "linear" not in row.measured and "power" in row.measured)
        self.wrong(self.page.replace(row.line, row.line.replace("| linear |", "| constant |")), self.data, "grows faster than promised")

    def test_a_row_without_curve_and_a_curve_without_row(self):
        row = table.rows(self.page)[0]
        self.wrong(self.page.replace(row.line + "\n", ""), self.data, "has no row")
        self.wrong(self.page.replace(row.line, row.line.replace(row.quantity, "leaps")), self.data, "has no curve")

    def test_what_cannot_be_read(self):
        row = table.rows(self.page)[0]
        for page, words in ((self.page.replace(row.line, row.line.replace(f"| {row.promise} |", "| slow |")), "'slow' is no promise"),
                            (self.page.replace(table.BEGIN, ""), "no line"),
                            (self.page.replace(row.line, "| a | b |"), "2 columns, not 5")):
            with self.assertRaisesRegex(table.TableError, words):
                table.rows(page)
        with self.assertRaisesRegex(table.TableError, "measured"):
            table.curves("curve a | ranks | count | 1:1 2:2 4:4 8:8\n")
        with self.assertRaisesRegex(table.TableError, "X:Y"):
            table.curves("measured 2026-01-01, 2 CPUs\ncurve a | ranks | count | 1:1 2=2\n")

    def test_a_planted_mistake_is_seen(self):
        """Each rank connects to all: the curve of connections grows linearly."""
        name = next(c for c in table.curves(self.data)[1] if c.quantity.startswith("connections") and c.against == "ranks")
        planted = self.data.replace(name.line, f"curve {name.quantity} | ranks | count | " + " ".join(f"{x}:{x - 1}" for x in RANKS))
        self.wrong(self.page, planted, "grows faster than promised")


if __name__ == "__main__":
    unittest.main()
