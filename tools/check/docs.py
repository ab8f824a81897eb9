#!/usr/bin/env python3
"""What doc/*.md names is there: files, functions, variables.

In `code` a path is a file or folder of the tree, by itself, from a module or
from one of its folders on; `path: name` is a word of that file; one that
begins with a prefix of ours, and name() with one, is in some source; and so is
a variable of the environment. Blocks of code are left out, but for what
architecture.md draws."""

import fnmatch
import os
import re
import sys

from lib.source import Findings, arguments, tree

SUFFIXES = (".c", ".h", ".S", ".py", ".md", ".csv", ".build", ".in", ".1")
SOURCES = SUFFIXES[:3] + (".in", ".py", ".csv", ".build")
SPAN = re.compile(r"`([^`\n]+)`")
PATH = re.compile(r"(?<![\w./*<$-])((?:[\w*.-]+/)+[\w*.-]*|[\w*-]+\.[chS])(?![\w/>])")
PLACE = re.compile(r"^([\w./-]+\.\w+): (\w+(?:, \w+)*)(\(\))?$")
NAME = re.compile(r"\b((?:base|marcel|piom|nm|madmpi)_\w+)\b(?!\*|-)")
VARIABLE = re.compile(r"\b((?:MARCEL|PIOM|NMAD|MADMPI)_[A-Z_]+[A-Z])\b(?![*.])")
# Not files of ours.
ELSEWHERE = re.compile(
    r"^(/|\.|build/|src/|sys/|dev/|proc/|etc/|tmp/|usr/|bin/|share/|lib/|include/)"
)


def spans(text):
    """(line, code) of each piece in backquotes outside of blocks."""
    block = False
    for number, line in enumerate(text.split("\n"), 1):
        if line.startswith("```"):
            block = not block
        if not block:
            for match in SPAN.finditer(line):
                yield number, match[1]


class Tree:
    def __init__(self, root):
        self.root = root
        self.files = tree(root, [""], "")
        self.words = {}
        self.all_words = set()
        for path in self.files:
            if path.endswith(SOURCES) or "." not in os.path.basename(path):
                self.all_words |= self.words_of(path)

    def words_of(self, path):
        if path not in self.words:
            with open(os.path.join(self.root, path), "rb") as f:
                text = f.read().decode("utf-8", "replace")
            self.words[path] = set(re.findall(r"\w+", text))
        return self.words[path]

    def defines(self, path, name):
        """A function's name begins its definition, or is in a macro's call."""
        with open(os.path.join(self.root, path), encoding="utf-8") as f:
            text = f.read()
        found = rf"^(?:[A-Za-z][^;\n]*\b|#define |\t\w+\()?{name}\b"
        return re.search(found, text, re.M) is not None

    def find(self, path):
        """The files that this may mean: the whole end of a path."""
        path = path.rstrip("/")
        ends = [f for f in self.files if fnmatch.fnmatch("/" + f, "*/" + path)]
        return ends or [f for f in self.files if f"/{path}/" in f"/{f}"]


def look(there, doc, line, code, findings):
    place = PLACE.match(code)
    if place:
        files = there.find(place[1])
        for name in place[2].split(", ") if files else []:
            if not any(there.defines(f, name) for f in files):
                findings.add(doc, line, f"{place[1]} has no {name}")
    for path in PATH.findall(code):
        if "://" in code or ELSEWHERE.match(path):
            continue
        is_file = path.endswith(SUFFIXES)
        is_ours = path.split("/")[0] in there.tops
        if (is_file or is_ours) and not there.find(path):
            findings.add(doc, line, f"there is no {path}")
    for name in NAME.findall(code) + VARIABLE.findall(code):
        if name not in there.all_words:
            findings.add(doc, line, f"nothing is called {name}")


def main():
    root = arguments(__doc__).parse_args().root
    findings = Findings("documents")
    there = Tree(root)
    there.tops = {f.split("/")[0] for f in there.files if "/" in f}
    documents = tree(root, ["doc"], ".md")
    for doc in documents:
        with open(os.path.join(root, doc), encoding="utf-8") as f:
            text = f.read()
        for line, code in spans(text):
            look(there, doc, line, code, findings)
    findings.exit(len(documents))


if __name__ == "__main__":
    main()
