#!/usr/bin/env python3
"""The benchmarks of nmad and MPI run, with few repetitions, and print what
tools/bench/run.py reads: lines "name value unit". They check what they receive
themselves; no time is looked at. The MPI ones compile with every MPI there is,
and refuse wrong arguments.

    smoke.py BUILD TOOLS      (TOOLS: tools/bench)
"""
import os
import subprocess
import sys
import tempfile

sys.path[:0] = [sys.argv[2], os.path.join(os.path.dirname(__file__), "..")]
import mpis  # noqa: E402
import tap  # noqa: E402

REQUESTS = ["posted_same", "posted_tags", "unexpected_same", "unexpected_tags"]
MANY = ["burst", "shuffle", "anysource", "wildcard", "unexpected"]
PATTERNS = ["same-tag", "in-order", "shuffle", "any-source", "wildcards",
            "unexpected", "unexp-wild"]
WHO = ["sender", "receiver", "both"]
LAYOUTS = ["flat", "vector8", "vector16", "vector4K", "struct", "structs",
           "indexed", "nested", "subarray", "resized", "block8"]
COLLECTIVES = ["bcast", "reduce", "allreduce", "gather", "scatter", "allgather",
               "alltoall"]
BACKGROUND = ["iallreduce", "ibcast", "ialltoall", "put", "get", "put_created",
              "get_created"]
CROWD = ["barrier", "ring", "alltoall", "allreduce", "pairs"]
OBJECTS = ["communicator", "group", "window", "window_memory", "memory",
           "region", "type", "number", "keyval", "attribute", "info",
           "info_key", "info_nth", "errhandler", "error_class", "op",
           "session", "session_group", "receive", "receive_cancelled",
           "any_source", "unexpected", "synchronous", "synchronous_cancelled",
           "matched", "persistent", "orphan", "general", "partitioned",
           "partitioned_receive", "buffered", "cvar_handle", "pvar_handle",
           "event_handle", "thread", "timer", "waiter", "descriptor", "ready",
           "sigwaiter", "key", "tasklet", "ltask", "nm_session", "service"]
UNUSED = ["memory", "matched", "orphan", "partitioned_receive", "cvar_handle",
           "event_handle", "ltask", "nm_session", "service"]
BRIEF = ["-r", "2", "-m", "1"]


def overlapped(x, whose):
    return [f"transfer_{x}", *[f"{what}{who}_{x}" for who in whose
                               for what in ("", "hidden_")]]


def objects(n):
    return [f"{kind}_{what}_{n}" for kind in OBJECTS
            for what in ("grow", "create", "use", "free")
            if what != "use" or kind not in UNUSED]


def one_sided(sizes, of=""):
    return [*[f"{what}{of}_{x}" for what in ("put", "get") for x in sizes],
            f"fetch{of}_8B", *[f"{what}{of}_{x}" for x in sizes
                               for what in ("waits", "computes", "most")]]


# program, ranks, arguments, the names that it prints; None: by the CPUs
CASES = [
    ("bench_rpc", 2, ["64"], ["message", "call", "message_4K", "call_4K",
                              "messages", "calls"]),
    *[("bench_event", 1, [what, "10"], [])
      for what in ("wait", "test", "done", "probe", "monitor")],
    *[("bench_memory", 2, [pattern, "2000"],
       [pattern, pattern + "_blocks", pattern + "_tables"])
      for pattern in REQUESTS],
    *[("bench_cells", 1, [pattern, "100", "2"], [pattern + "_100"])
      for pattern in PATTERNS],
    *[("bench_nmad", ranks, ["1024", "256"],
       ["latency_256B", "latency_512B", "latency_1K", "rate"][:ranks + 2])
      for ranks in (1, 2)],
    ("bench_match", 1, ["100"],
     [f"{pattern}_{n}" for n in (10, 100) for pattern in PATTERNS]),
    *[("bench_queues", 1, ["-m", "1", *what], None)
      for what in (["self", "last"], ["contention", "any"])],
    ("bench_overhead", 1, ["wait", "active"], None),
    ("bench_overhead", 1, ["poll"],
     ["none_one_vp", "marcel_one_vp", "marcel_all_vps", "pthread_user_thread",
      "pthread_foreign_thread"]),
    ("bench_overhead", 1, ["blocking"], ["call", "section", "ready", "sleep"]),
    ("bench_overhead", 1, ["late", "auto"],
     [f"late_{us}" for us in (0, 2, 5, 10, 50)]),
    *[("bench_progress", 1, ["-n", "1", "-m", "1", *how],
       [f"{what}_{x}" for x in of
        for what in ("clock", "least", "threads", "process")])
      for how, of in ((["marcel", "armed"], ["auto", "poll", "interrupt"]),
                      (["idle", "all"], ["0", "10", "100", "1000"]))],
    ("bench_waiting", 1, ["1", "marcel", "interrupt"],
     ["user_marcel_interrupt", "foreign_marcel_interrupt"]),
    ("bench_reaction", 1, ["-n", "10", "idle", "marcel", "auto"],
     [f"{who}_marcel_auto{what}" for who in ("user", "foreign", "bare")
      for what in ("", "_p99", "_most")]),
    ("bench_objects", 1, ["all", "3"], objects(3)),
    ("bench_objects", 1, ["key,info", "1", "100", "1000"],
     [*[f"info_{what}_{n}" for n in (1, 100, 1000)
        for what in ("grow", "create", "use", "free")],
      *[f"key_{what}_1" for what in ("grow", "create", "use", "free")],
      "key_grow_100", "key_limit"]),
    ("bench_locks", 1, ["8", "10"], ["threads_1_8"]),
    ("bench_locks", 2, ["8", "10"], ["threads_1_8"]),
    ("latency", 2, [*BRIEF, "1", "200000"], ["latency_1B", "latency_195K"]),
    ("bandwidth", 2, [*BRIEF, "100", "100000"],
     [f"{way}_{size}" for size in ("100B", "97K")
      for way in ("stream", "both")]),
    ("bandwidth", 2, [*BRIEF, "-c", "both", "1"], ["both_1B"]),
    *[("rate", 2, ["-t", kind, *BRIEF, "1", "3"], ["rate_1", "rate_3"])
      for kind in ("user", "kernel")],
    ("many", 2, ["-r", "1", "10", "200"],
     [f"{p}_{n}" for n in (10, 200) for p in MANY]),
    ("many", 1, ["-m", "1", "200"], [f"{p}_200" for p in MANY]),
    ("many", 2, ["-c", "shuffle,burst", "200"], ["burst_200", "shuffle_200"]),
    ("communicators", 2, [*BRIEF, "10", "3"],
     [f"{what}_{n}" for n in (0, 10, 3)
      for what in ("latency", "least", "most", "dup", "free")]),
    *[("threads", 2, ["-t", kind, *BRIEF, "1", "5"],
       [f"{what}_{n}" for n in (1, 5) for what in ("one", "each")])
      for kind in ("user", "kernel")],
    *[("load", 2, [*kind, "-m", "5", "1", "2"],
       ["hole", *[f"{what}_{n}" for n in (1, 2)
                  for what in ("mean", "p99", "most")]])
      for kind in (["-t", "user"], ["-t", "kernel"], ["-f", "500"])],
    ("overlap", 2, ["-r", "2", "-u", "10", "100", "100000"],
     [*overlapped("100B", WHO), *overlapped("97K", WHO)]),
    ("overlap", 1, ["-r", "2", "4096"], overlapped("4K", ["both"])),
    ("computes", 2, ["-r", "2", "-u", "100", "1000", "100000"],
     [f"{what}_{size}" for size in ("1000B", "97K")
      for what in ("plain", "send", "most")]),
    *[("datatypes", ranks, [*BRIEF, "-b", "8192"], ["memcpy_flat"] + [
        f"{what}_{layout}" for layout in LAYOUTS
        for what in ("pack", "unpack", "send")[:ranks + 1]])
      for ranks in (1, 2)],
    ("datatypes", 1, [*BRIEF, "-c", "pack", "-b", "1"],
     [f"pack_{layout}" for layout in LAYOUTS]),
    *[("oversubscribed", ranks, BRIEF, [f"{c}_{ranks}" for c in CROWD])
      for ranks in (2, 5)],
    *[("collectives", ranks, [*BRIEF, "8", "4096"], [
        f"barrier_{ranks}", *[f"{c}_{ranks}_{size}" for c in COLLECTIVES
                              for size in ("8B", "4K")]])
      for ranks in (1, 2, 3)],
    ("onesided", 2, [*BRIEF, "-u", "100", "8", "100000"],
     [*one_sided(["8B", "97K"]), *one_sided(["8B", "97K"], "_created")]),
    ("onesided", 2, [*BRIEF, "-c", "fetch_created,get"],
     ["get_8B", "get_1M", "fetch_created_8B"]),
    *[("partitioned", 2, ["-t", kind, *BRIEF, "-b", size, "1", "5"],
       [f"{what}_{n}" for n in (1, 5) for what in ("partitioned", "sends")])
      for kind, size in (("user", "1"), ("kernel", "5000"))],
    *[("background", ranks, ["-r", "2", "-u", "10", "100", "100000"], [
        f"{what}{name}{who}_{x}" for name in BACKGROUND
        for x in ("96B", "97K")
        for what, who in (("", ""), *[("hidden_", "_" + who) for who in
                                      ("first", "rest", "all")])])
      for ranks in (2, 3)],
    ("pingpong", 2, ["-b", "100000", "3", "6"], ["pingpong_3", "pingpong_6"]),
    ("start", 2, [], []),
    ("start", 3, ["barrier"], []),
    ("waiting", 2, ["20"], ["recv_20", "barrier_20"]),
    ("memory", 2, ["-b", "32", "2000"], [f"{p}_2000" for p in REQUESTS]),
]
MPI = sorted({case[0] for case in CASES if not case[0].startswith("bench_")})

# program, ranks, arguments, a part of what it says: exit code 2
WRONG = [
    ("bench_queues", 1, ["self", "middle"], "self|others|line first|last"),
    ("bench_queues", 1, ["-m", "0", "self", "first"], "self|others|line"),
    ("bench_overhead", 1, ["wait"], "overhead wait|late auto|active|"),
    ("bench_objects", 1, ["infos"], "usage: objects [KIND,..."),
    ("bench_objects", 1, ["info", "10", "10"], "usage: objects [KIND,..."),
    ("bench_progress", 1, ["marcel", "x"], "progress [-n PAIRS] [-m MS] idle"),
    ("latency", 2, ["0"], "BYTES '0' is not a number from 1 to"),
    ("latency", 2, ["8x"], "BYTES '8x' is not a number"),
    ("latency", 2, [""], "BYTES '' is not a number"),
    ("latency", 3, [], "2 to 2 ranks, not 3"),
    ("latency", 2, ["-t", "user"], "it has no option -t"),
    ("latency", 2, ["-r"], "-r needs a value"),
    ("latency", 2, ["1"] * 17, "at most 16 numbers"),
    ("rate", 2, ["-t", "green"], "not 'green'"),
    ("load", 2, ["-t", "kernel", "-f", "1"], "-f is about user threads"),
    ("rate", 2, ["-r", "65"], "at most 64 repetitions"),
    ("communicators", 2, ["0"], "OTHERS '0' is not a number from 1 to"),
    ("communicators", 2, ["-r", "1001"], "at most 1000 repetitions"),
    ("many", 2, ["-c", "burst,bursts"], "no case 'bursts'"),
    ("many", 2, ["-c", ""], "no case ''"),
    ("oversubscribed", 2, ["8"], "'8': it takes no numbers"),
    ("computes", 2, ["-u", "-1"], "-u '-1' is not a number from 0"),
]


def names_of(text):
    """Of lines "name value unit"; another line is an error."""
    names = []
    for line in text.splitlines():
        name, value, unit = line.split()
        float(value)
        assert unit
        names.append(name)
    return names


def start(build, folder, program, ranks, args):
    if program.startswith("bench_"):
        path = os.path.join(build, "tests", "bench", program)
    else:
        path = os.path.join(folder, program)
    mpirun = os.path.join(build, "tools", "launch", "mpirun")
    env = dict(os.environ, NMAD_DRIVER="self" if ranks == 1 else "shm")
    return subprocess.run([mpirun, "-n", str(ranks), path, *args], env=env,
                          capture_output=True, text=True)


def run(build, folder, case):
    """What is wrong, or None."""
    program, ranks, args, names = case
    done = start(build, folder, program, ranks, args)
    if done.returncode != 0:
        return f"exit code {done.returncode}\n{done.stderr}"
    try:
        found = names_of(done.stdout)
    except (AssertionError, ValueError):
        return f"not \"name value unit\":\n{done.stdout}"
    if found == names or (names is None and found):
        return None
    return f"printed {found}, not {names}"


def refuse(build, folder, case):
    program, ranks, args, words = case
    done = start(build, folder, program, ranks, args)
    if done.returncode == 2 and done.stderr.count(words) == 1:
        return None
    return f"exit code {done.returncode}\n{done.stderr}"


def compile_all(one, folder):
    for program in MPI:
        wrong = one.compile(program, os.path.join(folder, program), "-O0")
        if wrong is not None:
            return f"{program}: {wrong}"
    return None


def results(build):
    ours, *peers = mpis.find(build, mpis.PEERS, say=lambda text: None)
    with tempfile.TemporaryDirectory() as folder:
        yield "compile with ours", compile_all(ours, folder)
        for what, cases in ((run, CASES), (refuse, WRONG)):
            for case in cases:
                program, ranks, args, _ = case
                yield (f"{program} {' '.join(args)}, ranks: {ranks}",
                       what(build, folder, case))
    there = {peer.name: peer for peer in peers}
    for name in mpis.PEERS:
        with tempfile.TemporaryDirectory() as folder:
            yield (f"compile with {name}",
                   compile_all(there[name], folder) if name in there
                   else tap.Skip("not installed"))


sys.exit(tap.tell(1 + len(mpis.PEERS) + len(CASES) + len(WRONG),
                  results(sys.argv[1])))
