"""Results as pictures: curves over x with intervals, and bars of what has no x.
Drawn by gnuplot, as SVG and as PNG.
"""
import os
import shutil
import subprocess
from dataclasses import dataclass

import report
import samples
import stats

KINDS = {"svg": "svg size {width},520 noenhanced font 'sans-serif,13' "
                "background rgb 'white'",
         "png": "pngcairo size {width},520 noenhanced font 'sans,10'"}
WIDTH = 860  # pixels
BAR = 9  # likewise, if there are many
WIDE = 8  # times, from which on an axis is logarithmic
FAR = 50  # and that of bars
MOST = 14  # names with bars in one picture
MISSING = "gnuplot is not in the PATH (Debian: gnuplot-nox; " \
          "tools/bench/peers installs it)"


@dataclass
class Picture:
    name: str  # of its files, without what their kind is
    title: str
    unit: str
    script: str  # what is drawn, for gnuplot
    width: int = WIDTH


def possible():
    return shutil.which("gnuplot") is not None


def quoted(text):
    return "'" + text.replace("'", "''") + "'"


def head(title, unit):
    more = unit in stats.MORE_IS_BETTER
    label = f"{unit} ({'more' if more else 'less'} is better)"
    return [f"set title {quoted(title)}", f"set ylabel {quoted(label)}",
            "set key outside top center horizontal", "set grid"]


def style(i, library):
    """Ours is thick."""
    return (f"linecolor {i + 1} pointtype {i + 1} "
            f"linewidth {3 if library == samples.OURS else 1.5}")


# --- curves ---

def curves(sheet):
    """{series: {library: [(x, median, low, high)]}}, those with several x."""
    found = {}
    for name in sheet.units:
        series, x = samples.point(name)
        for library in sheet.libraries:
            values = sheet.of(library, name)
            if x is None or not values:
                continue
            found.setdefault(series, {}).setdefault(library, []).append(
                (x, stats.median(values), *report.bounds(values)))
    return {series: by for series, by in found.items()
            if max(len(points) for points in by.values()) > 1}


def axes(names, points):
    text = []
    xs = [p[0] for p in points]
    if min(xs) > 0 and max(xs) >= WIDE * min(xs):
        text.append("set logscale x 2")
    if any(n[-1] in "BKM" for n in names):
        text += ["set format x '%.0b%B'", "set xlabel 'bytes'"]
    if min(p[2] for p in points) > 0:
        text.append("set logscale y")
    elif min(p[2] for p in points) >= 0:
        text.append("set yrange [0:]")
    return text


def curve(sheet, series, by_library):
    names = [n for n in sheet.units if samples.point(n)[0] == series]
    unit = sheet.units[names[0]]
    title = f"{sheet.benchmark}, {sheet.setting}: {series}"
    text = head(title, unit)
    text += axes(names, [p for each in by_library.values() for p in each])
    for i, each in enumerate(by_library.values()):
        text += [f"$d{i} << EOD", *(" ".join(f"{v:.9g}" for v in p)
                                    for p in sorted(each)), "EOD"]
    text.append("plot " + ", ".join(
        f"$d{i} using 1:2:3:4 with yerrorlines {style(i, library)} "
        f"title {quoted(library)}" for i, library in enumerate(by_library)))
    return Picture(f"{sheet.benchmark}-{sheet.setting}-{series}", title, unit,
                   "\n".join(text))


# --- bars ---

def bars(sheet, unit, names, part=None):
    """A group for each name, a bar in it for each library; of many names a
    part."""
    title = f"{sheet.benchmark}, {sheet.setting}" + (f" ({part})" if part
                                                     else "")
    text = head(title, unit)
    points = {library: [(stats.median(values), *report.bounds(values))
                        if values else None for values in
                        (sheet.of(library, name) for name in names)]
              for library in sheet.libraries}
    points = {x: of for x, of in points.items() if any(of)}
    there = [p for of in points.values() for p in of if p]
    least, most = min(p[1] for p in there), max(p[2] for p in there)
    if least > 0 and most >= FAR * least:
        text += ["set logscale y", f"set yrange [{least / 3:.9g}:]"]
    elif least >= 0:
        text.append("set yrange [0:]")
    text += ["set style data histograms", "set style fill solid 0.7",
             "set style histogram errorbars gap 1 linewidth 1",
             "set xtics rotate by -35"]
    for i, of in enumerate(points.values()):
        text += [f"$d{i} << EOD",
                 *(f'"{name}" ' + (
                     " ".join(f"{v:.9g}" for v in p) if p else "NaN NaN NaN")
                   for name, p in zip(names, of)), "EOD"]
    text.append("plot " + ", ".join(
        f"$d{i} using 2:3:4:xticlabels(1) linecolor {i + 1} "
        f"title {quoted(library)}" for i, library in enumerate(points)))
    name = f"{sheet.benchmark}-{sheet.setting}-{unit}" + (f"-{part}" if part
                                                          else "")
    return Picture(name, title, unit, "\n".join(text),
                   max(WIDTH, 160 + BAR * len(names) * (1 + len(points))))


def of_sheet(sheet):
    """All that it has is in one of its pictures."""
    drawn = curves(sheet)
    made = [curve(sheet, series, by) for series, by in drawn.items()]
    rest = {}
    for name, unit in sheet.units.items():
        if samples.point(name)[0] not in drawn:
            rest.setdefault(unit, []).append(name)
    for unit, names in rest.items():
        parts = [names[at:at + MOST] for at in range(0, len(names), MOST)]
        made += [bars(sheet, unit, part, i if len(parts) > 1 else None)
                 for i, part in enumerate(parts, 1)]
    return made


# --- drawing ---

def file_name(picture, kind):
    plain = "".join(c if c.isalnum() or c in "-_." else "_"
                    for c in picture.name)
    return f"{plain}.{kind}"


def draw(picture, folder):
    """NAME.svg and NAME.png in this folder; samples.Wrong if gnuplot fails."""
    text = ""
    for kind, terminal in KINDS.items():
        text += (f"reset session\nset terminal "
                 f"{terminal.format(width=picture.width)}\n"
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
