#!/usr/bin/env python3
"""No file over 800 lines, no function over 80: C and Python."""

import ast
import os

from lib.source import Findings, Source, arguments, tree

FILE_MAX = 800
FUNCTION_MAX = 80


def c_functions(source):
    """(name line, first line, last line): the formatter puts the braces of a
    function, and of nothing else, alone at the beginning of a line."""
    lines = source.code_lines
    start = None
    for i, line in enumerate(lines):
        if line.rstrip() == "{" and start is None:
            start = i
            while start > 0:
                above = lines[start - 1].rstrip()
                if not above.strip() or above.endswith((";", "}", "\\")):
                    break
                if above.startswith("#"):
                    break
                start -= 1
        elif line.rstrip() == "}" and start is not None:
            yield lines[start].strip(), start + 1, i + 1
            start = None


def python_functions(text):
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            yield node.name, node.lineno, node.end_lineno


def is_python(root, path):
    if path.endswith(".py"):
        return True
    if "." in os.path.basename(path):
        return False
    with open(os.path.join(root, path), "rb") as f:
        first = f.readline()
    return first.startswith(b"#!") and b"python" in first


def check(root, path, findings):
    with open(os.path.join(root, path), encoding="utf-8") as f:
        text = f.read()
    lines = text.count("\n")
    if lines > FILE_MAX:
        findings.add(path, FILE_MAX + 1, f"file has {lines} lines")
    if path.endswith((".c", ".h")):
        functions = c_functions(Source(root, path))
    else:
        functions = python_functions(text)
    for name, first, last in functions:
        if last - first + 1 > FUNCTION_MAX:
            findings.add(
                path, first, f"function has {last - first + 1} lines: {name}"
            )


def main():
    root = arguments(__doc__).parse_args().root
    findings = Findings("files")
    paths = [
        path
        for path in tree(root, [""], "")
        if path.endswith((".c", ".h")) or is_python(root, path)
    ]
    for path in paths:
        check(root, path, findings)
    findings.exit(len(paths))


if __name__ == "__main__":
    main()
