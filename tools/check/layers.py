#!/usr/bin/env python3
"""A lower module neither includes nor names a higher one, nobody includes
the internals of another module, and installed headers show only each other.
Files that name errno include <marcel/errno.h>: their threads may move.
With --build, what the linked libraries ask for and offer is held to the same."""

import glob
import os
import re
import subprocess

from lib.source import MODULES, Findings, Source, arguments, tree

# The names of each module; C names of lower modules are free for it.
NAMES = {
    "marcel": r"marcel_",
    "pioman": r"piom_",
    "nmad": r"nm_",
    "madmpi": r"madmpi_|P?MPIX?_",
}
LIBRARIES = {"marcel": "libmarcel", "pioman": "libpioman", "nmad": "libnmad"}

# Below user threads, where no function waits; and the header itself.
WITHOUT_THREADS = re.compile(
    r"marcel/(base|arch|os(?!/linux/front))/|marcel/include/marcel/errno\.h"
)
ERRNO = re.compile(r"^(?!\s*#\s*include).*\berrno\b", re.M)

INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]*([<"])([^>"]+)[>"]', re.M)


def higher(module):
    return MODULES[MODULES.index(module) + 1 :]


def forbidden(module):
    names = [NAMES[m] for m in higher(module)]
    return re.compile(r"\b(?:%s)\w+" % "|".join(names)) if names else None


def module_of(path):
    return path.replace(os.sep, "/").split("/", 1)[0]


def check_public(source, line, header, findings):
    """What an installed header may include: installed headers."""
    first = header.split("/", 1)[0]
    if first == "base":
        findings.add(
            source.path, line, f"installed header includes <{header}>"
        )


def check_angle(source, module, line, header, findings):
    first = header.split("/", 1)[0]
    owner = "madmpi" if header == "mpi.h" else first
    if "/" in header or owner == "madmpi":
        if owner in higher(module):
            findings.add(
                source.path, line, f"{module} includes <{header}> of a higher layer"
            )


def check_quoted(root, source, module, line, header, findings):
    """Beside the file or above it, but in its own module."""
    beside = os.path.join(os.path.dirname(source.path), header)
    path = os.path.normpath(beside)
    if module_of(path) == module:
        return
    if module_of(path) in MODULES or path.startswith(".."):
        findings.add(
            source.path,
            line,
            f'"{header}" is not of {module}: only public headers of others',
        )


def check_errno(source, findings):
    """A compiler may keep the address of libc's errno while a thread moves."""
    match = ERRNO.search(source.code)
    if match is None or WITHOUT_THREADS.match(source.path):
        return
    if not re.search(r"^#include <marcel/errno.h>", source.text, re.M):
        findings.add(
            source.path,
            source.line_of(match.start()),
            "names errno without <marcel/errno.h>",
        )


def check_source(root, path, findings):
    source = Source(root, path)
    module = module_of(path)
    public = path.startswith(f"{module}/include/{module}/")
    for match in INCLUDE.finditer(source.text):
        line = source.line_of(match.start(1))
        header = match.group(2)
        if not source.code_lines[line - 1].strip():
            continue  # inside a comment
        if match.group(1) == "<":
            check_angle(source, module, line, header, findings)
            if public:
                check_public(source, line, header, findings)
        else:
            check_quoted(root, source, module, line, header, findings)
    check_errno(source, findings)
    words = forbidden(module)
    for match in words.finditer(source.code) if words else []:
        findings.add(
            path,
            source.line_of(match.start()),
            f"{module} names {match.group()} of a higher layer",
        )


def check_library(module, path, findings):
    """Undefined and defined names of a shared library."""
    words = forbidden(module)
    out = subprocess.run(
        ["nm", "-D", "--format=posix", path],
        check=True,
        capture_output=True,
        text=True,
    ).stdout
    for line in out.splitlines():
        name = line.split()[0].split("@")[0]
        if words.fullmatch(name):
            findings.add(path, 0, f"names {name} of a higher layer")


def main():
    parser = arguments(__doc__)
    parser.add_argument("--build", help="a build directory")
    args = parser.parse_args()
    findings = Findings("files and libraries")
    paths = tree(args.root, MODULES, (".c", ".h", ".S"))
    for path in paths:
        check_source(args.root, path, findings)
    count = len(paths)
    for module, name in LIBRARIES.items() if args.build else []:
        for path in glob.glob(os.path.join(args.build, module, name + ".so")):
            check_library(module, path, findings)
            count += 1
    findings.exit(count)


if __name__ == "__main__":
    main()
