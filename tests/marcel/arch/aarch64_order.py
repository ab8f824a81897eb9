#!/usr/bin/env python3
"""Emulation on x86-64 proves no order: so look at what aarch64 would run.

Each function with an access that has an order and a name (doc/memory-order.md)
must hold an instruction that gives it: a load that acquires, a store that
releases.

  aarch64_order.py COMPILER MADMPI

MADMPI is where the build makes madmpi's headers."""

import glob
import os
import re
import shutil
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(os.path.dirname(HERE)))
sys.path.insert(0, os.path.join(ROOT, "tools", "check"))

from order import Orders  # noqa: E402

MODULES = ["marcel", "pioman", "nmad", "madmpi"]

# Nothing inlined or folded: what a function does stands in it. No calls of
# libgcc's, which would hide it. Of the headers that a source includes only what
# it calls.
FLAGS = """-std=gnu11 -O2 -fno-inline -fkeep-static-functions -fno-ipa-icf -mno-outline-atomics -DNDEBUG -D_GNU_SOURCE
-Wno-attributes -S""".split()

CCACHE = [ccache] if (ccache := shutil.which("ccache")) else []

# hwloc's headers are this machine's, behind all of the compiler's own.
HWLOC = [
    os.path.dirname(os.path.dirname(d))
    for d in glob.glob("/usr/include/*/hwloc/autogen")
] + ["/usr/include"]

RELEASES = re.compile(r"\t(stlr|stlxr|swpa?l|casa?l|ld(add|set|clr)a?l)[bh]?\t")
ACQUIRES = re.compile(r"\t(ldar|ldaxr|ldapr|swpal?|casal?|ld(add|set|clr)al?)[bh]?\t")

NEEDS = {
    "acquire": [ACQUIRES],
    "release": [RELEASES],
    "acq_rel": [ACQUIRES, RELEASES],
    "seq": [re.compile(f"{ACQUIRES.pattern}|{RELEASES.pattern}")],
}


def functions_of(compiler, made, path, out):
    """{function: its instructions}; a header is compiled alone. In the folder
    of the sources, so that ccache knows them in another clone."""
    command = CCACHE + compiler + FLAGS + ["-o", out]
    if path.endswith(".h"):
        command.append("-fkeep-inline-functions")
    for module in MODULES:
        command += ["-I", os.path.join(module, "include")]
    if path.startswith("madmpi"):
        for folder in ("madmpi", made, os.path.join(made, "include")):
            command += ["-I", folder]
    for folder in HWLOC:
        command += ["-idirafter", folder]
    done = subprocess.run(
        command + ["-x", "c", path],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode != 0:
        sys.exit(f"{path} does not compile:\n{done.stderr}")
    found, name = {}, None
    with open(out, encoding="utf-8") as file:
        lines = file.read().split("\n")
    for line in lines:
        label = re.match(r"(\w+)(\.\w+)*:", line)
        if label:
            name = label.group(1)
            found.setdefault(name, "")
        elif name:
            found[name] += line + "\n"
    return found


def main():
    compiler, made = sys.argv[1:-1], os.path.relpath(sys.argv[-1], ROOT)
    known, checked, bad = {}, 0, []
    with tempfile.TemporaryDirectory() as folder:
        out = os.path.join(folder, "out.s")
        for site in Orders(ROOT).sites:
            if site.accessor == "call" or site.order not in NEEDS:
                continue
            if site.path not in known:
                known[site.path] = functions_of(compiler, made, site.path, out)
            text = known[site.path].get(site.function, "")
            checked += 1
            if not all(p.search(text) for p in NEEDS[site.order]):
                bad.append(
                    f"{site.path}:{site.line}: {site.function} has no instruction for "
                    f"{site.accessor}_{site.order}"
                )
    for line in bad:
        print(line)
    print(f"{checked} accesses, {len(bad)} findings")
    sys.exit(1 if bad or checked == 0 else 0)


if __name__ == "__main__":
    main()
