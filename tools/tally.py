#!/usr/bin/env python3
"""Count what meson test runs have found.

    tally.py [--passed N] [--of STEP LOG]... [--broken STEP LOG]... [--lines N]
             [testlog.json ...]

A test program that prints TAP counts once for each of its tests, another one
once. Names what failed and what was skipped and why, and repeats what tests
print as "# note: ...", up to four lines of each; the last line is "N passed,
N failed", with N from the options added. --of says in which step a log was
written; beside it may be one, LOG.hung, of tools/watch.py. --broken is a step
that failed and is no run of tests, with what it printed.

A test says in comments why it failed, before it says that it did or, if there
are none, after; of a program that died, or failed though none of its tests did,
it is what it printed; of one that hung what its processes were doing. Of all that
as many lines are shown as --lines says, or fewer if they were more than some
fifty together: from the first that tells of an error on, and the last ones.
"""
import argparse
import json
import re
import textwrap

GOOD = {"OK", "EXPECTEDFAIL"}

# What is shown of a failure: columns, and lines of all of them.
COLUMNS, LINES_OF_ALL, LINES_LEAST = 160, 52, 3
ERROR = re.compile(
    r"\.(c|h|cc|cpp|py):\d+|ERROR|WARNING: |runtime error|[Aa]ssert|Traceback"
    r"|[Ff]atal|[Ee]rror:|signal|timed out|FAILED|not ok"
)
BUILT = re.compile(r"\[\d+/\d+\] ")  # by ninja


def is_error(line):
    return not line.startswith("ok ") and ERROR.search(line) is not None


def telling(lines, most):
    """The first that tell of an error, and the last ones."""
    first = next((i for i, line in enumerate(lines) if is_error(line)), len(lines))
    lines = lines[min(first, max(0, len(lines) - most)):]
    if len(lines) <= most:
        return lines
    end = most // 2
    return lines[:most - end] + lines[len(lines) - end:]


def of_processes(lines, most):
    """What tools/watch.py says, first of all what is waited for."""

    def rank(line):
        if " at " not in line or not line.startswith(" "):
            return 0
        return 2 if line.lstrip().startswith("kernel") else 1

    shown = sorted(range(len(lines)), key=lambda i: rank(lines[i]))[:most]
    return [lines[i] for i in sorted(shown)]


def tap(text):
    """The TAP lines as (ok, name, reason of a skip or None, comments before,
    comments after)."""
    reason, before, since, results = "", [], [], []
    for line in text.splitlines():
        found = re.match(r"(not )?ok\b *\d* *-? *(.*)", line)
        if found:
            skip = reason if "# SKIP" in found[2] else None
            name = found[2].split(" # ")[0]
            # Where ranks print at once others' results come in between.
            why = before if any(map(is_error, before)) else since
            why = why if found[1] and any(map(is_error, why)) else before
            results.append((not found[1], name, skip, why, []))
            before = []
            since = [] if found[1] else since
        elif line.startswith("#"):
            comment = line[1:].removeprefix(" ")
            if comment.startswith("skipped: "):
                reason = comment.removeprefix("skipped: ")
            before.append(comment)
            since.append(comment)
            if results:
                results[-1][4].append(comment)
        elif re.match(r"1\.\.\d", line):
            before, since = [], []  # what comes before the plan is of no test
    return results


def end_of(entry):
    """How a program has ended that does not say itself what failed: a function
    of how many lines may say so."""
    code = entry.get("returncode", 0)
    out, err = (
        [line for line in entry.get(stream, "").splitlines() if line]
        for stream in ("stdout", "stderr")
    )
    how = f"signal {-code}" if code < 0 else f"exit code {code}"

    def lines(most):
        of_out = min(len(out), max((most - 1) // 3, most - 1 - len(err)))
        return [how] + telling(out, of_out) + telling(err, most - 1 - of_out)

    return lines


def first_or_last(before, after):
    return lambda most: telling(before, most) or after[:most]


def both(one, two):
    return lambda most: (one(most - most // 2) + two(most))[:most]


def count(entry, skips, failures, look=None):
    """How many tests of one program have passed and failed. A failure is what,
    and a function of a number of lines that gives these. A look is what
    tools/watch.py says of it."""
    passed = failed = 0
    for ok, name, skip, before, after in tap(entry.get("stdout", "")):
        if skip is not None:
            skips.append(f"{entry['name']}: {name}: {skip}")
        elif ok:
            passed += 1
        else:
            failed += 1
            failures.append((f"{entry['name']}: {name}", first_or_last(before, after)))
    if entry["result"] == "SKIP" and not passed:
        if not any(s.startswith(entry["name"]) for s in skips):
            skips.append(entry["name"])
    elif entry["result"] in GOOD:
        passed = passed or 1
    elif look is not None:
        failed += 1
        failures.append((
            f"{entry['name']}: hangs, not done after {look['seconds']} s",
            lambda most: of_processes(look["lines"], most - most // 4)
            + end_of(entry)(most)[1:][-(most // 4):],
        ))
    elif failed == 0:
        failed = 1
        what = f"{entry['name']}: {entry['result'].lower()}"
        failures.append((what, end_of(entry)))
    elif entry.get("returncode", 1) not in (0, 1):  # it died later
        what, why = failures[-1]
        failures[-1] = what, both(why, end_of(entry))
    return passed, failed


def looks_beside(path):
    """What tools/watch.py has seen of tests, by their names."""
    try:
        with open(path + ".hung", encoding="utf-8") as f:
            return {look["name"]: look for look in map(json.loads, f)}
    except OSError:
        return {}


def broken(step, path):
    with open(path, encoding="utf-8", errors="replace") as log:
        said = [line.rstrip() for line in log if not BUILT.match(line)]
    return step, "does not hold", lambda most: telling(said, most)


def show(failures, most):
    if most is None:
        most = min(12, LINES_OF_ALL // max(1, len(failures)) - 1)
    for step, what, why in failures:
        print(f"FAILED{step and ' ' + step}: {what}")
        for line in why(max(most, LINES_LEAST)):
            print(f"       | {line[:COLUMNS]}")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--passed", type=int, default=0)
    parser.add_argument("--failed", type=int, default=0)
    parser.add_argument("--of", nargs=2, action="append", default=[])
    parser.add_argument("--broken", nargs=2, action="append", default=[])
    parser.add_argument("--lines", type=int)
    parser.add_argument("log", nargs="*")
    args = parser.parse_args()
    failures = [broken(*b) for b in args.broken]
    passed, failed = args.passed, args.failed + len(failures)
    skips, notes = [], []
    for step, path in args.of + [["", path] for path in args.log]:
        looks, here = looks_beside(path), []
        with open(path, encoding="utf-8") as log:
            for line in log:
                entry = json.loads(line)
                look = looks.get(entry["name"].split(" / ")[-1])
                good, bad = count(entry, skips, here, look)
                notes += re.findall(r"^# note: (.*)", entry.get("stdout", ""),
                                    re.M)
                passed += good
                failed += bad
        failures += [(step, *failure) for failure in here]
    for text in dict.fromkeys(notes):
        print(textwrap.fill(text, 80, subsequent_indent="  ", max_lines=4,
                            placeholder=" ..."))
    for text in skips:
        print(f"skipped: {text}")
    show(failures, args.lines)
    print(f"{passed} passed, {failed} failed")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
