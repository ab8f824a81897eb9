"""Tables of results: ours beside the peers, with intervals and targets."""
import os
from dataclasses import dataclass

import growth
import rails
import samples
import stats
import suite


RATIO = "ratio (95 %) to"
TARGETS = {**suite.TARGETS, **growth.TARGETS, **rails.TARGETS}


@dataclass
class Row:
    """A name of one of ours: as text, nothing where there is nothing."""
    name: str
    median: str
    span: str  # 95 % interval, of too few rounds their range
    peers: list  # their medians
    ratio: str  # to base_of(), with its interval
    unit: str
    verdict: str


def number(x):
    return f"{x:.4f}" if abs(x) < 100 else f"{x:.1f}"


def bounds(values):
    """What their median is between, or the range of too few."""
    return stats.interval(values) or (min(values.values()),
                                      max(values.values()))


def spread(values, form=number):
    """Its median and what that is between."""
    low, high = bounds(values)
    return form(stats.median(values)), f"{form(low)}..{form(high)}"


def short(x):
    if 0 < abs(x) < 0.1:
        return f"{x:.2g}"
    return f"{x:.2f}" if abs(x) < 1000 else f"{x:.0f}"


def base_of(sheet, library, name):
    """What this one of ours is held against: the best peer, else the first of
    ours; None if that is itself."""
    best = stats.best(sheet.peers(name), sheet.units[name])
    first = sheet.ours()[0]
    return best or (first if first != library else None)


def against_base(sheet, library, name):
    base = base_of(sheet, library, name)
    if base is None:
        return ""
    of = stats.against(sheet.units[name])
    values = stats.paired(sheet.of(library, name), sheet.of(base, name), of)
    if not values:
        return ""
    middle, span = spread(values, short)
    return f"{'+' if of is stats.more and middle[0] != '-' else ''}{middle} " \
           f"({span}) {base}"


def verdicts(sheet, library, name):
    found = []
    for target in TARGETS.get(sheet.benchmark, ()):
        if target.fits(name, sheet.setting, library):
            values = stats.compared(target, name, sheet.libraries[library],
                                    sheet.peers(name), sheet.units[name])
            found.append(f"{target.text()}: {stats.verdict(target, values)}")
    return ", ".join(found)


def rows(sheet, library):
    peers = list(sheet.peers(""))
    for name, unit in sheet.units.items():
        values = sheet.of(library, name)
        medians = [number(stats.median(of)) if of else "-" for of in
                   (sheet.of(p, name) for p in peers)]
        if values:
            yield Row(name, *spread(values), medians,
                      against_base(sheet, library, name), unit,
                      verdicts(sheet, library, name))
        elif any(m != "-" for m in medians):
            yield Row(name, "-", "", medians, "", unit, "")


def title(sheet, library):
    return (f"{sheet.benchmark}, {sheet.setting}: {library}, rounds: "
            f"{sheet.rounds()}")


def table(sheet, library):
    """One of ours beside the peers."""
    peers = list(sheet.peers(""))
    wide = max([12, *(len(p) + 2 for p in peers)])
    found = list(rows(sheet, library))
    longest = max(len(row.ratio) for row in found)
    ratio = max(35, longest + 5) if longest > 0 else 3
    lines = [title(sheet, library),
             f"{'':30}{'median':>12} {'95 %':>24}"
             + "".join(f"{p:>{wide}}" for p in peers)
             + f"{'   ' + RATIO if longest > 0 else '':{ratio}}"
             + f"{'unit':15}target"]
    for row in found:
        line = f"{row.name:30}{row.median:>12} {row.span:>24}"
        line += "".join(f"{p:>{wide}}" for p in row.peers)
        line += f"{'   ' + row.ratio:{ratio}}{row.unit:15}{row.verdict}"
        lines.append(line.rstrip())
    return "\n".join(lines) + "\n"


def show(path):
    """All of a file of samples; tables.txt beside it has the same."""
    text = "\n".join(table(sheet, library)
                     for sheet in samples.read_file(path)
                     for library in sheet.ours())
    with open(os.path.join(os.path.dirname(path), "tables.txt"), "w",
              encoding="utf-8") as f:
        f.write(text)
    print(f"\n{text}\n{path}, tables.txt beside it", flush=True)
