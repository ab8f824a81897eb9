#!/usr/bin/env python3
"""tools/watch.py: who hangs is looked at and ended, who does not is left alone.
Prints TAP. The build folder is one of paper, and a shell is its meson."""

import json
import os
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(__file__), ".."))
import tap  # noqa: E402

WATCH = os.path.join(
    os.path.dirname(os.path.abspath(__file__)), "..", "..", "tools", "watch.py"
)


def watched(command, timeout, seconds=100000):
    """What is said of tests that hang, and how the command has ended."""
    test = {"name": "sleeps", "cmd": ["sleep", str(seconds)], "env": {"OF": "x"},
            "timeout": timeout}
    with tempfile.TemporaryDirectory() as build:
        os.mkdir(os.path.join(build, "meson-info"))
        path = os.path.join(build, "meson-info", "intro-tests.json")
        with open(path, "w", encoding="utf-8") as f:
            json.dump([dict(test, name="other", env={"OF": "y"}), test], f)
        said = os.path.join(build, "said")
        done = subprocess.run(
            [sys.executable, WATCH, "--spare", "0", "--every", "0.1", build, said,
             "sh", "-c", command],
            stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
            check=False)
        with open(said, encoding="utf-8") as f:
            return [json.loads(line) for line in f], done.stdout, done.returncode


def who_hangs_is_looked_at_and_ended():
    looks, said, code = watched(
        "OF=x setsid -w sh -c 'sleep 5001 & exec sleep 100000'; echo ended $?", 0)
    assert [look["name"] for look in looks] == ["sleeps"], looks
    # Its own is there, too, and what gdb says, if it is.
    heads = [line for line in looks[0]["lines"] if not line.startswith(" ")]
    names = sorted(head.partition(": ")[2] for head in heads)
    assert names == ["sleep 100000", "sleep 5001"], looks
    assert (said, code) == ("ended 143\n", 0), (said, code)


def who_takes_long_is_left_alone():
    looks, said, code = watched(
        "OF=x setsid -w sh -c 'sleep 1; echo done'; exit 3", 1000)
    assert looks == [], looks
    assert (said, code) == ("done\n", 3), (said, code)


def whom_a_test_has_left_with_its_output_is_a_hang():
    looks, said, code = watched(
        "OF=x setsid -w sh -c 'sleep 5002 & exec sleep 1' | cat; echo over", 2, 1)
    assert [look["name"] for look in looks] == ["sleeps"], looks
    assert looks[0]["lines"][0].endswith(": sleep 5002"), looks
    assert (said, code) == ("over\n", 0), (said, code)


tap.run([who_hangs_is_looked_at_and_ended, who_takes_long_is_left_alone,
         whom_a_test_has_left_with_its_output_is_a_hang])
