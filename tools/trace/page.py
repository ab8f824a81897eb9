"""The page that needs no viewer: page.html with everything in it."""

import html
import json
import os

HERE = os.path.dirname(os.path.realpath(__file__))
SCRIPTS = ["model.js", "draw.js", "view.js"]


class Names:
    """Each text once; 0 is the empty one."""

    def __init__(self):
        self.all = [""]
        self.numbers = {"": 0}

    def number(self, text):
        if text not in self.numbers:
            self.numbers[text] = len(self.all)
            self.all.append(text)
        return self.numbers[text]


def steps(values):
    """The first, and then how far each is from the one before."""
    before = 0
    found = []
    for value in values:
        found.append(value - before)
        before = value
    return found


def row_data(row, names):
    return {
        "start": steps(s.start for s in row),
        "length": [s.length for s in row],
        "kind": [s.kind for s in row],
        "name": [names.number(s.name) for s in row],
        "detail": [names.number(s.detail) for s in row],
    }


def lane_data(lane, names):
    marks = sorted(lane.marks)
    return {
        "name": lane.name,
        "rows": [row_data(row, names) for row in lane.rows],
        "marks": {
            "time": steps(at for at, *_ in marks),
            "name": [names.number(name) for _, name, _ in marks],
            "detail": [names.number(detail) for *_, detail in marks],
        },
    }


def rank_data(job, rank, names):
    states = job.states(rank)
    file = rank.file
    return {
        "label": rank.label,
        "about": f"{file.program} on {file.host}, pid {file.pid}",
        "lanes": [lane_data(lane, names) for lane in rank.lanes()],
        "threads": [lane_data(thread.lane, names) for thread in rank.threads],
        "states": {
            "time": steps(at for at, *_ in states),
            "running": [s[1] for s in states],
            "ready": [s[2] for s in states],
            "blocked": [s[3] for s in states],
        },
    }


def messages_data(job):
    """Lanes are counted through all ranks."""
    places = {}
    for rank in job.ranks:
        for lane in rank.lanes():
            places[lane] = len(places)
    whole = [m for m in job.messages if m.whole]
    return {
        "send": steps(m.send for m in whole),
        "flight": [m.there[0] - m.send for m in whole],
        "arrive": [(m.arrive if m.arrive is not None else m.there[0]) - m.send
                   for m in whole],
        "from": [places[m.send_lane[1]] for m in whole],
        "to": [places[m.there[1][1]] for m in whole],
        "source": [m.source for m in whole],
        "target": [m.target for m in whole],
        "tag": [m.tag for m in whole],
        "bytes": [m.bytes for m in whole],
        "session": [f"{m.session:#x}" for m in whole],  # 64 bits are no number there
        "unexpected": [int(m.unexpected) for m in whole],
    }


def data(job):
    names = Names()
    ranks = [rank_data(job, rank, names) for rank in job.ranks]
    hosts = sorted({file.host for file in job.files})
    some = ", ".join(hosts[:4]) + (", ..." if len(hosts) > 4 else "")
    processes = "1 process" if len(ranks) == 1 else f"{len(ranks)} processes"
    return {
        "title": job.program,
        "about": f"{processes} on {some}",
        "notes": job.notes,
        "begin": job.first,
        "end": job.end,
        "ranks": ranks,
        "names": names.all,
        "messages": messages_data(job),
    }


def part(name):
    with open(os.path.join(HERE, name), encoding="utf-8") as f:
        return f.read()


def write(job, path):
    text = json.dumps(data(job), separators=(",", ":")).replace("<", "\\u003c")
    page = part("page.html")
    parts = {
        "@TITLE@": html.escape(f"{job.program}: timeline"),
        "@STYLE@": part("page.css"),
        "@CODE@": "\n".join(part(script) for script in SCRIPTS),
        "@DATA@": text,
    }
    with open(path, "w", encoding="utf-8") as out:
        while page:
            at, mark = min((page.find(m), m) if m in page else (len(page), "")
                           for m in parts)
            out.write(page[:at] + parts.get(mark, ""))
            page = page[at + len(mark) :]
