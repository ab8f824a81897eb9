#!/usr/bin/env python3
"""The checks of tools/check: each bad tree below must be found, with file and
line, and the same tree without its fault must pass."""

import os
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(__file__), ".."))
import tap  # noqa: E402

CHECKS = os.path.join(
    os.path.dirname(os.path.abspath(__file__)), "..", "..", "tools", "check"
)

DOC = "doc/memory-order.md"
HEAD = "## Pairs\n\n| name | a | b | why |\n| --- | --- | --- | --- |\n"
RACES = "\n## Store-load races\n\n| name | a | b | why |\n| --- | --- | --- | --- |\n"
ROW = "| %s | `marcel/x.c: put` | `marcel/x.c: get` | it breaks |\n"
PUT = "void put(void)\n{\n\tstore_%s(&w, 1); /* order(%s) */\n}\n"
GET = "int get(void)\n{\n\treturn load_%s(&w); /* order(%s) */\n}\n"
GOOD_PAIR = {
    "marcel/x.c": PUT % ("release", "p") + GET % ("acquire", "p"),
    DOC: HEAD + ROW % "p",
}
PUTS = {"marcel/x.c": PUT % ("release", "p")}


def long_c(lines):
    return "int f(void)\n{\n" + "\tg();\n" * lines + "}\n"


def long_python(lines):
    return "def f():\n" + "    g()\n" * lines


# check, files, what must be said (None: nothing)
CASES = [
    ("size.py", {"marcel/x.c": long_c(77)}, None),
    ("size.py", {"marcel/x.c": long_c(78)}, "marcel/x.c:1: function has 81"),
    ("size.py", {"tools/x.py": long_python(79)}, None),
    ("size.py", {"tools/x.py": long_python(80)}, "tools/x.py:1: function has 81"),
    ("size.py", {"tools/x": "#!/usr/bin/python3\n" + long_python(80)}, "tools/x:2:"),
    ("size.py", {"marcel/x.h": "/* */\n" * 800}, None),
    ("size.py", {"marcel/x.h": "/* */\n" * 801}, "marcel/x.h:801: file has 801"),
    ("layers.py", {"nmad/core/x.c": "#include <pioman/ltask.h>\n"}, None),
    (
        "layers.py",
        {"pioman/x.c": "\n#include <nmad/nmad.h>\n"},
        "pioman/x.c:2: pioman includes <nmad/nmad.h>",
    ),
    ("layers.py", {"nmad/x.c": "#include <mpi.h>\n"}, "nmad/x.c:1: nmad includes"),
    ("layers.py", {"nmad/x.c": "/*\n#include <mpi.h>\n*/\n"}, None),
    ("layers.py", {"marcel/sched/x.c": '#include "../os/os.h"\n'}, None),
    (
        "layers.py",
        {"pioman/x.c": '#include "../marcel/os/os.h"\n'},
        'pioman/x.c:1: "../marcel/os/os.h" is not of pioman',
    ),
    (
        "layers.py",
        {"marcel/include/marcel/x.h": "#include <base/list.h>\n"},
        "marcel/include/marcel/x.h:1: installed header",
    ),
    ("layers.py", {"marcel/x.c": "/* piom_poll */\n"}, None),
    ("layers.py", {"marcel/x.c": "int y;\nint z = piom_poll();\n"}, "marcel/x.c:2:"),
    ("layers.py", {"nmad/x.c": "int z = MPI_SUCCESS;\n"}, "names MPI_SUCCESS"),
    ("layers.py", {"nmad/x.c": "#include <errno.h>\nint e = -EINVAL;\n"}, None),
    ("layers.py", {"nmad/x.c": "#include <marcel/errno.h>\nint e = errno;\n"}, None),
    (
        "layers.py",
        {"madmpi/x.c": "#include <errno.h>\n\nint e = errno;\n"},
        "madmpi/x.c:3: names errno without <marcel/errno.h>",
    ),
    ("layers.py", {"marcel/thread/x.c": "int e = errno;\n"}, "x.c:1: names errno"),
    ("layers.py", {"marcel/os/x.c": "int e = errno;\n"}, None),
    ("order.py", GOOD_PAIR, None),
    ("order.py", {"marcel/x.c": GOOD_PAIR["marcel/x.c"]}, "order(p) is not in"),
    (
        "order.py",
        {"marcel/x.c": PUT % ("release", "p"), DOC: HEAD + ROW % "p"},
        "no acquiring end",
    ),
    (
        "order.py",
        {"marcel/x.c": GET % ("acquire", "p"), DOC: HEAD + ROW % "p"},
        "marcel/x.c:3: order(p) has no releasing end",
    ),
    (
        "order.py",
        {**GOOD_PAIR, "nmad/y.c": "void f(void)\n{\n\tstore_release(&w, 1);\n}\n"},
        "nmad/y.c:3: store with release has no order(name)",
    ),
    (
        "order.py",
        {**GOOD_PAIR, "tests/y.c": "void f(void)\n{\n\tstore_release(&w, 1);\n}\n"},
        None,
    ),
    (
        "order.py",
        {**GOOD_PAIR, DOC: HEAD + ROW % "p" + ROW % "q"},
        "doc/memory-order.md:6: order(q) is nowhere",
    ),
    (
        "order.py",
        {**GOOD_PAIR, DOC: (HEAD + ROW % "p").replace(": get", ": got")},
        "no got in marcel/x.c",
    ),
    (
        "order.py",
        {
            "marcel/x.c": PUT % ("seq", "p") + GET % ("seq", "p"),
            DOC: HEAD + ROW % "p",
        },
        "none of its orders is a race",
    ),
    (
        "order.py",
        {
            "marcel/x.c": PUT % ("seq", "p") + GET % ("seq", "p"),
            DOC: HEAD + RACES + ROW % "p",
        },
        None,
    ),
    (
        "order.py",
        {**GOOD_PAIR, "marcel/y.c": "\n\tatomic_thread_fence(1);\n"},
        "marcel/y.c:2: atomic_thread_fence outside",
    ),
    ("docs.py", {**PUTS, "doc/x.md": "`marcel/x.c: put`, `x.c` and `marcel/`\n"}, None),
    ("docs.py", {**PUTS, "doc/x.md": "\n`marcel/x.c: get`\n"}, "doc/x.md:2: marcel/x.c"),
    ("docs.py", {**PUTS, "doc/x.md": "`marcel/x.c: w`\n"}, "marcel/x.c has no w"),
    ("docs.py", {**PUTS, "doc/x.md": "as `y.c` does\n"}, "there is no y.c"),
    ("docs.py", {**PUTS, "doc/x.md": "`marcel/y`\n"}, "there is no marcel/y"),
    ("docs.py", {**PUTS, "doc/x.md": "```\n`marcel/y.c`\n```\n"}, None),
    ("docs.py", {**PUTS, "doc/x.md": "`marcel_put()`\n"}, "is called marcel_put"),
    ("docs.py", {**PUTS, "doc/x.md": "`MARCEL_PUT=1`\n"}, "is called MARCEL_PUT"),
]


def run(check, files):
    with tempfile.TemporaryDirectory() as root:
        for path, text in files.items():
            full = os.path.join(root, path)
            os.makedirs(os.path.dirname(full), exist_ok=True)
            with open(full, "w", encoding="utf-8") as f:
                f.write(text)
        return subprocess.run(
            [sys.executable, os.path.join(CHECKS, check), "--root", root],
            capture_output=True,
            text=True,
            check=False,
        )


def results():
    for check, files, expected in CASES:
        done = run(check, files)
        if expected is None:
            good = done.returncode == 0 and "\n0 findings" in "\n" + done.stdout
        else:
            good = done.returncode == 1 and expected in done.stdout
        what = f"finds {expected}" if expected else "is content"
        wrong = tap.unless(good, done.returncode, done.stdout + done.stderr)
        yield f"{check} {what}", wrong


sys.exit(tap.tell(len(CASES), results()))
