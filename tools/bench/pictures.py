"""Results as pictures: curves of what has an x, and dots in rows of what has
none, both with intervals. Drawn by gnuplot, as SVG and as PNG.
"""
import itertools
import math
import os
import shutil
import subprocess
from dataclasses import dataclass

import report
import samples
import stats

KINDS = {"svg": "svg size {width},{height} noenhanced font 'sans-serif,14' "
                "background rgb 'white'",
         "png": "pngcairo size {width},{height} noenhanced font 'sans,11'"}
WIDTH, HEIGHT = 860, 520  # pixels
ROW = 9  # likewise, of a library in a row of dots
KEY = 14  # and in the key
AROUND = 150  # likewise, what is above and beneath the rows
WIDE = 10  # times, from which on an axis is logarithmic
MOST = {"curves": 8, "rows": 14}  # in one picture
FEW = {"x": 2, "y": 3}  # decades of an axis
APART = 1 / 24  # of the axis of x are labels at least
# As they are called on an axis.
UNITS = {"us": "time [µs]", "ns": "time [ns]", "ms": "time [ms]",
         "s": "time [s]", "us/message": "time of a message [µs]",
         "us/piece": "time of a piece [µs]", "MB/s": "bandwidth [MB/s]",
         "GB/s": "bandwidth [GB/s]", "trips/s": "round trips [1/s]",
         "ms/s": "CPU time [ms/s]", "cores": "CPU time / time [cores]",
         "bytes": "memory [bytes]", "B": "memory [bytes]",
         "ratio": "change [%]"}
SHARES = {"hidden": "hidden share", "of_sum": "share of the sum",
          "even": "share of an equal part"}
BYTES = "message size [bytes]"
# What an x counts that is no size.
NUMBERS = {
    "messages at once": ["many", "many_30000", "many_ours", "growth", "match"],
    "threads per process": ["rate", "hosts_rate", "threads", "load",
                            "partitioned"],
    "other communicators": ["communicators"],
    "threads": ["marcel"],
    "processes": ["startup", "collectives", "oversubscribed"],
    "CPUs that submit at once": ["pioman_contention"],
    "due after [µs]": ["pioman_late"],
    "PIOM_IDLE_US [µs]": ["pioman_idle"],
    BYTES: ["locks"],
}
COUNTED = {name: what for what, names in NUMBERS.items() for name in names}
# Told apart by who does not see colours, too. Each peer has its own in all
# pictures; settings of ours are dark or light, peers are not blue.
OURS = ["#0072b2", "#56b4e9", "#332288", "#8c6bb1", "#44aa99", "#003c5e",
        "#9ecae1", "#777777"]
PEERS = {"mpich": "#d55e00", "openmpi": "#009e73", "pthread": "#d55e00",
         "pth": "#009e73", "boost": "#cc79a7", "go": "#e69f00"}
OTHERS = ["#d55e00", "#009e73", "#cc79a7", "#e69f00", "#777777"]
SERIES = ["#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9",
          "#332288", "#777777"]
POINTS = [7, 5, 9, 13, 11, 15, 6, 4]  # of gnuplot, filled if possible
MISSING = "gnuplot is not in the PATH (Debian: gnuplot-nox; " \
          "tools/bench/peers installs it)"


@dataclass
class Picture:
    name: str  # of its files, without what their kind is
    script: str  # what is drawn, for gnuplot
    height: int = HEIGHT


@dataclass
class Point:
    """A median, and what it is between."""
    x: float
    y: float
    low: float
    high: float

    def line(self, columns):
        return " ".join(f"{getattr(self, c):.9g}" for c in columns)


def possible():
    return shutil.which("gnuplot") is not None


def quoted(text):
    return "'" + text.replace("'", "''") + "'"


def point(x, values, unit):
    """Of what is held against 1 the difference is drawn."""
    shown = [stats.median(values), *report.bounds(values)]
    if unit == "ratio":
        shown = [100 * (v - 1) for v in shown]
    return Point(x, *shown)


def quantity(unit, names):
    """With its unit in brackets."""
    if unit != "share":
        return UNITS.get(unit, unit)
    return next((what for of, what in SHARES.items()
                 if all(name.startswith(of) for name in names)), unit)


def label(unit, names):
    better = "more" if unit in stats.MORE_IS_BETTER else "less"
    return quoted(f"{quantity(unit, names)}, {better} is better")


def head(sheet, what, lines):
    """A single line needs no key, but for its name."""
    about = f"{sheet.benchmark}, {sheet.setting}" + (
        f": {what}" if what and what != sheet.benchmark else "")
    if len(lines) == 1 and what not in lines:
        about += f" ({next(iter(lines))})"
    return ["set encoding utf8", f"set title {quoted(about)}",
            "set key outside right top vertical Left reverse"
            if len(lines) > 1 else "unset key",
            "set grid linecolor rgb '#dddddd' linetype 1",
            "set border 3", "set tics nomirror"]


def colours(names):
    """Of libraries, or if none is ours, of series."""
    if not any(map(samples.is_ours, names)):
        return itertools.islice(itertools.cycle(SERIES), len(names))
    ours, others = itertools.cycle(OURS), itertools.cycle(OTHERS)
    return [PEERS[name] if name in PEERS else next(
        ours if samples.is_ours(name) else others) for name in names]


def styles(names):
    """{library or series: how it is drawn}; plain ours is thick."""
    return {name: f"linecolor rgb '{colour}' pointtype {kind} pointsize 0.8 "
                  f"linewidth {3 if name == samples.OURS else 1.5}"
            for name, colour, kind in zip(names, colours(names),
                                          itertools.cycle(POINTS))}


# --- axes ---

def number(x):
    """Of a tic."""
    return f"{x:,.0f}" if x >= 1000 else f"{x:g}"


def decades(low, high, few):
    """Tics between; of few decades three in each."""
    first, last = math.floor(math.log10(low)), math.ceil(math.log10(high))
    steps = (1, 2, 5) if last - first <= few else (1,)
    return {number(float(f"{step}e{ten}")): step * 10.0 ** ten
            for ten in range(first, last + 1) for step in steps}


def tics(axis, named):
    """named: {label: where}"""
    return f"set {axis}tics (" + ", ".join(
        f"{quoted(name)} {at:.9g}" for name, at in named.items()) + ")"


def values_axis(axis, points, unit, names):
    """Logarithmic if values are far apart, else with 0 (and 1, of shares)."""
    low = min(p.low for p in points)
    high = max(p.high for p in points)
    text = [f"set {axis}label {label(unit, names)}"]
    if low > 0 and high >= WIDE * low and unit != "share":
        return text + [f"set logscale {axis}", tics(axis, decades(low, high,
                                                           FEW[axis])),
                       f"set {axis}range [{low / 1.3:.9g}:{high * 1.3:.9g}]"]
    top = max(high, 1.0 if unit == "share" else 0.0)
    room = 0.05 * (top - min(low, 0)) or 1
    return text + [f"set {axis}range [{min(low - room, 0) if low < 0 else 0:.9g}"
                   f":{top + room:.9g}]"]


def apart(ends, scale):
    """Those of {label: where} that do not run into the one before."""
    order = sorted(ends.items(), key=lambda item: item[1])
    least = APART * (scale(order[-1][1]) - scale(order[0][1]))
    few = dict(order[:1])
    for end, x in order[1:]:
        if scale(x) - scale(list(few.values())[-1]) >= least:
            few[end] = x
    return few


def places(xs):
    """{x: where it is drawn}: one after the other, where there can be no
    logarithm."""
    order = sorted(xs)
    if order[0] <= 0 and order[-1] >= WIDE * order[1]:
        return {x: i for i, x in enumerate(order)}
    return {x: x for x in order}


def x_axis(sheet, names, at):
    """Tics are where something was measured, called as the names end; at: by
    places()."""
    sized = any(n[-1] in "BKM" for n in names)
    what = BYTES if sized else COUNTED.get(sheet.benchmark, "number")
    text = [f"set xlabel {quoted(what)}"]
    ends = {}
    for name in names:
        _, x = samples.point(name)
        ends[name.rpartition("_")[2] if sized else number(x)] = at[x]
    first, last = min(at.values()), max(at.values())
    if first > 0 and last >= WIDE * first:
        few = apart(ends, math.log)
        text += ["set logscale x 2",
                 f"set xrange [{first / 1.2:.9g}:{last * 1.2:.9g}]"]
    else:
        few = apart(ends, float)
        room = 0.05 * (last - first)
        text.append(f"set xrange [{first - room:.9g}:{last + room:.9g}]")
    return text + [tics("x", few)]


# --- curves ---

def curves(sheet):
    """{series: {library: [points]}}, those with several x."""
    found = {}
    for name, unit in sheet.units.items():
        series, x = samples.point(name)
        for library in sheet.libraries:
            values = sheet.of(library, name)
            if x is not None and values:
                found.setdefault(series, {}).setdefault(library, []).append(
                    point(x, values, unit))
    return {series: by for series, by in found.items()
            if max(len(points) for points in by.values()) > 1}


def of_series(sheet, series):
    return [n for n in sheet.units if samples.point(n)[0] == series]


def curve(sheet, name, what, names, lines):
    """lines: {library or series: [points]}; names: those of all of them."""
    unit = sheet.units[names[0]]
    every = [p for points in lines.values() for p in points]
    text = head(sheet, what, lines) + values_axis("y", every, unit, names)
    at = places({p.x for p in every})
    text += x_axis(sheet, names, at)
    for p in every:
        p.x = at[p.x]
    for i, points in enumerate(lines.values()):
        text += [f"$d{i} << EOD",
                 *(p.line(["x", "y", "low", "high"])
                   for p in sorted(points, key=lambda p: p.x)), "EOD"]
    text.append("plot " + ", ".join(
        f"$d{i} using 1:2:3:4 with yerrorlines {style} title {quoted(line)}"
        for i, (line, style) in enumerate(styles(lines).items())))
    return Picture(f"{sheet.benchmark}-{sheet.setting}-{name}",
                   "\n".join(text))


def all_curves(sheet, drawn):
    """A picture for each series, with the libraries; if there is but one
    library, for each unit, with the series."""
    if len(sheet.libraries) > 1:
        return [curve(sheet, series, series, of_series(sheet, series), by)
                for series, by in drawn.items()]
    by_unit = {}
    for series, by in drawn.items():
        unit = sheet.units[of_series(sheet, series)[0]]
        by_unit.setdefault(unit, {})[series] = next(iter(by.values()))
    made = []
    for unit, lines in by_unit.items():
        for part, some in parts(list(lines), MOST["curves"]):
            names = [n for series in some for n in of_series(sheet, series)]
            alone = len(some) == 1
            made.append(curve(
                sheet, some[0] if alone else f"curves-{unit}" + part,
                some[0] if alone else "",
                names, {series: lines[series] for series in some}))
    return made


# --- dots ---

def rows(sheet, unit, names, part):
    """A row for each name, a dot in it for each library."""
    every = {library: [point(i, values, unit) for i, values in enumerate(
        sheet.of(library, name) for name in names) if values]
        for library in sheet.libraries}
    every = {library: points for library, points in every.items() if points}
    text = head(sheet, part[1:] and f"part {part[1:]}", every)
    text += values_axis("x", [p for of in every.values() for p in of], unit,
                        names)
    text += [tics("y", {name: i for i, name in enumerate(names)}),
             f"set yrange [{len(names) - 0.5}:-0.5]"]
    for i, (library, points) in enumerate(every.items()):
        for p in points:  # one above the other
            p.x += 0.7 * ((i + 0.5) / len(every) - 0.5)
        text += [f"$d{i} << EOD",
                 *(p.line(["y", "x", "low", "high"]) for p in points), "EOD"]
    # Names and libraries lie between lines.
    text += [f"set arrow from graph 0, first {i + 0.5} to graph 1, first "
             f"{i + 0.5} nohead linecolor rgb '#bbbbbb'"
             for i in range(len(names) - 1)]
    text.append("plot " + ", ".join(
        f"$d{i} using 1:2:3:4 with xerrorbars {style} title {quoted(library)}"
        for i, (library, style) in enumerate(styles(every).items())))
    height = len(names) * max(24, ROW * (1 + len(every)))
    return Picture(f"{sheet.benchmark}-{sheet.setting}-{unit}{part}",
                   "\n".join(text), AROUND + max(height, KEY * len(every)))


def parts(names, most):
    """[(which, as it is called, "" if there is but one; of these)], alike."""
    n = math.ceil(len(names) / most)
    each = math.ceil(len(names) / n)
    return [(f"-{i + 1}" if n > 1 else "", names[i * each:(i + 1) * each])
            for i in range(n)]


def of_sheet(sheet):
    """All that it has is in one of its pictures."""
    drawn = curves(sheet)
    made = all_curves(sheet, drawn)
    rest = {}
    for name, unit in sheet.units.items():
        if samples.point(name)[0] not in drawn:
            rest.setdefault(unit, []).append(name)
    return made + [rows(sheet, unit, some, part)
                   for unit, names in rest.items()
                   for part, some in parts(names, MOST["rows"])]


# --- drawing ---

def file_name(picture, kind):
    plain = "".join(c if c.isalnum() or c in "-_." else "_"
                    for c in picture.name)
    return f"{plain}.{kind}"


def draw(picture, folder):
    """NAME.svg and NAME.png in this folder; samples.Wrong if gnuplot fails."""
    text = ""
    for kind, terminal in KINDS.items():
        size = terminal.format(width=WIDTH, height=picture.height)
        text += (f"reset session\nset terminal {size}\n"
                 f"set output {quoted(file_name(picture, kind))}\n"
                 f"{picture.script}\n")
    done = subprocess.run(["gnuplot"], text=True, cwd=folder, input=text,
                          stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    missing = [kind for kind in KINDS if not os.path.exists(
        os.path.join(folder, file_name(picture, kind)))]
    if done.returncode != 0 or missing:
        why = done.stderr.strip().splitlines()
        raise samples.Wrong(f"gnuplot could not draw {picture.name}: "
                            + (why[-1] if why else "it says nothing"))
