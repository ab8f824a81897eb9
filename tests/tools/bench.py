#!/usr/bin/env python3
"""tools/bench/run.py, with programs in the place of the benchmarks that print
known figures: what its tables make of them."""
import os
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(__file__), ".."))
import tap  # noqa: E402

RUN = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..",
                   "tools", "bench", "run.py")

# Compiles any program into STUB; starts it without ranks; counts 100
# instructions for each repetition, and of two ranks 10 and 20 in each call.
MPICC = """#!/bin/sh
while [ "$1" != -o ]; do shift; done
cp "$STUB" "$2"
"""
MPIRUN = """#!/bin/sh
[ "$1" = -n ] && export RANKS=$2 && shift 2
exec "$@"
"""
VALGRIND = """#!/bin/sh
out=${2#--callgrind-out-file=}
shift 3
case $# in
3) n=$(($2 * $3)) ;;
4) n=$2 ;;
5) n=$(($4 * $5)) ;;
*) for n; do :; done ;;
esac
[ -z "$RANKS" ] || for call in Isend Irecv; do
	echo "$((n * 10)) x.c:MPI_$call" >"${out%p}$call"
	echo "$((n * 20)) x.c:MPI_Waitall" >>"${out%p}$call"
done
echo "Collected : $((5000 + n * 100))" >&2
"""
ANNOTATE = """#!/bin/sh
cat "$3"
"""
# Pictures are another test's: an empty one for each name.
GNUPLOT = """#!/bin/sh
sed -n "s/^set output '\\(.*\\)'$/\\1/p" | while read -r f; do echo >"$f"; done
"""
STUB = f"#!{sys.executable} -SE\n" + '''import os, signal, sys
name = os.path.basename(sys.argv[0]).split(".")[0]
args = sys.argv[1:]
driver = os.environ.get("NMAD_DRIVER", "")

def say(what, value):
    print(what, value, "unit")

def option(letter, default):
    return args[args.index(letter) + 1] if letter in args else default

if "fail" in args or os.environ.get("FAIL") == name:
    sys.exit(3)
if os.environ.get("STOP") == name + " " + driver:
    os.kill(os.getppid(), signal.SIGTERM)
    signal.pause()
numbers = [a for i, a in enumerate(args)
           if a.isdigit() and not args[i - 1].startswith("-")]
if name == "latency":
    # 1 us a rail of 1200 MB/s takes; a slow one three times as long.
    share = sum(1 if "=1200" in r else 1 / 3 for r in driver.split("+"))
    for n in numbers or ["8"]:
        say("latency_" + n, 1 / share)
elif name == "overlap":
    us = float(option("-u", 0)) or 50
    for n in numbers or ["1048576"]:
        say("transfer_" + n, 50)
        for who, more in ("sender", 5), ("receiver", 50), ("both", 0):
            say(who + "_" + n, max(us, 50) + more)
elif name == "memory":
    if option("-c", "") == "posted_tags":
        sys.exit(1)
    say(option("-c", "") + "_" + numbers[0], 300)
elif name == "bench_memory":
    for what in "", "_blocks", "_tables":
        say(args[0] + what, 300 + len(what))
elif name == "rate":
    say("rate_1", 2 if option("-t", "user") == "kernel" else 1)
elif name == "bench_locks":
    more = {"deferred": 0, "fine": 0.1, "coarse": 0.3}[os.environ["NMAD_LOCK"]]
    say("threads_1_8", 0.5 + more)
    say("threads_2_8", 2 * (0.5 + more))
elif name == "bench_rpc":
    for what, value in (("message", 1), ("call", 2), ("message_4K", 2),
                        ("call_4K", 3), ("messages", 0.5), ("calls", 2)):
        say(what, value)
elif name == "bench_nmad":
    say(name + driver, 1)
elif name in ("bench_marcel", "bench_pth"):
    if name == "bench_pth" and "2" in args:
        sys.exit(77)
    say(args[-1], 2 if "-m" in args else 3 if name == "bench_pth" else 1)
elif name == "bench_cells":
    say(args[0] + "_" + args[1], 4)
elif name in ("oversubscribed", "collectives"):
    say(name + "_" + os.environ["RANKS"], 1)
else:
    say(name + option("-c", ""), 1)
'''
# What is wrong with the arguments, and what it says.
WRONG = [
    (["nothing"], "WHAT 'nothing' is not one of"),
    (["mpi", "nothing"], "benchmark 'nothing' is not one of latency, "),
    (["--networks", "ib", "mpi"], "network 'ib' is not one of shm, tcp"),
    (["--peers", "lam", "mpi"], "peer 'lam' is not one of mpich, openmpi"),
    (["--programs", "x", "threads"], "program 'x' is not one of"),
    (["--rounds", "0", "mpi"], "--rounds 0: at least 1"),
    (["--args", "8", "mpi"], "--args: of which one benchmark?"),
    (["--args", "'8", "mpi", "latency"], "--args '8: No closing quotation"),
    (["--build", "/none"], "--build /none: there is no such build"),
    (["--out", "/dev/null/x"], "--out /dev/null/x: Not a directory"),
]
PROGRAMS = ["bench_locks", "bench_rpc", "bench_event", "bench_memory",
            "bench_cells", "bench_match", "bench_ltask", "bench_nmad",
            "bench_queues", "bench_overhead", "bench_progress",
            "marcel/bench_marcel", "marcel/bench_pth", "../../examples/heat"]

# What is asked for, what its tables have to contain, by words.
CASES = [
    (["mpi", "latency", "many"],
     ["latency, shm: ours, rounds: 1", "latency_8 3.0000 3.0000..3.0000 unit",
      "many, tcp: ours, rounds: 1", "many 1.0000"]),
    (["--rounds", "2", "--networks", "tcp", "mpi", "rate"],
     ["rate, tcp: ours kernel, rounds: 2", "rate_1 2.0000",
      "rate, tcp: ours aggreg, rounds: 2", "rate_1 1.0000"]),
    (["--args", "12 -m 3", "mpi", "latency"], ["latency_12 3.0000"]),
    (["mpi"], ["latency, shm: ours", "waiting, shm: ours",
               "overlap, tcp: ours", "sender_1048576 55.0000"]),
]
# The same of one run of all.
TOGETHER = [
    (["locks"], ["locks, self: ours fine, rounds: 1",
                 "threads_1_8 0.6000 0.6000..0.6000 1.20 (1.20..1.20) ours unit",
                 "threads_2_8 1.6000 1.6000..1.6000 1.60 (1.60..1.60) ours",
                 "locks_counts, self: ours coarse", "message_1K 50.0000"]),
    (["rpc"], ["rpc, tcp: ours calls, rounds: 1",
               "message 2.0000 2.0000..2.0000 2.00 (2.00..2.00) ours unit",
               "messages 2.0000 2.0000..2.0000 4.00 (4.00..4.00) ours",
               "event_counts, self: ours", "done 100.0"]),
    (["counts"], ["marcel_counts, 1 CPU: ours, rounds: 1",
                  "create_only 100.0 100.0..100.0 instructions",
                  "mutex 50.0000", "pioman_counts, 1 CPU: ours pthread",
                  "own 100.0 100.0..100.0 1.00 (1.00..1.00) ours none "
                  "instructions"]),
    (["messages"], ["messages, tcp: ours, rounds: 1", "sender 30.0000",
                    "sender_MPI_Isend 10.0000", "receiver_MPI_Waitall 20.0000"]),
    (["heat", "queues", "overhead", "progress", "match"],
     ["heat, 2 processes: ours 1 thread each, rounds: 1 ", "job 0.",
      "pioman_queues, by the last CPU: ours run by others",
      "bench_queues 1.0000 1.0000..1.0000 1.0000 1.00 (1.00..1.00) a cache "
      "line unit", "pioman_contention, all CPUs: ours one queue",
      "pioman_waits, in turns: ours passive", "bench_overhead 1.0000 "
      "1.0000..1.0000 1.00 (1.00..1.00) ours unit",
      "pioman_progress, armed: ours none", "pioman_idle, all but one compute",
      "match, tables: ours", "bench_match 1.0000"]),
    (["--programs", "mutex,yield_2", "threads", "ltask"],
     ["boost: not in this build; it needs libboost-fiber-dev",
      "marcel, 1 CPU: ours, rounds: 1", "mutex 1.0000 1.0000..1.0000 3.0000 "
      "0.33 (0.33..0.33) pth unit", "marcel, 1 CPU: ours in main",
      "marcel, 2 CPUs: ours, rounds: 1", "yield_2 1.0000 1.0000..1.0000 unit",
      "pioman_ltask, all CPUs: ours", "bench_ltask 1.0000"]),
    (["nmad"], ["nmad, shm: ours, rounds: 1", "bench_nmadshm 1.0000",
                "nmad, tcp: ours, rounds: 1", "bench_nmadtcp 1.0000"]),
    (["growth"], ["growth, tables, cells: ours, rounds: 1",
                  "shuffle_1000 4.0000 4.0000..4.0000 unit <= 1.1 x "
                  "shuffle_1000: fewer than 3 rounds",
                  "growth, tables: ours", "growth, MPI to itself: ours",
                  "burst_10000 100.0 100.0..100.0 instructions <= 1.1 x"]),
    (["sim"], ["sim_overlap, to itself, computing 100 us: ours, rounds: 1",
               "sender_65536 105.0", "sim_overlap, 2 ranks, computing as long",
               "receiver_32768 100.0", "sim_offload, 2 ranks, tcp, computing "
               "20 us: ours from 64 B on", "sim_rails, equal: ours 2 rails",
               "latency_4096 0.5000 0.5000..0.5000 0.50 (0.50..0.50) ours 1 "
               "rail", "sim_rails, unequal: ours both",
               "rate_4194304 5592405.3", "of_sum_4194304 1.0000"]),
]


def put(path, text):
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "w", encoding="utf-8") as f:
        f.write(text)
    os.chmod(path, 0o755)


def make_tree(root):
    build = os.path.join(root, "build")
    put(os.path.join(build, "tools", "wrap", "mpicc"), MPICC)
    put(os.path.join(build, "tools", "launch", "mpirun"), MPIRUN)
    put(os.path.join(root, "bin", "valgrind"), VALGRIND)
    put(os.path.join(root, "bin", "callgrind_annotate"), ANNOTATE)
    put(os.path.join(root, "bin", "gnuplot"), GNUPLOT)
    put(os.path.join(root, "stub"), STUB)
    for program in PROGRAMS:
        put(os.path.join(build, "tests", "bench", program), STUB)
    return build


def run(root, build, what, out="out", **more):
    env = dict(os.environ, STUB=os.path.join(root, "stub"),
               PATH=os.path.join(root, "bin") + ":" + os.environ["PATH"])
    env.update(more)
    return subprocess.run(
        [sys.executable, RUN, "--build", build, "--rounds", "1", "--peers",
         "none", "--out", os.path.join(root, out), *what], env=env,
        capture_output=True, text=True, check=False)


def words(text):
    return " ".join(text.split())


def check_words(text, expected):
    for row in expected:
        if row not in words(text):
            return f"no \"{row}\" in\n{text}"
    return None


def check(done, expected):
    if done.returncode != 0:
        return f"exit code {done.returncode}\n{done.stderr}"
    return check_words(done.stdout, expected)


def check_failing(done):
    """Ours fails in both networks: the rest is shown, the run has failed."""
    if done.returncode != 1 or "ours fails: latency shm ours, latency tcp " \
            "ours" not in done.stderr:
        return f"exit code {done.returncode}\n{done.stderr}"
    return check_words(done.stdout, ["latency, shm: ours fails: exit code 3; "
                                      "ranks: 2, arguments: fail"])


def check_one_of_several(root, build):
    """What fails is named, the others are measured and on the page."""
    done = run(root, build, ["memory", "nmad", "match"], "several",
               FAIL="bench_nmad")
    if done.returncode != 1:
        return f"exit code {done.returncode}\n{done.stderr}"
    return check_words(done.stderr, [
        "run: nmad: ours fails: nmad shm ours, nmad tcp ours",
        "run: memory: ours fails: memory 100000 of 1 B ours,"]) or check_words(
            done.stdout, ["memory, 1000000 of 1 B: ours fails: exit code 1",
                          "posted_same_blocks 307.0", "match, tables: ours",
                          os.path.join(root, "several", "report.html")])


def check_missing(root, build):
    """Neither valgrind nor gnuplot."""
    done = run(root, build, ["counts", "match"], "missing", PATH="/none")
    if done.returncode != 1:
        return f"exit code {done.returncode}\n{done.stderr}"
    return check_words(done.stderr, [
        "run: counts: valgrind is not in the PATH"]) or check_words(
            done.stdout, ["match, tables: ours",
                          "no page: gnuplot is not in the PATH"])


def check_interrupted(root, build):
    """What is measured until then is there, with its machine and tables."""
    done = run(root, build, ["nmad", "match", "heat"], "interrupted",
               STOP="bench_nmad tcp")
    if done.returncode != 130:
        return f"exit code {done.returncode}\n{done.stderr}"
    there = set(os.listdir(os.path.join(root, "interrupted", "nmad")))
    if there != RESULT:
        return f"there is {there}"
    return check_words(done.stderr, [
        "run: interrupted in nmad; not run: match, heat"]) or check_words(
            done.stdout, ["nmad, shm: ours, rounds: 1"])


RESULT = {"samples.csv", "machine.csv", "tables.txt"}


def check_results(root, build):
    """A folder for each suite, with its machine; one page of all."""
    done = run(root, build, ["ltask", "rpc"], "results")
    out = os.path.join(root, "results")
    for what in ("ltask", "rpc"):
        there = set(os.listdir(os.path.join(out, what)))
        if there != RESULT:
            return f"{what} has {there}"
    with open(os.path.join(out, "ltask", "machine.csv"), encoding="utf-8") as f:
        wrong = check_words(f.read(), [
            "what,value command,", "load at start,", "CPU,", "CPUs allowed,",
            "governor,", "kernel,Linux ", "memory,", "tree,", "build,",
            "load at end,"])
    with open(os.path.join(out, "report.html"), encoding="utf-8") as f:
        wrong = wrong or check_words(f.read(), [
            "pioman_ltask, all CPUs: ours", "rpc, shm: ours"])
    return wrong or check_words(done.stdout, [f.name])


WHOLE = [("results, machine and page are there", check_results),
         ("one of several fails", check_one_of_several),
         ("what is needed is not there", check_missing),
         ("interrupted", check_interrupted)]


def check_wrong(done, why):
    if done.returncode == 2 and why in done.stderr:
        return None
    return f"exit code {done.returncode}\n{done.stderr}"


def results():
    with tempfile.TemporaryDirectory() as root:
        build = make_tree(root)
        for i, (what, expected) in enumerate(CASES):
            yield (" ".join(what),
                   check(run(root, build, what, f"out{i}"), expected))
        done = run(root, build, [word for what, _ in TOGETHER
                                 for word in what], "together")
        for what, expected in TOGETHER:
            yield " ".join(what), check(done, expected)
        yield ("a benchmark that fails is named",
               check_failing(run(root, build, ["--args", "fail", "mpi",
                                               "latency"])))
        for what, does in WHOLE:
            yield what, does(root, build)
        for what, why in WRONG:
            yield " ".join(what), check_wrong(run(root, build, what), why)


sys.exit(tap.tell(len(CASES + TOGETHER + WRONG + WHOLE) + 1, results()))
