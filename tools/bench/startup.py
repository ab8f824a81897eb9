"""How long jobs take that only start and end: MPI_Init and MPI_Finalize, and
with a barrier between. Ours under each launcher that is there, beside the peers
under their own; all with what they do unless told otherwise.
"""
import csv
import os
import tempfile
import time

import mpis as mpi
import report

RANKS = (2, 8, 64)
CASES = {"start": [], "barrier": ["barrier"]}
LIMIT = 120  # seconds for one job
DEFAULT = "default"  # the network


def under(name, program, launcher):
    """The one's programs, started by the other's launcher."""
    extra, env, *_ = launcher.networks["shm"]
    env = {k: v for k, v in env.items() if not k.startswith("NMAD_")}
    return mpi.Mpi(name, program.compiler, launcher.launch,
                   {DEFAULT: (extra, env)}, crowd=launcher.crowd)


def columns(mpis):
    ours, *peers = mpis
    return [under("ours", ours, ours),
            *[under(f"ours {p.launch[0]}", ours, p) for p in peers],
            *[under(p.name, p, p) for p in peers]]


def job_ms(job):
    begin = time.monotonic()
    job.run(LIMIT)
    return 1000 * (time.monotonic() - begin)


def samples(every, folder, rounds):
    """The lines of a file of samples; A B C A B C ..."""
    for n in range(rounds):
        for case, args in CASES.items():
            taken = {}
            for ranks in RANKS:
                for one in every:
                    job = one.job(one.build("start", folder), DEFAULT, args,
                                  ranks)
                    taken[one.name, ranks] = job_ms(job)
            for (name, ranks), ms in taken.items():
                yield name, n, f"{case}_{ranks}", ms
            few, many = RANKS[-2:]
            for one in every:
                more = taken[one.name, many] - taken[one.name, few]
                yield one.name, n, f"{case}_more", more / (many - few)


def compare(mpis, rounds, path):
    """The samples are in `path` then."""
    os.makedirs(os.path.dirname(path), exist_ok=True)
    print("\nstart and end of jobs ...", flush=True)
    with tempfile.TemporaryDirectory() as folder, \
            open(path, "w", newline="", encoding="utf-8") as f:
        out = csv.writer(f, lineterminator="\n")
        out.writerow(report.COLUMNS)
        for name, n, what, ms in samples(columns(mpis), folder, rounds):
            out.writerow(["startup", DEFAULT, name, n, what, ms, "ms"])
            f.flush()
    report.show(path)
