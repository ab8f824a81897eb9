#!/usr/bin/env python3
"""Every example is built and run by the tests: all.py ROOT PROGRAM...

PROGRAM is what examples/meson.build builds; a file NAME.c of examples/, or a
folder NAME with sources, is one of them, and a test of tests/examples is called
NAME or is about it."""

import pathlib
import re
import sys

root, built = pathlib.Path(sys.argv[1]), set(sys.argv[2:])
examples = {p.stem for p in root.glob("examples/*.c")}
examples |= {p.parent.name for p in root.glob("examples/*/*.c")}
tested = set()
for source in root.glob("tests/examples/*.c"):
    tested |= set(re.findall(r"TEST\((\w+)\)", source.read_text()))
    tested.add(source.stem)

bad = [f"{name} is not built" for name in sorted(examples - built)]
bad += [f"{name} has no test" for name in sorted(examples - tested)]
bad += [f"{name} has no source" for name in sorted(built - examples)]
print("\n".join(bad) or f"{len(examples)} examples")
sys.exit(bad != [] or not examples)
