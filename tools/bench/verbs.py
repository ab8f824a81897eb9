"""What a message takes over RDMA: system calls, doorbells and the work requests
in them, completions, registrations, copies. Two processes, each on a soft-RoCE
device of its own, in a guest (tools/lab/vm), where times mean nothing and counts
do: ours beside ibv_rc_pingpong, ucx_perftest and the MPIs that are over UCX,
message by message.

All are counted from outside, by tests/bench/verbs_count.c. What more rounds take
more is of their messages: start, end and what is between the rounds fall out.
"""
import csv
import glob
import os
import shlex
import shutil
import subprocess
from dataclasses import dataclass, field

import mpis as mpi
import turns

HERE = os.path.dirname(os.path.abspath(__file__))
GUEST = os.path.join(HERE, "verbs_guest")
VM = os.path.join(mpi.ROOT, "tools", "lab", "vm")
CANNOT = 77  # exit code of VM: no guests here
SIZES = [8, 4 << 10, 64 << 10, 1 << 20]
# A whole number of batches of receives and of windows between completions that
# the programs have; of long messages, which have none, by size.
ROUNDS = 64
ROUNDS_OF = {1 << 20: 16}
RANKS = 2
LIMIT = 100  # seconds for one run of one program
GUEST_LIMIT = 3600  # for all
MODES = ["poll", "interrupt"]
BASE = "ibv_rc_pingpong"
NAP_US = 100  # of who polls in vain, so that others can run
COPY = 1024  # bytes; copies of less are of headers, if messages are longer
COLUMNS = ["bytes", "mode", "program", "what", "per_message"]

ALL = "calls"  # all system calls; ALL_NAME: those of one name
CALLS = ["write", "read", "ioctl", "poll", "ppoll", "epoll_wait", "epoll_pwait",
         "epoll_ctl", "select", "futex", "sched_yield", "clock_nanosleep",
         "madvise", "mmap", "munmap", "membarrier", "rt_sigreturn", "sendto",
         "recvfrom", "sendmsg", "recvmsg", "process_vm_readv"]

# By column of the table: the counts of which it is the sum.
TABLE = {
    "post_send": ["post_send"],
    "requests": ["send_wrs"],
    "inline": ["inlined"],
    "write, read": ["writes", "reads"],
    "post_recv": ["post_recv", "post_srq_recv"],
    "receives": ["recv_wrs", "srq_recv_wrs"],
    "completions": ["completions"],
    "armed": ["req_notify_cq"],
    "events": ["get_cq_event"],
    "registered": ["reg_mr"],
    "copies": ["copies"],
    "copied bytes": ["copied_bytes"],
}
# libucp calls memcpy by a word that the linker does not tell about.
COPIES = ["copies", "copied bytes"]
COPIES_UNSEEN = ["ucx_perftest", "mpich", "openmpi"]


@dataclass
class Program:
    """One that is counted: the command for these rounds, in bytes, of both
    ranks."""
    name: str
    mode: str
    command: object  # (bytes, rounds) -> words; rounds is [int] of an MPI
    env: dict = field(default_factory=dict)
    mark: str = None  # a function that it calls between rounds

    def rounds(self, size):
        few = ROUNDS_OF.get(size, ROUNDS)
        return few, 2 * few

    def run_name(self, size, rounds=""):
        return f"{self.name}-{self.mode}-{size}-{rounds}"

    def line(self, name, size, rounds):
        settings = {**self.env, "VERBS_COUNT_CALLS": ",".join(CALLS),
                    "VERBS_COUNT_COPY": min(size, COPY),
                    "VERBS_COUNT_IPV4": 1}
        if self.mode == MODES[0]:
            settings["VERBS_COUNT_NAP_US"] = NAP_US
        if self.mark:
            settings["VERBS_COUNT_MARK"] = self.mark
        words = [*(f"{k}={v}" for k, v in settings.items()),
                 *self.command(size, rounds)]
        return f"{name} {LIMIT} {shlex.join(words)}\n"


class Alone(Program):
    """One run for each number of rounds."""

    def lines(self, size):
        return [self.line(self.run_name(size, n), size, n)
                for n in self.rounds(size)]

    def counted(self, folder, size):
        """Each in the longest stretch between two marks."""
        return [max(stretches(folder, self.run_name(size, n)),
                    key=lambda counts: counts["send_wrs"])
                for n in self.rounds(size)]


class OfMpi(Program):
    """All in one run, behind some to warm up: it says itself where."""

    def lines(self, size):
        few, many = self.rounds(size)
        return [self.line(self.run_name(size), size, [few, few, many, 1])]

    def counted(self, folder, size):
        _, _, few, many, *_ = stretches(folder, self.run_name(size))
        return few, many


def pair(port, *words):
    return [GUEST, "pair", str(port), *words]


def alone():
    """Those without MPI, which can sleep until a message is there."""
    found = []
    for mode, flag in zip(MODES, ([], ["-e"])):
        # -r 9: 8 receives are posted again after every 8 messages.
        found.append(Alone(
            BASE, mode, lambda size, rounds, flag=flag: pair(
                18515, "ibv_rc_pingpong", "-d", "@", "-g", "1", "-r", "9",
                "-s", str(size), "-n", str(rounds), *flag)))
    # The MPIs that are over UCX only poll. It meets its peer by send().
    found.append(Alone(
        "ucx_perftest", "interrupt", lambda size, rounds: pair(
            13337, "ucx_perftest", "-t", "tag_lat", "-E", "sleep", "-w",
            "8", "-s", str(size), "-n", str(rounds)), UCX, "send"))
    for name in {p.name for p in found if shutil.which(p.name) is None}:
        print(f"{name}: not installed; tools/bench/peers does so")
    return [p for p in found if shutil.which(p.name)]


# It starts sooner.
UCX = {"UCX_TLS": "rc_v,self", "UCX_IB_FORK_INIT": "no"}
# One thread polls, as theirs.
OURS = {"NMAD_DRIVER": "ibverbs", "MARCEL_NVP": "1"}
# Of an MPI: options of its launcher, and environment, by mode.
PLACES = {
    "ours": ([], {
        "poll": {**OURS, "PIOM_MODE": "poll", "PIOM_WAIT": "spin"},
        "interrupt": {**OURS, "PIOM_MODE": "interrupt",
                      "PIOM_WAIT": "passive"},
        "default": OURS}),
    "mpich": (["-launcher", "fork"],
              {"poll": {**UCX, "MPIR_CVAR_NOLOCAL": "1"}}),
    "openmpi": (["--bind-to", "none", "--mca", "pml", "ucx"],
                {"poll": {**UCX, "OMPI_ALLOW_RUN_AS_ROOT": "1",
                          "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}}),
}


def programs(mpis, folder):
    found = alone()
    for one in mpis:
        binary = one.build("pingpong", folder)
        options, modes = PLACES[one.name]
        for mode, env in modes.items():
            found.append(OfMpi(
                one.name, mode,
                lambda size, rounds, one=one, options=options, binary=binary: [
                    *one.launch, *options, "-n", str(RANKS), GUEST, "rank",
                    binary, "-b", str(size), *map(str, rounds)], env,
                "MPI_Barrier"))
    return found


def run(jobs, build, folder):
    """All of them, in one guest."""
    with open(os.path.join(folder, "jobs"), "w", encoding="utf-8") as f:
        f.writelines(jobs)
    env = dict(os.environ, VERBS_COUNT_LIBRARY=os.path.join(
        build, "tests", "bench", "libverbs_count.so"))
    code = subprocess.run(
        [VM, "--rdma", "2", "--topo", "1x4", "--rw", folder,
         "--timeout", str(GUEST_LIMIT), GUEST, "all", folder],
        env=env, timeout=GUEST_LIMIT + 60).returncode
    if code == CANNOT:
        raise turns.Cannot("there can be no guest here")
    if code != 0:
        print(f"verbs: the guest has failed: {code}")


def moments(path):
    """[{what: count so far}], by mark."""
    found = []
    with open(path, encoding="utf-8") as f:
        for line in f:
            what, n = line.split()
            if what == "mark":
                found.append({})
            else:
                found[-1][what] = int(n)
    return found


class Failed(Exception):
    """A run has, or has left nothing."""


def stretches(folder, name):
    """[{what: count}] of both ranks: until the first mark, between marks."""
    path = os.path.join(folder, name)
    try:
        with open(path + ".code", encoding="utf-8") as f:
            code = f.read().strip()
    except FileNotFoundError:
        code = "none"
    ranks = [moments(p) for p in glob.glob(glob.escape(path) + ".*")
             if p.rpartition(".")[2].isdigit()]
    if code != "0" or len(ranks) != RANKS or len(ranks[0]) != len(ranks[1]):
        raise Failed(f"{path}.log: exit code {code}")
    total = [{what: sum(r[i][what] for r in ranks) for what in ranks[0][i]}
             for i in range(len(ranks[0]))]
    return [{what: n - (total[i - 1][what] if i > 0 else 0)
             for what, n in t.items()} for i, t in enumerate(total)]


def per_message(folder, program, size):
    """None if it has failed."""
    try:
        few, many = program.counted(folder, size)
    except Failed as wrong:
        print(wrong)
        return None
    return {what: (n - few[what]) / (2 * program.rounds(size)[0])
            for what, n in many.items()}


def number(n):
    return f"{n:.2f}" if n < 100 else f"{n:.0f}"


def ratio(n, base):
    return f" x{number(n / base)}" if base > 0 and n > 0 else ""


def cell(values, base, whats, unseen):
    if unseen:
        return "?"
    each = sum(values[w] for w in whats)
    return number(each) + ratio(each, sum(base.get(w, 0) for w in whats))


def call_cell(values, base):
    """And of which: those of which there are most first."""
    names = sorted(((n, what.removeprefix(ALL + "_"))
                    for what, n in values.items()
                    if what.startswith(ALL + "_") and n >= 0.05), reverse=True)
    return (number(values[ALL]) + ratio(values[ALL], base.get(ALL, 0))
            + "".join(f"{',' if i else ':'} {what} {number(n)}"
                      for i, (n, what) in enumerate(names)))


def table(found, size):
    """Markdown. A ratio is to BASE in the same mode."""
    text = [f"### {size} bytes", "",
            "| | " + " | ".join([*TABLE, "system calls"]) + " |",
            "| --- |" + " ---: |" * len(TABLE) + " --- |"]
    for (at, mode, name), values in found.items():
        if at != size:
            continue
        base = name != BASE and found.get((size, mode, BASE)) or {}
        cells = ["-"] if values is None else [
            *(cell(values, base, whats,
                   name in COPIES_UNSEEN and head in COPIES)
              for head, whats in TABLE.items()),
            call_cell(values, base)]
        text.append(f"| {name}, {mode} | " + " | ".join(cells) + " |")
    return "\n".join([*text, ""])


def show(mpis, build, path):
    """The counts are in `path` then, and tables.md is beside it."""
    folder = os.path.join(os.path.dirname(path), "runs")
    shutil.rmtree(folder, ignore_errors=True)
    os.makedirs(folder)
    print("\nRDMA: what a message takes, of both sides together ...", flush=True)
    every = programs(mpis, folder)
    run([line for size in SIZES for p in every for line in p.lines(size)],
        build, folder)
    found = {(size, p.mode, p.name): per_message(folder, p, size)
             for size in SIZES for p in every}
    with open(path, "w", newline="", encoding="utf-8") as f:
        out = csv.writer(f, lineterminator="\n")
        out.writerow(COLUMNS)
        for key, values in found.items():
            for what, n in sorted((values or {}).items()):
                out.writerow([*key, what, n])
    text = "\n".join(table(found, size) for size in SIZES)
    with open(os.path.join(os.path.dirname(path), "tables.md"), "w",
              encoding="utf-8") as f:
        f.write(text)
    print("\n" + text, flush=True)
    failed = [" ".join(map(str, key)) for key, v in found.items() if v is None]
    if failed:
        raise turns.Cannot(f"failed, see {folder}: " + ", ".join(failed))
