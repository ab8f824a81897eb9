"""How long jobs take that only start and end: MPI_Init and MPI_Finalize, and
with a barrier between. Ours under each launcher that is there, beside the peers
under their own; all with what they do unless told otherwise.
"""
import tempfile
import time

import mpis as mpi

RANKS = (2, 8, 64)
CASES = {"start": [], "barrier": ["barrier"]}
LIMIT = 120  # seconds for one job
DEFAULT = "default"  # of the networks


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
    job.output(LIMIT)
    return 1000 * (time.monotonic() - begin)


def take(every, folder, rounds, out):
    """A B C A B C ..."""
    few, many = RANKS[-2:]
    for n in range(rounds):
        print(f"startup, round {n + 1} ...", flush=True)
        for case, args in CASES.items():
            taken = {one.name: {} for one in every}
            for ranks in RANKS:
                for one in every:
                    job = one.job(one.build("start", folder), DEFAULT, args,
                                  ranks)
                    taken[one.name][ranks] = job_ms(job)
            for name, ms in taken.items():
                more = (ms[many] - ms[few]) / (many - few)
                out.add("startup", DEFAULT, name, n, {
                    **{f"{case}_{ranks}": (t, "ms") for ranks, t in ms.items()},
                    f"{case}_more": (more, "ms")})


def measure(mpis, rounds, out):
    with tempfile.TemporaryDirectory() as folder:
        take(columns(mpis), folder, rounds, out)
