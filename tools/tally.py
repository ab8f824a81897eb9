#!/usr/bin/env python3
"""Count what meson test runs have found.

    tally.py [--passed N] [--failed N] testlog.json ...

A test program that prints TAP counts once for each of its tests, another one
once. Names what failed and what was skipped and why, and repeats what tests
print as "# note: ...", up to four lines of each; the last line is "N passed,
N failed", with N from the options added.

A test says in comments why it failed, before it says that it did or, if there
are none, after: the last or the first of these are shown. Of a program that
died, or failed though none of its tests did, it is the end of what it printed.
"""
import argparse
import json
import re
import textwrap

GOOD = {"OK", "EXPECTEDFAIL"}

# What is shown of a failure: lines, some of them of stdout, and columns of each.
LINES, OUT_LINES, COLUMNS = 8, 3, 160


def tap(text):
    """The TAP lines as (ok, name, reason of a skip or None, comments before,
    comments after)."""
    reason, before, results = "", [], []
    for line in text.splitlines():
        found = re.match(r"(not )?ok\b *\d* *-? *(.*)", line)
        if found:
            skip = reason if "# SKIP" in found[2] else None
            name = found[2].split(" # ")[0]
            results.append((not found[1], name, skip, before, []))
            before = []
        elif line.startswith("#"):
            comment = line[1:].removeprefix(" ")
            if comment.startswith("skipped: "):
                reason = comment.removeprefix("skipped: ")
            before.append(comment)
            if results:
                results[-1][4].append(comment)
        elif re.match(r"1\.\.\d", line):
            before = []  # what comes before the plan is of no test
    return results


def end_of(entry):
    """How a program has ended that does not say itself what failed."""
    code = entry.get("returncode", 0)
    out, err = (
        [line for line in entry.get(stream, "").splitlines() if line]
        for stream in ("stdout", "stderr")
    )
    how = f"signal {-code}" if code < 0 else f"exit code {code}"
    return [how] + out[-OUT_LINES:] + err[-LINES:]


def count(entry, skips, failures):
    """How many tests of one program have passed and failed."""
    passed = failed = 0
    for ok, name, skip, before, after in tap(entry.get("stdout", "")):
        if skip is not None:
            skips.append(f"{entry['name']}: {name}: {skip}")
        elif ok:
            passed += 1
        else:
            failed += 1
            why = before[-LINES:] or after[:LINES]
            failures.append((f"{entry['name']}: {name}", why))
    if entry["result"] == "SKIP" and not passed:
        if not any(s.startswith(entry["name"]) for s in skips):
            skips.append(entry["name"])
    elif entry["result"] in GOOD:
        passed = passed or 1
    elif failed == 0:
        failed = 1
        what = f"{entry['name']}: {entry['result'].lower()}"
        failures.append((what, end_of(entry)))
    elif entry.get("returncode", 1) not in (0, 1):  # it died later
        failures[-1][1].extend(end_of(entry))
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
    for text, why in failures:
        print(f"FAILED: {text}")
        for line in why:
            print(f"       | {line[:COLUMNS]}")
    print(f"{passed} passed, {failed} failed")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
