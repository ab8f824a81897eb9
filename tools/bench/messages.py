"""Instructions of a short message between two ranks, by callgrind on both, where
the machine's load and the speed of its caches play no part: what the program
calls of MPI, everything below included. Polls that find nothing are in the
receiver's MPI_Waitall, so that one differs from run to run.
"""
import glob
import os
import re
import subprocess
import tempfile

import counts

WINDOW, TIMES = 32, 200  # fewer than fill a ring; bursts
CALLS = {"sender": ["MPI_Isend", "MPI_Waitall"],
         "receiver": ["MPI_Irecv", "MPI_Waitall"]}


def inclusive(profile):
    """By call of MPI: the instructions of all its calls together."""
    text = subprocess.run(
        ["callgrind_annotate", "--inclusive=yes", "--threshold=100", profile],
        check=True, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
        text=True).stdout
    found = {}
    for line in text.splitlines():
        match = re.match(r"\s*([\d,]+) .*?:P?(MPI_\w+)\b", line)
        if match:
            found.setdefault(match[2], int(match[1].replace(",", "")))
    return found


def count(mpi, network, program, times, place):
    """The two ranks; who sends first."""
    out = os.path.join(place, "profile")
    job = mpi.job("valgrind", network,
                  ["--tool=callgrind", f"--callgrind-out-file={out}.%p",
                   program, "-c", "burst", "-r", str(times), str(WINDOW)])
    env = dict(os.environ, MARCEL_TIMESLICE_US="0", MARCEL_NVP="1", **job.env)
    subprocess.run(job.command, env=env, check=True, timeout=1800,
                   stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    ranks = []
    for profile in glob.glob(out + ".*"):
        ranks.append(inclusive(profile))
        os.unlink(profile)
    return sorted((r for r in ranks if "MPI_Waitall" in r),
                  key=lambda r: "MPI_Isend" not in r)


def count_each(mpi, network, program, place):
    """Of each call, and of each side."""
    few = count(mpi, network, program, 1, place)
    lots = count(mpi, network, program, 1 + TIMES, place)
    found = {}
    for i, (side, calls) in enumerate(CALLS.items()):
        each = [(lots[i][c] - few[i][c]) / TIMES / WINDOW for c in calls]
        found[side] = sum(each), counts.UNIT
        for call, value in zip(calls, each):
            found[f"{side}_{call}"] = value, counts.UNIT
    return found


def measure(mpis, rounds, out):
    counts.need()
    with tempfile.TemporaryDirectory() as place:
        for n in range(rounds):
            for network in ("shm", "tcp"):
                print(f"messages, {network}, round {n + 1} ...", flush=True)
                for mpi in mpis:
                    out.add("messages", network, mpi.name, n, count_each(
                        mpi, network, mpi.build("many", place), place))
