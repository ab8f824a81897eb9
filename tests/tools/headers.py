#!/usr/bin/env python3
"""Each public header compiles alone, and all of them in every C and C++ that a
program may be written in, with the names of POSIX or without, and without a
warning. What a header forgets to include it lacks in the oldest language, too,
and where the fewest names are to be had: there each is compiled alone, in later
ones and those of GNU all at once.

usage: headers.py ROOT
"""

import glob
import os
import shutil
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(__file__), ".."))
import tap  # noqa: E402

MODULES = ["marcel", "pioman", "nmad"]
WARNINGS = ["-Wall", "-Wextra", "-pedantic", "-Werror", "-fsyntax-only"]
POSIX = ["", "-D_POSIX_C_SOURCE=200809L"]

# compilers, suffix, standards from the oldest on, each with these
KINDS = [
    (["gcc", "clang"], ".c", ["c99", "c11", "c17"], POSIX),
    (["gcc", "clang"], ".c", ["gnu99", "gnu11", "gnu17"], [""]),
    (["g++", "clang++"], ".cc", ["c++11", "c++14", "c++17", "c++20"], [""]),
    (["g++", "clang++"], ".cc", ["gnu++11", "gnu++17"], [""]),
]
ALONE = ["c99", "c++11"]

# Macros are looked at where they are used.
USES = """#include <marcel/pthread.h>
pthread_mutex_t normal = PTHREAD_MUTEX_INITIALIZER;
pthread_mutex_t recursive = PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP;
pthread_mutex_t checked = PTHREAD_ERRORCHECK_MUTEX_INITIALIZER_NP;
pthread_cond_t cond = PTHREAD_COND_INITIALIZER;
pthread_rwlock_t rwlock = PTHREAD_RWLOCK_INITIALIZER;
pthread_rwlock_t writers = PTHREAD_RWLOCK_WRITER_NONRECURSIVE_INITIALIZER_NP;
pthread_once_t once = PTHREAD_ONCE_INIT;
void use(void (*fn)(void *), sigset_t *set);
void use(void (*fn)(void *), sigset_t *set)
{
	pthread_cleanup_push(fn, 0);
	pthread_sigmask(0, set, 0);
	pthread_cleanup_pop(1);
}
"""


def headers(root):
    for module in MODULES:
        folder = os.path.join(root, module, "include")
        for path in sorted(glob.glob(os.path.join(folder, module, "*.h"))):
            yield os.path.relpath(path, folder)


def write(folder, name, text):
    path = os.path.join(folder, name)
    with open(path, "w", encoding="utf-8") as f:
        f.write(text)
    return path


def alone(folder, root, suffix):
    """A file for each header, which it includes twice, and one of uses."""
    return [write(folder, "uses" + suffix, USES)] + [
        write(folder, name.replace("/", "_") + suffix, f"#include <{name}>\n" * 2)
        for name in headers(root)
    ]


def together(folder, root, suffix):
    text = "".join(f"#include <{name}>\n" for name in headers(root))
    return [write(folder, "all" + suffix, text + USES)]


def compiles(root, compiler, standard, define, paths):
    # No -isystem: a system header's warnings are not shown.
    includes = ["-I" + os.path.join(root, m, "include") for m in MODULES]
    defines = [define] if define else []
    return subprocess.run(
        [compiler, "-std=" + standard] + defines + WARNINGS + includes + paths,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )


def ways():
    """(files, suffix, compiler, standard, definition), of compilers that there
    are."""
    for compilers, suffix, standards, defines in KINDS:
        for compiler in filter(shutil.which, compilers):
            for standard in standards:
                files = alone if standard in ALONE else together
                for define in defines:
                    yield files, suffix, compiler, standard, define


def results(root, wanted):
    with tempfile.TemporaryDirectory() as folder:
        for files, suffix, *how in wanted:
            done = compiles(root, *how, files(folder, root, suffix))
            yield " ".join(how), tap.unless(done.returncode == 0,
                                            done.returncode, done.stdout)


def keeps_errno(root):
    """Headers of functions that may wait which leave errno as libc has it."""
    includes = ["-I" + os.path.join(root, m, "include") for m in MODULES]
    for name in headers(root):
        module, header = name.split("/")
        if module == "nmad" or header in ("settings.h", "stats.h"):
            continue
        text = subprocess.run(
            [shutil.which("gcc") or "clang", "-E", *includes, "-"],
            input=f"#include <{name}>\n#include <errno.h>\nseen: errno\n",
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        if "seen: (*marcel_errno_location())" not in text:
            yield name


def cases(root, wanted):
    yield from results(root, wanted)
    wrong = "\n".join(keeps_errno(root))
    yield "headers of functions that may wait redefine errno", wrong or None


found = list(ways())
sys.exit(tap.tell(len(found) + 1, cases(sys.argv[1], found)))
