#!/usr/bin/env python3
"""Run the benchmarks of a release build, beside the peers that are installed.

    tools/bench/run.py [--build DIR] [--rounds N] [--peers a,b]
                       [--programs a,b] [--rates a,b] [WHAT ...]
    tools/bench/run.py [--build DIR] [--rounds N] [--peers a,b]
                       [--networks a,b] [--args "..."] [--out DIR]
                       mpi [BENCHMARK ...]

WHAT is one or more of these; all if none is named:

  threads    marcel beside other thread libraries on 1 and 2 CPUs; with
             --programs, only those of tests/bench/marcel
  counts     instructions of marcel and pioman, counted by callgrind
  pioman     ltask (submit, run, poll), queues (of each level of the machine,
             and contention), overhead (empty polls, blocking sections, ways of
             waiting), waiting (CPU time of who waits 10 s), reaction (from an
             event until a thread runs), progress (what a computation loses to
             polling); each by itself, too
  match      the matching tables
  growth     instructions and visited cells of a message among 1,000 and
             1,000,000
  messages   instructions of a short message on both of its sides
  memory     bytes of a posted receive and of an unexpected message
  sim        overlap, offload and several rails over simulated networks
  rails      two shaped rails of unequal rates (--rates) between two hosts made
             of namespaces, against the sum of both alone
  hosts      latency, bandwidth, rate of messages and overlap between two hosts
             made of namespaces, with every MPI; samples, tables and plots are in
             --out (DIR/bench/hosts)
  startup    whole jobs of 2, 8 and 64 processes that start and end, under each
             launcher, with every MPI; samples, tables and plots as for hosts
             (DIR/bench/startup)
  locks      ping-pongs of one thread and of two at once, with each NMAD_LOCK
  rpc        calls beside messages, and what a callback costs
  heat       1,024 threads against one thread a process
  verbs      system calls, doorbells, completions, registrations and copies of a
             message between two soft-RoCE devices in a guest (tools/lab/vm),
             beside ibv_rc_pingpong, UCX and the MPIs that are over it; counts
             and tables are in --out (DIR/bench/verbs)
  mpi        the suite of MPI benchmarks, doc/bench.md; all words behind it are
             names of benchmarks of it. --networks: of shm,tcp; --args: instead
             of the arguments of the one benchmark named; --out: the folder of
             samples, tables and plots (DIR/bench/mpi)

MPI programs are compiled from the same source with every MPI that is found
and run in turn, A B C A B C ..., so that drifts of the machine hit all alike.
"""
import argparse
import os
import shlex
import statistics
import subprocess
import sys
import tempfile

import counts
import growth
import hosts
import locks
import memory
import messages
import mpis as mpi
import rails
import report
import rpc
import sim
import startup
import suite
import threads
import turns
import verbs

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
NATIVE_LIMIT = 1200  # seconds for a program with many cases


def samples_of(options, what):
    return os.path.join(options.out or os.path.join(options.build, "bench",
                                                    what), "samples.csv")


def run_suite(options, names, mpis):
    """An error of ours is one of this program, too."""
    path = samples_of(options, "mpi")
    args = None if options.args is None else shlex.split(options.args)
    failed = suite.run(names, mpis, options.rounds, options.networks, args,
                       path, report.COLUMNS)
    report.show(path)
    if failed:
        sys.exit("ours fails: " + ", ".join(sorted(
            " ".join(f) for f in failed)))


def native(build, what):
    name, *args = NATIVE[what]
    print(f"\n{name}", flush=True)
    subprocess.run([os.path.join(build, "tests", "bench", name), *args],
                   check=True, timeout=NATIVE_LIMIT)


def heat(build, rounds):
    program = os.path.join(build, "examples", "heat")
    picture = os.path.join(mpi.ROOT, "examples", "pictures", "sparks.pgm")
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
                               timeout=turns.LIMIT)
                times[kind].append(os.times().elapsed - start)
    for kind, t in times.items():
        print(f"{kind:18}{statistics.median(t):10.3f} "
              f"{f'{min(t):.3f}..{max(t):.3f}':>18}")


def read_options():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--build", default=os.path.join(mpi.ROOT, "build",
                                                          "release"))
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--peers", default="mpich,openmpi")
    parser.add_argument("--programs")
    parser.add_argument("--rates", default="200mbit,50mbit")
    parser.add_argument("--networks", default="shm,tcp")
    parser.add_argument("--args")
    parser.add_argument("--out")
    parser.add_argument("what", nargs="*", metavar="WHAT")
    options = parser.parse_args()
    options.build = os.path.abspath(options.build)  # guests, other folders
    return parser, options


def known(parser, words, names, what):
    for word in words:
        if word not in names:
            parser.error(f"{what} '{word}' is not one of {', '.join(names)}")
    return words


def check(parser, options, steps):
    """The steps and the benchmarks of the suite that are asked for."""
    names = []
    if "mpi" in options.what:
        at = options.what.index("mpi") + 1
        names = known(parser, options.what[at:], suite.NAMES, "benchmark")
        options.what = options.what[:at]
    wanted = []
    for what in known(parser, options.what, [*steps, "pioman"], "WHAT"):
        wanted += PIOMAN if what == "pioman" else [what]
    options.programs = known(
        parser, options.programs.split(",") if options.programs else [],
        threads.PROGRAMS, "program")
    options.networks = known(
        parser, options.networks.split(","),
        [*suite.BOTH, *(suite.HOSTS if hosts.inside() else ())], "network")
    options.peers = known(parser, options.peers.split(","),
                          [*mpi.PEERS, "none"], "peer")
    if options.args is not None and len(names) != 1:
        parser.error("--args: of which one benchmark?")
    if options.rounds < 1:
        parser.error(f"--rounds {options.rounds}: at least 1")
    return wanted or list(steps), names


def main():
    parser, options = read_options()
    mpis, names = [], []
    steps = {
        "threads": lambda: threads.compare(options.build, options.rounds,
                                           options.programs),
        "counts": lambda: counts.show(options.build),
        **{what: lambda what=what: native(options.build, what)
           for what in NATIVE},
        "growth": lambda: growth.show(options.build, mpis),
        "messages": lambda: messages.show(mpis),
        "memory": lambda: memory.show(options.build, mpis),
        "sim": lambda: sim.show(mpis[0], options.rounds),
        "rails": lambda: rails.compare(options.build, options.rounds,
                                       options.rates),
        "hosts": lambda: hosts.compare(options.build, options.rounds,
                                       options.peers, options.out,
                                       suite.BETWEEN_HOSTS),
        "startup": lambda: startup.compare(mpis, options.rounds,
                                           samples_of(options, "startup")),
        "locks": lambda: locks.show(options.build, options.rounds),
        "rpc": lambda: rpc.show(options.build, options.rounds),
        "heat": lambda: heat(options.build, options.rounds),
        "verbs": lambda: verbs.show(mpis, options.build,
                                    samples_of(options, "verbs")),
        "mpi": lambda: run_suite(options, names, mpis),
    }
    wanted, names = check(parser, options, steps)
    if not os.path.isdir(options.build):
        sys.exit(f"{options.build}: no such build; tools/demo makes one")
    if hosts.NETWORK in options.networks:
        subprocess.run(hosts.SWITCH, check=True)
    mpis += mpi.find(options.build, options.peers)
    for what in wanted:
        steps[what]()


if __name__ == "__main__":
    main()
