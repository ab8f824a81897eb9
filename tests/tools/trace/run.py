"""Runs marcel-trace on files that a test has made up."""

import contextlib
import json
import os
import subprocess
import sys
import tempfile

ROOT = os.path.abspath(os.path.join(os.path.dirname(__file__), *[".."] * 3))
TOOL = os.path.join(ROOT, "tools", "trace", "marcel-trace")
sys.path[:0] = [os.path.dirname(TOOL), os.path.join(ROOT, "tests")]


class Run:
    """Of the tool, with everything that came of it."""

    def __init__(self, folder, *arguments):
        self.folder = folder
        done = subprocess.run(
            [sys.executable, TOOL, *arguments], cwd=folder, capture_output=True,
            text=True, check=False, encoding="utf-8",
        )
        self.code, self.out, self.err = done.returncode, done.stdout, done.stderr
        assert "Traceback" not in self.err, self.err

    def json(self, name="t.json"):
        with open(os.path.join(self.folder, name), encoding="utf-8") as f:
            whole = json.load(f)
        equal(whole["displayTimeUnit"], "ns")
        events = whole["traceEvents"]
        validate(events)
        return events


@contextlib.contextmanager
def folder(*writers):
    """With t, or t.0, t.1, ..., of these processes."""
    with tempfile.TemporaryDirectory() as found:
        for w in writers:
            name = "t" if len(writers) == 1 and w.size <= 1 else f"t.{w.rank}"
            w.write(os.path.join(found, name))
        yield found


def convert(*writers, code=0):
    with folder(*writers) as where:
        done = Run(where, "--json", "t.json", "t")
        equal(done.code, code)
        return done.json(), done.err


def nested(slices):
    """What viewers want of the slices of a lane: that each is within another, or
    beside it."""
    inside = []
    for begin, end in sorted(slices, key=lambda s: (s[0], -s[1])):
        while inside and inside[-1] <= begin:
            inside.pop()
        assert not inside or end <= inside[-1], f"{begin}..{end} sticks out"
        inside.append(end)


def validate(events):
    lanes = {}
    flows = {}
    for e in events:
        assert isinstance(e["pid"], int) and isinstance(e["name"], str), e
        assert e["ph"] in "MXisfC", e
        if e["ph"] != "M":
            assert isinstance(e["ts"], (int, float)), e
        if e["ph"] == "X":
            assert e["dur"] >= 0, e
            begin = round(e["ts"] * 1000)
            span = begin, begin + round(e["dur"] * 1000)
            lanes.setdefault((e["pid"], e["tid"]), []).append(span)
        if e["ph"] in "sf":
            flows.setdefault(e["id"], {})[e["ph"]] = e
    for slices in lanes.values():
        nested(slices)
    for flow in flows.values():
        assert set(flow) == {"s", "f"}, flow
        for e in flow.values():
            at = round(e["ts"] * 1000)
            assert any(a <= at <= b for a, b in lanes[e["pid"], e["tid"]]), e


def lane(events, name, pid=0):
    """Number of the lane of this name."""
    found = [e["tid"] for e in events if e["ph"] == "M" and e["name"] == "thread_name"
             and e["pid"] == pid and e["args"]["name"] == name]
    equal(len(found), 1)
    return pid, found[0]


def slices(events, place, *kinds):
    """(name, start, end) in ns, and what it says more, if that is wanted."""
    return [
        (e["name"], round(e["ts"] * 1000), round((e["ts"] + e["dur"]) * 1000))
        for e in events
        if e["ph"] == "X" and (e["pid"], e["tid"]) == place
        and (not kinds or e["cat"] in kinds)
    ]


def arrows(events):
    """((from, at), (to, at), tag, bytes)."""
    ends = {}
    for e in events:
        if e["ph"] in "sf":
            ends.setdefault(e["id"], {})[e["ph"]] = e
    return [
        (((s["pid"], s["tid"]), round(s["ts"] * 1000)),
         ((f["pid"], f["tid"]), round(f["ts"] * 1000)),
         s["args"]["tag"], s["args"]["bytes"])
        for s, f in (both.values() for both in ends.values())
    ]


def equal(found, wanted):
    assert found == wanted, f"{found}\nand not\n{wanted}"


def has(text, part):
    assert part in text, f"{part!r} is not in {text!r}"
