"""Writes files as MARCEL_TRACE leaves them, from events that a test makes up.

By marcel/trace/format.h, and not by what the reader takes for it."""

import struct

ALIGN = 4096
FOREIGN = 0x8000
BOOTED = 10**12  # CLOCK_MONOTONIC at 0


class Writer:
    """The events of a process; each method is one of enum marcel_trace_kind."""

    def __init__(self, rank=0, size=1, host="alpha", nvp=2, skew=0, **other):
        self.rank, self.size, self.host, self.nvp = rank, size, host, nvp
        self.skew = skew  # of this host's clock
        self.drift = other.get("drift", 0)  # in millionths
        self.pid = other.get("pid", 100 + rank)
        self.program = other.get("program", "made_up")
        self.version = other.get("version", 1)
        self.ghz = other.get("ghz")  # ticks of a ns; None: the clock is in ns
        self.real = 10**18  # CLOCK_REALTIME at 0
        self.rings = {}  # number: [[records, lost]]
        self.strings = {}
        self.modules = ""
        self.clocks = []  # when it has read them meanwhile
        self.end = 0

    def monotonic(self, ns):
        return BOOTED + self.skew + ns + ns * self.drift // 10**6

    def ticks(self, ns):
        own = self.monotonic(ns)
        return own if self.ghz is None else int(own * self.ghz)

    def record(self, at, kind, lane, a=0, b=0, more=()):
        self.end = max(self.end, at)
        ring = min(lane, self.nvp)
        chunks = self.rings.setdefault(ring, [[bytearray(), 0]])
        chunks[-1][0] += struct.pack("<QHHIQ", self.ticks(at), kind, lane, a, b)
        for c, more_a, more_b in more:
            chunks[-1][0] += struct.pack("<QHHIQ", c, 1, lane, more_a, more_b)

    def text(self, at, kind, lane, b, text):
        raw = text.encode()
        padded = raw + bytes(-len(raw) % 16)
        more = [(c, 0, d) for c, d in struct.iter_unpack("<QQ", padded)]
        self.record(at, kind, lane, len(raw), b, more)

    def new_chunk(self, ring, lost=0):
        self.rings[ring][-1][1] = lost
        self.rings[ring].append([bytearray(), 0])

    def lane(self, at, lane, tid, name):
        self.text(at, 2, lane, tid, name)

    def new(self, at, lane, thread, name=None):
        self.record(at, 16, lane, 0, thread)
        if name:
            self.text(at, 17, lane, thread, name)

    def run(self, at, lane, thread):
        self.record(at, 18, lane, 0, thread)

    def ready(self, at, lane, thread):
        self.record(at, 19, lane, 0, thread)

    def block(self, at, lane, thread, what=""):
        self.text(at, 20, lane, thread, what)

    def give_way(self, at, lane, thread, interrupted=0):
        self.record(at, 21, lane, interrupted, thread)

    def ended(self, at, lane, thread):
        self.record(at, 22, lane, 0, thread)

    def idle(self, at, lane):
        self.record(at, 32, lane)

    def sleep(self, at, lane, watches=0):
        self.record(at, 33, lane, watches)

    def wake(self, at, lane):
        self.record(at, 34, lane)

    def ltask(self, at, lane, took, function, ltask=0x7000, where=0):
        ticks = self.ticks(at) - self.ticks(at - took)
        self.record(at, 48, lane, ticks, function, [(ltask, where, 0)])

    def export(self, at, lane, function, fd, ltask=0x7000):
        self.record(at, 49, lane, 0, function, [(ltask, 0, fd)])

    def interrupt(self, at, lane, fd):
        self.record(at, 50, lane, 0, fd)

    def message(self, at, kind, lane, number, **other):
        peer, tag = other["peer"], other.get("tag", 0)
        more = [(other.get("session", 0), other.get("flag", 0), other.get("bytes", 0))]
        self.record(at, kind, lane, number, peer << 32 | tag & 0xFFFFFFFF, more)

    def send(self, at, lane, number, **other):
        self.message(at, 64, lane, number, **other)

    def arrive(self, at, lane, number, **other):
        self.message(at, 66, lane, number, **other)

    def receive(self, at, lane, number, **other):
        self.message(at, 67, lane, number, **other)

    def enter(self, at, lane, name):
        number = self.strings.setdefault(name, len(self.strings))
        self.record(at, 80, lane, number)

    def leave(self, at, lane, name, code=0):
        self.record(at, 81, lane, self.strings[name], code)

    # --- the file ---

    def clock(self, at):
        return struct.pack("<QQQ", self.ticks(at), self.monotonic(at), self.real + at)

    def header(self):
        return struct.pack(
            "<8sIIiiIIII", b"MARCELTR", self.version, ALIGN, self.rank, self.size,
            self.pid, self.nvp, int(self.ghz is not None), 24,
        ) + self.clock(0) + struct.pack("<64s64s", self.host.encode(),
                                        self.program.encode())

    @staticmethod
    def chunk(kind, payload, ring=0, lost=0):
        length = -(-(64 + len(payload)) // ALIGN) * ALIGN
        head = struct.pack("<IIQQQI28x", 0x4B4E4843, kind, length, len(payload), lost,
                           ring)
        return (head + payload).ljust(length, b"\0")

    def bytes(self, ended=True):
        names = b""
        for name, number in self.strings.items():
            raw = name.encode()
            names += struct.pack("<HHI", 80, len(raw), number)
            names += raw.ljust(-(-len(raw) // 8) * 8, b"\0")
        whole = self.header().ljust(ALIGN, b"\0")
        whole += self.chunk(2, names) + self.chunk(3, self.modules.encode())
        for ring, chunks in self.rings.items():
            for records, lost in chunks:
                whole += self.chunk(1, bytes(records), ring, lost)
        for at in self.clocks:
            whole += self.chunk(4, self.clock(at))
        return whole + (self.chunk(5, self.clock(self.end)) if ended else b"")

    def write(self, path, **how):
        with open(path, "wb") as f:
            f.write(self.bytes(**how))


A, B = 0x1000, 0x2000


def job():
    """Two ranks; "main" sends 8 bytes with tag 7, "solver" takes them in."""
    ranks = [Writer(r, 2, "alpha", 2, program="made <b>up") for r in range(2)]
    for w in ranks:
        w.new(0, 0, A, "main")
        w.new(10, 0, B, "solver")
        w.run(20, 0, A)
        w.run(30, 1, B)
    a, b = ranks
    a.enter(1000, 0, "MPI_Send")
    a.send(1200, 0, 1, peer=1, tag=7, bytes=8)
    a.leave(1500, 0, "MPI_Send")
    b.enter(900, 1, "MPI_Recv")
    b.block(1000, 1, B, "a message")
    b.idle(1050, 1)
    b.arrive(2800, 1, 1, peer=0, tag=7, bytes=8)
    b.receive(2900, 1, 1, peer=0, tag=7, bytes=8)
    b.ltask(3000, 1, 250, 0xF00)
    b.ready(3000, 1, B)
    b.run(3100, 1, B)
    b.leave(3200, 1, "MPI_Recv")
    b.lane(3900, FOREIGN, 55, "watcher")
    b.interrupt(4000, FOREIGN, 9)
    b.send(5000, 0, 1, peer=0, tag=77, bytes=1 << 20)
    a.arrive(7000, 1, 1, peer=1, tag=77, bytes=1 << 20)
    a.receive(8000, 1, 1, peer=1, tag=77, bytes=1 << 20)
    for w in ranks:
        w.block(8500, 0, A, "join")
        w.idle(8600, 0)
        w.sleep(9000, 0)
        w.block(9300, 1, B, "cond")
        w.idle(9400, 1)
        w.wake(10000, 0)
    a.new_chunk(0, lost=5)
    a.idle(12000, 0)
    return ranks
