#!/usr/bin/env python3
"""Run the benchmarks of a release build, beside the peers that are installed.

    tools/bench/run.py [--build DIR] [--rounds N] [--peers a,b] [--out DIR]
                       [--programs a,b] [--rates a,b] [WHAT ...]
    tools/bench/run.py [--build DIR] [--rounds N] [--peers a,b] [--out DIR]
                       [--networks a,b] [--args "..."] mpi [BENCHMARK ...]

WHAT is one or more of these; all if none is named:

  threads    marcel beside other thread libraries on 1 and 2 CPUs; with
             --programs, only those of tests/bench/marcel
  counts     instructions of marcel and pioman, counted by callgrind
  pioman     ltask (submit, run, poll), queues (of each level of the machine,
             and contention), overhead (empty polls, blocking sections, ways of
             waiting), waiting (CPU time of who waits 10 s), reaction (from an
             event until a thread runs), progress (what a computation loses to
             polling); each by itself, too
  nmad       half round trips and the rate of messages without MPI
  match      the matching tables
  growth     instructions and visited cells of a message among 1,000 and
             1,000,000
  messages   instructions of a short message on both of its sides
  memory     bytes of a posted receive and of an unexpected message
  sim        overlap, offload and several rails over simulated networks
  rails      two shaped rails of unequal rates (--rates) between two hosts made
             of namespaces, against the sum of both alone
  hosts      latency, bandwidth, rate of messages and overlap between two hosts
             made of namespaces, with every MPI
  startup    whole jobs of 2, 8 and 64 processes that start and end, under each
             launcher, with every MPI
  locks      ping-pongs of one thread and of two at once, with each NMAD_LOCK
  rpc        calls beside messages, and what a callback costs
  heat       1,024 threads against one thread a process
  verbs      system calls, doorbells, completions, registrations and copies of a
             message between two soft-RoCE devices in a guest (tools/lab/vm),
             beside ibv_rc_pingpong, UCX and the MPIs that are over it
  mpi        the suite of MPI benchmarks, doc/bench.md; all words behind it are
             names of benchmarks of it. --networks: of shm,tcp; --args: instead
             of the arguments of the one benchmark named

Results are in --out (DIR/bench), in a folder for each WHAT: of threads, mpi,
hosts, startup, ltask, waiting, reaction, nmad, locks and rpc what was measured
in each round (samples.csv), what machine that was (machine.csv), and, but of the
last two, the tables (tables.txt); of verbs counts.csv and tables.md. When all is
done tools/bench/plot.py makes one page of what is there; tools/bench/compare.py
tells whether two results differ.

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
import machine
import memory
import messages
import mpis as mpi
import native
import plot
import rails
import report
import rpc
import samples
import sim
import startup
import suite
import threads
import turns
import verbs

PIOMAN = ["ltask", "queues", "overhead", "waiting", "reaction", "progress"]


def run_suite(options, names, mpis, path):
    """An error of ours is one of this program, too."""
    args = None if options.args is None else shlex.split(options.args)
    failed = suite.run(names, mpis, options.rounds, options.networks, args,
                       path)
    report.show(path)
    if failed:
        sys.exit("ours fails: " + ", ".join(sorted(
            " ".join(f) for f in failed)))


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
    options.out = os.path.abspath(options.out or os.path.join(options.build,
                                                              "bench"))
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


def steps_of(options, names, mpis):
    """{WHAT: what is to be done, with the path of its samples}"""
    build, rounds = options.build, options.rounds
    return {
        "threads": lambda path: threads.compare(build, rounds,
                                                options.programs, path),
        "counts": lambda _: counts.show(build),
        **{what: lambda path, what=what: native.measure(build, rounds, what,
                                                        path)
           for what in native.SAMPLED},
        **{what: lambda _, what=what: native.show(build, what)
           for what in native.SHOWN},
        "growth": lambda _: growth.show(build, mpis),
        "messages": lambda _: messages.show(mpis),
        "memory": lambda _: memory.show(build, mpis),
        "sim": lambda _: sim.show(mpis[0], rounds),
        "rails": lambda _: rails.compare(build, rounds, options.rates),
        "hosts": lambda _: hosts.compare(build, rounds, options.peers,
                                         options.out, suite.BETWEEN_HOSTS),
        "startup": lambda path: startup.compare(mpis, rounds, path),
        "locks": lambda path: locks.show(build, rounds, path),
        "rpc": lambda path: rpc.show(build, rounds, path),
        "heat": lambda _: heat(build, rounds),
        "verbs": lambda path: verbs.show(mpis, build, os.path.join(
            os.path.dirname(path), "counts.csv")),
        "mpi": lambda path: run_suite(options, names, mpis, path),
    }


def run_step(step, path, build):
    """Whether there are samples. On what machine these were taken is told even
    if it fails."""
    description = machine.describe(build, mpi.ROOT)
    if os.path.exists(path):
        os.remove(path)
    try:
        step(path)
    finally:
        if os.path.exists(path):
            machine.write(path, description)
    return os.path.exists(path)


def show_page(out):
    """Of all that is there, also of earlier runs."""
    try:
        print("\n" + plot.make([out]))
    except samples.Wrong as wrong:
        print(f"\nno page: {wrong}")


def main():
    parser, options = read_options()
    mpis, names = [], []
    steps = steps_of(options, names, mpis)
    wanted, of_suite = check(parser, options, steps)
    names += of_suite
    if not os.path.isdir(options.build):
        sys.exit(f"{options.build}: no such build; tools/demo makes one")
    if hosts.NETWORK in options.networks:
        subprocess.run(hosts.SWITCH, check=True)
    mpis += mpi.find(options.build, options.peers)
    measured = False
    for what in wanted:
        folder = hosts.NETWORK if hosts.inside() else what
        path = os.path.join(options.out, folder, samples.SAMPLES)
        measured |= run_step(steps[what], path, options.build)
    if measured and not hosts.inside():
        show_page(options.out)


if __name__ == "__main__":
    main()
