#!/usr/bin/env python3
"""A job on two hosts that are namespaces (tools/lab/net), one of which was booted
another day and has a clock that is wrong by an hour: each writes its own files,
and in the picture no message arrives before it was sent. Prints TAP."""

import os
import re
import subprocess

from run import Run, arrows, equal, folder, has
import tap  # run.py has put its folder into the path

NET, MPIRUN, RING, AHEAD = (os.environ[name] for name in
                            ("NET", "MPIRUN", "RING", "AHEAD"))
HOUR = 3600e6  # what ahead.c adds, in us
BOOTED = "unshare --time --fork --kill-child --monotonic 90000 --boottime 90000"
NOISE = 1e6  # us from reading one clock to reading the next, at most

# /dev/shm is the only folder that each host has of its own.
SCRIPT = f"""
export MARCEL_TRACE=/dev/shm/t NMAD_TCP_IFACE=any
"$MPIRUN" -n 4 "$NET" rank bash -c '((PMI_RANK >= 2)) || exec "$RING"
    LD_PRELOAD="$AHEAD" exec {BOOTED} "$RING"' || exit
for host in 0 1; do
    "$NET" run $host tar -C /dev/shm -c . | tar -C "$1" -x --one-top-level=n$host
done
"""


def need_hosts():
    """With clocks of their own."""
    for command in ([*BOOTED.split(), "true"], [NET, "up", "2", "max", "true"]):
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            raise tap.Skip(done.stderr.strip() or f"{command[0]} fails")


def clocks_of_hosts_are_found_by_messages():
    need_hosts()
    with folder() as where:
        done = subprocess.run([NET, "up", "2", "max", "bash", "-c", SCRIPT, "sh", where],
                              capture_output=True, text=True, check=False)
        equal((done.returncode, done.stderr), (0, ""))
        equal([sorted(os.listdir(os.path.join(where, host))) for host in ("n0", "n1")],
              [["t.0", "t.1"], ["t.2", "t.3"]])
        run = Run(where, "--json", "t.json", "n0/t", "n1/t")
        equal(run.code, 0)
        events = run.json()
    told = re.search(r"the clock of n1 is set to that of n0 within [\d.]+ us "
                     r"\(shifted by ([-+][\d.]+) us\)", run.err)
    assert told, run.err
    assert abs(float(told[1]) + HOUR) < NOISE, told[0]
    for wrong in ("lost", "nobody", "no end", "too early"):
        assert wrong not in run.err, run.err
    token = [a for a in arrows(events) if a[3] == 4]
    equal(len(token), 400)
    for (_, left), (_, there), *_ in token:
        assert left <= there, (left, there)
    ways = [(a[0][0][0], a[1][0][0]) for a in token]
    equal([ways.count(way) for way in ((0, 1), (1, 2), (2, 3), (3, 0))], [100] * 4)
    for host, ranks in ((0, (0, 1)), (1, (2, 3))):
        for rank in ranks:
            has(str([e["args"] for e in events if e["name"] == "process_name"]),
                f"rank {rank}: ring on n{host}")


tap.run([clocks_of_hosts_are_found_by_messages])
