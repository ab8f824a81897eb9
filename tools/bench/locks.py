"""RenPar 2009, figures 4 and 5: what each way of locking adds to a ping-pong of
one thread and of two at once, in us and in instructions.
"""
import os
import shutil
import statistics

import counts
import samples
import turns

LOCKS = ["deferred", "fine", "coarse"]


def show_growth(results):
    """Figure 5: two threads against one, of the same round."""
    print(f"\n{'two threads / one':18}"
          + "".join(f"{lock:>12}" for lock in results))
    for name in results[LOCKS[0]][0]:
        if not name.startswith("threads_2_"):
            continue
        one = name.replace("threads_2_", "threads_1_")
        line = f"{name.split('_')[-1] + ' B':18}"
        for runs in results.values():
            times = statistics.median(r[name][0] / r[one][0] for r in runs)
            line += f"{times:12.2f}"
        print(line)


def show_counts(program):
    print("\nNMAD_LOCK, one thread to itself, 1 VP: instructions of a message\n"
          f"{'':18}" + "".join(f"{lock:>12}" for lock in LOCKS))
    for length in (1, 1024):
        each = [counts.count_each(
            lambda n: [program, str(length), str(n)], 2, NMAD_LOCK=lock,
            NMAD_DRIVER="self", MARCEL_NVP="1") for lock in LOCKS]
        print(f"{f'{length} B':18}" + "".join(f"{e:12.1f}" for e in each),
              flush=True)


def show_times(build, rounds, out):
    program = os.path.join(build, "tests", "bench", "bench_locks")
    mpirun = os.path.join(build, "tools", "launch", "mpirun")
    ncpus = len(os.sched_getaffinity(0))
    for title, command, driver, cpus in (
            ("each thread to itself", [program], "self", 2),
            ("two ranks over shm", [mpirun, "-n", "2", program], "shm", 4)):
        env = {"NMAD_DRIVER": driver}
        title = f"NMAD_LOCK, {title}: threads_N_BYTES"
        if ncpus < cpus:
            title += f"\n({ncpus} CPUs: two threads do not run at once)"
        else:
            env["MARCEL_NVP"] = "2"
        results = turns.take(
            [turns.Job(lock, command, dict(env, NMAD_LOCK=lock))
             for lock in LOCKS], rounds,
            lambda lock, n, values, driver=driver: out.add(
                "locks", driver, f"ours {lock}", n, values))
        turns.beside(title, results, turns.more_ns, "ns more (range)")
        show_growth(results)


def show(build, rounds, path):
    """The samples of the times are in `path` then."""
    with samples.Writer(path) as out:
        show_times(build, rounds, out)
    if shutil.which("valgrind") is None:
        print("\nlocks: valgrind is not installed, no instructions")
    else:
        show_counts(os.path.join(build, "tests", "bench", "bench_locks"))
