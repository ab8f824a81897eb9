"""Bytes that a posted receive and an unexpected message cost the receiver beside
the program's own structures: nmad, and MPI programs.
"""
import os
import tempfile

import turns

PATTERNS = ["posted_same", "posted_tags", "unexpected_same", "unexpected_tags"]
# Messages, bytes of each, and whether peers are run: with a million MPICH has
# no handles left, and the time of Open MPI grows with the square.
CASES = [(100000, 1, True), (1000000, 1, False), (100000, 1024, True)]


def jobs(native, programs, n, length, peers):
    """[(benchmark, setting, job)]; programs: {MPI: its program}"""
    some = list(programs.items())
    ours, _ = some[0]
    found = []
    for pattern in PATTERNS:
        found.append(ours.with_setting("nmad", {}).job(
            native, "shm", [pattern, str(n), str(length)]))
        for one, program in some if peers else some[:1]:
            found.append(one.job(program, "shm", ["-c", pattern, "-b",
                                                  str(length), str(n)]))
    return [("memory", f"{n} of {length} B", job) for job in found]


def measure(build, mpis, rounds, out):
    native = os.path.join(build, "tests", "bench", "bench_memory")
    with tempfile.TemporaryDirectory() as folder:
        programs = {m: m.build("memory", folder) for m in mpis}
        # The number, which MPI programs print with a name, is in the setting.
        turns.take([job for case in CASES
                    for job in jobs(native, programs, *case)], rounds, out,
                   rename=lambda name: name.rpartition("_")[0]
                   if name[-1].isdigit() else name)
