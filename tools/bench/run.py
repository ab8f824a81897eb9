#!/usr/bin/env python3
"""Run the benchmarks of a release build, beside the peers that are installed.

    tools/bench/run.py [--build DIR] [--rounds N] [--peers a,b]
                       [--programs a,b] [--rates a,b] [WHAT ...]

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
  memory     bytes of a posted receive and of an unexpected message
  shm, tcp   latency, bandwidth and rate between two ranks
  many       bursts of requests, in five patterns, over both
  rate       8 bytes, 1, 2 and 8 threads a rank, with each strategy of ours
  overlap    a message while its sender, its receiver or both compute
  computes   a send to a receiver that computes, with and without announcements
  sim        overlap, offload and several rails over simulated networks
  rails      two shaped rails of unequal rates (--rates) between two hosts made
             of namespaces, against the sum of both alone
  locks      ping-pongs of one thread and of two at once, with each NMAD_LOCK
  rpc        calls beside messages, and what a callback costs
  heat       1,024 threads against one thread a process

MPI programs are compiled from the same source with every MPI that is found
and run in turn, A B C A B C ..., so that drifts of the machine hit all alike.
Shown: the median over the rounds, its spread, and the median of the paired
ratios to the best peer.
"""
import argparse
import os
import statistics
import subprocess
import sys
import tempfile

import counts
import growth
import locks
import memory
import mpis as mpi
import rails
import rpc
import sim
import threads
import turns

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
# Requests at once: beside the peers, whose time grows with the square of it;
# once; and ours alone.
MANY = ["10", "100", "1000", "10000"]
MANY_ONCE = ["30000"]
MANY_OURS = ["1000", "100000", "1000000"]
RATE = ["1", "2", "8"]
STRATEGIES = ["fifo", "aggreg"]
OVERLAP = ["0", "32768", "262144", "1048576", "4194304"]
NATIVE_LIMIT = 1200  # seconds for a program with many cases


def networks(what, mpis, source, args, rounds, change=None):
    for network in ("shm", "tcp"):
        mpi.compare(f"{what}, {network}", mpis, source, network, args, rounds,
                    change)


def times(values):
    """Of overlap, computing as long as the transfer takes: 1 is best."""
    shown = {}
    for name, (value, unit) in values.items():
        transfer = values[name.split("_")[0] + "_transfer"][0]
        shown[name] = ((value, unit) if name.endswith("_transfer")
                       else (value / transfer, "times"))
    return shown


def many(mpis, rounds):
    networks("many requests at once", mpis, "many", MANY, rounds)
    networks("many requests at once, one round", mpis, "many", MANY_ONCE, 1)
    networks("many requests, ours alone", mpis[:1], "many", MANY_OURS, 1)


def rate(mpis, rounds):
    """Each strategy of ours beside the same runs of the peers."""
    every = [mpis[0].with_env(s, {"NMAD_STRATEGY": s}) for s in STRATEGIES]
    networks("8 bytes, 64 under way a thread", every + mpis[1:], "rate", RATE,
             rounds)


def computes(mpis, rounds):
    """PERFORMANCE.md: a send to a receiver that computes."""
    every = [mpis[0]]
    every.append(mpis[0].with_env("poll", {"PIOM_MODE": "poll"}))
    every.append(mpis[0].with_env("asking", {"NMAD_ANNOUNCE": "0"}))
    mpi.compare("MPI_Send to who computes after MPI_Irecv, shm",
                every + mpis[1:], "computes", "shm", [], rounds)


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


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--build", default=os.path.join(mpi.ROOT, "build",
                                                          "release"))
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--peers", default="mpich,openmpi")
    parser.add_argument("--programs")
    parser.add_argument("--rates", default="200mbit,50mbit")
    parser.add_argument("what", nargs="*", metavar="WHAT")
    options = parser.parse_args()
    steps = {
        "threads": lambda: threads.compare(options.build, options.rounds,
                                           programs),
        "counts": lambda: counts.show(options.build),
        **{what: lambda what=what: native(options.build, what)
           for what in NATIVE},
        "growth": lambda: growth.show(options.build, mpis),
        "memory": lambda: memory.show(options.build, mpis),
        **{net: lambda net=net: mpi.compare(
            f"two ranks over {net}, half round trips", mpis, "pingpong", net,
            [], options.rounds) for net in ("shm", "tcp")},
        "many": lambda: many(mpis, options.rounds),
        "rate": lambda: rate(mpis, options.rounds),
        "overlap": lambda: networks(
            "who computes as long as the transfer takes", mpis, "overlap",
            OVERLAP, options.rounds, times),
        "computes": lambda: computes(mpis, options.rounds),
        "sim": lambda: sim.show(mpis[0], options.rounds),
        "rails": lambda: rails.compare(options.build, options.rounds,
                                       options.rates),
        "locks": lambda: locks.show(options.build, options.rounds),
        "rpc": lambda: rpc.show(options.build, options.rounds),
        "heat": lambda: heat(options.build, options.rounds),
    }
    wanted = []
    for what in options.what:
        if what not in [*steps, "pioman"]:
            parser.error(f"'{what}' is not one of {', '.join(steps)}, pioman")
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
    mpis = mpi.find(options.build, options.peers.split(","))
    for what in wanted or steps:
        steps[what]()


if __name__ == "__main__":
    main()
