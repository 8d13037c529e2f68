# SPDX-License-Identifier: BSD-3-Clause
# Jobs of bench-scaling: starts them over the network, with connections on demand, and reads what they print. A job that fails or hangs ends
# the bench with a line.
import datetime
import os
import resource
import subprocess

# As in large jobs at all sizes: receive queues are shared, and have as few buffers for each rank as 256 ranks have by default. With more, requests
# are acknowledged together or by the next message, and small jobs would send fewer. Each end of a connection has a queue pair of its own (no XRC).
SETTINGS = {"GASNET_SUPERNODE_MAXSIZE": "1", "GASNET_CONNECT_STATIC": "0", "GASNET_USE_FIREHOSE": "0", "GASNET_USE_SRQ": "1",
            "GASNET_USE_XRC": "0", "GASNET_QUIET": "1", "JOB_DEADLINE": "280", "SOFTHCA_SEED": "0"}
BUFFERS, BUFFERS_LEAST = 4, 16  # of each rank, of a job
LIMIT = 300  # seconds


def virtual(ranks, hosts):
    """Options for virtual hosts of this machine; none for this host alone."""
    return ["-H", ",".join(f"=n{i}:{ranks // hosts}" for i in range(hosts))] if hosts > 1 else []


class BenchError(Exception):
    """One line: which job, and what it said."""


def children():
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def machine():
    with open("/proc/cpuinfo", encoding="utf-8") as file:
        model = next((line.split(": ", 1)[1].strip() for line in file if line.startswith("model name")), "unknown")
    return f"{datetime.date.today()}, {model}, {os.cpu_count()} CPUs, softhca"


def write_files(texts):
    """{path: text}: all are written beside the old ones before the first of these is replaced, so that an error leaves those as they are."""
    try:
        for path, text in texts.items():
            with open(path + ".new", "w", encoding="utf-8") as file:
                file.write(text)
        for path in texts:
            os.replace(path + ".new", path)
    finally:
        for path in texts:
            if os.path.exists(path + ".new"):
                os.remove(path + ".new")


def said(error):
    """One line about an error that ends a bench."""
    if isinstance(error, subprocess.TimeoutExpired):
        return f"{' '.join(error.cmd)}: not over after {error.timeout:g} s"
    return f"{error}"


# What a bench ends with one line for: not mistakes in its own code
ERRORS = (BenchError, OSError, subprocess.TimeoutExpired)


class Bench:
    def __init__(self, work, plant):
        self.work, self.plant, self.costs = work, plant, None
        self.launcher, self.top = os.environ["GASNETRUN"], os.environ["top_builddir"]

    def path(self, name):
        return os.path.join(self.work, name)

    def built(self, path):
        return os.path.join(self.top, path)

    def run(self, ranks, command, settings=None, options=()):
        """The lines that the job prints."""
        buffers = {"GASNET_RBUF_COUNT": str(max(BUFFERS * ranks, BUFFERS_LEAST))}
        full = [self.launcher, *options, "-n", str(ranks), *command]
        try:
            done = subprocess.run(full, env={**os.environ, **SETTINGS, **buffers, **(settings or {})}, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                  stderr=subprocess.PIPE, text=True, timeout=LIMIT, check=False)
        except subprocess.TimeoutExpired:
            raise BenchError(f"{' '.join(full)}: not over after {LIMIT} s") from None
        if done.returncode:
            raise BenchError(f"{' '.join(full)}: status {done.returncode}: {done.stderr.strip()[-300:]}")
        return done.stdout.splitlines()

    def timed(self, ranks, command, attempts=1):
        """(lines, CPU seconds, user and system, of launcher and ranks)"""
        before = children()
        try:
            lines = self.run(ranks, command)
        except BenchError as error:
            if attempts == 1:
                raise
            print(f"once more: {error}", flush=True)
            return self.timed(ranks, command, attempts - 1)
        return lines, children() - before

    def operations(self, ranks, hosts=None):
        """Lines of growth.c; on virtual hosts, whose ranks share memory, if their number is given."""
        command = [self.built("tests/bench/growth"), "operations", *([self.plant] if self.plant else [])]
        if not hosts:
            return self.run(ranks, command)
        return self.run(ranks, command, {"GASNET_SUPERNODE_MAXSIZE": "0"}, virtual(ranks, hosts))

    @staticmethod
    def words(lines):
        """[{word: value}] by rank, of lines "rank 0 word value word value"."""
        of = {}
        for line in lines:
            words = line.split()
            if words[:1] == ["rank"]:
                of[int(words[1])] = {name: float(value) for name, value in zip(words[2::2], words[3::2])}
        return [of[rank] for rank in sorted(of)]

    @staticmethod
    def amounts(line):
        """{unit: value} of "rank 3: 1 bytes, 2 reads"."""
        parts = [part.split() for part in line.split(": ", 1)[1].split(", ")]
        return {unit: float(value) for value, unit in parts}
