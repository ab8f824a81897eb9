"""Instructions per operation of marcel, counted by callgrind: two lengths of
each program of tests/bench/marcel on one CPU, so that start-up falls out.
"""
import os
import re
import shutil
import subprocess
import sys

LENGTH = 20000
# What is counted, by which program, how often it does that.
COUNTED = [
    ("create", "create_only", 1),
    ("create + join, one at a time", "create_join", 2),
    ("create + run + join, many", "fork_join", 2),
    ("yield: a switch", "yield_2", 2),
    ("mutex: lock + unlock", "mutex", 2),
    ("semaphore: post, wait, switch", "hand_over", 2),
    ("mutex + cond: the same", "mutex_cond", 2),
    ("barrier of 64, per thread", "barrier", 2),
]


def count(program, bench, n):
    # A slice that ends is no part of an operation.
    env = dict(os.environ, MARCEL_TIMESLICE_US="0")
    done = subprocess.run(
        ["valgrind", "--tool=callgrind", "--callgrind-out-file=/dev/null",
         program, "-n", str(n), "1", bench],
        env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        timeout=600, check=True)
    return int(re.search(r"Collected : (\d+)", done.stderr).group(1))


def show(build):
    if shutil.which("valgrind") is None:
        sys.exit("counts: valgrind is not installed")
    program = os.path.join(build, "tests", "bench", "marcel", "bench_marcel")
    print("\nmarcel, 1 VP: instructions per operation", flush=True)
    for name, bench, runs in COUNTED:
        longer = count(program, bench, 2 * LENGTH)
        each = (longer - count(program, bench, LENGTH)) / (runs * LENGTH)
        print(f"{name:32}{each:8.1f}", flush=True)
