"""What a picture is made of: lanes with rows of slices, and marks."""

# In the order of model.js's KINDS.
KINDS = ["thread", "mpi", "ltask", "idle", "sleeping", "ready", "blocked", "kernel",
         "lost"]
(THREAD, MPI, LTASK, IDLE, SLEEPING, READY, BLOCKED, KERNEL, LOST) = range(len(KINDS))


class Slice:
    """Something that lasts; end is None until it is known."""

    __slots__ = ("start", "end", "kind", "name", "detail")

    def __init__(self, start, kind, name, detail=""):
        self.start = start
        self.end = None
        self.kind = kind
        self.name = name
        self.detail = detail

    @property
    def length(self):
        return self.end - self.start


class Lane:
    """Rows are lists of slices, in order and one after the other; what is in a
    row happens within what is above it."""

    def __init__(self, name, order):
        self.name = name
        self.order = order  # among the lanes of its process
        self.rows = []
        self.marks = []  # (time, name, detail)

    def row(self, depth):
        while len(self.rows) <= depth:
            self.rows.append([])
        return self.rows[depth]

    def open(self, depth, at, kind, name, detail=""):
        row = self.row(depth)
        self.close(depth, at)
        row.append(Slice(at, kind, name, detail))
        return row[-1]

    def close(self, depth, at):
        """What is open in this row ends; and what lasted no time was none, but
        for what was called and returned."""
        if depth >= len(self.rows) or not self.rows[depth]:
            return
        last = self.rows[depth][-1]
        if last.end is None:
            last.end = max(at, last.start)
            if last.end == last.start and last.kind != MPI:
                self.rows[depth].pop()

    def opened(self, depth):
        """What is open there, or None."""
        if depth < len(self.rows) and self.rows[depth]:
            last = self.rows[depth][-1]
            return last if last.end is None else None
        return None

    def add(self, depth, start, end, kind, name, detail=""):
        """What is over already. It stays behind what is in the row."""
        row = self.row(depth)
        if row and row[-1].end is not None:
            start = max(start, row[-1].end)
        if depth > 0:
            above = self.opened(depth - 1)
            start = max(start, above.start) if above else start
        done = Slice(min(start, end), kind, name, detail)
        done.end = end
        row.append(done)
        return done

    def finish(self, at):
        for depth in range(len(self.rows)):
            self.close(depth, at)

    def slices(self):
        for row in self.rows:
            yield from row


class Message:
    """Times are None for what is not known; lanes are those where it happened."""

    __slots__ = ("source", "target", "session", "number", "tag", "bytes", "send",
                 "send_lane", "sent", "arrive", "arrive_lane", "unexpected",
                 "receive", "receive_lane")

    def __init__(self, source, target, session, number):
        self.source, self.target = source, target
        self.session, self.number = session, number
        self.tag = self.bytes = 0
        self.send = self.sent = self.arrive = self.receive = None
        self.send_lane = self.arrive_lane = self.receive_lane = None
        self.unexpected = False

    @property
    def there(self):
        """When and where the arrow ends; None: nowhere."""
        if self.receive is not None:
            return self.receive, self.receive_lane
        if self.arrive is not None:
            return self.arrive, self.arrive_lane
        return None

    @property
    def whole(self):
        return self.send is not None and self.there is not None
