#!/usr/bin/env python3
"""The mutation check: is every named order needed, and would we notice?

Each access that has an order and a name is made weaker, one at a time, in a
copy of the sources; a scenario that covers the name must then fail. A mutant
that survives means that the order is stronger than needed, or that no scenario
tries what it is for.

  mutate.py [--cc COMPILER] [--lib libexplore.a] [--exempt] [NAME ...]

mutate.exempt lists what is let off, with the reason. It is made weaker only
with --exempt: most of it keeps a scenario busy until its time is over."""

import argparse
import collections
import concurrent.futures
import os
import re
import shutil
import subprocess
import sys
import tempfile
import threading

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
sys.path.insert(0, os.path.join(ROOT, "tools", "check"))

from order import ATOMIC, Orders  # noqa: E402

WORKERS = 2
LIMITS = [4, 40]  # seconds for a run of a scenario, and for its second try
MODULES = ["marcel", "pioman", "nmad", "madmpi"]

WEAKER = {
    "load": {"acquire": ["relaxed"], "seq": ["acquire"]},
    "store": {"release": ["relaxed"], "seq": ["release"]},
    "rmw": {
        "acquire": ["relaxed"],
        "release": ["relaxed"],
        "acq_rel": ["acquire", "release"],
        "seq": ["acq_rel"],
    },
}

FLAGS = """-std=gnu11 -O1 -w -D_GNU_SOURCE -DBASE_EXPLORE
-DMARCEL_ARCH_CPU_H -ffunction-sections -fdata-sections -fsanitize=thread""".split()
INCLUDES = ["tests/explore"] + [m + "/include" for m in MODULES]

COVERS = re.compile(r"\bcovers:([a-z0-9_, *\n\t-]*)")


class Scenario:
    def __init__(self, name, compiler):
        self.name = name
        path = os.path.join(HERE, name + ".c")
        with open(path, encoding="utf-8") as f:
            head = f.read().split("*/")[0]
        match = COVERS.search(head)
        words = re.findall(r"[a-z][a-z_0-9-]*", match.group(1)) if match else []
        self.covers = set(words)
        self.files = self._files(compiler, path)

    @staticmethod
    def _files(compiler, path):
        """What it includes, directly or not."""
        out = subprocess.run(
            compiler + FLAGS + includes(ROOT) + ["-MM", path],
            check=True,
            capture_output=True,
            text=True,
        ).stdout
        words = out.replace("\\\n", " ").split(":", 1)[1].split()
        return {os.path.relpath(os.path.realpath(w), ROOT) for w in words}


class Mutant:
    """One access, made weaker."""

    def __init__(self, site, weaker, scenarios):
        self.site = site
        self.weaker = weaker
        self.scenarios = scenarios
        self.result = None
        self.timed_out = []  # scenarios that said nothing in time

    def old(self):
        return f"{self.site.accessor}_{self.site.order}"

    def new(self):
        return f"{self.site.accessor}_{self.weaker}"

    def __str__(self):
        s = self.site
        names = ", ".join(sorted(s.names)) or "of the callers"
        return f"{s.path}:{s.line}: {self.old()} -> {self.weaker} ({names})"


def includes(root):
    return [word for i in INCLUDES for word in ("-I", os.path.join(root, i))]


def orders_of(site):
    kind = site.accessor if site.accessor in WEAKER else "rmw"
    order = "seq" if site.order == "inner_seq" else site.order
    return order, WEAKER[kind][order]


def find_mutants(orders, scenarios):
    """The mutants, and the sites that no scenario covers."""
    mutants, uncovered = [], []
    for site in orders.sites:
        if site.accessor == "call":
            continue
        inner = site.order == "inner_seq"
        site.order, weaker = orders_of(site)
        able = [s for s in scenarios if site.path in s.files]
        able.sort(key=lambda s: not s.covers & site.names)
        if not inner:
            able = [s for s in able if s.covers & site.names]
        if able:
            mutants += [Mutant(site, w, able) for w in weaker]
        else:
            uncovered.append(site)
    return mutants, uncovered


class Worker:
    """A copy of the sources in which one mutant at a time lives."""

    kills = collections.Counter()  # (scenario, order): who finds most is first

    def __init__(self, compiler, library, top, number):
        self.compiler = compiler
        self.library = library
        self.root = os.path.join(top, str(number))
        for folder in MODULES + ["tests/explore"]:
            shutil.copytree(
                os.path.join(ROOT, folder), os.path.join(self.root, folder)
            )

    def _build(self, scenario):
        """The program, or what the compiler said."""
        program = os.path.join(self.root, scenario.name)
        source = os.path.join(self.root, "tests", "explore", scenario.name + ".c")
        object_file = program + ".o"
        for command in (
            FLAGS + includes(self.root) + ["-c", source, "-o", object_file],
            ["-Wl,--gc-sections", object_file, self.library, "-o", program],
        ):
            done = subprocess.run(
                self.compiler + command, capture_output=True, text=True, check=False
            )
            if done.returncode != 0:
                return None, done.stderr
        return program, ""

    def _fails(self, mutant, scenario, limit):
        """Which of its tests fails; None: none does, or not in time."""
        program, said = self._build(scenario)
        if program is None:
            raise RuntimeError(f"{scenario.name} does not compile:\n{said}")
        env = dict(os.environ, EXPLORE_FIRST="1")
        try:
            done = subprocess.run(
                [program],
                capture_output=True,
                text=True,
                check=False,
                timeout=limit,
                env=env,
            )
        except subprocess.TimeoutExpired:
            mutant.timed_out.append(scenario.name)
            return None
        if done.returncode != 1:
            return None
        match = re.search(r"^not ok \d+ - (\w+)", done.stdout, re.M)
        return f"{scenario.name}: {match.group(1) if match else 'crash'}"

    def _try(self, mutant):
        """All scenarios for a short time, then those again that need more."""
        names = mutant.site.names
        scenarios = sorted(
            mutant.scenarios, key=lambda s: -sum(self.kills[s.name, n] for n in names)
        )
        for limit in LIMITS:
            mutant.timed_out = []
            for scenario in scenarios:
                mutant.result = self._fails(mutant, scenario, limit)
                if mutant.result is not None:
                    self.kills.update((scenario.name, n) for n in names)
                    return
            scenarios = [s for s in scenarios if s.name in mutant.timed_out]

    def run(self, mutant):
        path = os.path.join(self.root, mutant.site.path)
        with open(path, encoding="utf-8") as f:
            text = f.read()
        lines = text.split("\n")
        line, column = mutant.site.line - 1, mutant.site.column
        before, after = lines[line][:column], lines[line][column:]
        if not after.startswith(mutant.old()):
            raise RuntimeError(f"{mutant}: not found")
        lines[line] = before + mutant.new() + after[len(mutant.old()) :]
        try:
            with open(path, "w", encoding="utf-8") as f:
                f.write("\n".join(lines))
            self._try(mutant)
        finally:
            with open(path, "w", encoding="utf-8") as f:
                f.write(text)


def run_all(mutants, compiler, library):
    mine = threading.local()
    count = iter(range(1000))
    with tempfile.TemporaryDirectory() as top:

        def run(mutant):
            if not hasattr(mine, "worker"):
                mine.worker = Worker(compiler, library, top, next(count))
            mine.worker.run(mutant)

        with concurrent.futures.ThreadPoolExecutor(WORKERS) as pool:
            for _ in pool.map(run, mutants):
                pass


def read_exempt():
    """{(name, path:function): reason}: "name path:function: reason" a line."""
    found = {}
    with open(os.path.join(HERE, "mutate.exempt"), encoding="utf-8") as f:
        for line in f:
            line = line.strip()
            if line and not line.startswith("#"):
                where, reason = line.split(": ", 1)
                name, path = where.split()
                found[name, path] = reason
    return found


def exemptions(site, exempt):
    where = (site.path, f"{site.path}:{site.function}")
    return {k for k in exempt if k[0] in site.names and k[1] in where}


def let_off(site, exempt, used):
    keys = exemptions(site, exempt)
    used |= keys
    return bool(keys)


def is_let_off_wholly(site, exempt):
    """It has no name that is to be tried nevertheless."""
    free = {name for name, _ in exemptions(site, exempt)}
    return bool(site.names) and site.names <= free


def say(kind, things):
    for thing in things:
        print(f"{kind}: {thing}")


def check_accessors(mutants):
    with open(os.path.join(ROOT, ATOMIC), encoding="utf-8") as f:
        known = set(re.findall(r"#define (\w+)\(", f.read()))
    missing = {m.new() for m in mutants} - known
    if missing:
        sys.exit(f"{ATOMIC} lacks {', '.join(sorted(missing))}")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cc", default="cc", help="the C compiler")
    parser.add_argument("--lib", default="libexplore.a", help="the explorer")
    parser.add_argument("--exempt", action="store_true", help="try all")
    parser.add_argument("names", nargs="*", help="only these orders")
    args = parser.parse_args()
    compiler = args.cc.split()

    orders = Orders(ROOT)
    scenarios = [
        Scenario(f[:-2], compiler)
        for f in sorted(os.listdir(HERE))
        if f.endswith(".c") and "EXPLORE(" in open(os.path.join(HERE, f)).read()
    ]
    if args.names:
        orders.sites = [s for s in orders.sites if s.names & set(args.names)]
    mutants, uncovered = find_mutants(orders, scenarios)
    check_accessors(mutants)
    exempt, used = read_exempt(), set()
    if not args.exempt:
        tried = [m for m in mutants if not is_let_off_wholly(m.site, exempt)]
    else:
        tried = mutants
    run_all(tried, compiler, os.path.abspath(args.lib))

    for m in mutants:
        if m.result:
            print(f"killed: {m} by {m.result}")
    # Nobody knows of these, so no exemption is for them.
    late = [m for m in mutants if not m.result and m.timed_out]
    survivors = [
        m
        for m in mutants
        if not m.result and not m.timed_out and not let_off(m.site, exempt, used)
    ]
    lone = [
        f"{s.path}:{s.line}: {s.accessor}_{s.order} ({', '.join(sorted(s.names))})"
        for s in uncovered
        if not let_off(s, exempt, used)
    ]
    idle = [] if args.names else [k for k in exempt if k not in used]
    say("SURVIVES", survivors)
    say("TIMED OUT", [f"{m} in {', '.join(m.timed_out)}" for m in late])
    say("NOT COVERED", lone)
    say("EXEMPT FOR NOTHING", [" ".join(k) for k in idle])
    say("exempt", [f"order({n}) in {p}: {exempt[n, p]}" for n, p in sorted(used)])
    killed = sum(1 for m in mutants if m.result)
    print(
        f"{killed} of {len(tried)} mutants killed, {len(survivors)} survive, "
        f"{len(late)} timed out, "
        f"{len(lone)} accesses not covered, {len(used)} exemptions"
    )
    sys.exit(1 if survivors or late or lone or idle else 0)


if __name__ == "__main__":
    main()
