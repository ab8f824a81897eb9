"""What a thread that is parked waits for: the runtime's word for it, which is
the kind and the object, and what can be said of that object."""

import gdb

from .memory import at, named, number, offset_of, type_of, word
from .messages import Messages
from .tasks import ltask_of_condition

KINDS = [  # enum marcel_waits
    None,
    "mutex",
    "condition",
    "semaphore",
    "barrier",
    "read lock",
    "write lock",
    "once",
    "join",
    "event",
    "any of several events",
    "a descriptor",
    "signal",
    "sleep",
    "end of all threads",
]
SHIFT = 56  # MARCEL_WAITS_SHIFT
ARRIVED = (1 << 20) - 1  # barrier.c: COUNT_MASK
SHOWN = 8  # events of several


class Waits:
    """Of all threads, in one look at the process."""

    def __init__(self, threads):
        self.threads = {t.address: t for t in threads}
        self.messages = Messages.find()
        self.tell = {
            "mutex": self.mutex,
            "condition": self.condition,
            "semaphore": lambda o: f"semaphore {named(o)}",
            "barrier": self.barrier,
            "read lock": lambda o: self.rwlock("read", o),
            "write lock": lambda o: self.rwlock("write", o),
            "once": lambda o: f"once {named(o)}",
            "join": lambda o: f"join of {self.who(o)}",
            "event": self.event,
            "any of several events": self.events,
        }

    def describe(self, word):
        """In words, or None: it waits for nothing."""
        kind, obj = KINDS[word >> SHIFT], word & ((1 << SHIFT) - 1)
        if obj == 0 or kind not in self.tell:
            return kind
        try:
            return self.tell[kind](obj)
        except gdb.MemoryError:
            return f"{kind} {obj:#x}, which is not there"

    def who(self, address):
        """A thread, with its name."""
        t = self.threads.get(address)
        name = t.name() if t is not None else ""
        return f"{address:#x}" + (f' "{name}"' if name else "")

    def held(self, value):
        owner = number(value["owner"])
        return f", held by {self.who(owner)}" if owner else ""

    def mutex(self, obj):
        value = at(obj, type_of("struct marcel_mutex"))
        return f"mutex {named(obj)}{self.held(value)}"

    def condition(self, record):
        """The record has a timer as long as nobody has signalled it."""
        waiter = at(record, type_of("struct marcel_waiter"))
        mutex, timer = int(waiter["mutex"]), int(waiter["timer"])
        if timer == 0:
            return self.mutex(mutex) + ", after a condition"
        timed = type_of("struct marcel_timed")
        guard = int(at(timer - offset_of(timed, "timer"), timed)["guard"])
        kind = type_of("struct cond", "marcel_cond_wait")
        cond = guard - offset_of(kind, "guard")
        return f"condition {named(cond)} with mutex {named(mutex)}"

    def barrier(self, obj):
        value = at(obj, type_of("struct barrier", "marcel_barrier_wait"))
        arrived = number(value["word"]) & ARRIVED
        count = int(value["count"])
        return f"barrier {named(obj)}, {arrived} of {count} have come"

    def rwlock(self, kind, obj):
        value = at(obj, type_of("struct rwlock", "marcel_rwlock_rdlock"))
        return f"{kind} lock {named(obj)}{self.held(value)}"

    def event(self, obj):
        request = self.messages.request_at(obj) if self.messages else None
        return request or ltask_of_condition(obj) or f"event {named(obj)}"

    def events(self, obj):
        value = at(obj, type_of("struct marcel_events"))
        first, n = int(value["event"]), int(value["n"])
        found = [word(first + 8 * i) for i in range(n)]
        told = [self.event(e) for e in found if e][:SHOWN]
        more = n - len(told)
        return "any of " + "; ".join(told) + (f"; {more} more" if more else "")
