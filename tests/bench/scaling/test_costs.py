#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
# The costs built into gasnetrun_ibv --simulate are those of doc/scaling/costs.txt, make bench-simulate names a job that was not predicted, and
# --update writes all of its files or none.
import contextlib
import importlib.machinery
import importlib.util
import io
import os
import re
import subprocess
import sys
import tempfile
import unittest

sys.dont_write_bytecode = True
HERE = os.path.dirname(os.path.abspath(__file__))
TOP = os.path.join(HERE, "..", "..", "..")
sys.path.insert(0, HERE)

import costs
import job

loader = importlib.machinery.SourceFileLoader("predict", os.path.join(HERE, "predict"))
predict = importlib.util.module_from_spec(importlib.util.spec_from_loader("predict", loader))
loader.exec_module(predict)


def read(*path):
    with open(os.path.join(TOP, *path), encoding="utf-8") as file:
        return file.read()


class BuiltIn(unittest.TestCase):
    def setUp(self):
        self.definitions, self.file = read("spawner", "simulate", "costs.def"), read("doc", "scaling", "costs.txt")

    def wrong(self, definitions, file, words):
        found = costs.disagreements(definitions, file)
        self.assertTrue(any(words in one for one in found), found)

    def test_the_values_built_in_are_those_measured(self):
        self.assertGreater(len(costs.built_in(self.definitions)), 20)
        self.assertEqual(costs.disagreements(self.definitions, self.file), [])

    def test_another_value_or_unit_is_found(self):
        for name, (value, unit) in costs.of_file(self.file).items():
            line = re.search(rf"^{re.escape(name)} .*$", self.file, re.M).group(0)
            self.wrong(self.definitions, self.file.replace(line, f"{name} {8 * value + 10:g} {unit}"), f"{name}: ")
            self.wrong(self.definitions, self.file.replace(line, f"{name} {value:g} years"), f"{name}: {unit} in costs.def, years")

    def test_values_that_are_written_agree(self):
        values = {name: round(3.3333 * value) for name, (value, _, _) in costs.built_in(self.definitions).items()}
        file = "".join(f"{name} {value} {costs.built_in(self.definitions)[name][1]}\n" for name, value in values.items())
        found = costs.disagreements(costs.with_values(self.definitions, values), file)
        self.assertEqual([one for one in found if not one.startswith("info.words")], [])

    def test_a_cost_that_is_not_measured_needs_a_reason(self):
        self.wrong(self.definitions, self.file.replace("\nmessage ", "\nmassage "), "message: not in doc/scaling/costs.txt")


class Predicted(unittest.TestCase):
    def row(self, **changes):
        row = predict.Row((64, 4, 0))
        row.expected = {**dict.fromkeys(predict.FRAMES, 4), "messages": 24, "connections": 12, "fence_bytes": 1000, "done_bytes": 4000}
        row.counts = {**row.expected, **changes}
        row.predicted, row.job.least = 1.0, 1.0
        return row

    def test_equal_counts_and_near_times_are_right(self):
        row = self.row()
        row.job.least = 0.81
        self.assertEqual(row.wrong(), [])

    def test_a_time_beyond_25_percent_is_named(self):
        for measured in (0.79, 1.34):
            row = self.row()
            row.job.least = measured
            self.assertEqual(len(row.wrong()), 1)
            self.assertIn("64 ranks on 4 hosts", row.wrong()[0])

    def test_a_message_more_or_less_is_named(self):
        for messages in (23, 25):
            self.assertIn(f"messages: predicted 24, in the job {messages}", self.row(messages=messages).wrong()[0])

    def test_counts_of_a_job_that_was_disturbed_are_taken_again(self):
        for disturbed, wrong in ((2, 0), (3, 1)):
            row, jobs = self.row(), iter([13] * disturbed + [0] * 3)
            row.count = lambda bench, row=row, jobs=jobs: row.counts.update(fence_bytes=1000 + next(jobs))
            row.count_calmly(None)
            self.assertEqual(len(row.wrong()), wrong)

    def test_a_job_that_took_longer_is_taken_again(self):
        for disturbed, wrong in ((2, 0), (4, 1)):
            row, times = self.row(), iter([2.0] * disturbed + [1.0] * 4)
            row.job.least = 2.0
            row.job.run = lambda bench, row=row, times=times: setattr(row.job, "least", min(row.job.least, next(times)))
            row.time_calmly(None)
            self.assertEqual(len(row.wrong()), wrong)

    def test_bytes_may_be_fewer_by_words_that_are_equal_by_chance(self):
        self.assertEqual(self.row(fence_bytes=1000 - 4 * 15).wrong(), [])
        self.assertEqual(len(self.row(fence_bytes=1000 - 4).wrong()), 1)
        self.assertEqual(len(self.row(fence_bytes=1000 + 4 * 15).wrong()), 1)
        self.assertEqual(len(self.row(fence_bytes=1000 - 5 * 4 * 15).wrong()), 1)


class Written(unittest.TestCase):
    def setUp(self):
        self.top = tempfile.TemporaryDirectory()
        self.addCleanup(self.top.cleanup)
        for path in ("doc/scaling.md", "doc/scaling/costs.txt", "spawner/simulate/costs.def"):
            os.makedirs(os.path.dirname(self.path(path)), exist_ok=True)
            with open(self.path(path), "w", encoding="utf-8") as file:
                file.write(read(path))
        before = os.environ.get("top_srcdir")
        self.addCleanup(lambda: os.environ.pop("top_srcdir") if before is None else os.environ.update(top_srcdir=before))
        os.environ["top_srcdir"] = self.top.name

    def path(self, name):
        return os.path.join(self.top.name, name)

    def text(self, name):
        with open(self.path(name), encoding="utf-8") as file:
            return file.read()

    def test_all_costs_and_the_table_are_written(self):
        measured = costs.Costs()
        for name, (value, _, _) in measured.known.items():
            if name not in costs.UNMEASURED:
                measured.add(name, 2.5 * value + 3, "a test")
        job.write_files({**predict.updated([Predicted().row(pmix_gets=7)]), **measured.texts(self.top.name, "1999-12-31, a machine")})
        definitions, file = self.text("spawner/simulate/costs.def"), self.text("doc/scaling/costs.txt")
        self.assertEqual(costs.disagreements(definitions, file), [])
        self.assertIn("# Measured 1999-12-31, a machine\n", file)
        # What was not measured has its old value and comment.
        self.assertIn(re.search(r"^host.dial .*\n", read("doc", "scaling", "costs.txt"), re.M).group(0), file)
        page = self.text("doc/scaling.md")
        table = page[page.index(predict.BEGIN):page.index(predict.END)]
        self.assertEqual(len([line for line in table.splitlines() if line.startswith("| 64 | 4 |")]), 1)
        self.assertNotIn("| 1024 |", table)
        self.assertEqual(page.partition(predict.BEGIN)[0], read("doc", "scaling.md").partition(predict.BEGIN)[0])
        self.assertEqual(page.partition(predict.END)[2], read("doc", "scaling.md").partition(predict.END)[2])

    def test_a_cost_that_is_0_keeps_its_value(self):
        measured = costs.Costs()
        measured.add("message", 4321, "a test")
        measured.add("peer", -1, "a test")
        with contextlib.redirect_stderr(io.StringIO()) as said:
            texts = measured.texts(self.top.name, "1999-12-31, a machine")
        self.assertIn("peer: 0 in this run", said.getvalue())
        file, definitions = texts[self.path("doc/scaling/costs.txt")], texts[self.path("spawner/simulate/costs.def")]
        self.assertEqual(costs.of_file(file)["peer"], costs.of_file(read("doc", "scaling", "costs.txt"))["peer"])
        self.assertEqual(costs.built_in(definitions)["peer"], measured.known["peer"])
        self.assertEqual(costs.of_file(file)["message"], (4321, "ns"))

    def test_an_error_leaves_all_files(self):
        with self.assertRaises(OSError):
            job.write_files({self.path("doc/scaling.md"): "new", self.path("missing/costs.txt"): "new"})
        self.assertEqual(self.text("doc/scaling.md"), read("doc", "scaling.md"))
        self.assertEqual(sorted(os.listdir(self.path("doc"))), ["scaling", "scaling.md"])

    def test_a_page_without_the_table_is_refused(self):
        with open(self.path("doc/scaling.md"), "w", encoding="utf-8") as file:
            file.write("nothing\n")
        with self.assertRaisesRegex(job.BenchError, "there is no line"):
            predict.updated([])

    def test_a_job_that_hangs_is_one_line(self):
        self.assertEqual(job.said(subprocess.TimeoutExpired(["a", "b"], 300)), "a b: not over after 300 s")


if __name__ == "__main__":
    unittest.main()
