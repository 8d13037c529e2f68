# SPDX-License-Identifier: BSD-3-Clause
# The libraries of bench-peers: whether each is installed, its version, and one run of its program between two processes of this host,
# each on a CPU of its own, in shared memory or over loopback. A run gives microseconds of an operation by (operation, bytes), as
# parse.py reads them.
import os
import random
import re
import shutil
import signal
import subprocess
import tempfile
import time

import parse

HERE = os.path.dirname(os.path.abspath(__file__))
SIZES = (8, 512, 4096, 65536, 1048576)
OPERATIONS = ("put", "put-pong", "puts", "get", "gets", "message", "messages")
SHARED, NETWORK = "memory", "network"
LIMIT = 45  # seconds of one run, which takes two at most on an idle machine
PATIENCE = 5  # seconds for a process to end that is asked to
INSTALL = "contrib/install-packages.sh bench"
REFUSED = ("onnection refused", "connect() failed")


class Missing(Exception):
    """One line: why a library has no numbers."""


def cpus():
    """The two CPUs that the processes stay on."""
    mine = sorted(os.sched_getaffinity(0))
    return mine[0], mine[1 % len(mine)]


def all_rows(operations=OPERATIONS):
    return [(operation, size) for operation in operations for size in SIZES]


def why(text):
    """The first words of an error: mpirun draws lines and leaves others empty."""
    lines = [line.strip() for line in text.splitlines() if line.strip(" -=*")]
    return lines[0][:150] if lines else "it said nothing"


def said(command):
    """Output of a short command, or nothing."""
    try:
        done = subprocess.run(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace",
                              timeout=LIMIT, check=False)
        return done.stdout if done.returncode == 0 else ""
    except (OSError, subprocess.TimeoutExpired):
        return ""


def version(pattern, command):
    match = re.search(pattern, said(command))
    return " " + match[1] if match else ""


def end(process):
    """Ends a process that is not over, and what it has started. A launcher that is asked removes its processes' files in /dev/shm."""
    if process.poll() is not None:
        return
    process.terminate()
    try:
        process.wait(PATIENCE)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def run(command, settings=None):
    """(status, output, errors) of a command in a session of its own; nothing of it is left."""
    with tempfile.TemporaryFile("w+", errors="replace") as out, tempfile.TemporaryFile("w+", errors="replace") as errors:
        process = subprocess.Popen(command, env={**os.environ, **(settings or {})}, stdin=subprocess.DEVNULL, stdout=out, stderr=errors,
                                   start_new_session=True)
        try:
            status = process.wait(LIMIT)
        except subprocess.TimeoutExpired:
            raise Missing(f"{os.path.basename(command[0])} was not over after {LIMIT} s") from None
        finally:
            end(process)
        out.seek(0)
        errors.seek(0)
        return status, out.read(), errors.read()


def output(command, settings=None):
    status, text, errors = run(command, settings)
    if status:
        raise Missing(f"{os.path.basename(command[0])} ended with status {status}: {why(errors + text)}")
    return text


def serve(server, client, settings=None):
    """What the client prints. `server(port)` and `client(port)` are commands. The server listens a moment after it was started; where its port
    is taken, it ends at once, and another one is tried."""
    env, process = {**os.environ, **(settings or {})}, None
    deadline = time.monotonic() + LIMIT
    try:
        while True:
            if not process or process.poll() is not None:
                port = random.randrange(20000, 32000)  # below those that the kernel gives to clients
                process = subprocess.Popen(server(port), env=env, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                                           stderr=subprocess.DEVNULL, start_new_session=True)
            time.sleep(0.05)
            status, text, errors = run(client(port), settings)
            if not status:
                return text
            if time.monotonic() > deadline or not any(word in text + errors for word in REFUSED):
                raise Missing(f"{client(port)[0]} ended with status {status}: {why(errors + text)}")
    finally:
        if process:
            end(process)


class Ours:
    name, NOTE = "Trunkline", ""

    def __init__(self, _folder, samples):
        self.program, self.samples = [os.environ["GASNETRUN"], "-n", "2", os.environ["top_builddir"] + "/tests/bench/peers_ours"], samples
        self.version = ""

    def run(self, where):
        settings = {"GASNET_SUPERNODE_MAXSIZE": "0" if where == SHARED else "1"}
        return parse.rows(output([*self.program, *self.samples], settings), all_rows(), "peers_ours")


class Ucx:
    """Over loopback, only tests in which both sides poll. Puts and gets of UCX over tcp are messages, and the target of ucx_perftest's
    one-sided tests waits in poll() with a timeout of 1 ms between two looks for them: a get takes 1.1 ms, which says nothing of UCX."""
    name = "UCX"
    TESTS = {"put-pong": "ucp_put_lat", "puts": "ucp_put_bw", "get": "ucp_get -O 1", "gets": "ucp_get", "message": "ucp_am_lat",
             "messages": "ucp_am_bw"}
    # Operations of each size: some milliseconds of them. One-sided ones between neighbours take nanoseconds.
    COUNTS = {SHARED: (20000, 20000, 10000, 1000, 100), NETWORK: (1000, 1000, 500, 100, 10)}
    # posix needs /dev/shm, sysv does not.
    SETTINGS = {SHARED: {"UCX_TLS": "self,posix,sysv,cma"}, NETWORK: {"UCX_TLS": "self,tcp", "UCX_NET_DEVICES": "lo"}}
    NOTE = ("UCX: no put, because ucx_perftest does not wait until each is at the target; over tcp put-pong and messages only, because the\n"
            "target of its one-sided tests polls once a millisecond")

    def __init__(self, folder, _samples):
        if not shutil.which("ucx_perftest"):
            raise Missing(f"not installed: apt install ucx-utils ({INSTALL})")
        if len(os.sched_getaffinity(0)) < 2:
            raise Missing("one CPU is not enough for ucx_perftest")
        self.version = version(r"ersion ([0-9.]+)", ["ucx_info", "-v"])
        self.batch = os.path.join(folder, "batch")

    def operations(self, where):
        return [name for name in self.TESTS if where == SHARED or name in ("put-pong", "message", "messages")]

    def run(self, where):
        with open(self.batch, "w", encoding="utf-8") as file:
            for name in self.operations(where):
                for size, count in zip(SIZES, self.COUNTS[where]):
                    file.write(f"{name}:{size} -t {self.TESTS[name]} -s {size} -n {count} -w {count // 10}\n")
        command = ["ucx_perftest", "-b", self.batch]
        text = serve(lambda port: [*command, "-p", str(port), "-c", str(cpus()[0])],
                     lambda port: [*command, "-p", str(port), "-c", str(cpus()[1]), "-v", "-f", "localhost"],
                     {"UCX_WARN_UNUSED_ENV_VARS": "n", **self.SETTINGS[where]})
        return parse.ucx(text, all_rows(self.operations(where)))


class Libfabric:
    name = "libfabric"
    PROVIDERS = {SHARED: ("shm", "rdm"), NETWORK: ("tcp", "msg")}
    COUNTS = {SHARED: (20000, 20000, 10000, 500, 50), NETWORK: (1000, 1000, 500, 200, 20)}
    NOTE = "libfabric: half round trips only, because Debian has fi_pingpong but not the fabtests (fi_rma_bw)"

    def __init__(self, _folder, _samples):
        if not shutil.which("fi_pingpong") or not shutil.which("taskset"):
            raise Missing(f"not installed: apt install libfabric-bin util-linux ({INSTALL})")
        self.version = version(r"libfabric: ([0-9.]+)", ["fi_info", "--version"])

    def run(self, where):
        found = {}
        for size, count in zip(SIZES, self.COUNTS[where]):
            provider, kind = self.PROVIDERS[where]
            common = ["fi_pingpong", "-p", provider, "-e", kind, "-I", str(count), "-S", str(size)]
            text = serve(lambda port, c=common: ["taskset", "-c", str(cpus()[0]), *c, "-B", str(port)],
                         lambda port, c=common: ["taskset", "-c", str(cpus()[1]), *c, "-P", str(port), "localhost"])
            found["message", size] = parse.libfabric(text, size)
        return found


class Mpi:
    """mpi_pingpong.c with the compiler and the launcher of one MPI."""
    NOTE = ""

    def __init__(self, folder, samples):
        self.launcher = self.installed("mpirun")
        compiler = self.installed("mpicc")
        if not self.launcher or not compiler:
            raise Missing(f"not installed: apt install {self.PACKAGES} ({INSTALL})")
        program = os.path.join(folder, "pingpong-" + self.SUFFIX)
        status, _, errors = run([compiler, "-O2", "-D_GNU_SOURCE", os.path.join(HERE, "..", "mpi_pingpong.c"), "-o", program])
        if status:
            raise Missing(f"{compiler} can't compile mpi_pingpong.c: {why(errors)} (apt install {self.PACKAGES})")
        self.version = version(self.VERSION, [self.launcher, "--version"])
        self.command, self.folder = [program, *samples], folder

    def installed(self, tool):
        """Debian's name of one among several; else the plain one, if it is this MPI's."""
        if shutil.which(f"{tool}.{self.SUFFIX}"):
            return f"{tool}.{self.SUFFIX}"
        return tool if shutil.which(tool) and re.search(self.VERSION, said(["mpirun", "--version"])) else None

    def run(self, where):
        settings = {"TMPDIR": self.folder, **self.SETTINGS.get(where, {})}
        text = output([self.launcher, *self.OPTIONS[where], "-np", "2", *self.command], settings)
        return parse.rows(text, all_rows(), "mpi_pingpong")


class OpenMpi(Mpi):
    name, SUFFIX, PACKAGES, VERSION = "Open MPI", "openmpi", "openmpi-bin libopenmpi-dev", r"(?:Open MPI\)|OpenRTE\)) ([0-9.]+)"
    # Its own transports, also as root. Windows of processes of one host would be in shared memory without "osc pt2pt".
    ROOT = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
    SETTINGS = {SHARED: ROOT, NETWORK: ROOT}
    COMMON = ["--oversubscribe", "--bind-to", "none", "--mca", "pml", "ob1", "--mca", "btl"]
    OPTIONS = {SHARED: [*COMMON, "self,vader"],
               NETWORK: [*COMMON, "self,tcp", "--mca", "btl_tcp_if_include", "lo", "--mca", "osc", "pt2pt"]}


class Mpich(Mpi):
    name, SUFFIX, PACKAGES, VERSION = "MPICH", "mpich", "mpich libmpich-dev", r"HYDRA[^\0]*?Version: +([0-9.]+)"
    # Debian's is built on UCX, others on libfabric.
    SETTINGS = {NETWORK: {"MPIR_CVAR_NOLOCAL": "1", "UCX_TLS": "self,tcp", "UCX_NET_DEVICES": "lo", "FI_PROVIDER": "tcp"}}
    OPTIONS = {SHARED: [], NETWORK: []}


OTHERS = (Ucx, Libfabric, OpenMpi, Mpich)
