#!/usr/bin/env python3
"""What an entry into the runtime costs: the instructions that marcel_enter()
(marcel/sched/enter.h) has more than to find the VP, on the path where nobody
has taken it.

usage: entry.py ROOT COMPILER...   (for x86-64)
"""

import os
import re
import subprocess
import sys
import tempfile

MOST = 3  # store that one is inside, compare the owner, branch

CODE = """#include <marcel/sched/enter.h>
struct marcel_vp *enter(void);
struct marcel_vp *enter(void)
{
	return marcel_enter();
}
struct marcel_vp *find(void);
struct marcel_vp *find(void)
{
	struct marcel_lwp *l = cpu_tls_word();

	return likely(l != NULL) ? load_relaxed(&l->vp) : NULL;
}
"""


def disassembly(root, compiler):
    """The instructions of each function, up to its first return."""
    with tempfile.TemporaryDirectory() as folder:
        source = os.path.join(folder, "entry.c")
        with open(source, "w", encoding="utf-8") as f:
            f.write(CODE)
        roots = [".", "marcel/include"]
        subprocess.run(
            compiler
            + ["-std=gnu11", "-D_GNU_SOURCE", "-O2", "-fPIC", "-Werror"]
            + ["-fcf-protection=none"]
            + ["-I" + os.path.join(root, r) for r in roots]
            + ["-c", source, "-o", source + ".o"],
            check=True,
        )
        said = subprocess.run(
            ["objdump", "-d", "--no-show-raw-insn", source + ".o"],
            check=True,
            stdout=subprocess.PIPE,
            text=True,
        ).stdout
    functions = re.findall(r"<(\w+)>:\n(.*?)\tret", said, re.DOTALL)
    return {
        name: re.findall(r"^ +[0-9a-f]+:\t(.*\S)", body, re.MULTILINE)
        for name, body in functions
    }


def main():
    found = disassembly(os.path.abspath(sys.argv[1]), sys.argv[2:])
    more = len(found["enter"]) - len(found["find"])
    print("1..1")
    for name, lines in found.items():
        print(f"# {name}:", *(re.sub(r"\s+", " ", i) for i in lines), sep="\n#\t")
    good = len(found["find"]) > 1 and 0 < more <= MOST
    print(f"{'ok' if good else 'not ok'} 1 - an entry costs {more} instructions")
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
