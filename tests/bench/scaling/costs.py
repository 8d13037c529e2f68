# SPDX-License-Identifier: BSD-3-Clause
# What things cost on this machine, for simulations of larger jobs: doc/scaling/costs.txt, lines "name value unit  # comment". All are measured
# with jobs of 16 and 64 ranks, by programs that call one function of the launcher, the library or libpmix again and again, and by both
# together: what a whole job of 64 ranks takes beyond one of 16 and beyond what the other costs explain is the cost of a rank. doc/scaling.md
# ("How costs are measured") has each. Names that a reader of the file does not know are no error there, and costs that are not here keep
# its own values.
import json
import os
import re
import subprocess
import sys

from growth import line
from job import BenchError, children, virtual

HEAD = """# What things cost, measured by make bench-scaling SCALING=--update, or bench-simulate SIMULATED=--update. name value unit  # comment
# CPU times are user and system, the least of several runs. doc/scaling.md says how each is measured.
"""
FEW, MANY = 16, 64  # ranks of the jobs: larger ones are predicted, not fitted
TURNS = 5
LARGE, CROWD = 100000, 1024  # ranks of the job, and of the host, in programs that measure what a rank costs for each other one

# Names of costs.def that may be missing in the file, with the reason.
UNMEASURED = {"host.dial": "takes an sshd: --dial, or tests/bench/dial",
              "info.words": "a count, which tests/job/simulate.sh holds to the byte"}
# By how much the values built in may differ from those of the file: times do from run to run, and with other work on the machine.
FACTORS = {"ns": 2.0, "B": 1.2}


def built_in(text):
    """{name: (value, unit, sentence)} of costs.def."""
    found = re.findall(r'^SIM_COST\(\w+, "([^"]+)", (\d+), "(\w+)", "([^"]+)"\)', text, re.M)
    return {name: (float(value), unit, sentence) for name, value, unit, sentence in found}


def read(*path):
    with open(os.path.join(os.environ["top_srcdir"], *path), encoding="utf-8") as file:
        return file.read()


def of_file(text):
    """The same of a file of costs."""
    return {words[0]: (float(words[1]), words[2]) for words in (one.partition("#")[0].split() for one in text.splitlines()) if words}


def rounded(value):
    """Three digits: more are noise."""
    return round(value, 3 - len(str(int(value)))) if value >= 1000 else value


def with_values(definitions, values):
    """costs.def with these values built in."""
    for name, value in values.items():
        definitions = re.sub(rf'^(SIM_COST\(\w+, "{re.escape(name)}", )\d+', rf"\g<1>{rounded(value)}", definitions, flags=re.M)
    return definitions


def disagreements(definitions, file):
    """Lines about costs that are built in with another value than the file has, or that it does not have without a reason."""
    inside, outside, wrong = built_in(definitions), of_file(file), []
    for name, (value, unit, _) in inside.items():
        if name not in outside:
            wrong += [] if name in UNMEASURED else [f"{name}: not in doc/scaling/costs.txt, and costs.py has no reason why"]
            continue
        measured, other = outside[name]
        factor = FACTORS.get(unit, 1.0)
        if unit != other:
            wrong.append(f"{name}: {unit} in costs.def, {other} in doc/scaling/costs.txt")
        elif not measured / factor <= value <= measured * factor:
            wrong.append(f"{name}: {value:g} {unit} in costs.def, {measured:g} in doc/scaling/costs.txt: not within a factor of {factor:g}")
    wrong += [f"{name}: in UNMEASURED, but not in costs.def" for name in UNMEASURED if name not in inside]
    return wrong


class Job:
    """The same job for the launcher and for the simulation; `nbrhd` is GASNET_SUPERNODE_MAXSIZE."""

    def __init__(self, ranks, hosts, nbrhd, calls=("barrier:2", "reduce_all:8")):
        self.ranks, self.hosts, self.nbrhd, self.calls = ranks, hosts, nbrhd, calls
        self.least = 1e9  # CPU seconds of a run without options

    def environment(self):
        return {**os.environ, "GASNET_SUPERNODE_MAXSIZE": str(self.nbrhd), "GASNET_CONNECT_STATIC": "0", "GASNET_QUIET": "1", "JOB_DEADLINE": "280"}

    def run(self, bench, options=(), settings=None):
        """What it printed."""
        program = bench.built("tests/job/simulated-seq")
        command = [bench.launcher, *options, "-n", str(self.ranks), *virtual(self.ranks, self.hosts), program, *self.calls]
        before = children()
        done = subprocess.run(command, env={**self.environment(), **(settings or {})}, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, text=True, timeout=300, check=False)
        if done.returncode:
            raise BenchError(f"{' '.join(command)}: status {done.returncode}: {done.stderr.strip()[-300:]}")
        if not options:
            self.least = min(self.least, children() - before)
        return done

    def simulate(self, bench, costs):
        """The object that --simulate prints, with the costs of a file."""
        words = ",".join(["start=fork", *self.calls, f"costs={costs}"])
        command = [bench.launcher, "-n", str(self.ranks), "-N", str(self.hosts), f"--simulate={words}", "--json"]
        done = subprocess.run(command, env=self.environment(), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=60, check=False)
        if done.returncode:
            raise BenchError(f"{' '.join(command)}: status {done.returncode}: {done.stderr.strip()[-300:]}")
        return json.loads(done.stdout)


NEAR_FEW, NEAR_MANY, NET_MANY = Job(FEW, 1, 0), Job(MANY, 1, 0), Job(MANY, 1, 1)
HOSTS_FEW, HOSTS_MANY = Job(FEW, 4, 0), Job(FEW, 16, 1)
JOBS = (NEAR_FEW, NEAR_MANY, NET_MANY, HOSTS_FEW, HOSTS_MANY)


def job(ranks, hosts, nbrhd):
    """One of those, if it is such a job: what they measure is for both."""
    return next((one for one in JOBS if (one.ranks, one.hosts, one.nbrhd) == (ranks, hosts, nbrhd)), None) or Job(ranks, hosts, nbrhd)


class Costs:
    def __init__(self, beside=()):
        """`beside`: functions that run a job each, in turns with ours, so that other load meets both."""
        self.values, self.how, self.beside = {}, {}, beside
        self.known = built_in(read("spawner", "simulate", "costs.def"))

    def add(self, name, value, how):
        self.values[name], self.how[name] = max(0, round(value)), how

    def measure(self, bench, turns=TURNS, dial=False):
        if dial:  # first: it is what may be missing
            self.of_ssh(bench)
        self.of_programs(bench)
        self.of_requests(bench)
        self.of_connections(bench)
        self.of_messages(bench)
        self.of_launcher(bench)
        self.of_jobs(bench, turns)

    # ---- programs that call one function

    @staticmethod
    def program(bench, *words):
        """The least of each number that a program prints, by the word before it, in three runs."""
        least = {}
        for _ in range(3):
            command = [bench.built(words[0]), *words[1:]]
            done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=120, check=False)
            if done.returncode:
                raise BenchError(f"{' '.join(words)}: status {done.returncode}: {done.stderr.strip()[-300:]}")
            printed = done.stdout.split()
            for name, value in zip(printed[::2], printed[1::2]):
                least[name] = min(float(value), least.get(name, float(value)))
        return least

    def of_programs(self, bench):
        for program, words in (("frame_steps", []), ("info_steps", [str(LARGE)])):
            for name, value in self.program(bench, f"tests/bench/{program}", *words).items():
                self.add(name, value, " ".join([program, *words]))
        few, many = (self.program(bench, "tests/launcher/registration", "job", str(n), "128") for n in (LARGE // 10, LARGE))
        more = LARGE - LARGE // 10
        self.add("server.peer", (many["ns"] - few["ns"]) / more, "registration")
        self.add("launcher.peer", (many["bytes"] - few["bytes"]) / more, "registration")
        few, many = (self.program(bench, "tests/launcher/registration", "clients", str(n)) for n in (FEW, CROWD))
        more = CROWD - FEW
        self.add("rank.local", (many["ns"] + many["server"] - few["ns"] - few["server"]) / more, f"registration, {FEW} and {CROWD} ranks")

    def of_ssh(self, bench):
        command = [os.path.join(os.environ["top_srcdir"], "tests", "bench", "dial")]
        done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=300, check=False)
        if done.returncode:
            raise BenchError(done.stderr.strip()[-300:])
        self.add("host.dial", float(done.stdout.split()[1]), "dial")

    def of_requests(self, bench):
        """Of several jobs the least of each kind."""
        least = {}
        for hosts in (1, 4, 16):
            for _ in range(TURNS):
                ranks = MANY if hosts == 1 else FEW
                for words in map(str.split, bench.run(ranks, [bench.built("tests/bench/pmix_steps")], options=virtual(ranks, hosts))):
                    key = words[0], hosts
                    least[key] = min(float(words[2]), least.get(key, 1e18))
        self.add("rank.fence", least["fences", 1], f"pmix_steps, {MANY} ranks")
        self.add("pmix.get", least["gets", 4], f"pmix_steps, {FEW} ranks on 4 hosts")
        self.add("host.guard", (least["head", 16] - least["head", 4]) / 12, "pmix_steps, 4 and 16 hosts")

    def of_connections(self, bench, ranks=MANY):
        """Jobs that differ in whether all connect to all, in turns."""
        program, least, ends = bench.built("tests/bench/growth"), [1e9, 1e9], [0, 0]
        for _ in range(TURNS):
            for i, more in enumerate(([], ["to-all"])):
                lines, seconds = bench.timed(ranks, [program, "operations", *more])
                least[i] = min(seconds, least[i])
                ends[i] = sum(rank["connections"] for rank in bench.words(lines))
        more = ends[1] - ends[0]
        self.add("connection", 1e9 * (least[1] - least[0]) / more, f"growth, {ranks} ranks that connect, and send a Short and its reply")

    def of_messages(self, bench, few=2, many=20002):
        """A barrier of two ranks is a message in each direction, and has four ends; of two neighbours, a value up and one down."""
        for name, nbrhd in (("message", 1), ("flag", 0)):
            jobs = [Job(2, 1, nbrhd, (f"barrier:{times}",)) for times in (few, many)]
            for _ in range(TURNS):
                for one in jobs:
                    one.run(bench)
            each = (jobs[1].least - jobs[0].least) / (many - few)
            self.add(name, 1e9 * each / 4, f"barriers of {'neighbours' if name == 'flag' else 'two ranks'}")

    def of_launcher(self, bench):
        """What the guard and the server have used when all ranks have met in a barrier."""
        points = {"us": [], "guard": [], "KiB": []}
        for ranks in (FEW, FEW * 2, MANY):
            runs = []
            for _ in range(3):
                lines = bench.run(ranks, [bench.built("tests/job/start_growth-seq")])
                runs.append(next(bench.amounts(one) for one in lines if one.startswith("launcher")))
            for name, of in points.items():
                of.append((ranks, min(run[name] for run in runs)))
        guard, both = line(points["guard"])[1], line(points["us"])[1]
        offset, slope = line(points["KiB"])[:2]
        self.add("rank.guard", 1000 * guard, "start_growth")
        self.add("rank.server", 1000 * (both - guard), "start_growth")
        self.add("launcher.rank", 1024 * slope, "start_growth")
        self.add("launcher.host", 1024 * offset, "start_growth")

    # ---- whole jobs, and what the simulation says about them without the costs that are sought

    def of_jobs(self, bench, turns):
        least = {FEW: 1e9, MANY: 1e9}
        for _ in range(turns):
            for _ in range(2):
                for ranks in least:
                    least[ranks] = min(least[ranks], bench.timed(ranks, [bench.built("tests/bench/pmix_start")], attempts=4)[1])
                for one in JOBS:
                    one.run(bench)
            for run in self.beside:
                run(bench)
        alone = 1e9 * (least[MANY] - least[FEW]) / (MANY - FEW)
        known = self.values["rank.local"] * (FEW + MANY) + self.values["rank.server"] + self.values["rank.guard"]
        self.add("rank.pmix", alone - known, "pmix_start")
        self.residue(bench, "host.server", HOSTS_FEW, HOSTS_MANY, 12, "16 ranks on 4 and 16 hosts")
        self.residue(bench, "rank.library", NEAR_FEW, NEAR_MANY, MANY - FEW, f"{FEW} and {MANY} neighbours")
        # Of the same size, because ranks that wait over the network poll more on a machine that is busy.
        self.residue(bench, "rank.device", NEAR_MANY, NET_MANY, MANY, f"{MANY} neighbours and {MANY} ranks over softhca")

    def residue(self, bench, cost, one, other, more, how):
        """What the second job takes beyond the first one, and the simulation does not explain."""
        for name in ("host.server", "rank.library", "rank.device"):
            if name not in self.values or name == cost:
                self.add(name, 0, how)
        self.write(bench.path("costs"))
        says = [each.simulate(bench, bench.path("costs"))["cpu"]["all"] for each in (one, other)]
        self.add(cost, 1e9 * (other.least - one.least - says[1] + says[0]) / more, how)

    def lines(self, values=None):
        return [f"{name} {value} {self.known[name][1]}  # {self.known[name][2]}: {self.how[name]}" for name, value in (values or self.values).items()]

    def write(self, path):
        with open(path, "w", encoding="utf-8") as file:
            file.write("".join(one + "\n" for one in self.lines()))

    def texts(self, top, measured):
        """{path: text} of doc/scaling/costs.txt, and of costs.def with the same values. What was not measured now keeps its line; so does what
        came out as 0, a difference that other work has hidden."""
        path, definitions = os.path.join(top, "doc", "scaling", "costs.txt"), os.path.join(top, "spawner", "simulate", "costs.def")
        with open(path, encoding="utf-8") as file:
            old = {one.split()[0]: one for one in file.read().splitlines() if one.split() and one[0] != "#"}
        good = {name: value for name, value in self.values.items() if value > 0}
        kept = [one for name, one in old.items() if name not in good and (name in UNMEASURED or name in self.values)]
        for name in self.values.keys() - good.keys():
            print(f"{name}: 0 in this run, so that it keeps its value: other work has hidden it", file=sys.stderr)
        with open(definitions, encoding="utf-8") as file:
            text = file.read()
        return {path: HEAD + f"# Measured {measured}\n" + "".join(one + "\n" for one in self.lines(good) + kept),
                definitions: with_values(text, good)}
