#!/usr/bin/env python3
"""The benchmarks of nmad and MPI run, with few repetitions, and print what
tools/bench/run.py reads: lines "name value unit". They check what they receive
themselves; no time is looked at. The MPI ones compile with every MPI there is.

    smoke.py BUILD SOURCES
"""
import os
import shutil
import subprocess
import sys
import tempfile

REQUESTS = ["posted_same", "posted_tags", "unexpected_same", "unexpected_tags"]
MANY = ["burst", "shuffle", "anysource", "wildcard", "unexpected"]
LAYOUTS = ["flat", "vector8", "vector16", "vector4K", "struct", "indexed",
           "nested", "subarray", "resized", "block8"]
WHO = ["transfer", "sender", "receiver", "both"]
MPI = ["computes", "datatypes", "many", "memory", "overlap", "pingpong",
       "rate"]
PEERS = ["mpicc.mpich", "mpicc.openmpi"]

# program, ranks, arguments, the names that it prints
CASES = [
    ("bench_rpc", 2, ["64"], ["message", "call", "message_4K", "call_4K",
                              "messages", "calls"]),
    *[("bench_event", 1, [what, "10"], [])
      for what in ("wait", "test", "done", "probe", "monitor")],
    *[("bench_memory", 2, [pattern, "2000"],
       [pattern, pattern + "_blocks", pattern + "_tables"])
      for pattern in REQUESTS],
    *[("bench_cells", 1, [pattern, "100", "2"], [pattern + "_100"])
      for pattern in ("same-tag", "in-order", "shuffle", "any-source",
                      "wildcards", "unexpected", "unexp-wild")],
    ("bench_locks", 1, ["8", "10"], ["threads_1_8"]),
    ("bench_locks", 2, ["8", "10"], ["threads_1_8"]),
    ("computes", 2, [], [f"{size}{most}" for size in ("32K", "256K", "1M", "4M")
                         for most in ("", "_most")]),
    ("datatypes", 1, ["4096"], ["memcpy_flat"] + [
        f"{what}_{layout}" for layout in LAYOUTS
        for what in ("pack", "unpack")]),
    ("datatypes", 2, ["8192"], ["memcpy_flat"] + [
        f"{what}_{layout}" for layout in LAYOUTS
        for what in ("pack", "unpack", "send")]),
    ("many", 2, ["10", "200"], [f"{p}_{n}" for n in (10, 200) for p in MANY]),
    ("many", 1, ["200"], [f"{p}_200" for p in MANY]),
    ("many", 2, ["shuffle", "200", "2"], ["shuffle_200"]),
    *[("memory", 2, [pattern, "2000", "32"], [pattern])
      for pattern in REQUESTS],
    ("overlap", 2, ["10", "100", "100000"],
     [f"{size}_{who}" for size in ("100B", "97K") for who in WHO]),
    ("overlap", 1, ["0", "4096"], ["4K_transfer", "4K_both"]),
    ("pingpong", 2, ["200000"], ["latency_195K"]),
    ("rate", 2, ["1", "2"], ["threads_1", "threads_2"]),
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


def run(build, folder, case):
    """What is wrong, or None."""
    program, ranks, args, names = case
    if program.startswith("bench_"):
        path = os.path.join(build, "tests", "bench", program)
    else:
        path = os.path.join(folder, program)
    mpirun = os.path.join(build, "tools", "launch", "mpirun")
    env = dict(os.environ, NMAD_DRIVER="self" if ranks == 1 else "shm")
    done = subprocess.run([mpirun, "-n", str(ranks), path, *args], env=env,
                          capture_output=True, text=True, timeout=120)
    if done.returncode != 0:
        return f"exit code {done.returncode}\n{done.stderr}"
    try:
        found = names_of(done.stdout)
    except (AssertionError, ValueError):
        return f"not \"name value unit\":\n{done.stdout}"
    return None if found == names else f"printed {found}, not {names}"


def compile_all(compiler, sources, folder):
    for program in MPI:
        done = subprocess.run(
            [compiler, "-O2", "-w", "-o", os.path.join(folder, program),
             os.path.join(sources, program + ".c")],
            capture_output=True, text=True)
        if done.returncode != 0:
            return done.stderr
    return None


def has_mpi(compiler):
    """A compiler may be there without its mpi.h."""
    return shutil.which(compiler) is not None and subprocess.run(
        [compiler, "-fsyntax-only", "-x", "c", "-"], input="#include <mpi.h>\n",
        capture_output=True, text=True).returncode == 0


class Tap:
    def __init__(self, count):
        self.number = 0
        self.failed = 0
        print(f"1..{count}")

    def say(self, wrong, what, skip=""):
        self.number += 1
        self.failed += wrong is not None
        print(f"{'ok' if wrong is None else 'not ok'} {self.number} - {what}"
              f"{' # SKIP ' + skip if skip else ''}", flush=True)
        for line in (wrong or "").splitlines():
            print(f"# {line}")


def main():
    build, sources = sys.argv[1:]
    tap = Tap(1 + len(PEERS) + len(CASES))
    with tempfile.TemporaryDirectory() as folder:
        mpicc = os.path.join(build, "tools", "wrap", "mpicc")
        tap.say(compile_all(mpicc, sources, folder), "compile with ours")
        for case in CASES:
            program, ranks, args, _ = case
            tap.say(run(build, folder, case),
                    f"{program} {' '.join(args)}, ranks: {ranks}")
    for peer in PEERS:
        if not has_mpi(peer):
            tap.say(None, f"compile with {peer}", "not installed")
            continue
        with tempfile.TemporaryDirectory() as folder:
            tap.say(compile_all(peer, sources, folder), f"compile with {peer}")
    sys.exit(1 if tap.failed else 0)


if __name__ == "__main__":
    main()
