#!/usr/bin/env python3
"""Draw results of tools/bench/run.py: one page of HTML, with the pictures in it.

    tools/bench/plot.py [--out DIR] [RESULT ...]

RESULT is a file of samples, or a folder in which, or in whose folders, these
are (build/release/bench). DIR, else the first RESULT's folder, has then

    report.html    pictures, tables of ratios with intervals, the machine, and
                   the command that has measured that; nothing outside is needed
    pictures/      each as SVG and as PNG

Exit code: 0; 1: gnuplot is not there or fails, or a file is none of ours (which
one is said); 2: wrong arguments.
"""
import argparse
import base64
import html
import os
import sys

import machine
import pictures
import report
import samples

BENCH = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..",
                     "build", "release", "bench")
# What a page shows first, and the benchmarks that are about it.
CHAPTERS = [
    ("Latency", "a message there and back, half of that, by its size",
     ["latency", "hosts_latency", "nmad", "rpc"]),
    ("Bandwidth", "windows of messages, one way and both; several networks",
     ["bandwidth", "hosts_bandwidth", "rails", "sim_rails"]),
    ("Burst and shuffle", "many short messages at once, in order and not",
     ["many", "many_30000", "many_ours", "rate", "hosts_rate"]),
    ("Overlap", "communication while the program computes",
     ["overlap", "hosts_overlap", "computes", "background", "sim_overlap",
      "sim_offload"]),
    ("Threads", "creating, switching and locking them; messages among many",
     ["marcel", "threads", "load", "partitioned", "locks", "heat"]),
    ("Cost of waiting", "processor time of who waits, reaction, polls, and what "
     "all that takes from who computes",
     ["waiting", "pioman_waiting", "pioman_waits", "pioman_late",
      "pioman_reaction", "pioman_ltask", "pioman_polls", "pioman_blocking",
      "pioman_progress", "pioman_idle"]),
    ("Scaling", "by the number of processes, processors, messages and "
     "communicators",
     ["communicators", "startup", "collectives", "oversubscribed", "pioman_queues",
      "pioman_contention", "match", "growth", "memory"]),
    ("Counted", "instructions, by callgrind, on which load has no influence",
     ["messages", "marcel_counts", "pioman_counts", "locks_counts",
      "event_counts"]),
]
OTHERS = ("Others", "", [])
STYLE = """
body { font: 15px/1.45 sans-serif; max-width: 1180px; margin: 2em auto;
       padding: 0 1em; color: #222; }
h1, h2 { border-bottom: 1px solid #ccc; }
table { border-collapse: collapse; font-size: 13px; margin: .6em 0; }
th, td { border: 1px solid #ddd; padding: .15em .5em; text-align: right; }
th:first-child, td:first-child, .text td { text-align: left; }
img { max-width: 100%; border: 1px solid #ddd; margin: .3em 0; }
summary { cursor: pointer; }
.missed { background: #fdd; } .met { background: #dfd; }
"""


def cell(text, kind="td", css=""):
    return f"<{kind}{f' class={css!r}' if css else ''}>{html.escape(text)}" \
           f"</{kind}>"


def line(cells):
    return "<tr>" + "".join(cells) + "</tr>"


def table(sheet, library):
    """As report.table has it."""
    heads = ["", "median", "95 %", *sheet.peers(""), report.RATIO,
             "unit", "target"]
    text = [line(cell(h, "th") for h in heads)]
    for row in report.rows(sheet, library):
        verdict = row.verdict.rpartition(": ")[2]
        text.append(line([
            *map(cell, [row.name, row.median, row.span, *row.peers, row.ratio,
                        row.unit]),
            cell(row.verdict, css=verdict if verdict in ("met", "missed")
                 else "")]))
    is_open = " open" if library == samples.OURS else ""
    return (f"<details{is_open}><summary>{html.escape(report.title(sheet, library))}"
            "</summary><table>" + "\n".join(text) + "</table></details>")


def inline(folder, picture):
    with open(os.path.join(folder, pictures.file_name(picture, "svg")),
              "rb") as f:
        data = base64.b64encode(f.read()).decode("ascii")
    return (f'<img alt="{html.escape(picture.name)}" '
            f'src="data:image/svg+xml;base64,{data}">')


def anchor(heading):
    return heading.lower().replace(" ", "-")


def chapter(heading, about, sheets, folder):
    text = [f'<h2 id="{anchor(heading)}">{heading}</h2>',
            f"<p>{about}</p>" if about else ""]
    for sheet in sheets:
        text.append(f"<h3>{html.escape(f'{sheet.benchmark}, {sheet.setting}')}"
                    "</h3>")
        for picture in pictures.of_sheet(sheet):
            pictures.draw(picture, folder)
            text.append(inline(folder, picture))
        text += [table(sheet, library) for library in sheet.ours()]
    if not sheets:
        text.append("<p>Not in this result.</p>")
    return "\n".join(text)


def machines(result):
    """Of each file, but once where files agree."""
    text, before = [], {}
    for path in result:
        found = machine.read(path)
        text.append(f"<h3>{html.escape(path)}</h3>")
        if not found:
            text.append(f"<p>On what machine nothing says: there is no "
                        f"{machine.NAME} beside it.</p>")
            continue
        shown = {k: v for k, v in found.items() if before.get(k) != v}
        if before:
            text.append("<p>As above, but:</p>")
        text.append('<table class="text">' + "\n".join(
            line(map(cell, pair)) for pair in shown.items()) + "</table>")
        before = before or found
    return "\n".join(text)


def page(result, folder):
    """The text of it; the pictures are in `folder` then."""
    sheets = [sheet for of in result.values() for sheet in of]
    named = {name for _, _, names in CHAPTERS for name in names}
    body, there = [], []
    for heading, about, names in [*CHAPTERS, OTHERS]:
        of = [sheet for sheet in sheets if (
            sheet.benchmark in names if names
            else sheet.benchmark not in named)]
        if of or names:
            body.append(chapter(heading, about, of, folder))
            there.append((anchor(heading), heading))
    there.append(("machine", "Machine and command"))
    links = " · ".join(f'<a href="#{at}">{heading}</a>'
                       for at, heading in there)
    return f"""<!DOCTYPE html>
<html lang="en"><head><meta charset="utf-8"><title>Benchmarks</title>
<style>{STYLE}</style></head><body>
<h1>Benchmarks</h1>
<p>{links}</p>
<p>Points are medians over the rounds, in which all ran in turns; bars at them,
and intervals in the tables, are 95 % intervals of the median by bootstrap, or
the range of fewer than 3 rounds. Ratios are of pairs of one round, ours to the
best peer, or where there is none to the first of ours; of shares differences.
What a benchmark measures: doc/bench.md.</p>
{chr(10).join(body)}
<h2 id="machine">Machine and command</h2>
{machines(result)}
</body></html>
"""


def make(places, out=None):
    """The path of the page."""
    result = {}
    for place in places:
        result.update(samples.read(place))
    if not pictures.possible():
        raise samples.Wrong(pictures.MISSING)
    first = places[0]
    out = out or (first if os.path.isdir(first) else os.path.dirname(first))
    folder = os.path.join(out, "pictures")
    os.makedirs(folder, exist_ok=True)
    path = os.path.join(out, "report.html")
    text = page(result, folder)
    with open(path, "w", encoding="utf-8") as f:
        f.write(text)
    return path


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--out", metavar="DIR")
    parser.add_argument("places", nargs="*", metavar="RESULT",
                        default=[os.path.normpath(BENCH)])
    options = parser.parse_intermixed_args()
    try:
        print(make(options.places, options.out))
    except (samples.Wrong, OSError) as wrong:
        sys.exit(f"plot: {wrong}")
    except KeyboardInterrupt:
        sys.exit(130)


if __name__ == "__main__":
    main()
