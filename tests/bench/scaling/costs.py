# SPDX-License-Identifier: BSD-3-Clause
# What things cost on this machine, for simulations of larger jobs: doc/scaling/costs.txt, lines "name value unit  # comment". Each is the slope
# of a line through jobs of several sizes, or of two jobs that differ in one thing. Names that a reader of the file does not know are
# no error there, and costs that are not here keep its own values.
from growth import line

HEAD = """# What things cost, measured by make bench-scaling SCALING=--update. name value unit  # comment
# CPU times are user and system, of whole jobs on one host, for each further rank.
"""
LEAST = 16  # ranks; smaller jobs have few ticks of the clock


class Costs:
    def __init__(self):
        self.alone, self.launcher_ms, self.launcher_kib = [], [], []
        self.smallest = None  # (ranks, CPU ms of PMIx alone): most of it is the host's
        self.found = []

    def of_ranks(self, ranks, curves, launcher):
        """Takes what the sweep over ranks has just measured."""
        alone = ranks, curves.points["CPU ms of PMIx alone"][-1][1]
        self.smallest = self.smallest or alone
        if ranks < LEAST:
            return
        self.alone.append(alone)
        self.launcher_ms.append((ranks, launcher["ms"]))
        self.launcher_kib.append((ranks, launcher["KiB"]))

    def add(self, name, value, unit, comment):
        self.found.append(f"{name} {max(0, round(value))} {unit}  # {comment}")

    def measure(self, bench):
        """The rest, with jobs of their own."""
        if len(self.alone) < 2:
            return
        launcher, pmix = line(self.launcher_ms)[1], line(self.alone)[1]
        self.add("rank.pmix", 1e6 * (pmix - launcher), "ns", "CPU time of a rank for exec, PMIx_Init, a fence and PMIx_Finalize")
        self.add("rank.server", 1e6 * launcher, "ns", "CPU time of the launcher's processes for a rank of their host: server and guard")
        self.add("host.server", 1e6 * (self.smallest[1] - self.smallest[0] * pmix), "ns", "CPU time of the launcher's processes of a host beside that for ranks")
        self.add("rank.guard", 0, "ns", "in rank.server")
        sizes = [ranks for ranks, _ in self.alone][-3:]
        near, net = self.starts(bench, sizes, "0"), self.starts(bench, sizes, "1")
        self.add("rank.library", 1e6 * (near - pmix), "ns", "CPU time of a rank for the library, without a device: hello of neighbours less PMIx")
        self.add("rank.device", 1e6 * (net - near), "ns", "CPU time of a rank that opens a device, in addition: softhca")
        offset, slope = line(self.launcher_kib)[:2]
        self.add("launcher.rank", 1024 * slope, "B", "memory of the launcher for a rank of its host")
        self.add("launcher.host", 1024 * offset, "B", "memory of the launcher without ranks")
        self.of_connections(bench)
        self.of_messages(bench)

    @staticmethod
    def starts(bench, sizes, neighbours):
        """CPU ms of hello for each further rank."""
        points = []
        for ranks in sizes:
            command = ["env", f"GASNET_SUPERNODE_MAXSIZE={neighbours}", bench.built("tests/bench/start")]
            points.append((ranks, 1000 * min(bench.timed(ranks, command)[1] for _ in range(2))))
        return line(points)[1]

    def of_connections(self, bench, ranks=32):
        """Jobs that differ in whether all connect to all."""
        program, took, ends = bench.built("tests/bench/growth"), [], []
        for more in ([], ["to-all"]):
            runs = [bench.timed(ranks, [program, "operations", *more]) for _ in range(2)]
            took.append(min(seconds for _, seconds in runs))
            ends.append(sum(rank["connections"] for rank in bench.words(runs[0][0])))
        self.add("connection", 1e9 * (took[1] - took[0]) / (ends[1] - ends[0]), "ns", "CPU time to make one end of a connection, and a Short and its reply")

    def of_messages(self, bench):
        """A barrier of two ranks is a message in each direction at the same time; of two neighbours, a value up and one down."""
        network = min(bench.words(bench.operations(2))[0]["barrier.us"] for _ in range(5))
        memory = min(bench.words(bench.operations(2, 1))[0]["barrier.us"] for _ in range(5))
        self.add("message", 1000 * network / 2, "ns", "CPU time of a message at each end: half a barrier of two ranks over the network")
        self.add("flag", 1000 * memory / 2, "ns", "CPU time to pass a value to a neighbour: half a barrier of two neighbours")

    def text(self, measured):
        return HEAD + f"# Measured {measured}\n" + "".join(one + "\n" for one in self.found)
