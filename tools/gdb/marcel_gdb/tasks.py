"""pioman: queues of ltasks, by level of the machine."""

import gdb

from .command import Command
from .memory import (
    atomic,
    container,
    listed,
    named,
    number,
    pushed,
    symbol,
    type_of,
    variable,
)

# ltask/queue.h
HELD, PENDING = 1, 2
STATES = ["idle", "submitted", "cancelling", "cancelled", "done"]
STATE_BITS, MASK = 7, 16
BLOCKING = 64


def level_name(level):
    kind = str(level["kind"]).replace("MARCEL_LEVEL_", "").lower()
    return f"{kind} {int(level['index'])}"


def levels():
    topo = variable("marcel_sched")["topo"]
    count = int(topo["nlevels"]) if int(topo["levels"]) else 0
    return [topo["levels"][i] for i in range(count)]


def queues():
    """Those of pioman, the machine's first."""
    kind = type_of("struct piom_queue", library="pioman")
    if not int(variable("piom_tree", "pioman")["first"][0]):
        return []
    found = {}
    for level in levels():
        slot = level["slot"][0]
        if int(slot):
            queue = slot.cast(kind.pointer()).dereference()
            found.setdefault(int(slot), queue)
    return list(found.values())


def tasks(queue):
    kind = type_of("struct piom_task", library="pioman")
    return listed(queue["list"], kind, "link") + pushed(
        queue["submitted"], kind, "node"
    )


def tell(task):
    state = number(task["state"])
    line = (
        f"ltask {int(task.address):#x}: {symbol(task['fn'])}"
        f"({named(task['arg'])}), {STATES[state & STATE_BITS]}"
    )
    if state // MASK:
        line += f", masked {state // MASK} times"
    if int(task["options"]) & BLOCKING:
        waits = task["waits"]
        fd = int(waits["fd"])
        line += f", waits for descriptor {fd}" if fd >= 0 else ", waits"
        line += ", armed" if int(waits["armed_at"]) else ", polled"
    return line


def ltask_of_condition(address):
    """The ltask whose end this is, in words, or None."""
    try:
        kind = type_of("struct piom_task", library="pioman")
        known = {int(q.address) for q in queues()}
    except gdb.GdbError:
        return None
    try:
        task = container(address, kind, "done")
        if int(task["queue"]) in known:
            return "end of " + tell(task)
    except (gdb.MemoryError, IndexError):
        pass
    return None


def show_queue(queue):
    word = number(queue["word"])
    stats = queue["stats"]
    running = atomic(queue["running"])
    print(
        f"queue of {level_name(queue['level'])}: "
        f"{number(queue['length'])} ltasks"
        + (", held" if word & HELD else "")
        + (", asked for" if word & PENDING else "")
        + (f", runs {symbol(running)}" if int(running) else "")
        + f", {number(stats['polls'])} polls, {number(stats['hits'])} hits"
    )
    for task in tasks(queue):
        print("  " + tell(task))


class Ltasks(Command):
    """List the tasks of pioman, by queue, and how often queues were polled."""

    name = "ltasks"

    def run(self, argument):
        found = queues()
        if not found:
            print("pioman does not run")
        for queue in found:
            show_queue(queue)
