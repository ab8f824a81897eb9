#!/usr/bin/env python3
"""What examples leave under MARCEL_TRACE, shown by marcel-trace: that the ends of
both fit. Prints TAP."""

import os
import re
import subprocess

from run import ROOT, Run, arrows, equal, folder, has, lane, slices
import reader  # the tool's; run.py has put its folder into the path
import tap  # and this one's

MPIRUN, RING, HYBRID = (os.environ[name] for name in ("MPIRUN", "RING", "HYBRID"))


def shown(program):
    """The events of two ranks of it, and what the tool has said."""
    with folder() as where:
        made = dict(os.environ, MARCEL_TRACE=os.path.join(where, "t"))
        done = subprocess.run([MPIRUN, "-n", "2", program], env=made, text=True,
                              capture_output=True, check=False)
        equal((done.returncode, done.stderr), (0, ""))
        run = Run(where, "--json", "t.json", "--html", "t.html", "--summary", "t")
        equal(run.code, 0)
        for wrong in ("lost", "nobody", "no end", "does not know", "cut off"):
            assert wrong not in run.err, run.err
        return run.json(), run.out


def kinds_are_those_of_the_library():
    with open(os.path.join(ROOT, "marcel/include/base/trace.h"), encoding="utf-8") as f:
        text = re.sub(r"/\*.*?\*/", "", f.read(), flags=re.DOTALL)
    body = re.search(r"enum marcel_trace_kind \{(.*?)\}", text, re.DOTALL)[1]
    value = -1
    for name, given in re.findall(r"MARCEL_TRACE_(\w+)(?:\s*=\s*(\d+))?,", body):
        value = int(given or value + 1)
        equal((name, getattr(reader, name, None)), (name, value))


def a_token_goes_round_in_arrows():
    events, out = shown(RING)
    ranks = [lane(events, "VP 0", rank) for rank in range(2)]
    token = [a for a in arrows(events) if a[3] == 4]
    equal(len(token), 200)
    assert all({a[0][0][0], a[1][0][0]} == {0, 1} for a in token), token
    assert all(a[0][1] <= a[1][1] for a in token), token
    for rank in range(2):
        users = lane(events, "main", 1000000 + rank)
        called = [name for name, *_ in slices(events, users, "mpi")]
        equal([called.count(name) for name in ("MPI_Recv", "MPI_Isend", "MPI_Wait")],
              [100] * 3)
        assert slices(events, ranks[rank], "thread"), rank
        has(out, f"rank {rank}")


def a_thousand_threads_have_lanes_and_calls():
    events, _ = shown(HYBRID)
    for rank in range(2):
        calls = [e for e in events if e["ph"] == "X" and e["pid"] == 1000000 + rank
                 and e["name"] == "MPI_Sendrecv"]
        equal(len({e["tid"] for e in calls}), 1000)
    equal(len([a for a in arrows(events) if a[3] == 4]), 2000)


tap.run([
    kinds_are_those_of_the_library,
    a_token_goes_round_in_arrows,
    a_thousand_threads_have_lanes_and_calls,
])
