#!/usr/bin/env python3
"""What tests/bench/verbs_count.c counts of ours, over a libibverbs of our own: a
message of 8 B is one doorbell and one work request, with the data in it; one of
4 KB is one as well, from memory that is registered once; one of 64 KB is written
by the adapter. Nothing is written for who opens no device.

    verbs_count.py BUILD TOOLS      (TOOLS: tools/bench)
"""
import os
import subprocess
import sys
import tempfile

sys.path[:0] = [sys.argv[2], os.path.join(os.path.dirname(__file__), "..")]
import mpis  # noqa: E402
import tap  # noqa: E402
import verbs  # noqa: E402

BUILD = sys.argv[1]
LIBRARY = os.path.join(BUILD, "tests", "bench", "libverbs_count.so")
FAKE = os.path.join(BUILD, "tests", "nmad", "drivers", "fake_verbs")
FEW, MANY = 16, 48
# A message of the driver's own in between is no fault of the counting.
ONE = (0.8, 1.5)


def counted(binary, folder, size):
    """Of one message, both sides together."""
    path = os.path.join(folder, f"of{size}")
    env = dict(os.environ, LD_LIBRARY_PATH=FAKE, NMAD_DRIVER="ibverbs",
               FAKE_VERBS_JOB="verbs_count")
    subprocess.run(
        [os.path.join(BUILD, "tools", "launch", "mpirun"), "-n", "2", "env",
         f"VERBS_COUNT={path}", f"VERBS_COUNT_COPY={min(size, 1024)}",
         "VERBS_COUNT_MARK=MPI_Barrier", f"LD_AUDIT={LIBRARY}", binary,
         "-b", str(size), str(FEW), str(FEW), str(MANY), "1"],
        env=env, check=True, stdout=subprocess.DEVNULL)
    with open(path + ".code", "w", encoding="utf-8") as f:
        f.write("0")
    _, _, few, many, *_ = verbs.stretches(folder, f"of{size}")
    return {what: (n - few[what]) / 2 / (MANY - FEW)
            for what, n in many.items()}


def writes_without_device(folder):
    env = dict(os.environ, VERBS_COUNT=os.path.join(folder, "none"),
               LD_AUDIT=LIBRARY)
    subprocess.run(["true"], env=env, check=True)
    return any(name.startswith("none") for name in os.listdir(folder))


def rules(folder):
    """(what is so, whether it is, what there was)."""
    def one(n):
        return ONE[0] <= n <= ONE[1]

    binary = mpis.ours(BUILD).build("pingpong", folder)
    small, medium, large = (counted(binary, folder, size)
                            for size in (8, 4096, 65536))
    yield ("8 B: a doorbell, a request, inline",
           all(one(small[w]) for w in ("post_send", "send_wrs", "sends",
                                       "inlined"))
           and small["inlined_bytes"] >= 8, small)
    yield ("4 KB: a doorbell, not inline, copied by both sides",
           one(medium["post_send"]) and medium["inlined"] < 0.5
           and ONE[0] <= medium["copies"] <= 3 and medium["reg_mr"] == 0, medium)
    yield ("64 KB: written by the adapter, not copied",
           ONE[0] <= large["writes"] + large["reads"] and large["copies"] < 0.5,
           large)
    yield ("at least a completion each, none of them failed",
           all(c["completions"] >= ONE[0] and c["failed"] == 0
               for c in (small, medium, large)), small)
    yield ("no device, no file", not writes_without_device(folder), None)


def results():
    with tempfile.TemporaryDirectory() as folder:
        for what, is_so, found in rules(folder):
            yield what, None if is_so else str(found)


sys.exit(tap.tell(5, results()))
