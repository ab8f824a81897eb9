#!/usr/bin/env python3
"""Every environment variable, as the modules' own tables have it.

  markdown INFO OUTPUT   doc/variables.md, from what `INFO --variables` prints
  check INFO TABLE       the same compared with TABLE: 0, or 1 and a diff
  man TABLE OUTPUT       marcel-env(7), from doc/variables.md

INFO is marcel-info. `ninja -C BUILD variables` makes doc/variables.md anew."""

import difflib
import re
import subprocess
import sys

from man import date

MODULES = {
    "marcel": "threads",
    "pioman": "progress",
    "nmad": "networks and messages",
    "madmpi": "MPI",
    "mpicc": "the compiler wrappers",
    "mpirun": "the launcher",
}

# What launchers say is theirs to define; nmad/boot reads it.
LAUNCHERS = [
    "PMI_FD", "PMI_JOBID", "PMI_PORT", "PMI_RANK", "PMI_SIZE",
    "PMIX_NAMESPACE", "PMIX_RANK", "SLURM_PROCID", "SLURM_STEP_NUM_TASKS",
]  # fmt: skip

HEAD = """\
# Environment variables

Every variable that is read, from the tables that the modules read them from.
Made by `ninja -C build/debug variables` (`tools/gen/variables.py`); do not edit
it. `marcel-info --settings` shows the values of here and now, and names bad
ones: a value that is not allowed ends the program with a message, and an empty
one is as if it were not set. Of several processes all should have the same.
"""

TAIL = """\
## of launchers

Which rank a process is and how many there are it finds in what its launcher
sets: %s.
"""


def run(info):
    out = subprocess.run([info, "--variables"], check=True, stdout=subprocess.PIPE)
    for line in out.stdout.decode().splitlines():
        yield line.split("\t")


def allowed(text):
    """ "not 0 or 1" says of a bad value what a good one is."""
    text = re.sub(r"^not (one of )?", "", text)
    text = text.replace(f" to {2**63 - 1}", " on").replace(", nor ", ", or ")
    return text or "a text"


def markdown(info):
    text, last = HEAD, None
    for part, name, default, allows, what in run(info):
        module = part.split("/")[0]
        if module != last:
            text += f"\n## {module}: {MODULES[module]}\n\n"
            text += "| variable | default | allowed | meaning |\n"
            text += "| --- | --- | --- | --- |\n"
        last = module
        default = f"`{default}`" if default else "none"
        text += f"| `{name}` | {default} | {allowed(allows)} | {what} |\n"
    return text + "\n" + TAIL % ", ".join(f"`{v}`" for v in LAUNCHERS)


def differs(info, table):
    with open(table, encoding="utf-8") as f:
        found = f.read()
    diff = difflib.unified_diff(
        found.splitlines(), markdown(info).splitlines(), table, info, lineterm=""
    )
    lines = list(diff)
    print("\n".join(lines))
    return lines != []


# --- the page ---


def mdoc(text):
    return re.sub(r"`", "", text).replace("\\", "\\e").replace("-", "\\-")


def sentences(text):
    return "\n".join(re.split(r"(?<=[\w)][.])\s+", mdoc(text)))


def page(table):
    with open(table, encoding="utf-8") as f:
        head, *parts = re.split(r"^## ", f.read(), flags=re.M)
    yield ".\\\" Made from doc/variables.md by tools/gen/variables.py."
    yield f".Dd {date(table)}\n.Dt MARCEL-ENV 7\n.Os\n.Sh NAME\n.Nm marcel-env"
    yield ".Nd environment variables of marcel, pioman, nmad and madmpi"
    yield ".Sh DESCRIPTION"
    about = re.sub(r"Made by .*?edit\s+it\. ", "", head.split("\n\n", 1)[1], flags=re.S)
    yield sentences(" ".join(about.split()))
    for part in parts:
        title, text = part.split("\n", 1)
        yield f".Ss {title[0].upper() + title[1:]}"
        if "|" not in text:
            yield sentences(" ".join(text.split()))
            continue
        yield ".Bl -tag -width Ds"
        for row in text.strip().split("\n")[2:]:
            name, default, allows, what = row.strip("| ").split(" | ")
            yield f".It Ev {mdoc(name)}"
            yield mdoc(what) + "."
            yield f"Default: {mdoc(default)}.\nAllowed: {mdoc(allows)}."
        yield ".El"
    yield ".Sh SEE ALSO\n.Xr marcel-info 1 ,\n.Xr mpirun 1 ,\n.Xr marcel 3 ,\n.Xr MPI 3"


def main():
    verb, source, other = sys.argv[1:]
    if verb == "check":
        sys.exit(differs(source, other))
    text = markdown(source) if verb == "markdown" else "\n".join(page(source)) + "\n"
    with open(other, "w", encoding="utf-8") as f:
        f.write(text)


if __name__ == "__main__":
    main()
