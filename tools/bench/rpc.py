"""What a call costs beside messages, and a callback beside a wait."""
import os

import counts
import samples
import turns

CALLS = "ours calls"
# What bench_rpc prints of messages, and of calls.
PAIRS = {"message": "call", "message_4K": "call_4K", "messages": "calls"}
EVENTS = ["wait", "test", "done", "probe", "monitor"]


def add_round(out, driver, n, values):
    """Calls are called as the messages that they stand beside."""
    out.add("rpc", driver, samples.OURS, n, {m: values[m] for m in PAIRS})
    out.add("rpc", driver, CALLS, n, {m: values[c] for m, c in PAIRS.items()})


def count_round(program, n, out):
    """To itself: of a message that is told of by ..."""
    for what in EVENTS:
        out.add("event_counts", "self", samples.OURS, n, {
            what: counts.count_each(lambda n: [program, what, str(n)],
                                    NMAD_DRIVER="self", MARCEL_NVP="1")})


def measure(build, rounds, out):
    folder = os.path.join(build, "tests", "bench")
    command = [os.path.join(build, "tools", "launch", "mpirun"), "-n", "2",
               os.path.join(folder, "bench_rpc")]
    for n in range(rounds):
        for driver in ("shm", "tcp"):
            print(f"rpc, {driver}, round {n + 1} ...", flush=True)
            add_round(out, driver, n, turns.Job(samples.OURS, command, {
                "NMAD_DRIVER": driver}).run())
    counts.need()
    for n in range(rounds):
        print(f"event_counts, round {n + 1} ...", flush=True)
        count_round(os.path.join(folder, "bench_event"), n, out)
