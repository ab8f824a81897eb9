"""What a message costs among 1,000 to 1,000,000 others, where the machine's
caches and load play no part: instructions, counted by callgrind, and cells of
the match tables that are visited.
"""
import itertools
import os
import subprocess
import tempfile

import counts
import samples
import turns
from stats import Target

NUMBERS = [1000, 10000, 100000, 1000000]
TABLES = ["same-tag", "in-order", "shuffle", "any-source", "wildcards",
          "unexpected", "unexp-wild"]
MPI = ["burst", "shuffle", "anysource", "wildcard", "unexpected"]
TARGETS = {"growth": [Target(series, "<=", 1.1, f"{series}_{NUMBERS[0]}")
                      for series in dict.fromkeys([*TABLES, *MPI])]}


def cells(program, pattern, n):
    done = subprocess.run([program, pattern, str(n), "1"], check=True,
                          stdout=subprocess.PIPE, text=True)
    return turns.values_of(done.stdout)


def instructions(command, pattern, n, settings):
    """Of a message: once more, with all tables and memory there. As many
    messages whatever n is. `command` makes one of n and how often."""
    times = max(1, 100000 // n)
    more = counts.count(command(str(n), str(1 + times)), settings)
    more -= counts.count(command(str(n), "1"), settings)
    return {f"{pattern}_{n}": (more / n / times, counts.UNIT)}


def count_round(folder, many, n, out):
    for pattern, among in itertools.product(TABLES, NUMBERS):
        out.add("growth", "tables, cells", samples.OURS, n, cells(
            os.path.join(folder, "bench_cells"), pattern, among))
        out.add("growth", "tables", samples.OURS, n, instructions(
            lambda n, times: [os.path.join(folder, "bench_match"), pattern, n,
                              times], pattern, among, {}))
    for pattern, among in itertools.product(MPI, NUMBERS):
        out.add("growth", "MPI to itself", samples.OURS, n, instructions(
            lambda n, times: [many, "-c", pattern, "-r", times, n], pattern,
            among, {"NMAD_DRIVER": "self", "MARCEL_NVP": "1"}))


def measure(build, mpis, rounds, out):
    counts.need()
    folder = os.path.join(build, "tests", "bench")
    with tempfile.TemporaryDirectory() as place:
        many = mpis[0].build("many", place)
        for n in range(rounds):
            print(f"growth, round {n + 1} ...", flush=True)
            count_round(folder, many, n, out)
