"""Threads: marcel beside its peers, each program of tests/bench/marcel in a
process of its own, in turns: A B C A B C ...
"""
import os

import turns

# What tests/bench/marcel/meson.build makes, and what it needs for that.
PEERS = {
    "pthread": "libc6-dev",
    "pth": "libpth-dev",
    "boost": "libboost-fiber-dev",
    "go": "golang-go",
}
PROGRAMS = ["fork_join_cold", "create_join", "fork_join", "fork_join_16k",
            "fork_join_1m", "yield_2", "yield_1000", "yield_private",
            "hand_over", "hand_over_pinned", "mutex_cond", "mutex",
            "mutex_short", "mutex_yielding", "barrier", "fib", "tree",
            "tree_working", "tree_serial", "blocked", "idle", "wake_up",
            "wake_busy", "blocking", "preempt"]
LIMIT = 120  # seconds for one program
OTHER_CPUS = 77  # says a program that cannot run on so many


def find(build):
    """{name: command of the runtimes that are built}; says which are not."""
    folder = os.path.join(build, "tests", "bench", "marcel")
    marcel = os.path.join(folder, "bench_marcel")
    found = {"ours": [marcel], "ours in main": [marcel, "-m"]}
    for peer, package in PEERS.items():
        program = os.path.join(folder, "bench_" + peer)
        if os.path.exists(program):
            found[peer] = [program]
        else:
            print(f"{peer}: not in this build; it needs {package}")
    return found


def measure(build, rounds, only, out):
    runtimes = find(build)
    turns.take([("marcel", f"{cpus} CPU" + "s" * (cpus > 1), turns.Job(
        name, [*command, str(cpus), bench], {}))
        for cpus in (1, 2) for bench in only or PROGRAMS
        for name, command in runtimes.items()], rounds, out, LIMIT,
        silent=(OTHER_CPUS,))
