"""Reads the files of MARCEL_TRACE: marcel/trace/format.h says what is in them.

Whatever is wrong with a file is said in its notes; what comes before is used."""

import collections
import os
import re
import struct

MAGIC = b"MARCELTR"
VERSION = 1
FOREIGN = 0x8000
HEADER = struct.Struct("<8sIIiiIIIIQQQ64s64s")
CHUNK = struct.Struct("<IIQQQI28x")
CHUNK_MAGIC = 0x4B4E4843
CLOCK = struct.Struct("<QQQ")
STRING = struct.Struct("<HHI")
RECORD = struct.Struct("<QHHIQ")

EVENTS, STRINGS, MODULES, CLOCKS, END = 1, 2, 3, 4, 5

NONE, MORE, LANE = 0, 1, 2
NEW, NAME, RUN, READY, BLOCK, YIELD, ENDED = range(16, 23)
IDLE, SLEEP, WAKE = 32, 33, 34
LTASK, EXPORT, INTERRUPT = 48, 49, 50
SEND, SENT, ARRIVE, RECV = range(64, 68)
MPI_ENTER, MPI_LEAVE = 80, 81
LOST = -1  # not in a file: a lane's events are missing; a: how many, b: until when

TEXTS = {LANE, NAME, BLOCK}

# more: the values (c, a, b) of the records MORE; for texts the text.
Event = collections.namedtuple("Event", "ticks kind lane a b more")
Clock = collections.namedtuple("Clock", "ticks monotonic realtime")


class Unusable(Exception):
    """Nothing of the file can be used; the text says why."""


def text_of(raw):
    return raw.split(b"\0", 1)[0].decode("utf-8", "replace")


class File:
    """One process."""

    def __init__(self, path):
        self.path = path
        self.notes = []
        self.strings = {}  # of functions of MPI, by id
        self.modules = ""
        self.ended = False
        self.rings = {}  # number: [(payload, lost behind it)]
        try:
            with open(path, "rb") as f:
                self.data = f.read()
        except OSError as error:
            raise Unusable(f"{path}: {error.strerror}") from error
        self.read_header()
        self.read_chunks()

    def note(self, text):
        self.notes.append(f"{self.path}: {text}")

    def read_header(self):
        data = self.data
        if data[:8] != MAGIC:
            raise Unusable(
                f"{self.path}: not a file of MARCEL_TRACE: it begins with "
                f"{data[:8]!r}, not {MAGIC!r}"
            )
        if len(data) < HEADER.size:
            raise Unusable(
                f"{self.path}: ends within its header, after {len(data)} bytes"
            )
        (_, version, self.align, self.rank, self.size, self.pid, self.nvp,
         self.clock_kind, record, *start, host, program) = HEADER.unpack_from(data)
        if version != VERSION or record != RECORD.size:
            raise Unusable(
                f"{self.path}: version {version} with records of {record} bytes; "
                f"this program reads version {VERSION}, with {RECORD.size}"
            )
        if self.align < HEADER.size or self.align % 64 != 0:
            raise Unusable(f"{self.path}: its header says align {self.align}")
        self.clocks = [Clock(*start)]
        self.host = text_of(host)
        self.program = text_of(program)

    def read_chunks(self):
        at = self.align
        while at + CHUNK.size <= len(self.data):
            magic, kind, length, used, lost, ring = CHUNK.unpack_from(self.data, at)
            if magic == 0:  # what there was no room for
                at += self.align
                continue
            if magic != CHUNK_MAGIC or length < CHUNK.size or length % self.align:
                self.note(
                    f"what is at byte {at} is no chunk (magic {magic:#x}, "
                    f"{length} bytes): it and what follows is not read"
                )
                break
            self.read_chunk(at, kind, length, used, (ring, lost))
            at += length
        if not self.ended:
            self.note(
                "it has no end: the program was killed, or the file is cut off or "
                "still written"
            )

    def read_chunk(self, at, kind, length, used, events):
        first = at + CHUNK.size
        room = length - CHUNK.size
        if used > room:
            self.note(f"the chunk at byte {at} says that {used} of {room} bytes are used")
            used = room
        payload = self.data[first : first + used]
        if len(payload) < used:
            self.note(
                f"cut off at byte {len(self.data)}: {used - len(payload)} bytes of "
                f"the chunk at byte {at} are missing"
            )
        if kind == EVENTS:
            ring, lost = events
            self.rings.setdefault(ring, []).append((payload, lost))
        elif kind == STRINGS:
            self.read_strings(payload)
        elif kind == MODULES:
            self.modules = payload.decode("utf-8", "replace")
        elif kind in (CLOCKS, END) and len(payload) >= CLOCK.size:
            self.clocks.append(Clock(*CLOCK.unpack_from(payload)))
            self.ended = self.ended or kind == END

    def read_strings(self, payload):
        at = 0
        while at + STRING.size <= len(payload):
            kind, length, number = STRING.unpack_from(payload, at)
            at += STRING.size
            if kind == MPI_ENTER:
                text = payload[at : at + length].decode("utf-8", "replace")
                self.strings[number] = text
            at += -(-length // 8) * 8

    def events(self):
        """All of them in the order of time; a lane's own stay in order."""
        found = []
        for ring, chunks in self.rings.items():
            found += self.ring_events(ring, chunks)
        found.sort(key=lambda event: event.ticks)
        return found

    def ring_events(self, ring, chunks):
        found = []
        latest = {}  # by lane
        missing = 0
        for payload, lost in chunks:
            whole = len(payload) // RECORD.size * RECORD.size
            for event in joined(RECORD.iter_unpack(payload[:whole])):
                lane = event.lane
                ticks = max(event.ticks, latest.get(lane, 0))
                latest[lane] = ticks
                if missing:
                    found += self.gap(ring, latest, missing, found, ticks)
                    missing = 0
                if ticks != event.ticks:
                    event = event._replace(ticks=ticks)
                found.append(event)
            missing += lost
        if missing:
            end = max([c.ticks for c in self.clocks] + list(latest.values()))
            found += self.gap(ring, latest, missing, found, end)
        return found

    def gap(self, ring, latest, missing, before, until):
        """Events were lost between those before and that at until."""
        since = before[-1].ticks if before else self.clocks[0].ticks
        lanes = [ring] if ring < self.nvp else sorted(latest)
        return [Event(since, LOST, lane, missing, until, ()) for lane in lanes]


def joined(records):
    """Events with the MOREs behind them."""
    head, more = None, []
    for ticks, kind, lane, a, b in records:
        if kind == MORE:
            more.append((ticks, a, b))
            continue
        if head is not None:
            yield complete(head, more)
        head = (ticks, kind, lane, a, b) if kind != NONE else None
        more = []
    if head is not None:
        yield complete(head, more)


def complete(head, more):
    if head[1] not in TEXTS:
        return Event(*head, tuple(more))
    raw = b"".join(c.to_bytes(8, "little") + b.to_bytes(8, "little") for c, _, b in more)
    return Event(*head, raw[: head[3]].decode("utf-8", "replace"))


OF_PID = re.compile(r"p(\d+)(\.\d+)?")


def files_of(name):
    """Of the name that MARCEL_TRACE had: FILE, or, if a job has left them since,
    FILE.RANK, FILE.pPID and FILE.pPID.N."""
    folder = os.path.dirname(name) or "."
    start = os.path.basename(name) + "."
    found = []
    try:
        entries = os.listdir(folder)
    except OSError:
        entries = []
    for entry in entries:
        rest = entry[len(start) :] if entry.startswith(start) else ""
        if rest.isdecimal():
            found.append((0, int(rest), entry))
        elif OF_PID.fullmatch(rest):
            found.append((1, int(OF_PID.fullmatch(rest)[1]), entry))
    found = [os.path.join(os.path.dirname(name), entry) for *_, entry in sorted(found)]
    if os.path.exists(name) and (
        not found or os.path.getmtime(name) >= max(map(os.path.getmtime, found))
    ):
        return [name]
    if not found:
        raise Unusable(f"{name}: there is no such file, and no {name}.0")
    return found


def one_job(files):
    """Without what an earlier, larger or smaller job has left, and what is there
    twice; and what should be said about that."""
    notes = []
    newest = max(files, key=lambda file: file.clocks[0].realtime)
    kept, seen = [], {}
    for file in sorted(files, key=lambda f: (f.rank < 0, f.rank, f.pid)):
        if file.rank >= 0 and newest.size > 0 and file.size not in (0, newest.size):
            notes.append(
                f"{file.path}: of a job of {file.size}, and {newest.path} of one of "
                f"{newest.size}, which began later: left out"
            )
        elif file.rank >= 0 and file.rank in seen:
            notes.append(
                f"{file.path}: says that it is rank {file.rank}, as "
                f"{seen[file.rank].path} does: left out"
            )
        else:
            kept.append(file)
            seen[file.rank] = file
    missing = [str(r) for r in range(newest.size) if r not in seen]
    if missing:
        some = ", ".join(missing[:10]) + (", ..." if len(missing) > 10 else "")
        notes.append(
            f"of {newest.size} ranks, {len(missing)} left no file: {some}; what "
            "they did, and their messages, are not shown"
        )
    return kept, notes
