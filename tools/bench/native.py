"""The programs of tests/bench that are run by themselves: those that print
lines "name value unit" in turns, for samples; those with tables of their own as
they are.
"""
import os
import subprocess

import report
import samples
import turns

# [benchmark, setting, program and arguments, ranks; none: without a launcher]
SAMPLED = {
    "ltask": [("pioman_ltask", "all CPUs", ["bench_ltask"], None)],
    "waiting": [("pioman_waiting", "10 s", ["bench_waiting", "10"], None)],
    "reaction": [("pioman_reaction", situation, ["bench_reaction", situation],
                  None)
                 for situation in ("idle", "computing", "favoured",
                                   "crowded")],
    "nmad": [("nmad", driver, ["bench_nmad"], 2) for driver in ("shm", "tcp")],
}
SHOWN = {
    "queues": ["bench_queues"],
    "overhead": ["bench_overhead"],
    "progress": ["bench_progress"],
    "match": ["bench_match"],
}
LIMIT = 1200  # seconds for a program with many cases


def command(build, words, ranks=None):
    name, *args = words
    launch = [] if ranks is None else [
        os.path.join(build, "tools", "launch", "mpirun"), "-n", str(ranks)]
    return [*launch, os.path.join(build, "tests", "bench", name), *args]


def job(build, setting, words, ranks):
    """The setting of ranks is their network."""
    return turns.Job(samples.OURS, command(build, words, ranks),
                     {} if ranks is None else {"NMAD_DRIVER": setting})


def measure(build, rounds, what, path):
    """The samples are in `path` then."""
    with samples.Writer(path) as out:
        for n in range(rounds):
            for benchmark, setting, *how in SAMPLED[what]:
                print(f"{benchmark}, {setting}, round {n + 1} ...", flush=True)
                out.add(benchmark, setting, samples.OURS, n,
                        job(build, setting, *how).run(LIMIT))
    report.show(path)


def show(build, what):
    print(f"\n{SHOWN[what][0]}", flush=True)
    subprocess.run(command(build, SHOWN[what]), check=True, timeout=LIMIT)
