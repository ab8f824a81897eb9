"""What one process did: its events, in the order of time, become lanes."""

import reader
from lanes import (BLOCKED, IDLE, KERNEL, LTASK, LOST, MPI, READY, SLEEPING, THREAD,
                   Lane)
from symbols import Symbols

MPI_ROWS = 4  # calls within calls that have a row of their own
KERNEL_LANES = 8  # for so many ltasks that wait there at once
SYSTEM_CALL = "system call"  # what a thread waits for that is in one
WHERE = ["by an idle VP", "between two threads", "at a tick", "on demand",
         "by a thread that waits", "by a kernel thread that polls", "by a timer",
         "by the watcher"]


class Thread:
    """A user thread, or a kernel thread without a VP."""

    def __init__(self, name, order):
        self.lane = Lane(name, order)  # of the thread, wherever it runs
        self.calls = []  # of MPI, that it is in: names
        self.on = None  # the lane of a VP, or of the kernel thread that it is

    @property
    def name(self):
        return self.lane.name

    def state(self):
        opened = self.lane.opened(0)
        return opened.kind if opened else None


class Rank:
    """handle() takes the events one by one."""

    def __init__(self, file):
        self.file = file
        self.rank = file.rank
        self.symbols = Symbols(file.modules)
        self.vps = [Lane(f"VP {n}", n) for n in range(file.nvp)]
        self.running = [None] * file.nvp
        self.foreign = {}  # number: Thread
        self.guests = {}  # number of a kernel thread: the user thread that acts there
        self.kernel = []  # lanes of ltasks that wait there
        self.waiting = {}  # ltask: its lane there, and its descriptor
        self.threads = []
        self.by_address = {}
        self.others = []  # lanes of kernel threads
        self.lost = 0
        self.times = {kind: 0 for kind in
                      (THREAD, LTASK, IDLE, SLEEPING, KERNEL, LOST)}
        self.counts = {}  # of events, by kind
        self.unknown = {}  # kinds: how often
        self.first = self.last = None
        self.messages = []  # (time, lane, event)
        self.waits = []  # (slice of a blocked thread, thread, call)
        self.handlers = {
            reader.LOST: self.on_lost, reader.LANE: self.on_lane,
            reader.NEW: self.on_new, reader.NAME: self.on_name,
            reader.RUN: self.on_run, reader.READY: self.on_ready,
            reader.BLOCK: self.on_block, reader.YIELD: self.on_yield,
            reader.ENDED: self.on_ended, reader.IDLE: self.on_idle,
            reader.SLEEP: self.on_sleep, reader.WAKE: self.on_idle,
            reader.LTASK: self.on_ltask, reader.EXPORT: self.on_export,
            reader.INTERRUPT: self.on_interrupt,
            reader.SEND: self.on_message, reader.SENT: self.on_message,
            reader.ARRIVE: self.on_message, reader.RECV: self.on_message,
            reader.MPI_ENTER: self.on_enter, reader.MPI_LEAVE: self.on_leave,
        }

    @property
    def label(self):
        return f"rank {self.rank}" if self.rank >= 0 else f"process {self.file.pid}"

    def lanes(self):
        return self.vps + self.others + self.kernel

    def handle(self, at, event, until):
        """until: of LOST, when events come again."""
        self.first = at if self.first is None else self.first
        self.last = at if self.last is None else max(self.last, at)
        kind = event.kind
        self.counts[kind] = self.counts.get(kind, 0) + 1
        handler = self.handlers.get(kind)
        if handler is None:
            self.unknown[kind] = self.unknown.get(kind, 0) + 1
        elif kind == reader.LOST:
            handler(at, event, until)
        else:
            handler(at, event)
        if kind != reader.RUN:
            self.guests.pop(event.lane, None)

    # --- who and where ---

    def is_vp(self, number):
        return number < len(self.vps)

    def lane_of(self, number):
        if self.is_vp(number):
            return self.vps[number]
        return self.kernel_thread(number).on

    def kernel_thread(self, number, name=None):
        if number not in self.foreign or name is not None:
            lane = Lane(name or f"kernel thread {number:#x}", number)
            thread = Thread(lane.name, number)
            thread.on = lane
            self.foreign[number] = thread
            self.others.append(lane)
        return self.foreign[number]

    def here(self, number):
        """The thread that runs on a lane, or None."""
        if self.is_vp(number):
            return self.running[number]
        return self.guests.get(number) or self.kernel_thread(number)

    def thread(self, at, address):
        """Of an address; one whose NEW is not here was there before."""
        if address not in self.by_address:
            self.on_new(at, reader.Event(at, reader.NEW, 0, 0, address, ()))
        return self.by_address[address]

    def on_lane(self, _at, event):
        name = event.more or "kernel thread"
        self.kernel_thread(event.lane, f"{name} ({event.b})")

    # --- user threads ---

    def on_new(self, at, event):
        order = len(self.threads)
        new = Thread(f"thread {order}", order)
        new.lane.open(0, at, READY, "ready", "is new")
        self.threads.append(new)
        self.by_address[event.b] = new

    def on_name(self, at, event):
        thread = self.thread(at, event.b)
        thread.lane.name = event.more or thread.lane.name
        if thread.on:
            running = thread.on.opened(0)
            if running and running.kind == THREAD:
                running.name = thread.name

    def leave(self, at, number):
        """What a VP did is over; the calls that its thread is in go on, but not
        here."""
        lane = self.vps[number]
        thread = self.running[number]
        base = lane.opened(0)
        for depth in range(len(lane.rows) - 1, -1, -1):
            lane.close(depth, at)
        if base is not None and base.kind in self.times:
            self.times[base.kind] += base.length
        if thread is not None:
            thread.on = None
            if thread.state() == THREAD:
                # It has left without a word: events are missing.
                thread.lane.open(0, at, BLOCKED, "blocked", "")
        self.running[number] = None

    def base(self, at, number, *what):
        """What a VP does from now on; its thread stays, and the calls it is in."""
        lane = self.vps[number]
        before = [lane.opened(depth) for depth in range(len(lane.rows))]
        for depth in range(len(lane.rows) - 1, -1, -1):
            lane.close(depth, at)
        lane.open(0, at, *what)
        for depth, call in enumerate(before[1:], 1):
            if call is not None:
                lane.open(depth, at, call.kind, call.name, call.detail)
        if before and before[0] is not None and before[0].kind in self.times:
            self.times[before[0].kind] += before[0].length

    def on_run(self, at, event):
        if not self.is_vp(event.lane):
            # Its VP has gone on without it: the next event here is its own.
            self.guests[event.lane] = self.by_address.get(event.b)
            return
        thread = self.thread(at, event.b)
        if self.running[event.lane] is thread and thread.state() == THREAD:
            return
        if thread.on is not None and thread.on is not self.vps[event.lane]:
            self.leave(at, thread.on.order)
        stays = self.running[event.lane] is thread
        if not stays:
            self.leave(at, event.lane)
        self.runs(at, thread, event.lane)
        if stays:
            return
        for depth, name in enumerate(thread.calls[:MPI_ROWS], 1):
            thread.on.open(depth, at, MPI, name, thread.name)

    def runs(self, at, thread, number):
        state = thread.lane.opened(0)
        if state is not None and state.kind == BLOCKED:
            self.end_wait(at, thread, state)
        self.running[number] = thread
        thread.on = self.vps[number]
        thread.lane.open(0, at, THREAD, "runs", f"on VP {number}")
        base = self.vps[number].opened(0)
        if base is None or base.kind != THREAD:
            self.base(at, number, THREAD, thread.name)

    def stays_awake(self, at, number):
        """The thread on this lane does something, so it has not gone to sleep."""
        thread = self.here(number)
        if self.is_vp(number) and thread and thread.state() not in (THREAD, None):
            self.runs(at, thread, number)
        return thread

    def end_wait(self, at, thread, state):
        thread.lane.close(0, at)
        if state.length > 0:
            call = thread.calls[0] if thread.calls else ""
            self.waits.append((state, thread, call))

    def on_ready(self, at, event):
        thread = self.thread(at, event.b)
        state = thread.lane.opened(0)
        if state is None or state.kind != BLOCKED:
            return
        self.end_wait(at, thread, state)
        who = self.here(event.lane)
        by = f"woken by {who.name}" if who else "woken"
        if self.is_vp(event.lane):
            by += f" on VP {event.lane}"
        thread.lane.open(0, at, READY, "ready", by)

    def on_block(self, at, event):
        thread = self.thread(at, event.b)
        thread.lane.open(0, at, BLOCKED, "blocked", event.more)
        if event.more == SYSTEM_CALL and thread is self.here(event.lane):
            self.base(at, event.lane, KERNEL, thread.name, SYSTEM_CALL)

    def on_yield(self, at, event):
        thread = self.thread(at, event.b)
        if thread.state() is None:
            return
        how = "interrupted at the end of its time slice" if event.a else "has made way"
        thread.lane.open(0, at, READY, "ready", how)
        if event.a:
            self.lane_of(event.lane).marks.append((at, "time slice over", thread.name))

    def on_ended(self, at, event):
        thread = self.thread(at, event.b)
        thread.lane.finish(at)
        thread.calls.clear()
        self.by_address.pop(event.b, None)

    # --- VPs ---

    def on_idle(self, at, event):
        self.becomes(at, event, IDLE, "idle", "looks for work, and polls")

    def on_sleep(self, at, event):
        detail = "for a short time: it watches" if event.a else ""
        self.becomes(at, event, SLEEPING, "sleeps", detail)

    def becomes(self, at, event, kind, name, detail):
        if self.is_vp(event.lane):
            self.leave(at, event.lane)
            self.vps[event.lane].open(0, at, kind, name, detail)

    def on_lost(self, at, event, until):
        self.lost += event.a
        name = f"{event.a} events lost"
        if self.is_vp(event.lane):
            self.leave(at, event.lane)
            self.vps[event.lane].open(0, at, LOST, name)
        else:
            lane = self.lane_of(event.lane)
            lane.finish(at)
            self.kernel_thread(event.lane).calls.clear()
            lane.add(0, at, until, LOST, name)

    # --- pioman ---

    def on_ltask(self, at, event):
        lane = self.lane_of(event.lane)
        name = self.symbols.name(event.b)
        ltask, where, _ = event.more[0] if event.more else (0, len(WHERE), 0)
        detail = WHERE[where] if where < len(WHERE) else ""
        self.returns(at, ltask)
        depth = 0
        while lane.opened(depth):
            depth += 1
        base = lane.opened(0)
        done = lane.add(depth, at - event.a, at, LTASK, name, detail)
        if base is not None and base.kind in self.times:
            self.times[LTASK] += done.length
            self.times[base.kind] -= done.length

    def on_export(self, at, event):
        ltask, in_thread, fd = event.more[0] if event.more else (event.b, 1, 0)
        self.returns(at, ltask)
        used = {lane for lane, _ in self.waiting.values()}
        lane = next((one for one in self.kernel if one not in used), None)
        if lane is None:
            if len(self.kernel) == KERNEL_LANES:
                return
            order = len(self.kernel) + 1
            lane = Lane("in the kernel" + (f" ({order})" if order > 1 else ""), order)
            self.kernel.append(lane)
        self.waiting[ltask] = lane, None if in_thread else fd
        how = ("a kernel thread waits in its function" if in_thread
               else f"the watcher waits for descriptor {fd}")
        lane.open(0, at, KERNEL, self.symbols.name(event.b), how)

    def returns(self, at, ltask):
        """It does not wait in the kernel any longer; its name, if it did."""
        lane, _ = self.waiting.pop(ltask, (None, None))
        if lane is None:
            return ""
        name = lane.opened(0).name
        lane.close(0, at)
        return name

    def on_interrupt(self, at, event):
        if event.a:
            detail = self.returns(at, event.b)
        else:
            ltasks = [t for t, (_, fd) in self.waiting.items() if fd == event.b]
            names = [self.returns(at, ltask) for ltask in ltasks]
            detail = ", ".join([f"descriptor {event.b}"] + names)
        self.lane_of(event.lane).marks.append((at, "interrupt", detail))

    # --- messages and MPI ---

    def on_message(self, at, event):
        self.messages.append((at, self.lane_of(event.lane), event))

    def on_enter(self, at, event):
        thread = self.stays_awake(at, event.lane)
        if thread is None:
            return
        name = self.file.strings.get(event.a, f"MPI function {event.a}")
        thread.calls.append(name)
        depth = len(thread.calls)
        if depth > MPI_ROWS:
            return
        if thread is self.foreign.get(event.lane):
            thread.on.open(depth - 1, at, MPI, name)
            return
        thread.lane.open(depth, at, MPI, name)
        if thread.on:
            thread.on.open(depth, at, MPI, name, thread.name)

    def on_leave(self, at, event):
        thread = self.stays_awake(at, event.lane)
        if thread is None or not thread.calls:
            return
        depth = len(thread.calls)
        thread.calls.pop()
        below = 1 if thread is self.foreign.get(event.lane) else 0
        for lane, row in ((thread.lane, depth), (thread.on, depth - below)):
            call = lane.opened(row) if lane else None
            if call and event.b:
                code = (event.b + (1 << 31)) % (1 << 32) - (1 << 31)
                call.detail = f"{call.detail} returns {code}".lstrip()
            if lane:
                lane.close(row, at)

    def finish(self, at):
        """No more events. What waits still is no shorter than to here."""
        for number in range(len(self.vps)):
            running = self.running[number]
            self.running[number] = None  # its state stays as it is
            self.leave(at, number)
            self.running[number] = running
        for thread in self.threads:
            state = thread.lane.opened(0)
            if state is not None and state.kind == BLOCKED:
                self.end_wait(at, thread, state)
            thread.lane.finish(at)
        for lane in self.others + self.kernel:
            lane.finish(at)
