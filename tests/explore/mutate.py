#!/usr/bin/env python3
"""The mutation check: is every named order needed, and would we notice?

Each access that has an order and a name is made weaker, one at a time; a
scenario that covers the name must then fail. A mutant that survives means that
the order is stronger than needed, or that no scenario tries what it is for.

Compilers take longer than most mutants live, so each scenario is compiled once
and holds all mutants: in a copy of the sources every such access becomes a
macro that says the accessor as it was and the weaker ones, and asks the
explorer which one to use. The number of a mutant comes from the environment.

  mutate.py [--cc COMPILER] [--lib libexplore.a] [--exempt] [NAME ...]

mutate.exempt lists what is let off, with the reason. It is made weaker only
with --exempt: most of it keeps a scenario busy until its time is over."""

import argparse
import collections
import concurrent.futures
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import zlib

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
sys.path.insert(0, os.path.join(ROOT, "tools", "check"))

from order import ATOMIC, Orders  # noqa: E402

WORKERS = 2
# Executions of a test, and in its next tries; seconds of CPU time in which each
# is over, unless what is weaker makes it loop.
LIMITS = [(1000, 2), (30000, 8), (10000000, 60)]
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
-DMARCEL_ARCH_CPU_H -include no_events.h -ffunction-sections -fdata-sections -fsanitize=thread""".split()
INCLUDES = ["tests/explore"] + [m + "/include" for m in MODULES]

TEST = re.compile(r"^EXPLORE\((\w+)\)", re.M)
COVERS = re.compile(r"\bcovers:([a-z0-9_, *\n\t-]*)")


class Scenario:
    def __init__(self, name, compiler):
        self.name = name
        path = os.path.join(HERE, name + ".c")
        with open(path, encoding="utf-8") as f:
            text = f.read()
        self.tests = TEST.findall(text)
        match = COVERS.search(text.split("*/")[0])
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


def number_of(*what):
    """What tells a mutant from others, whatever else changes in the sources:
    then a compiler's cache has what it is in."""
    return zlib.crc32(":".join(map(str, what)).encode()) >> 1


class Mutant:
    """One access, made weaker."""

    def __init__(self, site, weaker, scenarios):
        self.number = number_of(site.path, site.line, site.column, weaker)
        self.site = site
        self.weaker = weaker
        self.scenarios = scenarios
        self.result = None
        self.timed_out = []  # (scenario, test) that said nothing in time

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
        for order in weaker if able else []:
            mutants.append(Mutant(site, order, able))
        if not able:
            uncovered.append(site)
    if len({m.number for m in mutants} | {0}) != len(mutants) + 1:
        raise RuntimeError("two mutants have one number")
    return mutants, uncovered


def macro(mutants):
    """What an access becomes: as it was, unless one of its mutants is meant."""
    body = f"{mutants[0].old()}(__VA_ARGS__)"
    for m in mutants:
        body = f"(explore_mutant({m.number}) ? {m.new()}(__VA_ARGS__) : {body})"
    return f"#define mutable_{mutants[0].number}_(...) {body}\n"


def write_copy(top, mutants):
    """The sources with all mutants in them; mutants.h has the macros."""
    for folder in MODULES + ["tests/explore"]:
        shutil.copytree(os.path.join(ROOT, folder), os.path.join(top, folder))
    sites = {}
    for m in mutants:
        sites.setdefault((m.site.path, m.site.line, m.site.column), []).append(m)
    texts, macros = {}, []
    # From the end of a line to its beginning, so that columns stay true.
    for where in sorted(sites, reverse=True):
        path, line, column = where
        if path not in texts:
            with open(os.path.join(top, path), encoding="utf-8") as f:
                texts[path] = f.read().split("\n")
        text, old = texts[path][line - 1], sites[where][0].old()
        if not re.match(old + r"\b", text[column:]):
            raise RuntimeError(f"{sites[where][0]}: not found")
        texts[path][line - 1] = (
            text[:column]
            + f"mutable_{sites[where][0].number}_"
            + text[column + len(old) :]
        )
        macros.append(macro(sites[where]))
    for path, lines in texts.items():
        with open(os.path.join(top, path), "w", encoding="utf-8") as f:
            f.write("\n".join(lines))
    with open(os.path.join(top, "mutants.h"), "w", encoding="utf-8") as f:
        f.write("".join(macros))


class Check:
    """The scenarios with the mutants, in a folder."""

    def __init__(self, compiler, library, top):
        self.compiler = compiler
        self.library = library
        self.top = top
        self.kills = collections.Counter()  # (scenario, test, order)
        self.used = {}  # (scenario, test): the limit in which it has found one

    def build(self, scenario):
        source = os.path.join("tests", "explore", scenario.name + ".c")
        header = ["-include", "mutants.h"]
        object_file = scenario.name + ".o"
        # From there, so that a compiler's cache sees no other paths each time.
        for command in (
            FLAGS + includes(".") + header + ["-c", source, "-o", object_file],
            ["-Wl,--gc-sections", object_file, self.library, "-o", scenario.name],
        ):
            done = subprocess.run(
                self.compiler + command,
                cwd=self.top,
                capture_output=True,
                text=True,
                check=False,
            )
            if done.returncode != 0:
                raise RuntimeError(
                    f"{scenario.name} does not compile:\n{done.stderr}"
                )

    def _run(self, number, scenario, test, limit):
        """The exit code: 1 if it fails, 2 or -SIGKILL if it needs more."""
        executions, seconds = limit
        program = os.path.join(self.top, scenario.name)
        command = ["prlimit", f"--cpu={seconds}", program]
        return subprocess.run(
            command + [test],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            check=False,
            env=dict(
                os.environ,
                EXPLORE_MUTANT=str(number),
                EXPLORE_BOUND=str(executions),
            ),
        ).returncode

    def run(self, mutant):
        """All tests for a short time, then those again that need more."""
        names = mutant.site.names
        todo = [(s, test) for s in mutant.scenarios for test in s.tests]
        # Who finds most is first.
        todo.sort(key=lambda w: -sum(self.kills[*w, name] for name in names))
        for limit in LIMITS:
            mutant.timed_out = []
            for scenario, test in todo:
                code = self._run(mutant.number, scenario, test, limit)
                if code == 1:
                    mutant.result = f"{scenario.name}: {test}"
                    self.kills.update((scenario, test, name) for name in names)
                    self.used[scenario, test] = limit
                    return
                if code in (2, -signal.SIGKILL):
                    mutant.timed_out.append((scenario, test))
            todo = mutant.timed_out

    def run_whole(self, used):
        """A test that fails when nothing is weaker has found nothing."""
        (scenario, test), limit = used
        if self._run(0, scenario, test, limit) == 1:
            raise RuntimeError(f"{scenario.name}: {test} fails without a mutant")


def run_all(mutants, compiler, library):
    needed = {s for m in mutants for s in m.scenarios}
    with tempfile.TemporaryDirectory() as top:
        write_copy(top, mutants)
        check = Check(compiler, library, top)
        with concurrent.futures.ThreadPoolExecutor(WORKERS) as pool:
            for _ in pool.map(check.build, needed):
                pass
            for _ in pool.map(check.run, mutants):
                pass
            for _ in pool.map(check.run_whole, check.used.items()):
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
    files = [
        f
        for f in sorted(os.listdir(HERE))
        if f.endswith(".c") and "EXPLORE(" in open(os.path.join(HERE, f)).read()
    ]
    with concurrent.futures.ThreadPoolExecutor(WORKERS) as pool:
        scenarios = list(pool.map(lambda f: Scenario(f[:-2], compiler), files))
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
    say(
        "TIMED OUT",
        [f"{m} in {', '.join(f'{s.name}: {t}' for s, t in m.timed_out)}" for m in late],
    )
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
