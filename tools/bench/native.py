"""The programs of tests/bench that are run by themselves: those that print
lines "name value unit" in turns, for samples; those with tables of their own as
they are.
"""
import os
import subprocess

import report
import samples
import turns

# [benchmark, setting, program and arguments]
SAMPLED = {
    "ltask": [("pioman_ltask", "all CPUs", ["bench_ltask"])],
    "waiting": [("pioman_waiting", "10 s", ["bench_waiting", "10"])],
    "reaction": [("pioman_reaction", situation, ["bench_reaction", situation])
                 for situation in ("idle", "computing", "favoured",
                                   "crowded")],
}
SHOWN = {
    "queues": ["bench_queues"],
    "overhead": ["bench_overhead"],
    "progress": ["bench_progress"],
    "match": ["bench_match"],
}
LIMIT = 1200  # seconds for a program with many cases


def command(build, words):
    name, *args = words
    return [os.path.join(build, "tests", "bench", name), *args]


def measure(build, rounds, what, path):
    """The samples are in `path` then."""
    with samples.Writer(path) as out:
        for n in range(rounds):
            for benchmark, setting, words in SAMPLED[what]:
                print(f"{benchmark}, {setting}, round {n} ...", flush=True)
                job = turns.Job(samples.OURS, command(build, words), {})
                out.add(benchmark, setting, job.name, n, job.run(LIMIT))
    report.show(path)


def show(build, what):
    print(f"\n{SHOWN[what][0]}", flush=True)
    subprocess.run(command(build, SHOWN[what]), check=True, timeout=LIMIT)
