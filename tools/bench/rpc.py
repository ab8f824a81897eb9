"""What a call costs beside messages, and a callback beside a wait."""
import functools
import os
import shutil

import counts
import samples
import turns

PAIRS = [("message", "call"), ("message_4K", "call_4K"), ("messages", "calls")]
EVENTS = ["wait", "test", "done", "probe", "monitor"]


def show_calls(runs, driver):
    print(f"\ncalls beside messages, {driver}: us there and back; the last, 64 "
          f"under way\n{'':18}{'message':>12}{'call':>12}   of it (range)")
    for message, call in PAIRS:
        times = sorted(r[call][0] / r[message][0] for r in runs)
        print(f"{call:18}{turns.median(runs, message):12.4f}"
              f"{turns.median(runs, call):12.4f}   "
              f"{times[len(times) // 2]:5.2f} "
              f"({times[0]:.2f}..{times[-1]:.2f})", flush=True)


def show_events(program):
    print("\nto itself, 1 VP: instructions of a message that is told of by",
          flush=True)
    for what in EVENTS:
        each = counts.count_each(lambda n: [program, what, str(n)],
                                 NMAD_DRIVER="self", MARCEL_NVP="1")
        print(f"{what:18}{each:12.1f}", flush=True)


def show(build, rounds, path):
    """The samples of the calls are in `path` then."""
    folder = os.path.join(build, "tests", "bench")
    command = [os.path.join(build, "tools", "launch", "mpirun"), "-n", "2",
               os.path.join(folder, "bench_rpc")]
    with samples.Writer(path) as out:
        for driver in ("shm", "tcp"):
            results = turns.take(
                [turns.Job("ours", command, {"NMAD_DRIVER": driver})], rounds,
                functools.partial(out.add, "rpc", driver))
            show_calls(results["ours"], driver)
    if shutil.which("valgrind") is None:
        print("\nrpc: valgrind is not installed, no instructions")
    else:
        show_events(os.path.join(folder, "bench_event"))
