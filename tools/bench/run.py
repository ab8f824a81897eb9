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
  match      the matching tables, with 10 to 1,000,000 messages in them
  growth     instructions and visited cells of a message among 1,000 to
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

Each is run --rounds times (5). Results are in --out (DIR/bench), in a folder for
each WHAT: what was measured in each round (samples.csv), what machine that was
(machine.csv) and the tables (tables.txt); of verbs counts.csv and tables.md. When
all is done tools/bench/plot.py makes one page of what is there;
tools/bench/compare.py tells whether two results differ.

Programs run in turn, A B C A B C ..., so that drifts of the machine hit all
alike; MPI programs are compiled from the same source with every MPI that is
found. What cannot be measured here is named at the end, with the reason.

Exit code: 0; 1: something could not be measured; 2: wrong arguments; 130:
interrupted: what was measured is there, and what was not is named.
"""
import argparse
import os
import shlex
import signal
import subprocess
import sys
import tempfile

import counts
import growth
import heat
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

INTERRUPTED = 130  # exit code
PIOMAN = ["ltask", "queues", "overhead", "waiting", "reaction", "progress"]


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
    options = parser.parse_intermixed_args()
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
    if options.args is not None:
        if len(names) != 1:
            parser.error("--args: of which one benchmark?")
        try:
            options.args = shlex.split(options.args)
        except ValueError as wrong:
            parser.error(f"--args {options.args}: {wrong}")
    if options.rounds < 1:
        parser.error(f"--rounds {options.rounds}: at least 1")
    if not os.path.isdir(options.build):
        parser.error(f"--build {options.build}: there is no such build; "
                     "tools/demo makes one")
    try:  # before hours are spent on what cannot be kept
        os.makedirs(options.out, exist_ok=True)
        with tempfile.TemporaryFile(dir=options.out):
            pass
    except OSError as wrong:
        parser.error(f"--out {options.out}: {wrong.strerror}")
    return wanted or list(steps), names


def steps_of(options, names, mpis):
    """{WHAT: what is to be done, with the writer of its samples}"""
    build, rounds = options.build, options.rounds
    return {
        "threads": lambda out: threads.measure(build, rounds,
                                               options.programs, out),
        "counts": lambda out: counts.measure(build, rounds, out),
        **{what: lambda out, what=what: native.measure(build, rounds, what,
                                                       out)
           for what in native.SAMPLED},
        "growth": lambda out: growth.measure(build, mpis, rounds, out),
        "messages": lambda out: messages.measure(mpis, rounds, out),
        "memory": lambda out: memory.measure(build, mpis, rounds, out),
        "sim": lambda out: sim.measure(mpis[0], rounds, out),
        "rails": lambda out: rails.measure(build, rounds, options.rates, out),
        "hosts": lambda _: hosts.measure(build, rounds, options.peers,
                                         options.out, suite.BETWEEN_HOSTS),
        "startup": lambda out: startup.measure(mpis, rounds, out),
        "locks": lambda out: locks.measure(build, rounds, out),
        "rpc": lambda out: rpc.measure(build, rounds, out),
        "heat": lambda out: heat.measure(build, rounds, out),
        "verbs": lambda out: verbs.show(mpis, build, os.path.join(
            os.path.dirname(out.path), "counts.csv")),
        "mpi": lambda out: suite.measure(names, mpis, rounds, options.networks,
                                         options.args, out),
    }


def run_step(step, path, build):
    """Why it has failed, or None. What there is of it then is shown, and on what
    machine that was is told, even if it fails or is interrupted."""
    description = machine.describe(build, mpi.ROOT)
    failed = None
    with samples.Writer(path) as out:
        try:
            step(out)
        except (turns.Cannot, subprocess.SubprocessError, OSError,
                ValueError, LookupError) as wrong:
            failed = turns.why(wrong)
            if isinstance(wrong, subprocess.SubprocessError):
                failed += "; " + " ".join(wrong.cmd)
        finally:
            if not out.is_empty():
                machine.write(path, description)
                report.show(path)
    return failed


def run_all(wanted, steps, options):
    """What has failed, {WHAT: why}, and what has not been done, as one was
    interrupted."""
    failed = {}
    for i, what in enumerate(wanted):
        folder = hosts.NETWORK if hosts.inside() else what
        path = os.path.join(options.out, folder, samples.SAMPLES)
        try:
            why = run_step(steps[what], path, options.build)
        except KeyboardInterrupt:
            return failed, wanted[i:]
        if why is not None:
            failed[what] = why
    return failed, []


def show_page(out):
    """Of all that is there, also of earlier runs."""
    try:
        print("\n" + plot.make([out]))
    except (samples.Wrong, OSError) as wrong:
        print(f"\nno page: {wrong}")


def interrupted(_number, _frame):
    raise KeyboardInterrupt


def main():
    parser, options = read_options()
    mpis, names = [], []
    steps = steps_of(options, names, mpis)
    wanted, of_suite = check(parser, options, steps)
    names += of_suite
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, interrupted)  # ignored by what a shell runs aside
    if hosts.NETWORK in options.networks:
        subprocess.run(hosts.SWITCH, check=True)
    mpis += mpi.find(options.build, options.peers)
    failed, left = run_all(wanted, steps, options)
    sys.stdout.flush()
    for what, why in failed.items():
        print(f"run: {what}: {why}", file=sys.stderr)
    if left:
        print(f"run: interrupted in {left[0]}; not run: "
              + (", ".join(left[1:]) or "nothing else"), file=sys.stderr)
        sys.exit(INTERRUPTED)
    if not hosts.inside():
        show_page(options.out)
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    try:
        main()
    except KeyboardInterrupt:
        sys.exit(INTERRUPTED)
