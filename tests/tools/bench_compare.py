#!/usr/bin/env python3
"""Whether tools/bench/compare.py finds the differences that are put into made-up
results, and none in noise."""
import os
import random
import tempfile

import bench_samples as made
from bench_samples import equal, tap, words

SIZES = ["8B", "4K", "64K", "1M"]


def result(folder, seed, rounds=12, factors=None, drift=1.0, peer=True):
    """Latencies with noise of some per cent; of ours by `factors` {size: times}
    longer, of all by `drift`."""
    drawn = random.Random(seed)
    rows = []
    for n in range(rounds):
        for i, size in enumerate(SIZES):
            for library in ["ours", "a"][:1 + peer]:
                us = 10 ** i * drift * drawn.lognormvariate(0, 0.05)
                if library == "ours":
                    us *= (factors or {}).get(size, 1)
                rows.append(["latency", "shm", library, n, f"latency_{size}",
                             us, "us"])
            rows.append(["overlap", "shm", "ours", n, f"hidden_{size}",
                         0.5 + drawn.gauss(0, 0.01), "share"])
    made.write(os.path.join(folder, "mpi"), rows)
    return folder


def compare(of_a, of_b, *args):
    with tempfile.TemporaryDirectory() as folder:
        a, b = os.path.join(folder, "a"), os.path.join(folder, "b")
        result(a, 1, **of_a)
        result(b, 2, **of_b)
        return made.tool("compare.py", *args, a, b)


def check(done, code, *rows):
    assert done.returncode == code, \
        f"exit code {done.returncode}\n{done.stdout}{done.stderr}"
    for row in rows:
        assert row in words(done.stdout), f"no \"{row}\" in\n{done.stdout}"


def noise_is_no_difference():
    done = compare({}, {})
    check(done, 0, "None of 8 differs beyond noise",
          "latency, shm: ours, rounds: 12 and 12")
    assert "worse" not in done.stdout and "peers differ" not in done.stdout


def noise_is_seldom_a_difference():
    """Of 40 comparisons of 8 names each, one in 20 may find something."""
    found = 0
    with tempfile.TemporaryDirectory() as folder:
        import compare as tool
        import samples
        for seed in range(40):
            a = result(os.path.join(folder, "a"), 2 * seed, peer=False)
            b = result(os.path.join(folder, "b"), 2 * seed + 1, peer=False)
            pairs = tool.pairs(tool.sheets_of(samples.read(a)),
                               tool.sheets_of(samples.read(b)),
                               samples.is_ours)
            found += any(p.differs(0) for p in tool.judge(pairs))
    assert found <= 5, found


def what_is_slower_is_named_and_nothing_else():
    done = compare({}, {"factors": {"4K": 1.3}})
    check(done, 1, "1 of 8 differ: 0 better, 1 worse")
    rows = [x for x in done.stdout.splitlines()
            if x.startswith("latency_") and x.endswith(" worse")]
    assert len(rows) == 1 and rows[0].startswith("latency_4K "), done.stdout


def what_is_faster_is_better():
    check(compare({}, {"factors": {"8B": 0.5}}), 1,
          "1 of 8 differ: 1 better, 0 worse")


def less_than_the_least_is_none():
    change = {"factors": {"64K": 1.3}}
    check(compare({}, change, "--least", "60"), 0)
    check(compare({}, change, "--least", "10"), 1)


def a_slower_machine_shows_in_the_peers_and_falls_out():
    check(compare({}, {"drift": 1.4}), 1,
          "4 of 4 values of the peers differ, too", "try --to a")
    check(compare({}, {"drift": 1.4}, "--to", "a"), 0,
          "latency, shm: ours / a, rounds: 12 and 12",
          "None of 4 differs beyond noise")
    check(compare({}, {"drift": 1.4, "factors": {"1M": 0.6}}, "--to", "a"), 1,
          "1 of 4 differ: 1 better, 0 worse")


def too_few_rounds_are_said():
    few = {"rounds": 3}
    check(compare(few, few), 3,
          "among 8 values a difference can be found from 6 rounds of each on")


def wrong(code_of, why, *args):
    done = made.tool("compare.py", *args)
    equal(done.returncode, code_of)
    assert why in done.stderr, done.stderr


def wrong_files_are_named():
    with tempfile.TemporaryDirectory() as folder:
        good = result(os.path.join(folder, "a"), 1)
        other = os.path.join(folder, "b", "samples.csv")
        wrong(2, f"compare: {other}: No such file", good, other)
        made.write(os.path.dirname(other), [["latency"]])
        wrong(2, f"compare: {other}, line 2: not 7 fields", good, other)
        made.write(os.path.dirname(other),
                   [["latency", "shm", "ours", 0, "latency_8B", 1, "ms"]])
        wrong(2, "latency, shm: latency_8B is in us in A, in ms in B", good,
              other)
        made.write(os.path.dirname(other),
                   [["rate", "shm", "ours", 0, "rate_1", 1, "us"]])
        wrong(2, f"nothing of ours is in both: {good} has latency, shm; "
              f"overlap, shm (beside a); {other} has rate, shm\n", good,
              other)
        wrong(2, "nothing of ours is in both beside lam: ", "--to", "lam", good,
              good)
        empty = os.path.join(folder, "c")
        os.mkdir(empty)
        wrong(2, f"{empty}: neither it nor a folder in it has samples.csv",
              empty, good)
        wrong(2, "--least -1.0: not a number from 0", "--least", "-1", good,
              good)
        with open(os.path.join(good, "mpi", "machine.csv"), "w",
                  encoding="utf-8") as f:
            f.write("what\n")
        wrong(2, "machine.csv: its lines are not what,value", good, good)


def other_machines_are_told_apart():
    with tempfile.TemporaryDirectory() as folder:
        places = []
        for name, cpu in (("a", "CPU,Z80"), ("b", "CPU,6502")):
            places.append(result(os.path.join(folder, name), 1))
            with open(os.path.join(folder, name, "mpi", "machine.csv"), "w",
                      encoding="utf-8") as f:
                f.write(f"what,value\ncommand,{name}\n{cpu}\nkernel,7\n")
        done = made.tool("compare.py", *places)
        check(done, 0, "CPU: Z80 in A, 6502 in B")
        assert "kernel" not in done.stdout and "command" not in done.stdout


tap.run([noise_is_no_difference, noise_is_seldom_a_difference,
         what_is_slower_is_named_and_nothing_else, what_is_faster_is_better,
         less_than_the_least_is_none,
         a_slower_machine_shows_in_the_peers_and_falls_out,
         too_few_rounds_are_said, wrong_files_are_named,
         other_machines_are_told_apart])
