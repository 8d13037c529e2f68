#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
# Output of the other libraries' programs, recorded, is read for what it says; output in which nothing is found is refused with its last
# line; a table puts rows first in which another one is faster; libraries that are not installed, fail or print nonsense are named, and
# the others are measured all the same.
import json
import os
import stat
import subprocess
import sys
import tempfile
import unittest

sys.dont_write_bytecode = True
HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)

import parse
import table
import tools
from parse import Unreadable


def recorded(name):
    with open(os.path.join(HERE, "recorded", name), encoding="utf-8") as file:
        return file.read()


class Parsers(unittest.TestCase):
    def refused(self, words, function, *arguments):
        with self.assertRaises(Unreadable) as raised:
            function(*arguments)
        for word in words:
            self.assertIn(word, str(raised.exception))

    def test_ucx_times_and_rates(self):
        found = parse.ucx(recorded("ucx.txt"), [("put-pong", 8)])
        self.assertEqual(found["put-pong", 8], 0.055)
        self.assertEqual(found["message", 8], 5.608)
        self.assertAlmostEqual(found["puts", 8], 1 / 105.146754)
        self.assertAlmostEqual(found["get", 8], 1 / 67.595552)
        self.assertAlmostEqual(found["gets", 1048576], 1e6 / 49926)
        self.assertAlmostEqual(found["messages", 1048576], 1e6 / 13578)
        self.assertEqual(len(found), 6)

    def test_libfabric_takes_the_column_by_its_name(self):
        self.assertEqual(parse.libfabric(recorded("libfabric.txt"), 8), 0.36)
        self.assertEqual(parse.libfabric(recorded("libfabric-1m.txt"), 1048576), 76.57)

    def test_mpi(self):
        found = parse.rows(recorded("mpi.txt"), [("put", 8)], "mpi_pingpong")
        self.assertEqual(found, {("put", 8): 0.01392, ("put", 1048576): 16.67833, ("put-pong", 8): 0.32851, ("messages", 65536): 5.63846})

    def test_nothing_found_is_refused(self):
        for text in ("", "\n", "unknown option\n", recorded("ucx-refused.txt")):
            last = text.strip()[:60] or "(nothing)"
            self.refused(["ucx_perftest", last], parse.ucx, text, [])
            self.refused(["fi_pingpong", last], parse.libfabric, text, 8)
            self.refused(["mpi_pingpong", last], parse.rows, text, [], "mpi_pingpong")

    def test_a_row_that_lacks_is_named(self):
        wanted = [("put-pong", 8), ("put-pong", 512), ("get", 512)]
        self.refused(["put-pong 512 and others", "messages:1048576"], parse.ucx, recorded("ucx.txt"), wanted)
        self.refused(["message 65536"], parse.rows, recorded("mpi.txt"), [("message", 65536)], "mpi_pingpong")

    def test_zero_and_words_are_no_times(self):
        for time in ("0", "0.000", "-1", "nan", "inf", "fast"):
            self.refused(["put 8"], parse.rows, f"put 8 {time}\n", [("put", 8)], "mpi_pingpong")
        for line in ("puts:8,10,0.1,0.1,0.1,9,9,0,0", "put-pong:8,10,0.000,0.1,0.1,9,9,8,8", "put-pong:8,10,?,0.1,0.1,9,9,8,8"):
            self.refused([line], parse.ucx, line, [("puts" if "puts" in line else "put-pong", 8)])
        self.refused(["message 8"], parse.libfabric, recorded("libfabric.txt").replace("0.36", "0.00"), 8)
        self.refused(["message 8"], parse.libfabric, recorded("libfabric.txt").replace("usec/xfer", "ns/xfer"), 8)


class Table(unittest.TestCase):
    def row(self, operation, size, ours, **others):
        times = {"Trunkline": ours, **others}
        return table.Row(tools.SHARED, operation, size, {name: dict(enumerate(values)) for name, values in times.items()})

    def test_units(self):
        self.assertAlmostEqual(table.in_unit(0.5, "put", 8), 500)
        self.assertAlmostEqual(table.in_unit(0.5, "puts", 4096), 2000)
        self.assertAlmostEqual(table.in_unit(0.5, "gets", 65536), 131072)

    def test_slower_is_more_time_or_a_lower_rate(self):
        for operation, ours, is_slower in (("put", 2, True), ("put", 0.5, False), ("puts", 2, True), ("puts", 0.5, False)):
            row = self.row(operation, 8, [ours] * 3, A=[1] * 3, B=[9] * 3)
            self.assertEqual((row.fastest, row.is_slower, row.is_sure()), ("A", is_slower, True))
            self.assertAlmostEqual(row.loss(), ours)

    def test_ratios_are_of_the_same_turn(self):
        row = table.Row(tools.SHARED, "put", 8, {"Trunkline": {0: 1, 1: 10, 2: 100}, "A": {1: 20, 2: 50}})
        self.assertEqual((row.ratio["q1"], row.ratio["q3"]), (0.5, 2))
        self.assertFalse(row.is_sure())

    def test_nobody_else(self):
        row = self.row("put", 8, [1, 2, 3])
        self.assertEqual((row.fastest, row.ratio, row.is_slower), (None, None, None))


class Runs(unittest.TestCase):
    """measure itself, with programs that print what was recorded, or nonsense."""

    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)

    def program(self, name, text):
        path = os.path.join(self.folder.name, name)
        with open(path, "w", encoding="utf-8") as file:
            file.write("#!/bin/sh\n" + text)
        os.chmod(path, stat.S_IRWXU)
        return path

    def measure(self, *options):
        lines = "\n".join(f"{operation} {size} {1 + size / 1000}" for operation, size in tools.all_rows())
        env = {**os.environ, "PATH": self.folder.name, "GASNETRUN": self.program("run", f"echo '{lines}'\n"), "top_builddir": "/none"}
        done = subprocess.run([sys.executable, os.path.join(HERE, "measure"), "--turns", "2", *options], env=env, stdin=subprocess.DEVNULL,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=60, check=False)
        return done.returncode, done.stdout

    def mpi(self, text):
        self.program("mpicc.mpich", "exit 0\n")
        self.program("mpirun.mpich", f'case $* in --version) echo "HYDRA build"; echo " Version: 4.0.2" ;; *) {text} ;; esac\n')

    def test_without_others_ours_is_measured_and_they_are_named(self):
        path = os.path.join(self.folder.name, "out.json")
        status, text = self.measure("--json", path)
        self.assertEqual(status, 0, text)
        for name, package in (("UCX", "ucx-utils"), ("libfabric", "libfabric-bin"), ("Open MPI", "libopenmpi-dev"), ("MPICH", "libmpich-dev")):
            self.assertRegex(text, f"(?m)^{name}: left out: not installed: .*{package}")
        self.assertIn("Others are faster in 0 of 70 rows.", text)
        with open(path, encoding="utf-8") as file:
            results = json.load(file)["results"]
        self.assertEqual((len(results), results[0]["ratio"], results[0]["values"]["Trunkline"]["median"]), (70, None, 1008))

    def test_rows_of_a_faster_one_come_first(self):
        lines = "\n".join(f"{operation} {size} {0.5 if operation == 'get' and size == 512 else 9e6}" for operation, size in tools.all_rows())
        self.mpi(f"echo '{lines}'")
        status, text = self.measure()
        self.assertEqual(status, 0, text)
        first, rest = text.split("Others are faster in 2 of 70 rows:")[1].split("The other 68 of 70 rows:")
        self.assertRegex(first, r"shared memory get +512 ns +1512.0 +500.0 +3.024 \(3.024-3.024\) to MPICH\n")
        self.assertNotRegex(rest, r"get +512 ")
        self.assertIn("Beside MPICH 4.0.2\n", text)
        page = os.path.join(self.folder.name, "page")
        with open(page, "w", encoding="utf-8") as file:
            file.write("## Puts (`make bench-peers`)\n\n" + text)
        with open(page + "-later", "w", encoding="utf-8") as file:
            file.write("## Puts (`make bench-peers`)\n\n" + text.replace("3.024 (3.024-3.024)", "6.048 (6.048-6.048)"))
        done = subprocess.run([sys.executable, os.path.join(HERE, "..", "compare"), page, page + "-later"], stdout=subprocess.PIPE, text=True,
                              timeout=60, check=False)
        self.assertIn("bench-peers, Trunkline to the fastest other one: shared memory get 512 ns, ratio 1: 3.024 -> 6.048", done.stdout)

    def test_nonsense_and_failures_are_named(self):
        for words, why in (("echo fast", "mpi_pingpong printed no time of put 8 and others; its last line: fast"),
                           ("echo ---- >&2; echo no fabric >&2; exit 3", "mpirun.mpich ended with status 3: no fabric")):
            self.mpi(words)
            status, text = self.measure()
            self.assertEqual(status, 0, text)
            for turn in (1, 2):
                self.assertIn(f"MPICH, network: no numbers of turn {turn}: {why}\n", text)
            self.assertIn("Others are faster in 0 of 70 rows.", text)

    def test_lines_for_the_table_of_neighbours_say_none_and_why(self):
        status, text = self.measure("--lines", "ucx")
        self.assertEqual(status, 0, text)
        self.assertRegex(text, "^none not installed: apt install ucx-utils")


unittest.main()
