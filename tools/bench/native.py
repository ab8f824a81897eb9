"""The programs of tests/bench that print lines "name value unit" and are run by
themselves, in turns.
"""
import os

import samples
import turns

ENDS = ("first", "last")
WAITS = {"auto": samples.OURS, "active": "ours active",
         "passive": "ours passive", "spin": "ours spin"}
# [benchmark, setting, library, program and arguments, ranks; none: without a
# launcher]. Plain ours is what is done when nothing is said.
SAMPLED = {
    "ltask": [("pioman_ltask", "all CPUs", samples.OURS, ["bench_ltask"], None)],
    "queues": [
        *[("pioman_queues", f"by the {end} CPU", library,
           ["bench_queues", who, end], None)
          for end in ENDS
          for who, library in {"self": "ours", "others": "ours run by others",
                               "line": "a cache line"}.items()],
        *[("pioman_contention", "all CPUs", library,
           ["bench_queues", "contention", whose], None)
          for whose, library in {"own": "ours", "machine": "ours one queue",
                                 "any": "ours of any CPU"}.items()]],
    "overhead": [
        ("pioman_polls", "none find any", samples.OURS,
         ["bench_overhead", "poll"], None),
        ("pioman_blocking", "1 CPU", samples.OURS,
         ["bench_overhead", "blocking"], None),
        *[(benchmark, setting, library, ["bench_overhead", part, how], None)
          for benchmark, setting, part in (
              ("pioman_waits", "in turns", "wait"),
              ("pioman_late", "1 CPU", "late"))
          for how, library in WAITS.items()]],
    "waiting": [("pioman_waiting", "10 s", samples.OURS,
                 ["bench_waiting", "10"], None)],
    "reaction": [("pioman_reaction", situation, samples.OURS,
                  ["bench_reaction", situation], None)
                 for situation in ("idle", "computing", "favoured",
                                   "crowded")],
    "progress": [
        *[("pioman_progress", ltask, f"ours {engine}",
           ["bench_progress", engine, ltask], None)
          for ltask in ("polled", "armed")
          for engine in ("marcel", "pthread", "none")],
        *[("pioman_idle", f"{computing} compute", samples.OURS,
           ["bench_progress", "idle", which], None)
          for which, computing in {"all": "all CPUs",
                                   "others": "all but one"}.items()]],
    "nmad": [("nmad", driver, samples.OURS, ["bench_nmad"], 2)
             for driver in ("shm", "tcp")],
    "match": [("match", "tables", samples.OURS, ["bench_match"], None)],
}
LIMIT = 1200  # seconds for a program with many cases


def command(build, words, ranks=None):
    name, *args = words
    launch = [] if ranks is None else [
        os.path.join(build, "tools", "launch", "mpirun"), "-n", str(ranks)]
    return [*launch, os.path.join(build, "tests", "bench", name), *args]


def measure(build, rounds, what, out):
    """The setting of ranks is their network."""
    turns.take([(benchmark, setting, turns.Job(
        library, command(build, words, ranks),
        {} if ranks is None else {"NMAD_DRIVER": setting}))
        for benchmark, setting, library, words, ranks in SAMPLED[what]],
        rounds, out, LIMIT)
