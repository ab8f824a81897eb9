"""What the checks have in common: the files of the tree, and C without its
comments and strings."""

import argparse
import os
import re
import sys

MODULES = ["marcel", "pioman", "nmad", "madmpi"]  # lowest first

_TOKEN = re.compile(
    r'/\*.*?\*/|//[^\n]*|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\'', re.S
)


def _spaces(text):
    return re.sub(r"[^\n]", " ", text)


class Source:
    """A C file: `code` has spaces for comments and strings, line for line;
    `comments` is a list of (first line, last line, text)."""

    def __init__(self, root, path):
        self.path = path
        with open(os.path.join(root, path), encoding="utf-8") as f:
            self.text = f.read()
        self.comments = []
        self.code = _TOKEN.sub(self._blank, self.text)
        self.lines = self.text.split("\n")
        self.code_lines = self.code.split("\n")

    def _blank(self, match):
        text = match.group()
        if text.startswith("/"):
            first = self.text.count("\n", 0, match.start()) + 1
            self.comments.append((first, first + text.count("\n"), text))
        return _spaces(text)

    def line_of(self, offset):
        return self.code.count("\n", 0, offset) + 1


def tree(root, folders, suffixes):
    """Paths of files below these folders, sorted; builds are left out."""
    found = []
    for folder in folders:
        for where, names, files in os.walk(os.path.join(root, folder)):
            names[:] = sorted(
                n for n in names if not n.startswith((".", "build", "__"))
            )
            for name in sorted(files):
                if name.endswith(suffixes):
                    path = os.path.join(where, name)
                    found.append(os.path.relpath(path, root))
    return found


class Findings:
    """Prints `file:line: what` and how many; the exit status says if any."""

    def __init__(self, looked_at):
        self.looked_at = looked_at
        self.found = []

    def add(self, path, line, what):
        self.found.append((path, line, what))

    def exit(self, count):
        for path, line, what in sorted(self.found):
            print(f"{path}:{line}: {what}" if line else f"{path}: {what}")
        print(f"{len(self.found)} findings in {count} {self.looked_at}")
        sys.exit(1 if self.found else 0)


def arguments(description):
    parser = argparse.ArgumentParser(description=description)
    here = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    parser.add_argument(
        "--root", default=os.path.dirname(os.path.dirname(here)), help="the tree"
    )
    return parser
