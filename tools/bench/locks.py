"""RenPar 2009, figures 4 and 5: what each way of locking adds to a ping-pong of
one thread and of two at once, in us and in instructions.
"""
import os

import counts
import samples
import turns

# The first is what is done when nothing is said.
LOCKS = {"deferred": samples.OURS, "fine": "ours fine", "coarse": "ours coarse"}
LENGTHS = {"1B": "1", "1K": "1024"}


def jobs(program, launch, driver, cpus):
    """Two threads run at once only where there are so many CPUs."""
    env = {"NMAD_DRIVER": driver}
    if len(os.sched_getaffinity(0)) >= cpus:
        env["MARCEL_NVP"] = "2"
    return [("locks", driver, turns.Job(library, [*launch, program],
                                        dict(env, NMAD_LOCK=lock)))
            for lock, library in LOCKS.items()]


def count_round(program, n, out):
    """One thread to itself: of a message."""
    for lock, library in LOCKS.items():
        out.add("locks_counts", "self", library, n, {
            f"message_{name}": counts.count_each(
                lambda n: [program, length, str(n)], 2, NMAD_LOCK=lock,
                NMAD_DRIVER="self", MARCEL_NVP="1")
            for name, length in LENGTHS.items()})


def measure(build, rounds, out):
    program = os.path.join(build, "tests", "bench", "bench_locks")
    mpirun = os.path.join(build, "tools", "launch", "mpirun")
    turns.take([*jobs(program, [], "self", 2),
                *jobs(program, [mpirun, "-n", "2"], "shm", 4)], rounds, out)
    counts.need()
    for n in range(rounds):
        print(f"locks_counts, round {n + 1} ...", flush=True)
        count_round(program, n, out)
