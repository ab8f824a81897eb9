"""All processes of a job on one time line."""

import collections

import clocks
import reader
from lanes import BLOCKED, READY, THREAD, Message
from rank import Rank

STATES = {THREAD: 0, READY: 1, BLOCKED: 2}
NAMED = 5  # threads in one note


class Job:
    """Times are ns from the first event."""

    def __init__(self, files, notes):
        self.notes = list(notes)
        self.files = files
        self.ranks = [Rank(file) for file in files]
        if len(files) == 1 and files[0].rank < 0:
            files[0].rank = self.ranks[0].rank = 0  # no job, but it may use MPI
        self.first_of_host = {}
        for file in files:
            self.notes += file.notes
        convert = self.converters()
        events = [file.events() for file in files]
        shift = self.align(convert, events)
        self.begin = 0
        starts = [self.time(convert, shift, f.host)(e[0].ticks)
                  for f, e in zip(files, events) if e]
        self.begin = min(starts, default=0)
        self.first = self.end = 0  # of what is shown
        for rank, found in zip(self.ranks, events):
            self.play(rank, found, self.time(convert, shift, rank.file.host))
        for rank in self.ranks:
            rank.finish(self.end_of(rank, self.time(convert, shift, rank.file.host)))
            self.tell(rank)
        self.messages = self.join_messages()
        self.tell_about_messages()

    @property
    def program(self):
        return self.files[0].program or "a program"

    def note(self, text):
        self.notes.append(text)

    def time(self, convert, shift, host):
        """The function from a host's ticks to ns from the first event."""
        to_ns, moving = convert[host], shift[host]

        def time(ticks):
            ns = to_ns(ticks)
            return ns + moving.at(ns) - self.begin

        return time

    def play(self, rank, events, time):
        for event in events:
            at = time(event.ticks)
            until = None
            if event.kind == reader.LTASK:
                event = event._replace(a=at - time(event.ticks - event.a))
            elif event.kind == reader.LOST:
                until = time(event.b)
            rank.handle(at, event, until)
            self.end = max(self.end, at)

    def end_of(self, rank, time):
        """Until when it is known to have been there: it reads the clock, whatever
        its threads do."""
        if rank.last is None:
            return max(self.end, 0)
        seen = time(max(clock.ticks for clock in rank.file.clocks))
        self.end = max(self.end, seen)
        return max(rank.last, seen, 0)

    # --- clocks ---

    def converters(self):
        """From ticks to ns, by host."""
        of_host = collections.defaultdict(list)
        for file in self.files:
            of_host[file.host].append(file)
        convert = {}
        for host, files in of_host.items():
            pairs = [pair for file in files for pair in file.clocks]
            convert[host] = clocks.to_ns(pairs)
            if not clocks.can_convert(pairs, files[0].clock_kind == 0):
                self.note(
                    f"{files[0].path}: has no second reading of the clock: its times "
                    "are shown as if the processor counted nanoseconds"
                )
        return convert

    def align(self, convert, events):
        """What to add to the times of each host."""
        hosts = list(convert)
        sent = {}
        flights = []
        wanted = (reader.SEND, reader.ARRIVE)
        by_kind = {kind: [] for kind in wanted}
        for file, found in zip(self.files, events):
            for event in found:
                if event.kind in wanted and event.more:
                    by_kind[event.kind].append((file, event))
        for file, event in by_kind[reader.SEND]:
            sent[self.key(file.rank, event)] = file.host, event.ticks
        for file, event in by_kind[reader.ARRIVE]:
            send = sent.get(self.key(file.rank, event))
            if send:
                left = convert[send[0]](send[1])
                there = convert[file.host](event.ticks)
                flights.append(clocks.Flight(send[0], file.host, there - left, there))
        found, slack = clocks.follow(hosts, flights)
        for host in hosts[1:]:
            self.tell_clock(hosts[0], found[host])
        if slack > 0:
            self.note(
                f"the clocks of the hosts do not go evenly: some messages seem to "
                f"arrive up to {slack / 1000:.1f} us too early"
            )
        return found

    def tell_clock(self, first, moving):
        c = moving.correction
        if c.error is not None:
            text = f"within {c.error / 1000:.1f} us"
        elif any(c.sides):
            text = ("as near as messages in one direction tell: arrows may be too "
                    "short or too long by any time")
        else:
            text = "by their time of day alone: no message joins them"
        drift = f", and drifts by {moving.drift():.2g} ppm" if moving.times else ""
        self.note(f"the clock of {c.host} is set to that of {first} {text} "
                  f"(shifted by {c.shift / 1000:+.1f} us{drift})")

    # --- messages ---

    @staticmethod
    def key(rank, event):
        peer = event.b >> 32
        session = event.more[0][0] if event.more else 0
        ends = (rank, peer) if event.kind in (reader.SEND, reader.SENT) else (peer, rank)
        return (*ends, session, event.a)

    def join_messages(self):
        found = {}
        for rank in self.ranks:
            for at, lane, event in rank.messages:
                key = self.key(rank.rank, event)
                if key not in found:
                    found[key] = Message(*key)
                self.fill(found[key], at, (rank, lane), event)
        order = lambda m: m.send if m.send is not None else m.there[0] if m.there else m.sent
        return sorted(found.values(), key=order)

    @staticmethod
    def fill(message, at, place, event):
        tag = event.b & 0xFFFFFFFF
        message.tag = tag - (1 << 32) if tag >> 31 else tag
        _, flag, length = event.more[0] if event.more else (0, 0, 0)
        message.bytes = max(message.bytes, length)
        if event.kind == reader.SEND:
            message.send, message.send_lane = at, place
        elif event.kind == reader.SENT:
            message.sent = at
        elif event.kind == reader.ARRIVE:
            message.arrive, message.arrive_lane = at, place
            message.unexpected = bool(flag & 1)
        else:
            message.receive, message.receive_lane = at, place

    def tell_about_messages(self):
        open_ends = sum(m.send is not None and m.there is None for m in self.messages)
        no_start = sum(m.send is None and m.there is not None for m in self.messages)
        if open_ends:
            self.note(f"{open_ends} messages were sent, and nobody here received them")
        if no_start:
            self.note(f"{no_start} messages came, and nobody here sent them")

    # --- what is worth knowing ---

    def tell(self, rank):
        if rank.lost:
            self.note(f"{rank.label}: {rank.lost} events were lost; where, is shown")
        if rank.unknown:
            kinds = ", ".join(map(str, sorted(rank.unknown)))
            self.note(f"{rank.label}: events of kinds that this program does not know "
                      f"are left out: {kinds}")
        if rank.first is None:
            self.note(f"{rank.label}: has no events")
        if not rank.file.ended and not rank.lost:
            self.tell_calls(rank)

    def tell_calls(self, rank):
        inside = collections.defaultdict(list)
        for thread in [*rank.threads, *rank.foreign.values()]:
            if thread.calls:
                inside[thread.calls[0]].append(thread.name)
        for call, names in inside.items():
            who = ", ".join(names[:NAMED])
            if len(names) > NAMED:
                who += f" and {len(names) - NAMED} more"
            self.note(f"{rank.label}: {who} did not come back from {call}")

    def states(self, rank):
        """How many user threads run, are ready and are blocked, whenever that
        changes: (time, running, ready, blocked)."""
        steps = collections.defaultdict(lambda: [0, 0, 0])
        for thread in rank.threads:
            for piece in thread.lane.rows[0] if thread.lane.rows else []:
                if piece.kind in STATES:
                    steps[piece.start][STATES[piece.kind]] += 1
                    steps[piece.end][STATES[piece.kind]] -= 1
        counts = [0, 0, 0]
        found = []
        for at in sorted(steps):
            counts = [c + step for c, step in zip(counts, steps[at])]
            if not found or found[-1][1:] != tuple(counts):
                found.append((at, *counts))
        return found


def cut(job, first, last):
    """Only what happens between these times."""
    job.first, job.end = first, max(min(last, job.end), first + 1)
    for rank in job.ranks:
        for lane in rank.lanes() + [thread.lane for thread in rank.threads]:
            lane.rows = [[s for s in row if s.end >= first and s.start <= last]
                         for row in lane.rows]
            for piece in lane.slices():
                piece.start, piece.end = max(piece.start, first), min(piece.end, last)
            lane.marks = [m for m in lane.marks if first <= m[0] <= last]
        rank.threads = [t for t in rank.threads if any(t.lane.rows)]
    job.messages = [
        m for m in job.messages
        if m.whole and m.there[0] >= first and m.send <= last
    ]
