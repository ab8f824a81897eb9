"""Threads: marcel beside its peers, each program of tests/bench/marcel in a
process of its own, in turns: A B C A B C ...
"""
import os
import statistics
import subprocess

# What tests/bench/marcel/meson.build makes, and what it needs for that.
PEERS = {
    "pthread": "libc6-dev",
    "pth": "libpth-dev",
    "boost": "libboost-fiber-dev",
    "go": "golang-go",
}
PROGRAMS = ["fork_join_cold", "create_join", "fork_join", "fork_join_16k",
            "fork_join_1m", "yield_2", "yield_1000", "yield_private",
            "hand_over", "hand_over_pinned", "mutex_cond", "mutex",
            "mutex_short", "mutex_yielding", "barrier", "fib", "tree",
            "tree_working", "tree_serial", "blocked", "idle", "wake_up",
            "wake_busy", "blocking", "preempt"]
LIMIT = 120  # seconds for one program
OTHER_CPUS = 77  # says a program that cannot run on so many


class Runtime:
    def __init__(self, name, program, options):
        self.name = name
        self.program = program
        self.options = options
        self.values = {}  # name: [value per round, None if there is none]
        self.failed = set()

    def run(self, cpus, bench, n):
        """The nth round; what it prints becomes the nth of self.values."""
        for values in self.values.values():
            values += [None] * (n + 1 - len(values))
        if bench in self.failed:
            return []
        try:
            done = subprocess.run(
                [self.program, *self.options, str(cpus), bench],
                stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                timeout=LIMIT)
            code = done.returncode
        except subprocess.TimeoutExpired:
            code = "time-out"
        if code != 0:
            self.failed.add(bench)
            if code != OTHER_CPUS:
                print(f"{self.name}, {bench}, {cpus} CPUs: {code}", flush=True)
            return []
        units = []
        for line in done.stdout.splitlines():
            name, value, unit = line.split()
            values = self.values.setdefault(name, [None] * (n + 1))
            values[n] = float(value)
            units.append((name, unit))
        return units

    def median(self, name):
        values = [v for v in self.values.get(name, []) if v is not None]
        return statistics.median(values) if values else None


def find(build):
    """The runtimes that are built; says which are not."""
    folder = os.path.join(build, "tests", "bench", "marcel")
    marcel = os.path.join(folder, "bench_marcel")
    found = [Runtime("marcel", marcel, []), Runtime("in main", marcel, ["-m"])]
    for peer, package in PEERS.items():
        program = os.path.join(folder, "bench_" + peer)
        if os.path.exists(program):
            found.append(Runtime(peer, program, []))
        else:
            print(f"{peer}: not in this build; it needs {package}")
    return found


def number(x):
    return f"{x:.1f}" if abs(x) < 1000 else f"{x:.0f}"


def ratio(ours, peers, name):
    """Of pairs of rounds, ours to the best of the peers."""
    there = [p for p in peers if p.median(name)]
    if not there or name == "tree_serial":
        return ""
    best = min(there, key=lambda p: p.median(name))
    pairs = sorted(a / b for a, b in zip(ours.values[name], best.values[name])
                   if a is not None and b)
    return (f"{statistics.median(pairs):6.2f} ({pairs[0]:.2f}.."
            f"{pairs[-1]:.2f}) {best.name}")


def table(runtimes, units, cpus):
    ours, peers = runtimes[0], runtimes[2:]
    print(f"\n{f'{cpus} CPUs: medians':22}{ours.name:>9}{'min..max':>19}"
          + "".join(f"{r.name:>10}" for r in runtimes[1:])
          + "   ours/best (range)")
    for name, unit in units.items():
        values = [v for v in ours.values[name] if v is not None]
        spread = f"{number(min(values))}..{number(max(values))}"
        line = f"{f'{name}, {unit}':22}{number(ours.median(name)):>9}"
        line += f"{spread:>19}"
        for r in runtimes[1:]:
            m = r.median(name)
            line += f"{'-' if m is None else number(m):>10}"
        print(f"{line}   {ratio(ours, peers, name)}".rstrip())


def compare(build, rounds, only):
    for cpus in [1, 2]:
        runtimes = find(build)
        units = {}
        for n in range(rounds):
            for bench in only or PROGRAMS:
                for r in runtimes:
                    new = r.run(cpus, bench, n)
                    if r is runtimes[0]:
                        units.update(new)
        table(runtimes, units, cpus)
