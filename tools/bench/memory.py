"""Bytes that a posted receive and an unexpected message cost the receiver beside
the program's own structures: nmad, and MPI programs.
"""
import os
import subprocess
import tempfile

import turns

PATTERNS = ["posted_same", "posted_tags", "unexpected_same", "unexpected_tags"]
# Messages, bytes of each, and whether peers are run: with a million MPICH has
# no handles left, and the time of Open MPI grows with the square.
CASES = [(100000, 1, True), (1000000, 1, False), (100000, 1024, True)]


def cost(job):
    """What it has printed; nothing if it fails."""
    try:
        return job.run()
    except subprocess.SubprocessError:
        return {}


def row(pattern, columns):
    line = f"{pattern:18}"
    for values, name in columns:
        found = values.get(name)
        line += f"{'fails' if found is None else f'{found[0]:.0f}':>10}"
    print(line, flush=True)


def show(build, mpis):
    native = os.path.join(build, "tests", "bench", "bench_memory")
    with tempfile.TemporaryDirectory() as folder:
        programs = {m: m.build("memory", folder) for m in mpis}
        for n, length, peers in CASES:
            some = mpis if peers else mpis[:1]
            print(f"\n{n:,} requests of {length} B, shm: bytes of the receiver "
                  "for each\n"
                  f"{'':18}{'nmad':>10}{'blocks':>10}{'tables':>10}"
                  + "".join(f"{m.name:>10}" for m in some))
            for pattern in PATTERNS:
                ours = cost(mpis[0].job(native, "shm",
                                        [pattern, str(n), str(length)]))
                args = ["-c", pattern, "-b", str(length), str(n)]
                columns = [(ours, pattern + what)
                           for what in ("", "_blocks", "_tables")]
                for m in some:
                    columns.append((cost(m.job(programs[m], "shm", args)),
                                    f"{pattern}_{n}"))
                row(pattern, columns)
