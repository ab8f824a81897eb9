#!/usr/bin/env python3
"""Named orders: each access that releases or acquires has a name, both ends
of a name exist, and doc/memory-order.md says what it is for.

An end is an accessor of <base/atomic.h> with an order, or a call of a base
function whose name ends with _seq; its name, order(x), stands in a comment in
the same statement or directly above it. Inside a function whose name ends
with _seq no name is needed: its callers have them."""

import os
import re

from lib.source import MODULES, Findings, Source, arguments, tree

ATOMIC = "marcel/include/base/atomic.h"
DOC = "doc/memory-order.md"

ACCESS = re.compile(
    r"\b(load|store|xchg|cas|cas_weak|fetch_add|fetch_sub|fetch_or|fetch_and)"
    r"_(acquire|release|acq_rel|seq)\s*\("
)
SEQ_CALL = re.compile(r"\bbase_\w+_seq\s*\(")
BARE = re.compile(
    r"\b(?:memory_order_\w+|atomic_(?:load|store|exchange|compare|fetch|thread"
    r"|signal|flag)\w*|__atomic_\w+|__sync_\w+|_Atomic)\b"
)
NAME = re.compile(r"\border\(([a-z_0-9-]+)\)")
ROW = re.compile(r"^\|\s*`?([a-z][a-z_0-9-]*)`?\s*\|")
PLACE = re.compile(r"`([\w./-]+\.[chS]):\s*(\w+)`")


class Site:
    """One accessor call: where, which, under which names."""

    def __init__(self, path, line, column, accessor, order, names):
        self.path = path
        self.line = line
        self.column = column
        self.accessor = accessor
        self.order = order
        self.names = names
        self.function = ""

    def releases(self):
        reads_only = self.accessor == "load"
        return not reads_only and self.order != "acquire"

    def acquires(self):
        writes_only = self.accessor == "store"
        return not writes_only and self.order != "release"


def statement(source, offset):
    """First and last line of the statement around this place."""
    code = source.code
    begin = max(code.rfind(c, 0, offset) for c in ";{}") + 1
    begin += len(code[begin:offset]) - len(code[begin:offset].lstrip())
    ends = [code.find(c, offset) for c in ";{"]
    end = min(e for e in ends + [len(code)] if e >= 0)
    return source.line_of(begin), source.line_of(end)


def names_at(source, offset):
    first, last = statement(source, offset)
    line = source.line_of(offset)
    names = set()
    above = first
    for begin, end, text in reversed(source.comments):
        alone = not source.code_lines[begin - 1].strip()
        if alone and end == above - 1:
            names |= set(NAME.findall(text))
            above = begin
        elif begin == line:
            return set(NAME.findall(text)) or names
    for begin, end, text in source.comments:
        if first <= begin <= last:
            names |= set(NAME.findall(text))
    return names


def enclosing(source, offset):
    """Name of the function that contains this place."""
    lines = source.code_lines[: source.line_of(offset)]
    for i in range(len(lines) - 1, 0, -1):
        if lines[i].rstrip() != "{":
            continue
        above = "".join(lines[max(0, i - 8) : i])
        names = re.findall(r"(\w+)\s*\([^()]*(?:\([^()]*\)[^()]*)*\)\s*$", above)
        return names[-1] if names else ""
    return ""


def sites(source):
    for match in ACCESS.finditer(source.code):
        column = match.start() - source.code.rfind("\n", 0, match.start()) - 1
        yield Site(
            source.path,
            source.line_of(match.start()),
            column,
            match.group(1),
            match.group(2),
            names_at(source, match.start()),
        ), match.start()
    for match in SEQ_CALL.finditer(source.code):
        if is_declaration(source, match.start()):
            continue
        yield Site(
            source.path,
            source.line_of(match.start()),
            0,
            "call",
            "seq",
            names_at(source, match.start()),
        ), match.start()


def is_declaration(source, offset):
    """Declarations and definitions begin a line, calls are inside a body."""
    first, _ = statement(source, offset)
    return not source.code_lines[first - 1].startswith(("\t", " "))


class Orders:
    """All that the sources say about orders."""

    def __init__(self, root):
        self.root = root
        self.sites = []
        self.bare = []
        self.files = tree(root, MODULES + ["tools"], (".c", ".h"))
        for path in self.files:
            if path != ATOMIC:
                self._read(Source(root, path))

    def _read(self, source):
        for site, offset in sites(source):
            site.function = enclosing(source, offset)
            if site.function.endswith("_seq"):
                site.order = "inner_seq"
            self.sites.append(site)
        for match in BARE.finditer(source.code):
            line = source.line_of(match.start())
            self.bare.append((source.path, line, match.group()))

    def ends(self):
        """name -> sites"""
        found = {}
        for site in self.sites:
            for name in site.names:
                found.setdefault(name, []).append(site)
        return found


def rows(root):
    """name -> (line, text, is it a race) of the tables in the document."""
    found = {}
    race = False
    path = os.path.join(root, DOC)
    if not os.path.exists(path):
        return found
    with open(path, encoding="utf-8") as f:
        for number, line in enumerate(f, 1):
            if line.startswith("#"):
                race = "races" in line
            match = ROW.match(line)
            if match and match.group(1) != "name":
                found[match.group(1)] = (number, line, race)
    return found


def check_places(root, name, number, text, findings):
    """A row names functions that exist."""
    places = PLACE.findall(text)
    if len(places) < 2:
        findings.add(
            DOC, number, f"order({name}): each end is to be `file.c: function`"
        )
    for path, function in places:
        full = os.path.join(root, path)
        if not os.path.exists(full):
            findings.add(DOC, number, f"order({name}): no file {path}")
            continue
        with open(full, encoding="utf-8") as f:
            if not re.search(r"\b%s\b" % function, f.read()):
                findings.add(DOC, number, f"order({name}): no {function} in {path}")


def check_ends(name, ends, findings):
    first = ends[0]
    if all(site.accessor == "call" for site in ends):
        return  # the ends are inside what is called
    if not any(site.releases() for site in ends):
        findings.add(first.path, first.line, f"order({name}) has no releasing end")
    if not any(site.acquires() for site in ends):
        findings.add(first.path, first.line, f"order({name}) has no acquiring end")


def check_names(orders, table, findings):
    for site in orders.sites:
        what = f"{site.accessor} with {site.order}"
        if site.order == "inner_seq":
            continue
        if not site.names:
            findings.add(site.path, site.line, f"{what} has no order(name)")
        elif site.order == "seq" and not any(
            table[name][2] for name in site.names if name in table
        ):
            findings.add(
                site.path, site.line, f"{what}: none of its orders is a race in {DOC}"
            )


def main():
    root = arguments(__doc__).parse_args().root
    findings = Findings("files")
    orders = Orders(root)
    table = rows(root)
    ends = orders.ends()
    for path, line, word in orders.bare:
        findings.add(path, line, f"{word} outside of <base/atomic.h>")
    check_names(orders, table, findings)
    for name in ends:
        check_ends(name, ends[name], findings)
        if name not in table:
            first = ends[name][0]
            findings.add(first.path, first.line, f"order({name}) is not in {DOC}")
    for name, (number, text, _) in table.items():
        if name not in ends:
            findings.add(DOC, number, f"order({name}) is nowhere in the sources")
        check_places(root, name, number, text, findings)
    findings.exit(len(orders.files))


if __name__ == "__main__":
    main()
