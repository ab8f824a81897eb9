"""What a message costs among a million of others against among a thousand, where
the machine's caches and load play no part: instructions, counted by callgrind,
and cells of the match tables that are visited. Target: 1.1 times.
"""
import os
import shutil
import subprocess
import sys
import tempfile

import counts

FEW, LOTS = 1000, 1000000
TABLES = ["same-tag", "in-order", "shuffle", "any-source", "wildcards",
          "unexpected", "unexp-wild"]
MPI = ["burst", "shuffle", "anysource", "wildcard", "unexpected"]


def cells(program, pattern, n):
    done = subprocess.run([program, pattern, str(n), "1"], check=True,
                          stdout=subprocess.PIPE, text=True)
    return float(done.stdout.split()[1])


def instructions(command, n, settings):
    """Of a message: once more, with all tables and memory there. As many
    messages whatever n is. `command` makes one of n and how often."""
    times = max(1, 100000 // n)
    more = counts.count(command(str(n), str(1 + times)), settings)
    return (more - counts.count(command(str(n), "1"), settings)) / n / times


def row(name, few, lots):
    print(f"{name:18}{few:14.2f}{lots:14.2f}{lots / few:8.3f}", flush=True)


def show(build, mpis):
    if shutil.which("valgrind") is None:
        sys.exit("growth: valgrind is not installed")
    folder = os.path.join(build, "tests", "bench")
    head = f"{'':18}{f'of {FEW:,}':>14}{f'of {LOTS:,}':>14}{'growth':>8}"
    print(f"\nmatch tables: cells visited per message\n{head}")
    program = os.path.join(folder, "bench_cells")
    for pattern in TABLES:
        row(pattern, cells(program, pattern, FEW),
            cells(program, pattern, LOTS))
    print(f"\nmatch tables: instructions per message\n{head}")
    for pattern in TABLES:
        def command(n, times, pattern=pattern):
            return [os.path.join(folder, "bench_match"), pattern, n, times]

        row(pattern, instructions(command, FEW, {}),
            instructions(command, LOTS, {}))
    print(f"\nMPI, a rank to itself, 1 VP: instructions per message\n{head}")
    with tempfile.TemporaryDirectory() as place:
        program = mpis[0].build("many", place)
        settings = {"NMAD_DRIVER": "self", "MARCEL_NVP": "1"}
        for pattern in MPI:
            def command(n, times, pattern=pattern):
                return [program, "-c", pattern, "-r", times, n]

            row(pattern, instructions(command, FEW, settings),
                instructions(command, LOTS, settings))
