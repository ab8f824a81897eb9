#!/usr/bin/env python3
"""What README.md says about the tree is so.

readme.py ROOT: prints TAP. The program is examples/hybrid.c, the packages are
those of tools/packages.sh, and every path named exists.
"""
import pathlib
import re
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
import tap  # noqa: E402

root = pathlib.Path(sys.argv[1])
text = (root / "README.md").read_text(encoding="utf-8")


def program():
    shown = re.search(r"<!-- examples/hybrid.c -->\n```c\n(.*?)```", text, re.S)
    assert shown, "no program"
    assert shown[1] == (root / "examples/hybrid.c").read_text(), "it differs"


def packages():
    listed = (root / "tools/packages.sh").read_text().split("packages='")[1]
    names = {
        line.split("|")[1].strip()
        for line in listed.split("'")[0].splitlines()
        if line.count("|") == 3
    }
    table = text.split("| Debian package |")[1].split("\n\n")[0]
    named = set()
    for row in table.splitlines()[2:]:
        named |= set(re.split(r", | or ", row.split("|")[1].strip()))
    assert names == named, names ^ named


def paths():
    folders = "marcel pioman nmad madmpi tools examples tests doc".split()
    for path in re.findall(r"`([A-Za-z_.]+/[A-Za-z0-9_./]*)`", text):
        if path.split("/")[0] in folders:
            assert (root / path).exists(), f"{path} does not exist"


tap.run([program, packages, paths])
