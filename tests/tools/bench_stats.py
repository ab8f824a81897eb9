#!/usr/bin/env python3
"""What tools/bench makes of samples that are made up: intervals, met targets,
chances, tables."""
import contextlib
import io
import itertools
import os
import random
import subprocess
import tempfile

import bench_samples as made
from bench_samples import equal, rounds, tap, words

import rails
import report
import samples
import stats
import turns
from stats import BEST, Target


def interval_of_what_does_not_vary():
    equal(stats.interval(rounds(2.0, 2.0, 2.0)), (2.0, 2.0))


def interval_is_within_the_values_and_around_the_median():
    values = rounds(*[float(n) for n in range(1, 22)])
    low, high = stats.interval(values)
    assert 1 < low < stats.median(values) < high < 21, (low, high)
    # By ranks: 6 and 16 of 21 are a 95 % interval of the median.
    assert 6 <= low <= 8 and 14 <= high <= 16, (low, high)


def interval_is_the_same_again():
    values = rounds(3.0, 1.0, 4.0, 1.5, 9.0)
    equal(stats.interval(values), stats.interval(dict(values)))


def too_few_rounds_have_no_interval():
    equal(stats.interval(rounds(1.0, 2.0)), None)
    equal(stats.verdict(Target("x", "<=", 9), rounds(1.0, 2.0)),
          "fewer than 3 rounds")


def interval_covers_the_true_ratio():
    """Of 150 experiments with noise whose true median ratio is 0.8."""
    drawn = random.Random(7)
    covered = 0
    for _ in range(150):
        ours, theirs = {}, {}
        for n in range(15):
            drift = drawn.lognormvariate(0, 0.5)  # hits both of a round
            ours[n] = 0.8 * drift * drawn.lognormvariate(0, 0.1)
            theirs[n] = drift * drawn.lognormvariate(0, 0.1)
        low, high = stats.interval(stats.paired(ours, theirs, stats.times))
        covered += low <= 0.8 <= high
    assert 0.90 <= covered / 150 <= 0.99, covered


def pairs_are_of_one_round():
    equal(stats.paired({0: 2.0, 1: 9.0, 3: 8.0}, {0: 1.0, 2: 1.0, 3: 4.0},
                       stats.times), {0: 2.0, 3: 2.0})


def a_ratio_to_nothing_is_no_error():
    equal(stats.times(0.0, 0.0), 1.0)
    equal(stats.times(1.0, 0.0), float("inf"))


def best_is_least_or_most_by_unit():
    peers = {"a": rounds(1.0, 2.0, 3.0), "b": rounds(2.5, 1.0, 9.0), "c": {}}
    equal(stats.best(peers, "us"), "a")
    equal(stats.best(peers, "MB/s"), "b")
    equal(stats.best(peers, "trips/s"), "b")
    equal(stats.best({"c": {}}, "us"), None)


def met_reaches_down_to_5_percent_more():
    at_most, at_least = Target("x", "<=", 0.5), Target("x", ">=", 2.0)
    assert at_most.met((0.525, 9.0)) and not at_most.met((0.526, 9.0))
    assert at_least.met((0.1, 1.91)) and not at_least.met((0.1, 1.90))


def targets_fit_series_names_networks_settings():
    assert Target("send", "<=", 1).fits("send_32K", "shm", "ours")
    assert Target("hidden_send", "<=", 1).fits("hidden_send_1M", "shm", "ours")
    assert not Target("send", "<=", 1).fits("hidden_send_1M", "shm", "ours")
    assert Target("one_1", "<=", 1).fits("one_1", "tcp", "ours")
    assert not Target("one_1", "<=", 1).fits("one_128", "tcp", "ours")
    assert not Target("one", "<=", 1, network="shm").fits("one_1", "tcp", "")
    assert not Target("one", "<=", 1, mpi="ours").fits("one_1", "tcp",
                                                       "ours kernel")


def targets_are_about_peers_or_own_or_values():
    ours = {"send_1K": rounds(3.0, 3.0, 3.0), "plain_1K": rounds(2.0, 2.0, 2.0)}
    peers = {"a": rounds(6.0, 6.0, 6.0), "b": rounds(9.0, 9.0, 9.0)}

    def of(target):
        return stats.compared(target, "send_1K", ours, peers, "us")

    equal(of(Target("send", "<=", 1)), rounds(0.5, 0.5, 0.5))
    equal(of(Target("send", "<=", 1, None)), ours["send_1K"])
    equal(of(Target("send", "<=", 1, "plain_*")), rounds(1.5, 1.5, 1.5))
    equal(of(Target("send", "<=", 1, "plain_*", "more")), rounds(1.0, 1.0, 1.0))
    equal(of(Target("send", "<=", 1, "none_*")), None)
    equal(stats.compared(Target("send", "<=", 1, BEST), "send_1K", ours, {},
                         "us"), None)
    equal(stats.verdict(Target("send", "<=", 1), None),
          "nothing to compare with")


def names_have_series_and_x():
    equal(samples.point("hidden_both_32K"), ("hidden_both", 32768))
    equal(samples.point("latency_8B"), ("latency", 8))
    equal(samples.point("rate_12"), ("rate", 12))
    equal(samples.point("both"), ("both", None))


def shown(path):
    said = io.StringIO()
    with contextlib.redirect_stdout(said):
        report.show(path)
    return said.getvalue()


def small_ratios_keep_two_digits():
    equal([report.short(x) for x in (0.0, 0.00123, -0.05, 0.5, 12.0, 4321.0)],
          ["0.00", "0.0012", "-0.05", "0.50", "12.00", "4321"])


def tables_of_samples():
    with tempfile.TemporaryDirectory() as folder:
        said = shown(made.write(folder, made.some()))
        with open(os.path.join(folder, "tables.txt"), encoding="utf-8") as f:
            text = f.read()
        assert text in said, said
        for row in (
                "latency, shm: ours, rounds: 5",
                # b has no fifth round; a is the best; the pairs say 0.5.
                "latency_8B 3.0000 1.0000..5.0000 6.0000 7.5000 "
                "0.50 (0.50..0.50) a us <= 1: met",
                "latency_64K 60.0000 20.0000..100.0 120.0 150.0 "
                "0.50 (0.50..0.50) a us <= 0.9: met",
                "overlap, tcp: ours, rounds: 5",
                "hidden_sender_1M 1.0000 1.0000..1.0000 0.0000 "
                "+1.00 (1.00..1.00) a share >= 0.8: met"):
            assert row in words(text), f"no \"{row}\" in\n{text}"


def without_peers_the_first_of_ours_is_the_base():
    rows = [["locks", "self", library, n, f"threads_{count}_8", value, "us"]
            for n in range(3)
            for library, value in (("ours", 2.0), ("ours fine", 3.0))
            for count in (1, 2) if (library, count) != ("ours", 2)]
    with tempfile.TemporaryDirectory() as folder:
        said = words(shown(made.write(folder, rows)))
        assert "locks, self: ours, rounds: 3 median 95 % unit target threads_" \
            "1_8 2.0000 2.0000..2.0000 us locks, self: ours fine" in said, said
        assert "ratio (95 %) to unit target threads_1_8 3.0000 " \
            "3.0000..3.0000 1.50 (1.50..1.50) ours us threads_2_8 3.0000 " \
            "3.0000..3.0000 us" in said, said


def rails_are_held_against_their_sum():
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "rails", "samples.csv")
        with samples.Writer(path) as out:
            for n in range(3):
                rails.add_round(out, "rails", "2mbit,1mbit", n, {
                    f"ours {which}": {"latency_1M": (us, "us")}
                    for which, us in (("first", 1000.0), ("second", 2000.0),
                                      ("both", 800.0))})
        said = words(shown(path))
        for row in ("ours second, rounds: 3", "rate_1M 524.3 524.3..524.3",
                    "ours both, rounds: 3", "of_sum_1M 0.8333 0.8333..0.8333 "
                    "share >= 0.95: missed"):
            assert row in said, said


def there_is_no_file_without_samples():
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "x", "samples.csv")
        made.write(os.path.dirname(path), [["of an earlier run"]])
        with samples.Writer(path) as out:
            out.add("rate", "shm", "ours", 0, {})
            assert out.is_empty()
        assert not os.path.exists(path)


def a_job_says_numbers_or_why_not():
    def job(script, limit=turns.LIMIT):
        return turns.Job("ours", ["sh", "-c", script], {"X": "2"}).run(limit)

    equal(job("echo a 1 us; echo b $X MB/s"), {"a": (1.0, "us"),
                                               "b": (2.0, "MB/s")})
    for script, limit, why in (
            ("echo much", 60, "it printed 'much', not NAME VALUE UNIT"),
            ("echo a nan us", 60, "it printed 'a nan us', not NAME VALUE UNIT"),
            ("echo a 1 us; exit 3", 60, "exit code 3"),
            ("kill -9 $$", 60, "signal 9"),
            ("exec sleep 99", 0, "not done after 0 s")):
        try:
            raise AssertionError(f"taken: {job(script, limit)}")
        except (ValueError, subprocess.SubprocessError) as wrong:
            equal(turns.why(wrong), why)
    equal(turns.why(FileNotFoundError(2, "No such file", "prog")),
          "prog: No such file")


def a_missed_target_is_said():
    with tempfile.TemporaryDirectory() as folder:
        rows = [[*row[:5], row[5] * (3 if row[2] == "ours" else 1), row[6]]
                for row in made.some()]
        said = shown(made.write(folder, rows))
        assert "1.50 (1.50..1.50) a us <= 1: missed" in words(said), said


def wrong_files_are_refused():
    good = ["latency", "shm", "ours", 0, "latency_8B", 1, "us"]
    with tempfile.TemporaryDirectory() as folder:
        for rows, why in (
                ([[*good[:5], "much", "us"]], "line 2: could not convert"),
                ([[*good[:5], "nan", "us"]], "line 2: value nan is no number"),
                ([good, [*good[:6], "s"]], "line 3: latency_8B is in s and us"),
                ([good, good], "line 3: round 0 of ours's latency_8B is there "
                               "twice"),
                ([good[:4]], "line 2: not 7 fields"),
                ([[*good, "more"]], "line 2: not 7 fields"),
                ([], "no samples are in it")):
            path = made.write(folder, rows)
            try:
                samples.read(path)
            except samples.Wrong as wrong:
                assert str(wrong).startswith(path) and why in str(wrong), wrong
            else:
                raise AssertionError(f"taken: {rows}")


def a_file_that_is_cut_off_is_refused():
    with tempfile.TemporaryDirectory() as folder:
        path = made.write(folder, made.some())
        with open(path, "rb+") as f:
            f.truncate(os.path.getsize(path) - 1)
        try:
            samples.read(path)
        except samples.Wrong as wrong:
            assert str(wrong).endswith("line 63: it is cut off"), wrong
        else:
            raise AssertionError("taken")


def chances_by_hand(old, new):
    """All ways to deal the values out."""
    every = old + new
    twice = stats.ranks(every)
    mean = sum(twice) * len(old) / len(every)
    far = abs(sum(twice[:len(old)]) - mean)
    ways = list(itertools.combinations(range(len(every)), len(old)))
    return sum(abs(sum(twice[i] for i in way) - mean) >= far - 1e-9
               for way in ways) / len(ways)


def mann_whitney_counts_all_ways():
    for old, new in (([1, 2, 3], [4, 5, 6, 7]), ([1, 5, 3, 8], [2, 2, 9, 4]),
                     ([1, 1, 1], [1, 1, 1]), ([2, 2, 3, 3], [3, 3, 3, 4, 5])):
        found = stats.mann_whitney(rounds(*old), rounds(*new))
        wanted = chances_by_hand(old, new)
        assert abs(found - wanted) < 1e-12, (old, new, found, wanted)
    equal(stats.mann_whitney(rounds(1, 2, 3), rounds(4, 5, 6)),
          stats.least_chance(3, 3))


def mann_whitney_of_many_is_near_that():
    """The normal distribution, where counting would take long."""
    drawn = random.Random(5)
    old = rounds(*[drawn.gauss(0, 1) for _ in range(30)])
    new = rounds(*[drawn.gauss(0.5, 1) for _ in range(30)])
    exact = stats.mann_whitney(old, new)
    limit, stats.EXACT = stats.EXACT, 0
    try:
        near = stats.mann_whitney(old, new)
    finally:
        stats.EXACT = limit
    assert abs(near - exact) < 0.01, (near, exact)


def holm_keeps_the_order_and_raises():
    found = stats.holm([0.04, 0.01, 0.03, 0.5])
    wanted = [0.09, 0.04, 0.09, 0.5]
    assert all(abs(f - w) < 1e-12 for f, w in zip(found, wanted)), found
    equal(stats.holm([]), [])


tap.run([interval_of_what_does_not_vary,
         interval_is_within_the_values_and_around_the_median,
         interval_is_the_same_again, too_few_rounds_have_no_interval,
         interval_covers_the_true_ratio, pairs_are_of_one_round,
         a_ratio_to_nothing_is_no_error, best_is_least_or_most_by_unit,
         met_reaches_down_to_5_percent_more,
         targets_fit_series_names_networks_settings,
         targets_are_about_peers_or_own_or_values, names_have_series_and_x,
         small_ratios_keep_two_digits, tables_of_samples,
         without_peers_the_first_of_ours_is_the_base,
         a_job_says_numbers_or_why_not, rails_are_held_against_their_sum,
         there_is_no_file_without_samples, a_missed_target_is_said,
         wrong_files_are_refused, a_file_that_is_cut_off_is_refused,
         mann_whitney_counts_all_ways, mann_whitney_of_many_is_near_that,
         holm_keeps_the_order_and_raises])
