#!/usr/bin/env python3
"""What marcel-trace writes for viewers, opened in one: that of chrome://tracing,
which comes with Go's sources. Prints TAP."""

import collections
import functools
import glob
import html
import json
import os
import re
import subprocess

import browser
from run import Run, arrows, equal, folder
import tap  # run.py has put its folder into the path
from writer import job

MPIRUN, RING = (os.environ.get(name) for name in ("MPIRUN", "RING"))
VIEWERS = ["/usr/share/go-*/src/cmd/trace/static",
           "/usr/share/go-*/src/internal/trace/traceviewer/static"]
VIEWER = next((found for pattern in VIEWERS for found in sorted(glob.glob(pattern))
               if os.path.exists(f"{found}/trace_viewer_full.html")), None)

# Behind the viewer's own page: what it has made of each trace; times in ns.
LOOK = """<script>
function look(trace) {
  const model = new tr.Model(), options = new tr.importer.ImportOptions();
  const ns = (ms) => Math.round(ms * 1e6);
  const place = (thread) => [thread.parent.pid, thread.tid];

  options.shiftWorldToZero = false;
  new tr.importer.Import(model, options).importTraces([trace.textContent]);
  const threads = model.getAllThreads().sort(tr.model.Thread.compare);
  return {
    warnings: model.importWarnings.map((w) => w.type + ": " + w.message),
    lanes: threads.map((t) => [t.parent.name, t.name]),
    slices: threads.flatMap((t) => t.sliceGroup.slices.map((s) =>
      [...place(t), s.title, ns(s.start), ns(s.end)])),
    counters: model.getAllProcesses().flatMap((p) => Object.values(p.counters)
      .flatMap((c) => c.series.flatMap((row) => row.samples.map((s) =>
        [p.pid, c.name, row.name, ns(s.timestamp), s.value])))),
    arrows: model.flowEvents.map((f) => [
      [...place(f.startSlice.parentContainer), ns(f.start)],
      [...place(f.endSlice.parentContainer), ns(f.start + f.duration)],
      f.startSlice.title, f.endSlice.title]),
  };
}
document.body.dataset.seen = JSON.stringify(
  Array.from(document.querySelectorAll(".trace")).map(look));
</script>
"""


def page(traces):
    """In one piece, so that it is done when it is loaded."""
    with open(f"{VIEWER}/trace_viewer_full.html", encoding="utf-8") as f:
        viewer = f.read()
    first = f'<script src="file://{VIEWER}/webcomponents.min.js"></script>'
    viewer = re.sub("<head[^>]*>", lambda head: head[0] + first, viewer, count=1)
    for text, _ in traces:
        text = text.replace("</", "<\\/")
        viewer += f'<script class="trace" type="application/json">{text}</script>\n'
    return viewer + LOOK


def written(where):
    """The text, and its events."""
    events = Run(where, "--json", "t.json", "t").json()
    with open(os.path.join(where, "t.json"), encoding="utf-8") as f:
        return f.read(), events


def made_up():
    with folder(*job()) as where:
        return written(where)


def real():
    with folder() as where:
        subprocess.run([MPIRUN, "-n", "2", RING], check=True, capture_output=True,
                       env=dict(os.environ, MARCEL_TRACE=os.path.join(where, "t")))
        return written(where)


@functools.cache
def seen():
    """Of both: what the viewer has made of it, as the page says, and the events."""
    if VIEWER is None:
        raise tap.Skip("no trace viewer here: golang-src")
    traces = [made_up(), real()]
    with folder() as where:
        path = os.path.join(where, "page.html")
        with open(path, "w", encoding="utf-8") as f:
            f.write(page(traces))
        text, _, said = browser.look(path)
    told = re.search(r'data-seen="([^"]*)"', text)
    assert told, said
    return list(zip(json.loads(html.unescape(told[1])), (events for _, events in traces)))


def names(events, kind):
    """{pid or (pid, tid): name or number} of metadata."""
    return {(e["pid"], e["tid"]) if "tid" in e else e["pid"]: [*e["args"].values()][0]
            for e in events if e["ph"] == "M" and e["name"] == kind}


def lanes_of(events):
    """In the order that they ask for; without the empty ones, which it drops."""
    process, thread = (names(events, f"{what}_name") for what in ("process", "thread"))
    above, order = (names(events, f"{what}_sort_index") for what in ("process", "thread"))
    used = {(e["pid"], e["tid"]) for e in events if e["ph"] in "Xi"}
    return [[process[pid], name] for (pid, tid), name in
            sorted(thread.items(), key=lambda t: (above[t[0][0]], order[t[0]]))
            if (pid, tid) in used]


def ns(us):
    return round(us * 1000)


def slices_of(events):
    """Marks are slices of no length there."""
    return [[e["pid"], e["tid"], e["name"], ns(e["ts"]), ns(e["ts"] + e.get("dur", 0))]
            for e in events if e["ph"] in "Xi"]


def counters_of(events):
    return [[e["pid"], e["name"], series, ns(e["ts"]), value]
            for e in events if e["ph"] == "C" for series, value in e["args"].items()]


def same(found, wanted):
    """In whatever order."""
    count = [collections.Counter(map(str, side)) for side in (found, wanted)]
    equal((count[0] - count[1], count[1] - count[0]), ({}, {}))


def all_is_there(found, events):
    equal(found["warnings"], [])
    equal(found["lanes"], lanes_of(events))
    same(found["slices"], slices_of(events))
    same(found["counters"], counters_of(events))
    same([a[:2] for a in found["arrows"]],
         [[[*place, at] for place, at in arrow[:2]] for arrow in arrows(events)])


def what_is_made_up_is_in_the_viewer():
    found, events = seen()[0]
    all_is_there(found, events)
    equal(found["lanes"][:2], [["rank 0: made <b>up on alpha, pid 100", "VP 0"],
                               ["rank 0: made <b>up on alpha, pid 100", "VP 1"]])
    equal([a[2:] for a in found["arrows"]], [["MPI_Send", "0xf00"], ["main", "solver"]])
    assert any(c[1:3] == ["user threads", "blocked"] for c in found["counters"]), found


def a_real_job_is_in_the_viewer():
    found, events = seen()[1]
    all_is_there(found, events)
    assert len(found["arrows"]) >= 200, len(found["arrows"])


tap.run([what_is_made_up_is_in_the_viewer, a_real_job_is_in_the_viewer])
