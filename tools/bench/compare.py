#!/usr/bin/env python3
"""Tell whether two results of tools/bench/run.py differ beyond noise.

    tools/bench/compare.py [--to LIBRARY] [--least PERCENT] A B

A and B are files of samples, or folders in which, or in whose folders, these
are. Each name of ours that both have, in the same benchmark and setting, is
compared over all rounds of A with all rounds of B: shown are the medians, B / A
(of shares B - A) with its 95 % interval by bootstrap, and the chance p of a
difference as large by accident (Mann-Whitney, two-sided, exact up to 60 rounds),
by Holm's method made so large that among all names together there is a chance
of 5 % to find any difference in pure noise. A difference is one with p < 0.05
that is of --least or more (5 %; of shares 0.05).

That assumes that the rounds of a result are independent and that nothing but
what is compared has changed from A to B. On the same machine at another hour
that often is not so. The peers tell: they have not changed, and where they
differ, the machine does. --to LIBRARY then compares the ratios of ours to this
peer in the same round, in which the machine falls out.

Exit code: 0, no difference beyond noise; 1, there are some; 2, wrong arguments or
a file that is none of ours (which one is said); 3, so few rounds for so many
names that no difference could have been found.
"""
import argparse
import math
import os
import sys
from dataclasses import dataclass

import machine
import report
import samples
import stats

ALPHA = 0.05
SAME, DIFFERENT, WRONG, TOO_FEW = 0, 1, 2, 3
MANY = 1000  # rounds; nobody makes so many


@dataclass
class Pair:
    """The values of a name in both results."""
    what: tuple  # benchmark, setting, library, name
    unit: str
    old: dict
    new: dict
    of: object = None  # how two values are held against each other
    p: float = 1.0  # among all that are compared

    @property
    def ratio(self):
        return self.of(stats.median(self.new), stats.median(self.old))

    def differs(self, least):
        if self.p >= ALPHA:
            return False
        if self.of is stats.more:
            return abs(self.ratio) >= least
        return self.ratio <= 1 / (1 + least) or self.ratio >= 1 + least

    def is_better(self):
        same = 0 if self.of is stats.more else 1
        return (self.ratio > same) == (self.unit in stats.MORE_IS_BETTER)


def contents(sheets):
    """In words: benchmarks, settings, and who is beside us."""
    peers = {x for s in sheets.values() for x in s.libraries
             if not samples.is_ours(x)}
    return "; ".join(", ".join(key) for key in sheets) + (
        f" (beside {', '.join(sorted(peers))})" if peers else "")


def sheets_of(result):
    return {(s.benchmark, s.setting): s for of in result.values() for s in of}


def values_of(sheet, library, name, to):
    """By round; with `to` of pairs."""
    values = sheet.of(library, name)
    if to is None:
        return values
    return stats.paired(values, sheet.of(to, name),
                        stats.against(sheet.units[name]))


def pairs(a, b, wanted, to=None):
    """Of libraries for which wanted() is true."""
    found = []
    for key, old in a.items():
        new = b.get(key)
        if new is None:
            continue
        for library in filter(wanted, old.libraries):
            for name, unit in old.units.items():
                if new.units.get(name, unit) != unit:
                    raise samples.Wrong(
                        f"{', '.join(key)}: {name} is in {unit} in A, in "
                        f"{new.units[name]} in B")
                values = [values_of(s, library, name, to) for s in (old, new)]
                if all(values):
                    found.append(Pair((*key, library, name), unit, *values,
                                      stats.against(unit)))
    return found


def judge(found):
    chances = [stats.mann_whitney(p.old, p.new) for p in found]
    for pair, chance in zip(found, stats.holm(chances)):
        pair.p = chance
    return found


def rounds_needed(names):
    """Of each result, for a difference in one of so many to be found."""
    return next((n for n in range(2, MANY)
                 if stats.least_chance(n, n) * names < ALPHA), MANY)


def can_tell(found):
    return any(stats.least_chance(len(p.old), len(p.new)) * len(found) < ALPHA
               for p in found)


def row(pair, least):
    low, high = stats.apart(pair.old, pair.new, pair.of)
    verdict = "" if not pair.differs(least) else (
        "better" if pair.is_better() else "worse")
    sign = "+" if pair.of is stats.more and pair.ratio >= 0 else ""
    return (f"{pair.what[3]:30}{report.number(stats.median(pair.old)):>12}"
            f"{report.number(stats.median(pair.new)):>12}   "
            f"{f'{sign}{pair.ratio:.3f} ({low:.3f}..{high:.3f})':30}"
            f"{pair.p:<9.2g}{pair.unit:10}{verdict}").rstrip()


def show(found, least, to):
    before = None
    for pair in found:
        if pair.what[:3] != before:
            before = pair.what[:3]
            counts = f"rounds: {len(pair.old)} and {len(pair.new)}"
            print(f"\n{before[0]}, {before[1]}: {before[2]}"
                  f"{f' / {to}' if to else ''}, {counts}\n{'':30}{'A':>12}"
                  f"{'B':>12}   {'B of A (95 %)':30}{'p':9}{'unit':10}")
        print(row(pair, least))


def show_machines(a, b):
    """What of them is not the same."""
    known = [next((m for m in map(machine.read, of) if m), None)
             for of in (a, b)]
    if None in known:
        print("On what machine: nothing says that of "
              + " and ".join(x for x, m in zip("AB", known) if m is None))
        return
    for what, one, other in machine.differences(*known):
        print(f"{what}: {one} in A, {other} in B")


def show_peers(a, b, least):
    found = judge(pairs(a, b, lambda x: not samples.is_ours(x)))
    changed = [p for p in found if p.differs(least)]
    if changed:
        print(f"\n{len(changed)} of {len(found)} values of the peers differ, "
              "too: the machine has changed, or they have; try --to "
              f"{changed[0].what[2]}")


def options_of():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--to", metavar="LIBRARY")
    parser.add_argument("--least", metavar="PERCENT", type=float, default=5)
    parser.add_argument("a", metavar="A")
    parser.add_argument("b", metavar="B")
    options = parser.parse_intermixed_args()
    if not (math.isfinite(options.least) and options.least >= 0):
        parser.error(f"--least {options.least}: not a number from 0")
    return options


def compare(options):
    results = samples.read(options.a), samples.read(options.b)
    a, b = map(sheets_of, results)
    found = judge(pairs(a, b, samples.is_ours, options.to))
    if not found:
        raise samples.Wrong(
            f"nothing of ours is in both{f' beside {options.to}' * bool(options.to)}"
            f": {options.a} has {contents(a)}; {options.b} has {contents(b)}")
    least = options.least / 100
    show_machines(*results)
    show(found, least, options.to)
    if options.to is None:
        show_peers(a, b, least)
    return verdict(found, least)


def verdict(found, least):
    differ = [p for p in found if p.differs(least)]
    better = sum(p.is_better() for p in differ)
    if differ:
        print(f"\n{len(differ)} of {len(found)} differ: {better} better, "
              f"{len(differ) - better} worse")
        return DIFFERENT
    if not can_tell(found):
        print(f"\nToo few rounds: among {len(found)} values a difference can "
              f"be found from {rounds_needed(len(found))} rounds of each on")
        return TOO_FEW
    print(f"\nNone of {len(found)} differs beyond noise")
    return SAME


def main():
    options = options_of()
    try:
        code = compare(options)
        sys.stdout.flush()
    except samples.Wrong as wrong:
        print(f"compare: {wrong}", file=sys.stderr)
        code = WRONG
    except BrokenPipeError:  # who reads has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        code = WRONG
    sys.exit(code)


if __name__ == "__main__":
    main()
