"""The trace event format of Chrome, in JSON: what Perfetto, speedscope and
the viewer of chrome://tracing open.

A process for each rank, with a lane for each VP and kernel thread, and one more
for its user threads, with a lane for each."""

import bisect
import json

from lanes import KINDS, MPI, Lane, Slice

USER_THREADS = 1000000  # added to the number of a rank's process


def micro(ns):
    return ns / 1000


class Writer:
    """Events go out one by one, so that no second copy of all is made."""

    def __init__(self, job, out):
        self.job = job
        self.out = out
        self.first = True
        self.places = {}  # lane: (pid, tid)

    def event(self, **what):
        self.out.write("" if self.first else ",\n")
        self.first = False
        self.out.write(json.dumps(what, separators=(",", ":")))

    def name(self, kind, pid, tid=None, **args):
        place = {"pid": pid} if tid is None else {"pid": pid, "tid": tid}
        self.event(ph="M", name=kind, args=args, **place)

    def write(self):
        # Unless they are told, some take less than a microsecond for nothing.
        self.out.write('{"displayTimeUnit":"ns","traceEvents":[\n')
        for n, rank in enumerate(self.job.ranks):
            self.rank(n, rank)
        self.messages()
        self.out.write("\n]}\n")

    def rank(self, n, rank):
        file = rank.file
        self.name("process_name", n,
                  name=f"{rank.label}: {file.program} on {file.host}, pid {file.pid}")
        self.name("process_sort_index", n, sort_index=2 * n)
        for tid, lane in enumerate(rank.lanes(), 1):
            self.places[lane] = n, tid
            self.lane(lane, n, tid)
        users = USER_THREADS + n
        if rank.threads:
            self.name("process_name", users, name=f"{rank.label}: user threads")
            self.name("process_sort_index", users, sort_index=2 * n + 1)
        for tid, thread in enumerate(rank.threads, 1):
            self.lane(within_calls(thread.lane), users, tid)
        for at, running, ready, blocked in self.job.states(rank):
            self.event(ph="C", name="user threads", pid=n, ts=micro(at),
                       args={"running": running, "ready": ready, "blocked": blocked})

    def lane(self, lane, pid, tid):
        self.name("thread_name", pid, tid, name=lane.name)
        self.name("thread_sort_index", pid, tid, sort_index=tid)
        for row in lane.rows:
            for piece in row:
                args = {"args": {"what": piece.detail}} if piece.detail else {}
                self.event(ph="X", name=piece.name, cat=KINDS[piece.kind], pid=pid,
                           tid=tid, ts=micro(piece.start), dur=micro(piece.length),
                           **args)
        for at, name, detail in lane.marks:
            self.event(ph="i", s="t", name=name, cat="mark", pid=pid, tid=tid,
                       ts=micro(at), args={"what": detail})

    def messages(self):
        number = 0
        for m in self.job.messages:
            if not m.whole:
                continue
            number += 1
            at, (_, lane) = m.there
            args = {"from": m.source, "to": m.target, "tag": m.tag, "bytes": m.bytes,
                    "session": f"{m.session:#x}", "unexpected": m.unexpected}
            self.end("s", number, m.send, m.send_lane[1], args)
            self.end("f", number, at, lane, {})

    def end(self, ph, number, at, lane, args):
        """Of an arrow; it has to begin and end in a slice. What both ends say of it
        would be a conflict."""
        pid, tid = self.places[lane]
        if not any(covers(row, at) for row in lane.rows):
            self.event(ph="X", name="message", cat=KINDS[MPI], pid=pid, tid=tid,
                       ts=micro(at), dur=0.001, args=args)
        bind = {"bp": "e"} if ph == "f" else {}
        self.event(ph=ph, id=number, name="message", cat="message", pid=pid, tid=tid,
                   ts=micro(at), args=args, **bind)


def within_calls(lane):
    """Of a user thread, whose calls go through its states: these are cut where calls
    begin and end, so that each piece is within a call or beside it."""
    found = Lane(lane.name, lane.order)
    found.marks = lane.marks
    found.rows = lane.rows[1:]
    edges = sorted({at for row in found.rows for s in row for at in (s.start, s.end)})
    states = []
    for piece in lane.rows[0] if lane.rows else []:
        first = bisect.bisect_right(edges, piece.start)
        last = bisect.bisect_left(edges, piece.end)
        cuts = [piece.start, *edges[first:last], piece.end]
        for start, end in zip(cuts, cuts[1:]):
            part = Slice(start, piece.kind, piece.name, piece.detail)
            part.end = end
            states.append(part)
    found.rows.append(states)
    return found


def covers(row, at):
    """Before its end: there some viewers see nothing any more."""
    i = bisect.bisect_right(row, at, key=lambda piece: piece.start) - 1
    return i >= 0 and row[i].end > at


def write(job, path):
    with open(path, "w", encoding="utf-8") as out:
        Writer(job, out).write()
