"""The main job: heat on two processes, by 1,024 threads in them or by one in
each; the time of the whole job, from outside.
"""
import os
import tempfile
import time

import mpis as mpi
import turns

KINDS = {"ours 1024 threads": ["--tiles", "32x32"],
         "ours 1 thread each": ["--single"]}
PICTURE = os.path.join(mpi.ROOT, "examples", "pictures", "sparks.pgm")


def measure(build, rounds, out):
    program = os.path.join(build, "examples", "heat")
    mpirun = os.path.join(build, "tools", "launch", "mpirun")
    with tempfile.TemporaryDirectory() as folder:
        for n in range(rounds):
            print(f"heat, round {n + 1} ...", flush=True)
            for library, args in KINDS.items():
                job = turns.Job(library, [
                    mpirun, "-n", "2", program, *args, "--steps", "200",
                    "--out", os.path.join(folder, "heat"), PICTURE], {})
                begin = time.monotonic()
                job.output()
                out.add("heat", "2 processes", library, n,
                        {"job": (time.monotonic() - begin, "s")})
