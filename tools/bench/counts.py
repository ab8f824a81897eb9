"""Instructions per operation of marcel and pioman, counted by callgrind: two
lengths of each program on one CPU, so that start-up falls out.
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
# The same of pioman, by bench_ltask.
ENGINES = ["none", "marcel", "pthread"]
COUNTED_LTASKS = [
    ("poll, all queues empty", "empty"),
    ("poll, one quiet ltask", "one"),
    ("ltask: submit + run + seen", "own"),
    ("condition: init, signal, wait", "cond"),
    ("condition: there and back", "switch"),
]


def count(command, settings):
    # A slice that ends is no part of an operation.
    env = dict(os.environ, MARCEL_TIMESLICE_US="0", **settings)
    done = subprocess.run(
        ["valgrind", "--tool=callgrind", "--callgrind-out-file=/dev/null",
         *command],
        env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        timeout=1800, check=True)
    return int(re.search(r"Collected : (\d+)", done.stderr).group(1))


def count_each(command_for, runs=1, **settings):
    """Of one operation; command_for(n) does n * runs."""
    longer = count(command_for(2 * LENGTH), settings)
    return (longer - count(command_for(LENGTH), settings)) / (runs * LENGTH)


def show_pioman(folder):
    print("\npioman, 1 VP: instructions per operation, PIOM_ENGINE="
          + " ".join(ENGINES), flush=True)
    program = os.path.join(folder, "bench_ltask")
    for name, bench in COUNTED_LTASKS:
        each = [count_each(lambda n: [program, bench, str(n)],
                           PIOM_ENGINE=engine, MARCEL_NVP="1")
                for engine in ENGINES]
        print(f"{name:32}" + "".join(f"{e:8.1f}" for e in each), flush=True)


def show(build):
    if shutil.which("valgrind") is None:
        sys.exit("counts: valgrind is not installed")
    folder = os.path.join(build, "tests", "bench")
    program = os.path.join(folder, "marcel", "bench_marcel")
    print("\nmarcel, 1 VP: instructions per operation", flush=True)
    for name, bench, runs in COUNTED:
        each = count_each(lambda n: [program, "-n", str(n), "1", bench], runs)
        print(f"{name:32}{each:8.1f}", flush=True)
    show_pioman(folder)
