#!/usr/bin/env python3
"""What marcel-trace makes of files that are made up here. Prints TAP."""

import ctypes
import os
import random
import re
import subprocess
import sys

from run import ROOT, TOOL, Run, arrows, convert, equal, folder, has, lane, slices
import tap  # run.py has put its folder into the path
from writer import FOREIGN, Writer

A, B = 0x1000, 0x2000


def what(events, place, name):
    return [e.get("args", {}).get("what") for e in events
            if e["ph"] in "Xi" and e["name"] == name and (e["pid"], e["tid"]) == place]


def two_threads():
    w = Writer()
    w.new(0, 0, A, "main")
    w.run(100, 0, A)
    w.new(200, 0, B, "solver")
    w.block(1000, 0, A, "join")
    w.run(1050, 0, B)
    w.ready(3000, 0, A)
    w.ended(3100, 0, B)
    w.run(3200, 0, A)
    w.ended(4000, 0, A)
    w.idle(4100, 0)
    w.sleep(5000, 0, 1)
    w.wake(9000, 0)
    w.sleep(9500, 0)
    w.idle(0, 1)
    w.sleep(700, 1)
    w.wake(10000, 1)
    return w


def a_vp_shows_which_thread_runs_and_whether_it_sleeps():
    events, err = convert(two_threads())
    equal(slices(events, lane(events, "VP 0")), [
        ("main", 100, 1050), ("solver", 1050, 3200), ("main", 3200, 4100),
        ("idle", 4100, 5000), ("sleeps", 5000, 9000), ("idle", 9000, 9500),
        ("sleeps", 9500, 10000),
    ])
    equal(slices(events, lane(events, "VP 1")),
          [("idle", 0, 700), ("sleeps", 700, 10000)])
    has(err, "t.json is written")


def a_user_thread_shows_what_it_waits_for_and_who_woke_it():
    events, _ = convert(two_threads())
    users = 1000000
    place = lane(events, "main", users)
    equal(slices(events, place), [
        ("ready", 0, 100), ("runs", 100, 1000), ("blocked", 1000, 3000),
        ("ready", 3000, 3200), ("runs", 3200, 4000),
    ])
    equal(what(events, place, "blocked"), ["join"])
    equal(what(events, place, "ready"), ["is new", "woken by solver on VP 0"])
    equal(slices(events, lane(events, "solver", users)),
          [("ready", 200, 1050), ("runs", 1050, 3100)])


def how_many_threads_run_is_counted():
    events, _ = convert(two_threads())
    counts = {round(e["ts"] * 1000): tuple(e["args"].values()) for e in events
              if e["ph"] == "C"}
    equal(counts, {0: (0, 1, 0), 100: (1, 0, 0), 200: (1, 1, 0), 1000: (0, 1, 1),
                   1050: (1, 0, 1), 3000: (1, 1, 0), 3100: (0, 1, 0), 3200: (1, 0, 0),
                   4000: (0, 0, 0)})


def an_address_is_another_thread_after_its_end():
    w = Writer(nvp=1)
    for n in range(3):
        w.new(n * 100, 0, A, f"worker {n}")
        w.run(n * 100 + 10, 0, A)
        w.ended(n * 100 + 60, 0, A)
        w.idle(n * 100 + 60, 0)
    events, _ = convert(w)
    equal([s for s in slices(events, lane(events, "VP 0"), "thread")],
          [(f"worker {n}", n * 100 + 10, n * 100 + 60) for n in range(3)])


def a_call_is_cut_where_its_thread_sleeps_and_goes_where_it_goes():
    w = Writer()
    w.new(0, 0, A, "main")
    w.run(0, 0, A)
    w.enter(100, 0, "MPI_Sendrecv")
    w.enter(150, 0, "MPI_Isend")
    w.leave(200, 0, "MPI_Isend")
    w.block(300, 0, A, "MPI_Recv")
    w.idle(310, 0)
    w.ready(800, 0, A)
    w.run(900, 1, A)
    w.leave(950, 1, "MPI_Sendrecv", 15)
    w.idle(1000, 1)
    events, _ = convert(w)
    equal(slices(events, lane(events, "VP 0"), "mpi"),
          [("MPI_Sendrecv", 100, 310), ("MPI_Isend", 150, 200)])
    equal(slices(events, lane(events, "VP 1"), "mpi"), [("MPI_Sendrecv", 900, 950)])
    place = lane(events, "main", 1000000)
    equal(slices(events, place, "mpi"),
          [("MPI_Sendrecv", 100, 950), ("MPI_Isend", 150, 200)])
    equal(slices(events, place, "thread", "blocked"), [
        ("runs", 0, 100), ("runs", 100, 150), ("runs", 150, 200), ("runs", 200, 300),
        ("blocked", 300, 800), ("runs", 900, 950), ("runs", 950, 1000),
    ])
    equal(what(events, place, "MPI_Sendrecv"), ["returns 15"])


def who_was_about_to_sleep_and_did_not_runs():
    w = Writer(nvp=1)
    w.new(0, 0, A, "main")
    w.run(0, 0, A)
    w.block(100, 0, A, "mutex")
    w.enter(200, 0, "MPI_Test")
    w.leave(300, 0, "MPI_Test")
    w.give_way(400, 0, A, 1)
    w.run(450, 0, A)
    w.idle(500, 0)
    events, _ = convert(w)
    equal(slices(events, lane(events, "main", 1000000), "thread", "blocked", "ready"), [
        ("runs", 0, 100), ("blocked", 100, 200), ("runs", 200, 300), ("runs", 300, 400),
        ("ready", 400, 450), ("runs", 450, 500),
    ])
    equal(what(events, lane(events, "VP 0"), "time slice over"), ["main"])


def a_vp_waits_in_the_kernel_with_a_thread_that_called_it():
    """Until the thread is back, or the VP has gone on without it."""
    w = Writer(nvp=1)
    w.new(0, 0, A, "main")
    w.new(0, 0, B, "solver")
    w.run(0, 0, A)
    w.enter(50, 0, "MPI_Init")
    w.block(100, 0, A, "system call")
    w.run(300, 0, A)
    w.block(400, 0, A, "system call")
    w.run(600, 0, B)
    w.ready(650, 0, A)
    w.idle(700, 0)
    events, _ = convert(w)
    place = lane(events, "VP 0")
    equal(slices(events, place, "thread", "idle", "kernel"), [
        ("main", 0, 100), ("main", 100, 300), ("main", 300, 400), ("main", 400, 600),
        ("solver", 600, 700)])
    equal(slices(events, place, "kernel"), [("main", 100, 300), ("main", 400, 600)])
    equal(slices(events, place, "mpi"), [
        ("MPI_Init", a, b) for a, b in ((50, 100), (100, 300), (300, 400), (400, 600))])
    with folder(w) as where:
        has(Run(where, "--summary", "t").out, "57.1 %")


def who_comes_back_without_a_vp_is_in_its_calls_all_the_same():
    w = Writer(nvp=1)
    w.new(0, 0, A, "main")
    w.run(0, 0, A)
    w.block(100, 0, A, "system call")
    w.idle(200, 0)
    w.lane(300, FOREIGN, 77, "main's")
    w.run(300, FOREIGN, A)
    w.enter(300, FOREIGN, "MPI_Recv")
    w.run(400, 0, A)
    w.leave(500, 0, "MPI_Recv")
    w.enter(600, FOREIGN, "MPI_Test")
    w.leave(700, FOREIGN, "MPI_Test")
    w.idle(800, 0)
    events, _ = convert(w)
    equal(slices(events, lane(events, "main", 1000000), "mpi"), [("MPI_Recv", 300, 500)])
    equal(slices(events, lane(events, "VP 0"), "mpi"), [("MPI_Recv", 400, 500)])
    equal(slices(events, lane(events, "main's (77)")), [("MPI_Test", 600, 700)])


def functions_of_ltasks_have_their_names():
    address = ctypes.cast(ctypes.CDLL(None).getpid, ctypes.c_void_p).value
    w = Writer(nvp=1)
    w.idle(0, 0)
    w.ltask(900, 0, 200, address)
    w.ltask(950, 0, 10, 0xDEAD0000)
    w.sleep(1000, 0)
    with open("/proc/self/maps", encoding="utf-8") as f:
        w.modules = "".join(line for line in f if "x" in line.split()[1])
    events, _ = convert(w)
    (name, *times), other = slices(events, lane(events, "VP 0"), "ltask")
    assert name.endswith("getpid"), name
    equal(times, [700, 900])
    equal(other, ("0xdead0000", 940, 950))


def ltasks_wait_in_the_kernel_until_an_interrupt():
    w = Writer(nvp=1)
    w.idle(0, 0)
    w.export(100, 0, 0xF00, 9, 0x1)
    w.export(200, 0, 0xBAA, 7, 0x2)
    w.lane(500, FOREIGN, 77, "watcher")
    w.interrupt(500, FOREIGN, 9)
    w.ltask(700, FOREIGN, 20, 0xBAA, 0x2)
    w.idle(1000, 0)
    events, _ = convert(w)
    equal(slices(events, lane(events, "in the kernel")), [("0xf00", 100, 500)])
    equal(slices(events, lane(events, "in the kernel (2)")), [("0xbaa", 200, 700)])
    watcher = lane(events, "watcher (77)")
    equal(what(events, watcher, "interrupt"), ["descriptor 9, 0xf00"])
    equal(slices(events, watcher), [("0xbaa", 680, 700)])


def ping(skew=0, there=3000, back=5000, start=0, **second):
    """Ten messages in both directions, between hosts."""
    a = Writer(0, 2, "alpha", 1)
    b = Writer(1, 2, second.pop("host", "beta"), 1, skew, **second)
    for w in (a, b):
        w.new(start, 0, A, "main")
        w.run(start + 10, 0, A)
    for n in range(10):
        at = start + 10000 * n + 1000
        a.send(at, 0, n, peer=1, tag=n, bytes=8)
        b.arrive(at + there, 0, n, peer=0, tag=n, bytes=8)
        b.receive(at + there + 100, 0, n, peer=0, tag=n, bytes=8)
        b.send(at + there + 200, 0, n, peer=0, tag=-2, bytes=1 << 20, session=7)
        a.arrive(at + there + 200 + back, 0, n, peer=1, tag=-2, session=7, flag=1)
        a.receive(at + there + 300 + back, 0, n, peer=1, tag=-2, bytes=1 << 20,
                  session=7)
    return a, b


def arrows_lead_from_send_to_receive():
    events, err = convert(*ping(host="alpha"))
    first, second = lane(events, "VP 0", 0), lane(events, "VP 0", 1)
    found = arrows(events)
    equal(len(found), 20)
    equal(found[0], ((first, 1000), (second, 4100), 0, 8))
    equal(found[1], ((second, 4200), (first, 9300), -2, 1 << 20))
    assert "clock" not in err, err


def a_process_of_no_job_sends_to_itself():
    w = Writer(-1, 0, nvp=1)
    w.new(0, 0, A, "main")
    w.run(0, 0, A)
    w.send(10, 0, 1, peer=0, tag=3, session=2**64 - 1)
    w.arrive(20, 0, 1, peer=0, tag=3, session=2**64 - 1)
    w.receive(30, 0, 1, peer=0, tag=3, bytes=8, session=2**64 - 1)
    events, err = convert(w)
    place = lane(events, "VP 0")
    equal(arrows(events), [((place, 10), (place, 30), 3, 8)])
    assert "nobody" not in err, err


def a_message_without_end_has_no_arrow_and_is_told():
    a, b = ping(host="alpha")
    a.send(200000, 0, 77, peer=1)
    b.receive(200000, 0, 78, peer=0)
    events, err = convert(a, b)
    equal(len(arrows(events)), 20)
    has(err, "1 messages were sent, and nobody here received them")
    has(err, "1 messages came, and nobody here sent them")


def clocks_of_hosts_are_set_to_the_middle():
    for skew in (7 * 10**12, -40, 0):
        for ghz in (None, 2.5):
            events, err = convert(*ping(skew, ghz=ghz))
            has(err, "the clock of beta is set to that of alpha within 4.0 us")
            there, back = arrows(events)[:2]
            equal(there[1][1] - there[0][1], 4100)
            equal(back[1][1] - back[0][1], 4100)


def a_clock_in_ticks_is_taken_for_what_it_is():
    events, _ = convert(*ping(10**6, ghz=2.5, host="beta"))
    times = [e[0][1] for e in arrows(events)[::2]]
    equal([b - a for a, b in zip(times, times[1:])], [10000] * 9)


def hosts_are_set_through_others():
    """alpha talks with beta, beta with gamma; gamma is 9 s ahead."""
    ends = [Writer(r, 3, host, 1, skew) for r, (host, skew) in
            enumerate((("alpha", 0), ("beta", -500), ("gamma", 9 * 10**9)))]
    for w in ends:
        w.new(0, 0, A, "main")
        w.run(10, 0, A)
    for n, (x, y, took) in enumerate(((0, 1, 20), (1, 0, 20), (1, 2, 30), (2, 1, 30))):
        ends[x].send(1000 * (n + 1), 0, n, peer=y)
        ends[y].arrive(1000 * (n + 1) + took, 0, n, peer=x)
    events, err = convert(*ends)
    equal([s[1] for _, s, *_ in arrows(events)], [1020, 2020, 3030, 4030])
    has(err, "the clock of beta is set to that of alpha within 0.0 us")
    has(err, "the clock of gamma is set to that of alpha within 0.1 us")


def clocks_that_cannot_be_set_are_told():
    a, b = ping()
    b.rings[0] = [[b.rings[0][0][0][: 24 * 2], 0]]
    _, err = convert(a, b)
    has(err, "by their time of day alone: no message joins them")
    a, b = Writer(0, 2, "alpha", 1), Writer(1, 2, "beta", 1, skew=-(10**7))
    for n in range(3):
        a.send(1000 * n, 0, n, peer=1)
        b.arrive(1000 * n + 700, 0, n, peer=0)
    events, err = convert(a, b)
    has(err, "messages in one direction")
    assert all(s[1] >= f[1] for f, s, *_ in arrows(events)), arrows(events)


def clocks_that_drift_are_followed():
    """Over half a second, by 12 times of what messages tell."""
    for drift in (200, -200):
        a, b = Writer(0, 2, "alpha", 1), Writer(1, 2, "beta", 1, 10**9, drift=drift)
        for n in range(1000):
            at = 500000 * n
            a.send(at, 0, n, peer=1)
            b.arrive(at + 3000, 0, n, peer=0)
            b.send(at + 3500, 0, n, peer=0)
            a.arrive(at + 8500, 0, n, peer=1)
        events, err = convert(a, b)
        has(err, f"drifts by {'-' if drift > 0 else ''}2e+02 ppm")
        assert "evenly" not in err, err
        for (_, left), (_, there), *_ in arrows(events):
            assert 0 <= there - left <= 8000, there - left


def clocks_that_jump_are_told():
    a, b = ping(there=1000, back=1000)
    later = ping(skew=30000, there=1000, back=1000, start=101000)
    for w, more in zip((a, b), later):
        w.rings[0].append([renumbered(more.rings[0][0][0]), 0])
    _, err = convert(a, b)
    found = re.search(r"do not go evenly: .* up to ([\d.]+) us too early", err)
    assert found and 0 < float(found[1]) <= 30, err


def renumbered(records):
    """Other messages: the number of each is its own plus 100."""
    found = bytearray(records)
    for at in range(0, len(found), 24):
        kind = int.from_bytes(found[at + 8 : at + 10], "little")
        if 64 <= kind < 80:
            number = int.from_bytes(found[at + 12 : at + 16], "little") + 100
            found[at + 12 : at + 16] = number.to_bytes(4, "little")
    return found


def lost_events_are_seen_where_they_are_missing():
    w = two_threads()
    w.new_chunk(0, lost=12)
    w.idle(20000, 0)
    w.sleep(30000, 0)
    w.idle(40000, 0)
    events, err = convert(w)
    equal(slices(events, lane(events, "VP 0"), "lost"),
          [("12 events lost", 9500, 20000)])
    has(err, "rank 0: 12 events were lost")
    with folder(w) as where:
        has(Run(where, "--summary", "t").out, "events lost")


def a_summary_says_what_the_time_went_to():
    with folder(two_threads()) as where:
        out = Run(where, "--summary", "t").out
    equal(re.search(r"rank 0 .*", out)[0].split(),
          "rank 0 2 20.1 % 0.0 % 10.6 % 69.3 % 0.0 % 0 2 0".split())
    equal(re.search(r".* +join +-\n", out)[0].split(), "2 us 1 2 us join -".split())
    equal(re.search(r"2 us +1 us +rank 0 +main +join.*", out)[0].split(),
          "2 us 1 us rank 0 main join -".split())


def a_stretch_of_time_is_chosen():
    with folder(*ping(host="alpha")) as where:
        done = Run(where, "--json", "t.json", "--from", "0.00001", "--to", "0.00003",
                   "t")
        equal(done.code, 0)
        equal([a[2] for a in arrows(done.json())], [1, -2, 2, -2])
        equal(Run(where, "--from", "2", "--to", "1", "t").code, 2)
        has(Run(where, "--from", "soon", "t").err, "soon: expected seconds")


def what_is_no_trace_is_named():
    def told(data, *parts):
        with folder() as where:
            with open(os.path.join(where, "t"), "wb") as f:
                f.write(data)
            done = Run(where, "t")
            equal(done.code, 1)
            for part in parts:
                has(done.err, part)

    whole = two_threads().bytes()
    told(b"", "t: not a file of MARCEL_TRACE")
    told(b"\x7fELF and more", "begins with b'\\x7fELF and'")
    told(whole[:60], "ends within its header, after 60 bytes")
    told(Writer(version=9).bytes(), "version 9", "reads version 1")
    with folder() as where:
        done = Run(where, "nothing")
        equal(done.code, 1)
        has(done.err, "nothing: there is no such file, and no nothing.0")


def a_file_that_is_cut_off_shows_what_it_has():
    whole = two_threads().bytes(ended=False)
    with folder() as where:
        for length in range(4096, len(whole), 331):
            with open(os.path.join(where, "t"), "wb") as f:
                f.write(whole[:length])
            if length % 3 == 0:
                done = Run(where, "--json", "t.json", "t")
                equal(done.code, 0)
                has(done.err, "it has no end")
                done.json()
        with open(os.path.join(where, "t"), "wb") as f:
            f.write(whole[: 4096 * 3 + 64 + 24 * 10])
        done = Run(where, "--json", "t.json", "t")
        has(done.err, f"cut off at byte {4096 * 3 + 64 + 24 * 10}")
        found = slices(done.json(), lane(done.json(), "VP 0"))
        equal(found[0], ("main", 100, 1050))


def what_a_killed_process_was_in_goes_on_while_it_was_there():
    w = Writer(nvp=1)
    w.new(0, 0, A, "main")
    w.new(0, 0, B, "solver")
    w.run(10, 0, A)
    w.enter(100, 0, "MPI_Finalize")
    w.block(200, 0, A, "a message")
    w.run(250, 0, B)
    w.enter(300, 0, "MPI_Recv")
    w.block(400, 0, B, "a message")
    w.idle(500, 0)
    w.clocks = [1000, 2000]
    with folder() as where:
        w.write(os.path.join(where, "t"), ended=False)
        done = Run(where, "--json", "t.json", "t")
        events = done.json()
    equal(slices(events, lane(events, "main", 1000000), "mpi"),
          [("MPI_Finalize", 100, 2000)])
    equal(slices(events, lane(events, "VP 0"), "idle"), [("idle", 500, 2000)])
    has(done.err, "rank 0: main did not come back from MPI_Finalize")
    has(done.err, "rank 0: solver did not come back from MPI_Recv")


def nonsense_in_a_file_ends_it():
    whole = bytearray(two_threads().bytes())
    whole[4096 * 3 : 4096 * 3 + 4] = b"junk"
    with folder() as where:
        with open(os.path.join(where, "t"), "wb") as f:
            f.write(whole)
        done = Run(where, "t")
    equal(done.code, 0)
    has(done.err, f"what is at byte {4096 * 3} is no chunk")


def missing_and_old_files_are_told():
    a, b = ping(host="alpha")
    a.size = b.size = 4
    old = Writer(5, 9)
    old.real -= 10**9
    with folder(a, b, old) as where:
        done = Run(where, "--json", "t.json", "t")
        equal(done.code, 0)
        equal(len(arrows(done.json())), 20)
        has(done.err, "of 4 ranks, 2 left no file: 2, 3")
        has(done.err, "t.5: of a job of 9")
        has(Run(where, "t.0", "t.0").err, "says that it is rank 0, as t.0 does")


def files_of_two_processes_with_one_pid_are_read():
    with folder(*ping()) as where:
        for rank, name in enumerate(("t.p7", "t.p7.1")):
            os.rename(os.path.join(where, f"t.{rank}"), os.path.join(where, name))
        done = Run(where, "--json", "t.json", "t")
        equal(done.code, 0)
        equal(len(arrows(done.json())), 20)


def of_a_file_and_those_of_a_job_the_later_count():
    with folder(*ping()) as where:
        lone = os.path.join(where, "t")
        with open(lone, "wb") as f:
            f.write(two_threads().bytes())
        os.utime(lone, (0, 0))
        assert arrows(Run(where, "--json", "t.json", "t").json())
        os.utime(lone)
        assert not arrows(Run(where, "--json", "t.json", "t").json())


def what_lies_behind_a_hole_is_read():
    whole = two_threads().bytes()
    with folder() as where:
        with open(os.path.join(where, "t"), "wb") as f:
            f.write(whole[: 4096 * 3] + bytes(4096 * 2) + whole[4096 * 3 :])
        done = Run(where, "t")
    equal(done.code, 0)
    assert "no end" not in done.err, done.err


def any_events_whatever_make_lanes():
    """Drawn by lot: out of order, of unknown threads, kinds and lanes."""
    drawn = random.Random(1)
    kinds = [2, *range(16, 23), 32, 33, 34, 48, 49, 50, 64, 65, 66, 67, 80, 81, 99]
    for _ in range(12):
        w = Writer(nvp=2)
        w.strings = {"MPI_Send": 0}
        for _ in range(400):
            more = [(drawn.randrange(3), drawn.randrange(2), drawn.randrange(4))]
            w.record(drawn.randrange(10**5), drawn.choice(kinds),
                     drawn.choice([0, 1, FOREIGN, FOREIGN + 1]), drawn.randrange(3),
                     drawn.choice([A, B, 0, 3]), more * drawn.randrange(2))
        _, err = convert(w)
        has(err, "kinds that this program does not know are left out: 99")


def many_events_are_no_matter():
    w = Writer(nvp=1)
    w.new(0, 0, A, "main")
    for n in range(30000):
        w.run(n * 100, 0, A)
        w.block(n * 100 + 50, 0, A, "cond")
        w.idle(n * 100 + 60, 0)
    events, _ = convert(w)
    equal(len(slices(events, lane(events, "VP 0"))), 60000 - 1)


def the_manual_has_every_option():
    shown = subprocess.run([sys.executable, TOOL, "--help"], capture_output=True,
                           text=True, check=True).stdout
    with open(os.path.join(ROOT, "tools/trace/marcel-trace.1"), encoding="utf-8") as f:
        manual = f.read()
    for option in re.findall(r"^  (?:-h, )?-(-\w+)", shown, re.MULTILINE):
        assert re.search(rf"^\.It .*Fl {option}\b", manual, re.MULTILINE), option


tap.run([
    a_vp_shows_which_thread_runs_and_whether_it_sleeps,
    a_user_thread_shows_what_it_waits_for_and_who_woke_it,
    how_many_threads_run_is_counted,
    an_address_is_another_thread_after_its_end,
    a_call_is_cut_where_its_thread_sleeps_and_goes_where_it_goes,
    who_was_about_to_sleep_and_did_not_runs,
    a_vp_waits_in_the_kernel_with_a_thread_that_called_it,
    who_comes_back_without_a_vp_is_in_its_calls_all_the_same,
    functions_of_ltasks_have_their_names,
    ltasks_wait_in_the_kernel_until_an_interrupt,
    arrows_lead_from_send_to_receive,
    a_process_of_no_job_sends_to_itself,
    a_message_without_end_has_no_arrow_and_is_told,
    clocks_of_hosts_are_set_to_the_middle,
    a_clock_in_ticks_is_taken_for_what_it_is,
    hosts_are_set_through_others,
    clocks_that_cannot_be_set_are_told,
    clocks_that_drift_are_followed,
    clocks_that_jump_are_told,
    lost_events_are_seen_where_they_are_missing,
    a_summary_says_what_the_time_went_to,
    a_stretch_of_time_is_chosen,
    what_is_no_trace_is_named,
    a_file_that_is_cut_off_shows_what_it_has,
    what_a_killed_process_was_in_goes_on_while_it_was_there,
    nonsense_in_a_file_ends_it,
    missing_and_old_files_are_told,
    files_of_two_processes_with_one_pid_are_read,
    of_a_file_and_those_of_a_job_the_later_count,
    what_lies_behind_a_hole_is_read,
    any_events_whatever_make_lanes,
    many_events_are_no_matter,
    the_manual_has_every_option,
])
