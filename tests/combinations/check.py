#!/usr/bin/env python3
"""tests/combinations/run: which combinations it runs, and what it says.

check.py RUN: prints TAP. The build folder is one of paper, whose tests are
shell commands."""
import json
import os
import re
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(__file__), ".."))
import tap  # noqa: E402


def combinations(commands, *arguments, limit=1000):
    """What run says of tests {name: (shell command, env)}, and its code."""
    with tempfile.TemporaryDirectory() as build:
        os.mkdir(os.path.join(build, "meson-info"))
        tests = [{"name": name, "cmd": ["sh", "-c", command], "env": env,
                  "suite": ["marcel:nmad"], "timeout": limit, "workdir": None}
                 for name, (command, env) in commands.items()]
        with open(os.path.join(build, "meson-info", "intro-tests.json"), "w",
                  encoding="utf-8") as f:
            json.dump(tests, f)
        done = subprocess.run(
            [sys.executable, sys.argv[1], "--build", build, *arguments],
            stdout=subprocess.PIPE, text=True, check=False)
        return done.stdout, done.returncode


def every_combination_is_run_once():
    said, code = combinations({"well": ("true", {})})
    assert code == 0, said
    assert said.endswith("108 combinations, 1 tests: 108 passed, 0 failed\n"), said
    assert len(set(said.splitlines())) > 108, said


def what_fails_is_named_with_its_settings():
    said, code = combinations(
        {"well": ("true", {}),
         "picky": ("test $PIOM_MODE-$MARCEL_NVP != poll-8", {})},
        "--engine", "none", "--wait", "auto,spin")
    assert code == 1, said
    assert said.count("FAILED: picky: exit code 1") == 2, said
    assert "PIOM_MODE=poll PIOM_WAIT=spin MARCEL_NVP=8" in said, said
    assert re.search("none +poll +spin +8 +2 +1  picky: exit code 1", said), said
    assert said.endswith("18 combinations, 2 tests: 34 passed, 2 failed\n"), said


def pairs_are_few_and_hold_each_pair():
    said, code = combinations({"well": ("true", {})}, "--pairs")
    rows = [line.split()[:4] for line in said.splitlines() if re.search(" 1 +0 *$", line)]
    assert code == 0 and len(rows) < 16, said
    pairs = {(i, row[i], k, row[k]) for row in rows
             for i in range(4) for k in range(i)}
    assert len(pairs) == 3 * 3 * 3 + 3 * 4 * 3, len(pairs)


def the_settings_of_nmad_are_others():
    said, code = combinations(
        {"picky": ("test $NMAD_STRATEGY-$NMAD_LOCK-$NMAD_DRIVER-${PIOM_MODE:-no} "
                   "!= prio-fine-tcp-no", {})},
        "--of", "nmad", "--rest", "plain")
    assert code == 1, said
    assert said.count("FAILED: picky: exit code 1") == 1, said
    assert "75 combinations, 1 tests: 74 passed, 1 failed" in said, said


def what_a_test_sets_itself_is_run_once():
    said, code = combinations(
        {"own": ("test $PIOM_MODE = poll", {"PIOM_MODE": "poll"})},
        "--engine", "none", "--wait", "auto", "--vps", "1")
    assert code == 0, said
    assert "3 combinations, 1 tests: 1 passed, 0 failed" in said, said


def what_does_not_end_is_ended():
    said, code = combinations(
        {"sleeps": ("sleep 1000 & sleep 1000", {})},
        "--engine", "none", "--mode", "poll", "--wait", "auto", "--vps", "1",
        limit=1)
    assert code == 1, said
    assert "FAILED: sleeps: not done after 1 s" in said, said


tap.run([every_combination_is_run_once, what_fails_is_named_with_its_settings,
         pairs_are_few_and_hold_each_pair, the_settings_of_nmad_are_others,
         what_a_test_sets_itself_is_run_once, what_does_not_end_is_ended])
