#!/usr/bin/env python3
"""Run the benchmarks of a release build, beside the peers that are installed.

    tools/bench/run.py [--build DIR] [--rounds N] [--peers a,b]
                       [--programs a,b] [WHAT ...]

WHAT is threads (marcel beside other thread libraries on 1 and 2 CPUs; with
--programs, only those of tests/bench/marcel), counts (instructions of marcel
and pioman), ltask, queues (of each level of the machine, and contention),
overhead (empty polls, blocking sections, ways of waiting), waiting (CPU time of
who waits 10 s), reaction (from an event until a thread runs), progress (what a
computation loses to polling), match (the matching tables), shm, tcp (latency,
bandwidth and rate between two ranks), many (bursts of requests), rate (8 bytes,
1, 2 and 8 threads a rank, with each strategy of ours), computes (a send to a
receiver that computes, with and without announcements), locks (ping-pongs of one
thread and of two at once, with each NMAD_LOCK), heat (1,024 threads against one
thread a process); pioman stands for those from ltask to progress; all if none
is named.

MPI programs are compiled from the same source with every MPI that is found
and run in turn, A B C A B C ..., so that drifts of the machine hit all alike.
Shown: the median over the rounds, its spread, and the median of the paired
ratios to the best peer.
"""
import argparse
import os
import shutil
import statistics
import subprocess
import sys
import tempfile

import counts
import threads

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
SOURCES = os.path.join(ROOT, "tests", "bench", "mpi")
NATIVE = {
    "ltask": ["bench_ltask"],
    "queues": ["bench_queues"],
    "overhead": ["bench_overhead"],
    "waiting": ["bench_waiting", "10"],
    "reaction": ["bench_reaction"],
    "progress": ["bench_progress"],
    "match": ["bench_match"],
}
PIOMAN = ["ltask", "queues", "overhead", "waiting", "reaction", "progress"]
MANY = ["10", "1000", "100000"]
RATE = ["1", "2", "8"]
STRATEGIES = ["fifo", "aggreg"]
LOCKS = ["deferred", "fine", "coarse"]
LIMIT = 300  # seconds for one run of one program
NATIVE_LIMIT = 1200  # of one with many cases


class Mpi:
    """One MPI: how to compile and how to run two ranks over a network."""

    def __init__(self, name, compiler, launch, networks):
        self.name = name
        self.compiler = compiler
        self.launch = launch
        self.networks = networks

    def build(self, source, folder):
        out = os.path.join(folder, source + "." + self.name)
        subprocess.run(
            [self.compiler, "-O2", "-w", "-o", out,
             os.path.join(SOURCES, source + ".c")],
            check=True)
        return out

    def with_env(self, what, more):
        """The same with another setting, named after it."""
        return Mpi(f"{self.name} {what}", self.compiler, self.launch,
                   {n: (extra, dict(env, **more))
                    for n, (extra, env) in self.networks.items()})

    def run(self, program, network, args):
        extra, env = self.networks[network]
        command = self.launch + extra + ["-n", "2", program] + args
        done = subprocess.run(command, env=dict(os.environ, **env),
                              stdout=subprocess.PIPE, text=True,
                              timeout=LIMIT, check=True)
        values = {}
        for line in done.stdout.splitlines():
            name, value, unit = line.split()
            values[name] = (float(value), unit)
        return values


def find_mpis(build, wanted):
    tools = os.path.join(build, "tools")
    mpis = [Mpi("ours", os.path.join(tools, "wrap", "mpicc"),
                [os.path.join(tools, "launch", "mpirun")],
                {"shm": ([], {"NMAD_DRIVER": "shm"}),
                 "tcp": ([], {"NMAD_DRIVER": "tcp"})})]
    if shutil.which("mpicc.mpich") and "mpich" in wanted:
        mpis.append(Mpi("mpich", "mpicc.mpich", ["mpiexec.hydra"],
                        {"shm": ([], {}),
                         "tcp": ([], {"UCX_TLS": "tcp,self"})}))
    if shutil.which("mpicc.openmpi") and "openmpi" in wanted:
        root = {"OMPI_ALLOW_RUN_AS_ROOT": "1",
                "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
        tcp = ["--mca", "pml", "ob1", "--mca", "btl", "tcp,self"]
        mpis.append(Mpi("openmpi", "mpicc.openmpi", ["mpirun.openmpi"],
                        {"shm": ([], root), "tcp": (tcp, root)}))
    return mpis


def show(title, results, name_of_ours):
    """results: {mpi: [ {name: (value, unit)} per round ]}"""
    peers = [m for m in results if not m.startswith("ours")]
    print(f"\n{title}")
    head = f"{'':18}{name_of_ours:>10} {'min..max':>18}"
    print(head + "".join(f"{p:>10}" for p in peers) + "   ours/best (range)")
    for name, (_, unit) in results[name_of_ours][0].items():
        ours = [r[name][0] for r in results[name_of_ours]]
        line = f"{name:18}{statistics.median(ours):10.4f} "
        line += f"{f'{min(ours):.4f}..{max(ours):.4f}':>18}"
        for p in peers:
            line += f"{statistics.median(r[name][0] for r in results[p]):10.4f}"
        if peers:
            best = min(peers, key=lambda p: statistics.median(
                r[name][0] for r in results[p]))
            pairs = sorted(a / r[name][0]
                           for a, r in zip(ours, results[best]))
            line += (f"   {statistics.median(pairs):5.2f} "
                     f"({pairs[0]:.2f}..{pairs[-1]:.2f})")
        print(f"{line}  {unit}")


def compare(title, mpis, source, network, args, rounds):
    with tempfile.TemporaryDirectory() as folder:
        programs = {m: m.build(source, folder) for m in mpis}
        results = {m.name: [] for m in mpis}
        for _ in range(rounds):
            for m in mpis:
                results[m.name].append(m.run(programs[m], network, args))
    for m in mpis:
        if m.name.startswith("ours"):
            show(title, results, m.name)


def rate(mpis, rounds):
    """Each strategy of ours beside the same runs of the peers."""
    every = [mpis[0].with_env(s, {"NMAD_STRATEGY": s}) for s in STRATEGIES]
    for network in ("shm", "tcp"):
        compare(f"8 bytes, 64 under way a thread, {network}",
                every + mpis[1:], "rate", network, RATE, rounds)


def computes(mpis, rounds):
    """PERFORMANCE.md: a send to a receiver that computes."""
    every = [mpis[0]]
    every.append(mpis[0].with_env("poll", {"PIOM_MODE": "poll"}))
    every.append(mpis[0].with_env("asking", {"NMAD_ANNOUNCE": "0"}))
    compare("MPI_Send to who computes after MPI_Irecv, shm",
            every + mpis[1:], "computes", "shm", [], rounds)


def measure_lock(command, lock, env):
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True,
                          env=dict(os.environ, NMAD_LOCK=lock, **env),
                          timeout=LIMIT, check=True)
    return {name: float(value) for name, value, _
            in (line.split() for line in done.stdout.splitlines())}


def locks(build, rounds):
    """RenPar 2009, figures 4 and 5: what each way of locking adds."""
    program = os.path.join(build, "tests", "bench", "bench_locks")
    mpirun = os.path.join(build, "tools", "launch", "mpirun")
    ncpus = len(os.sched_getaffinity(0))
    for title, command, env, cpus in (
            ("each thread to itself", [program], {"NMAD_DRIVER": "self"}, 2),
            ("two ranks over shm", [mpirun, "-n", "2", program],
             {"NMAD_DRIVER": "shm"}, 4)):
        print(f"\nNMAD_LOCK, {title}, us", flush=True)
        if ncpus < cpus:
            print(f"{ncpus} CPUs: two threads do not run at once")
        else:
            env["MARCEL_NVP"] = "2"
        runs = {lock: [] for lock in LOCKS}
        for _ in range(rounds):
            for lock in LOCKS:
                runs[lock].append(measure_lock(command, lock, env))
        show_locks(runs)


def show_locks(runs):
    """The medians, and the medians of the paired differences."""
    base = runs[LOCKS[0]]
    print(f"{'threads, bytes':18}{LOCKS[0]:>10}" +
          "".join(f"{lock:>10}   ns more (range)   " for lock in LOCKS[1:]))
    for name in base[0]:
        line = f"{name:18}{statistics.median(r[name] for r in base):10.4f}"
        for lock in LOCKS[1:]:
            more = sorted(1000 * (r[name] - b[name])
                          for r, b in zip(runs[lock], base))
            spread = f"({more[0]:.0f}..{more[-1]:.0f})"
            line += (f"{statistics.median(r[name] for r in runs[lock]):10.4f}"
                     f"{statistics.median(more):6.0f} {spread:14}")
        print(line)


def native(build, what):
    name, *args = NATIVE[what]
    print(f"\n{name}", flush=True)
    subprocess.run([os.path.join(build, "tests", "bench", name), *args],
                   check=True, timeout=NATIVE_LIMIT)


def heat(build, rounds):
    program = os.path.join(build, "examples", "heat")
    picture = os.path.join(ROOT, "examples", "pictures", "sparks.pgm")
    mpirun = os.path.join(build, "tools", "launch", "mpirun")
    kinds = {"1,024 threads": ["--tiles", "32x32"], "2 threads": ["--single"]}
    print("\nheat on 2 processes, seconds of the whole job", flush=True)
    times = {k: [] for k in kinds}
    with tempfile.TemporaryDirectory() as folder:
        for _ in range(rounds):
            for kind, args in kinds.items():
                start = os.times().elapsed
                subprocess.run([mpirun, "-n", "2", program, *args, "--steps",
                                "200", "--out", os.path.join(folder, "heat"),
                                picture],
                               stdout=subprocess.DEVNULL, check=True,
                               timeout=LIMIT)
                times[kind].append(os.times().elapsed - start)
    for kind, t in times.items():
        print(f"{kind:18}{statistics.median(t):10.3f} "
              f"{f'{min(t):.3f}..{max(t):.3f}':>18}")


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--build", default=os.path.join(ROOT, "build", "release"))
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--peers", default="mpich,openmpi")
    parser.add_argument("--programs")
    parser.add_argument("what", nargs="*", metavar="WHAT")
    options = parser.parse_args()
    known = ["threads", "counts", *NATIVE, "shm", "tcp", "many", "rate",
             "computes", "locks", "heat"]
    wanted = []
    for what in options.what:
        if what not in [*known, "pioman"]:
            parser.error(f"'{what}' is not one of {', '.join(known)}, pioman")
        wanted += PIOMAN if what == "pioman" else [what]
    programs = options.programs.split(",") if options.programs else []
    for name in programs:
        if name not in threads.PROGRAMS:
            parser.error(f"'{name}' is not one of "
                         f"{', '.join(threads.PROGRAMS)}")
    if options.rounds < 1:
        parser.error(f"--rounds {options.rounds}: at least 1")
    if not os.path.isdir(options.build):
        sys.exit(f"{options.build}: no such build; tools/demo makes one")
    mpis = find_mpis(options.build, options.peers.split(","))
    for what in wanted or known:
        if what == "counts":
            counts.show(options.build)
        elif what == "threads":
            threads.compare(options.build, options.rounds, programs)
        elif what in NATIVE:
            native(options.build, what)
        elif what == "heat":
            heat(options.build, options.rounds)
        elif what == "many":
            compare("many requests at once, shared memory", mpis, "many",
                    "shm", MANY[:2], options.rounds)
            compare("many requests, ours alone", mpis[:1], "many", "shm",
                    MANY, 1)
        elif what == "rate":
            rate(mpis, options.rounds)
        elif what == "computes":
            computes(mpis, options.rounds)
        elif what == "locks":
            locks(options.build, options.rounds)
        else:
            compare(f"two ranks over {what}, half round trips", mpis,
                    "pingpong", what, [], options.rounds)


if __name__ == "__main__":
    main()
