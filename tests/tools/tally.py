#!/usr/bin/env python3
"""tools/tally.py: what it makes of a log of meson test. Prints TAP."""

import json
import os
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(__file__), ".."))
import tap  # noqa: E402

TALLY = os.path.join(
    os.path.dirname(os.path.abspath(__file__)), "..", "..", "tools", "tally.py"
)


def entry(stdout, result="FAIL", code=1, stderr=""):
    log = {"name": "prog", "result": result, "returncode": code, "stdout": stdout}
    return log | ({"stderr": stderr} if stderr else {})


def shown(*lines):
    return "".join(f"       | {line}\n" for line in lines)


def numbered(start, end):
    return [f"{n}" for n in range(start, end)]


MANY = "".join(f"# {n}\n" for n in range(20))

# rule, entries of the log, all that is printed
CASES = [
    (
        "a program counts once for each of its tests, another once",
        [
            entry("1..2\nok 1 - a\nok 2 - b\n", "OK", 0),
            entry("hello\n", "OK", 0),
        ],
        "3 passed, 0 failed\n",
    ),
    (
        "a skip is named with its reason",
        [entry("1..2\nok 1 - a\n# skipped: no net\nok 2 - b # SKIP\n", "OK", 0)],
        "skipped: prog: b: no net\n1 passed, 0 failed\n",
    ),
    (
        "of a failure the comments before it are shown",
        [
            entry(
                "# TEST_SEED=1\n1..3\n# of a\nok 1 - a\n# 4 VPs\nsaid\n"
                "# x.c:3: y is 1, not 2\nnot ok 2 - b\n# of c\nok 3 - c\n"
            )
        ],
        "FAILED: prog: b\n"
        + shown("4 VPs", "x.c:3: y is 1, not 2")
        + "2 passed, 1 failed\n",
    ),
    (
        "if there are none, those after it",
        [entry("# TEST_SEED=1\n1..2\nnot ok 1 - a # 9 runs\n# lost\nok 2 - b\n")],
        "FAILED: prog: a\n" + shown("lost") + "1 passed, 1 failed\n",
    ),
    (
        "the last ones before it, with so many columns",
        [entry(f"1..1\n{MANY}# {'x' * 200}\nnot ok 1 - a\n")],
        "FAILED: prog: a\n"
        + shown(*numbered(9, 20), "x" * 160)
        + "0 passed, 1 failed\n",
    ),
    (
        "the first ones after it",
        [entry(f"1..1\nnot ok 1 - a\n{MANY}")],
        "FAILED: prog: a\n" + shown(*numbered(0, 12)) + "0 passed, 1 failed\n",
    ),
    (
        "who died is shown with the ends of what it printed",
        [
            entry(
                "1..3\nok 1 - a\n# 4 VPs\n# timed out\n",
                "ERROR",
                -6,
                "".join(f"{n}\n" for n in range(20)),
            )
        ],
        "FAILED: prog: error\n"
        + shown("signal 6", "ok 1 - a", "# 4 VPs", "# timed out", *numbered(12, 20))
        + "1 passed, 1 failed\n",
    ),
    (
        "so is who died after a failure",
        [entry("1..2\n# x\nnot ok 1 - a\n", "ERROR", -11, "stack overflow\n")],
        "FAILED: prog: a\n"
        + shown("x", "signal 11", "1..2", "# x", "not ok 1 - a", "stack overflow")
        + "0 passed, 1 failed\n",
    ),
    (
        "and what has no tests",
        [entry("", code=2, stderr="no such file\n")],
        "FAILED: prog: fail\n"
        + shown("exit code 2", "no such file")
        + "0 passed, 1 failed\n",
    ),
]


def tally(entries, step="", looks=(), *options):
    with tempfile.TemporaryDirectory() as folder:
        log = os.path.join(folder, "log")
        for path, what in ((log, entries), (log + ".hung", looks)):
            with open(path, "w", encoding="utf-8") as f:
                f.writelines(json.dumps(e) + "\n" for e in what)
        return subprocess.run(
            [sys.executable, TALLY, "--of", step, log, *options],
            capture_output=True,
            text=True,
            check=False,
        )


LOOK = {
    "name": "prog",
    "seconds": 330,
    "lines": [
        "1 S poll: mpirun",
        "  kernel thread 1 at poll < run",
        "2 S futex_do_wait: prog",
        "  0x7f main waits for send to rank 0",
        "  1 thread at marcel_park < main",
        "  kernel thread 2, 1 at syscall < os_futex_wait",
    ],
}
HUNG = entry("# at work\n", "FAIL", -15)


def a_hang_says_what_its_processes_do():
    said = tally([HUNG], "TSan tests", [LOOK], "--lines", "4").stdout
    assert said == (
        "FAILED TSan tests: prog: hangs, not done after 330 s\n"
        + shown(LOOK["lines"][0], LOOK["lines"][2], LOOK["lines"][3], "# at work")
        + "0 passed, 1 failed\n"
    ), said
    said = tally([HUNG], "", [LOOK]).stdout
    assert said.startswith(
        "FAILED: prog: hangs, not done after 330 s\n" + shown(*LOOK["lines"])
    ), said


def the_first_error_is_shown_and_the_end():
    err = [str(n) for n in range(30)]
    err[7] = "WARNING: ThreadSanitizer: data race"
    said = tally([entry("", stderr="\n".join(err))], "", (), "--lines", "9").stdout
    assert said == (
        "FAILED: prog: fail\n"
        + shown("exit code 1", *err[7:11], *err[26:])
        + "0 passed, 1 failed\n"
    ), said


def what_another_rank_says_in_between_hides_no_error():
    said = tally([entry("1..2\n# x.c:3: y\nok 1 - a\n# z\nnot ok 1 - a\n")]).stdout
    assert said == (
        "FAILED: prog: a\n" + shown("x.c:3: y", "z") + "1 passed, 1 failed\n"
    ), said


def of_many_failures_each_has_fewer_lines():
    said = tally([entry(f"1..1\n{MANY}not ok 1 - a\n")] * 10).stdout
    assert said.count("FAILED") == 10, said
    assert said.count("       | ") == 40, said


def a_step_that_is_no_run_of_tests_is_named():
    with tempfile.NamedTemporaryFile("w", encoding="utf-8") as log:
        log.write("[1/2] cc\nx.c:1: error: y\n")
        log.flush()
        said = tally([], "", (), "--broken", "gcc, release", log.name).stdout
    assert said == (
        "FAILED gcc, release: does not hold\n"
        + shown("x.c:1: error: y")
        + "0 passed, 1 failed\n"
    ), said


CHECKS = [
    a_hang_says_what_its_processes_do,
    the_first_error_is_shown_and_the_end,
    what_another_rank_says_in_between_hides_no_error,
    of_many_failures_each_has_fewer_lines,
    a_step_that_is_no_run_of_tests_is_named,
]


def results():
    for rule, entries, expected in CASES:
        done = tally(entries)
        good = done.returncode == 0 and done.stdout == expected
        wrong = tap.unless(good, done.returncode, done.stdout + done.stderr)
        yield rule, wrong
    for check in CHECKS:
        yield check.__name__.replace("_", " "), tap.wrong_with(check)


sys.exit(tap.tell(len(CASES) + len(CHECKS), results()))
