#!/usr/bin/env python3
"""Count what meson test runs have found.

    tally.py [--passed N] [--failed N] testlog.json ...

A test program that prints TAP counts once for each of its tests, another one
once. Names what failed and what was skipped and why, and repeats what tests
print as "# note: ...", up to four lines of each; the last line is "N passed,
N failed", with N from the options added.
"""
import argparse
import json
import re
import textwrap

GOOD = {"OK", "EXPECTEDFAIL"}


def tap(text):
    """The TAP lines as (ok, name, skipped, reason of the skip)."""
    reason = ""
    for line in text.splitlines():
        said = re.match(r"# skipped: (.*)", line)
        if said:
            reason = said[1]
        found = re.match(r"(not )?ok\b *\d* *-? *(.*)", line)
        if found:
            skipped = "# SKIP" in found[2]
            yield not found[1], found[2].split(" # ")[0], skipped, reason


def count(entry, skips, failures):
    """How many tests of one program have passed and failed."""
    passed = failed = 0
    for ok, name, skipped, reason in tap(entry.get("stdout", "")):
        if skipped:
            skips.append(f"{entry['name']}: {name}: {reason}")
        elif ok:
            passed += 1
        else:
            failed += 1
            failures.append(f"{entry['name']}: {name}")
    if entry["result"] == "SKIP" and not passed:
        if not any(s.startswith(entry["name"]) for s in skips):
            skips.append(entry["name"])
    elif entry["result"] in GOOD:
        passed = passed or 1
    elif failed == 0:
        failed = 1
        failures.append(f"{entry['name']}: {entry['result'].lower()}")
    return passed, failed


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--passed", type=int, default=0)
    parser.add_argument("--failed", type=int, default=0)
    parser.add_argument("log", nargs="*")
    args = parser.parse_args()
    passed, failed = args.passed, args.failed
    skips, failures, notes = [], [], []
    for path in args.log:
        with open(path, encoding="utf-8") as log:
            for line in log:
                entry = json.loads(line)
                good, bad = count(entry, skips, failures)
                notes += re.findall(r"^# note: (.*)", entry.get("stdout", ""),
                                    re.M)
                passed += good
                failed += bad
    for text in dict.fromkeys(notes):
        print(textwrap.fill(text, 80, subsequent_indent="  ", max_lines=4,
                            placeholder=" ..."))
    for text in skips:
        print(f"skipped: {text}")
    for text in failures:
        print(f"FAILED: {text}")
    print(f"{passed} passed, {failed} failed")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
