#!/usr/bin/env python3
"""Tables and plots of what tools/bench/run.py mpi has measured.

    tools/bench/report.py SAMPLES.csv

Prints the tables, and writes them (tables.txt) and plots (PNG; with gnuplot) into
the folder of that file, whose lines are

    benchmark,network,mpi,round,name,value,unit

A value is what a program printed in that round: the median of its repetitions.
"""
import csv
import os
import re
import shutil
import subprocess
import sys

import stats
import suite

COLUMNS = ["benchmark", "network", "mpi", "round", "name", "value", "unit"]
OURS = "ours"
UNITS = {"B": 1, "K": 1 << 10, "M": 1 << 20, "": 1}


class Sheet:
    """One benchmark over one network."""

    def __init__(self, benchmark, network):
        self.benchmark = benchmark
        self.network = network
        self.units = {}  # name: unit, in the order of the program
        self.mpis = {}  # mpi: {name: {round: value}}

    def add(self, mpi, n, name, value, unit):
        if self.units.setdefault(name, unit) != unit:
            raise ValueError(f"{name} is in {unit} and {self.units[name]}")
        self.mpis.setdefault(mpi, {}).setdefault(name, {})[n] = value

    def of(self, mpi, name):
        return self.mpis[mpi].get(name, {})

    def ours(self):
        return [m for m in self.mpis if m == OURS or m.startswith(OURS + " ")]

    def peers(self, name):
        return {m: self.of(m, name) for m in self.mpis if m not in self.ours()}

    def rounds(self):
        return len({n for names in self.mpis.values()
                    for values in names.values() for n in values})


def read(path):
    """Sheets in the order of the file."""
    sheets = {}
    with open(path, newline="", encoding="utf-8") as f:
        rows = csv.DictReader(f)
        if rows.fieldnames != COLUMNS:
            sys.exit(f"{path}: its columns are not {','.join(COLUMNS)}")
        for row in rows:
            key = row["benchmark"], row["network"]
            sheet = sheets.setdefault(key, Sheet(*key))
            try:
                sheet.add(row["mpi"], int(row["round"]), row["name"],
                          float(row["value"]), row["unit"])
            except (TypeError, ValueError) as wrong:
                sys.exit(f"{path}, line {rows.line_num}: {wrong}")
    return list(sheets.values())


def number(x):
    return f"{x:.4f}" if abs(x) < 100 else f"{x:.1f}"


def spread(values, form=number):
    """Its median and what that is between, or the range of too few."""
    span = stats.interval(values)
    if span is None:
        span = min(values.values()), max(values.values())
    return form(stats.median(values)), f"{form(span[0])}..{form(span[1])}"


def short(x):
    return f"{x:.2f}" if abs(x) < 1000 else f"{x:.0f}"


def against_best(sheet, mpi, name):
    peers = sheet.peers(name)
    unit = sheet.units[name]
    best = stats.best(peers, unit)
    if best is None:
        return ""
    of = stats.more if unit == "share" else stats.times
    values = stats.paired(sheet.of(mpi, name), peers[best], of)
    if not values:
        return ""
    middle, span = spread(values, short)
    return f"{'+' if of is stats.more and middle[0] != '-' else ''}{middle} " \
           f"({span}) {best}"


def verdicts(sheet, mpi, name):
    found = []
    for target in suite.targets(sheet.benchmark):
        if target.fits(name, sheet.network, mpi):
            values = stats.compared(target, name, sheet.mpis[mpi],
                                    sheet.peers(name), sheet.units[name])
            found.append(f"{target.text()}: {stats.verdict(target, values)}")
    return ", ".join(found)


def table(sheet, mpi):
    """One of ours beside the peers."""
    peers = list(sheet.peers(""))
    lines = [f"{sheet.benchmark}, {sheet.network}: {mpi}, rounds: "
             f"{sheet.rounds()}",
             f"{'':30}{'median':>12} {'95 %':>24}"
             + "".join(f"{p:>12}" for p in peers)
             + (f"   {'of the best (95 %)':32}" if peers else "   ")
             + f"{'unit':12}target"]
    for name, unit in sheet.units.items():
        values = sheet.of(mpi, name)
        if not values:
            lines.append(f"{name:30}{'-':>12}")
            continue
        middle, span = spread(values)
        line = f"{name:30}{middle:>12} {span:>24}"
        for p in peers:
            theirs = sheet.of(p, name)
            line += f"{number(stats.median(theirs)) if theirs else '-':>12}"
        line += (f"   {against_best(sheet, mpi, name):32}" if peers else "   ")
        lines.append(f"{line}{unit:12}{verdicts(sheet, mpi, name)}".rstrip())
    return "\n".join(lines) + "\n"


def point(name):
    """Series and x of a name; x is None if it has none."""
    found = re.fullmatch(r"(.+)_(\d+)([BKM]?)", name)
    if found is None:
        return name, None
    return found[1], int(found[2]) * UNITS[found[3]]


def curves(sheet):
    """{series: {mpi: [(x, median, low, high)]}}, those with several x."""
    found = {}
    for name in sheet.units:
        series, x = point(name)
        for mpi in sheet.mpis:
            values = sheet.of(mpi, name)
            if x is None or not values:
                continue
            low, high = (stats.interval(values)
                         or (min(values.values()), max(values.values())))
            found.setdefault(series, {}).setdefault(mpi, []).append(
                (x, stats.median(values), low, high))
    return {series: by_mpi for series, by_mpi in found.items()
            if max(len(points) for points in by_mpi.values()) > 1}


def script(sheet, series, by_mpi, path):
    """For gnuplot."""
    points = [p for each in by_mpi.values() for p in each]
    unit = next(u for n, u in sheet.units.items() if point(n)[0] == series)
    text = ["set terminal png size 960,640 noenhanced",
            f"set output '{path}'",
            f"set title '{sheet.benchmark}, {sheet.network}: {series}'",
            f"set ylabel '{unit}'", "set key outside right", "set grid"]
    xs = [p[0] for p in points]
    if min(xs) > 0 and max(xs) >= 8 * min(xs):
        text.append("set logscale x 2")
    if any(n[-1] in "BKM" for n in sheet.units if point(n)[0] == series):
        text += ["set format x '%.0b%B'", "set xlabel 'bytes'"]
    if min(p[2] for p in points) > 0:
        text.append("set logscale y")
    elif min(p[2] for p in points) >= 0:
        text.append("set yrange [0:]")
    for i, each in enumerate(by_mpi.values()):
        text += [f"$d{i} << EOD", *(" ".join(f"{v:.9g}" for v in p)
                                    for p in sorted(each)), "EOD"]
    text.append("plot " + ", ".join(
        f"$d{i} using 1:2:3:4 with yerrorlines title '{mpi}'"
        for i, mpi in enumerate(by_mpi)))
    return "\n".join(text) + "\n"


def plot(sheet, folder):
    """The names of the pictures."""
    made = []
    for series, by_mpi in curves(sheet).items():
        name = f"{sheet.benchmark}-{sheet.network}-{series}.png"
        done = subprocess.run(
            ["gnuplot"], text=True, cwd=folder, stdout=subprocess.DEVNULL,
            input=script(sheet, series, by_mpi, name))
        if done.returncode != 0:
            sys.exit(f"gnuplot could not draw {name}")
        made.append(name)
    return made


def tables(sheets):
    return "\n".join(table(sheet, mpi) for sheet in sheets
                     for mpi in sheet.ours())


def show(path):
    """All of a file of samples."""
    sheets = read(path)
    folder = os.path.dirname(path) or "."
    text = tables(sheets)
    with open(os.path.join(folder, "tables.txt"), "w", encoding="utf-8") as f:
        f.write(text)
    print("\n" + text, flush=True)
    if shutil.which("gnuplot") is None:
        print("no plots: gnuplot is not installed; tools/bench/peers does so")
        return
    made = [name for sheet in sheets for name in plot(sheet, folder)]
    print(f"{path}, tables.txt and {len(made)} plots beside it", flush=True)


def main():
    if len(sys.argv) != 2 or sys.argv[1].startswith("-"):
        print(__doc__, file=sys.stderr)
        sys.exit(2)
    if not os.path.isfile(sys.argv[1]):
        sys.exit(f"{sys.argv[1]}: no such file")
    show(sys.argv[1])


if __name__ == "__main__":
    main()
