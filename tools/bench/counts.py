"""Instructions per operation of marcel and pioman, counted by callgrind: two
lengths of each program on one CPU, so that start-up falls out.
"""
import os
import re
import shutil
import subprocess

import samples
import turns

UNIT = "instructions"
LENGTH = 20000
# Of bench_marcel, and how many of it are counted: there and back are two.
COUNTED = {"create_only": 1, "create_join": 2, "fork_join": 2, "yield_2": 2,
           "mutex": 2, "hand_over": 2, "mutex_cond": 2, "barrier": 2}
# Of bench_ltask, with each engine.
ENGINES = ["none", "marcel", "pthread"]
COUNTED_LTASKS = ["empty", "one", "own", "cond", "switch"]


def need():
    if shutil.which("valgrind") is None:
        raise turns.Cannot("valgrind is not in the PATH (Debian: valgrind)")


def count(command, settings):
    # A slice that ends is no part of an operation.
    env = dict(os.environ, MARCEL_TIMESLICE_US="0", **settings)
    done = subprocess.run(
        ["valgrind", "--tool=callgrind", "--callgrind-out-file=/dev/null",
         *command],
        env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        timeout=1800, check=True)
    collected = re.search(r"Collected : (\d+)", done.stderr)
    if collected is None:
        raise ValueError("callgrind did not say what it has counted")
    return int(collected[1])


def count_each(command_for, runs=1, **settings):
    """Of one operation; command_for(n) does n * runs. As a sample."""
    longer = count(command_for(2 * LENGTH), settings)
    return (longer - count(command_for(LENGTH), settings)) / (runs * LENGTH), UNIT


def count_round(folder, n, out):
    marcel = os.path.join(folder, "marcel", "bench_marcel")
    ltask = os.path.join(folder, "bench_ltask")
    for name, runs in COUNTED.items():
        out.add("marcel_counts", "1 CPU", samples.OURS, n, {name: count_each(
            lambda n: [marcel, "-n", str(n), "1", name], runs)})
    for engine in ENGINES:
        for name in COUNTED_LTASKS:
            out.add("pioman_counts", "1 CPU", f"ours {engine}", n, {
                name: count_each(lambda n: [ltask, name, str(n)],
                                 PIOM_ENGINE=engine, MARCEL_NVP="1")})


def measure(build, rounds, out):
    need()
    for n in range(rounds):
        print(f"counts, round {n + 1} ...", flush=True)
        count_round(os.path.join(build, "tests", "bench"), n, out)
