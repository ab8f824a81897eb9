"""User threads for gdb: live processes and core files, x86-64 and aarch64.

    marcel threads              all of them: state, name, what they wait for:
                                a mutex and who holds it, whose end, a message
                                of which peer, tag and size ...
    marcel bt [THREAD|all]      the stack of one, or of each
    marcel stacks               each stack once, and which threads have it
    marcel thread [THREAD]      look at this one: bt, up, info locals ... show
                                its frames. Frame 0, and sometimes a few more,
                                are still those of the kernel thread that is
                                selected. Without THREAD: back to that
    marcel vps                  virtual processors and who runs on them
    marcel lwps                 kernel threads of ours
    marcel queues               threads that are ready, by queue
    marcel ltasks               pioman's tasks, by queue
    marcel gates                nmad's rails and gates: counters, what waits
                                to be sent
    marcel match                receives that are posted, messages that came
                                before theirs
    marcel attach PID ...       attach to these processes, or to all ranks that
                                the launcher PID (mpirun) has started
    marcel each COMMAND         do that in each process that gdb has, by rank

A THREAD is an address that `marcel threads` shows, a name that no other has, or
main. Needs the libraries with debug information. Nothing is called in the
program, and nothing is written.
"""

import os
import re
import sys

import gdb
from gdb.unwinder import Unwinder, register_unwinder

# pylint: disable=wrong-import-position
sys.path.insert(0, os.path.dirname(os.path.realpath(__file__)))
from marcel_gdb.command import Command
from marcel_gdb.memory import (
    atomic,
    container,
    listed,
    pushed,
    type_of,
    variable,
)
from marcel_gdb.memory import symbol as where
from marcel_gdb.job import Attach, Each
from marcel_gdb.messages import Gates, Match
from marcel_gdb.tasks import Ltasks, level_name, levels
from marcel_gdb.waits import Waits

sys.path.pop(0)

STATES = ["free", "new", "running", "parked", "woken", "ended"]
FLAGS = {"foreign": 1, "main": 2}
SECTION = 1  # MARCEL_SECTION, in an owner
QUEUE_SHOWN = 100  # threads of a queue that are listed
SHOWN = 8  # of several that are meant, or have one stack
# A line of gdb's bt: #0  0x... in function (arguments) at file:line
FRAME = re.compile(r"#\d+ +(?:0x[0-9a-f]+ in )?(\S+) \(.*?\)(?: (?:at|from) (.*))?$")


# --- what a context is, by processor ---


class X86:
    """arch/x86_64/ctx.h: the frame that ctx.sp points to."""

    tp = "fs_base"

    @staticmethod
    def registers(sp):
        words = word_pointer(sp)
        return {"rip": words[0], "rsp": words[1], "rbp": words[2]}


class Aarch64:
    """arch/aarch64/ctx.S: x19 to x30 from sp + 16, the frame is 176 bytes."""

    tp = "tpidr"

    @staticmethod
    def registers(sp):
        words = word_pointer(sp)
        regs = {f"x{19 + i}": words[2 + i] for i in range(12)}
        regs["pc"] = words[13]
        regs["sp"] = int(sp) + 176
        return regs


def word_pointer(address):
    word = gdb.lookup_type("unsigned long")
    return gdb.Value(int(address)).cast(word.pointer())


def processor():
    name = gdb.selected_inferior().architecture().name()
    if name.startswith("i386:x86-64"):
        if gdb.lookup_global_symbol("marcel_ctx_switch") is not None:
            raise gdb.GdbError("built with -Dctx=ucontext: not known here")
        return X86
    if name.startswith("aarch64"):
        return Aarch64
    raise gdb.GdbError(f"contexts of {name} are not known here")


# --- kernel threads ---


class Lwp:
    """A kernel thread of ours."""

    def __init__(self, pointer):
        self.pointer = pointer
        self.thread = int(atomic(pointer["self"]))
        self.idle = int(pointer["idle"].address)
        self.vp = atomic(pointer["vp"])

    def drives(self):
        """The number of the VP that it drives, or None."""
        if not int(self.vp):
            return None
        owner = int(atomic(self.vp["owner"])) & ~SECTION
        return int(self.vp["id"]) if owner == int(self.pointer) else None

    def is_running(self):
        return int(self.pointer["errno_addr"]) != 0

    def kernel_thread(self):
        """gdb's thread: its thread pointer is next to its errno."""
        errno = int(self.pointer["errno_addr"])
        near = [
            (abs(errno - pointer), number)
            for number, pointer in thread_pointers().items()
        ]
        distance, number = min(near, default=(1 << 63, None))
        return number if distance < 1 << 20 else None


def lwps():
    pool = variable("marcel_lwps")
    if not int(pool["first"]["errno_addr"]):
        return []
    found = [Lwp(pool["first"].address)]
    pointer = pool["all"]
    while int(pointer):
        found.append(Lwp(pointer))
        pointer = pointer["all"]
    return found


class Kept:
    """What was selected is selected again; no thread of ours meanwhile."""

    def __enter__(self):
        self.thread = gdb.selected_thread()
        self.level = gdb.selected_frame().level()
        self.shown = unwinder.shown
        unwinder.put(None)

    def __exit__(self, *error):
        self.thread.switch()
        unwinder.put(self.shown)
        gdb.execute(f"frame {self.level}", to_string=True)


def thread_pointers():
    """gdb's number of each kernel thread, and its thread pointer."""
    found = {}
    with Kept():
        for thread in gdb.selected_inferior().threads():
            thread.switch()
            frame = gdb.newest_frame()
            found[thread.num] = int(frame.read_register(processor().tp))
    return found


# --- user threads ---


class Thread:
    def __init__(self, pointer):
        self.pointer = pointer
        self.address = int(pointer)
        self.state = int(atomic(pointer["state"]))
        self.flags = int(atomic(pointer["flags"]))

    def is_a(self, flag):
        return bool(self.flags & FLAGS[flag])

    def name(self):
        words = self.pointer["rest"]["name"]
        raw = gdb.selected_inferior().read_memory(
            int(words.address), words.type.sizeof
        )
        return raw.tobytes().split(b"\0")[0].decode(errors="replace")

    def waits(self):
        """The runtime's word for what it waits for; 0: nothing."""
        if STATES[self.state] != "parked":
            return 0
        stack = self.pointer["stack"]
        place = stack if int(stack) else self.pointer["rest"]
        return int(atomic(place["waits"]))

    def lwp(self, view):
        """The kernel thread that it stands on now, or None."""
        for lwp in view.lwps:
            if lwp.thread == self.address:
                return lwp
        return None

    def tells(self, view):
        """Its state in words."""
        if STATES[self.state] == "new":
            return f"new, will run {where(self.pointer['fn'])}"
        if self.is_a("foreign"):
            kind = "foreign, "
        else:
            kind = "main, " if self.is_a("main") else ""
        lwp = self.lwp(view)
        waits = view.waits.describe(self.waits())
        if waits:
            return f"{kind}waits for {waits}"
        if lwp is not None and lwp.drives() is not None:
            return f"{kind}runs on vp {lwp.drives()}"
        if STATES[self.state] == "running" and not kind.startswith("foreign"):
            return f"{kind}ready"
        return kind + STATES[self.state]

    def line(self, view):
        return (
            f'{self.address:#x} "{self.name()}" {self.tells(view)}'
        )

    def registers(self):
        """As numbers: what gdb fetches later may be another process's."""
        found = processor().registers(self.pointer["ctx"]["sp"])
        return {name: int(value) for name, value in found.items()}


def threads():
    """All that exist, oldest first."""
    slab = atomic(variable("marcel_slabs")["newest"])
    found = []
    while int(slab):
        first = slab["thread"][0]
        count = int(slab["rest"]) - int(first.address)
        used = [
            slab["thread"][i].address
            for i in range(count // first.type.sizeof)
            if int(slab["thread"][i]["rest"])
        ]
        found[:0] = [Thread(t) for t in used]
        slab = slab["next"]
    return [t for t in found if STATES[t.state] != "free"]


class View:
    """One look at the process, for a command."""

    def __init__(self):
        self.lwps = lwps()
        self.waits = Waits(threads())


def thread_of(argument):
    every = threads()
    named = [
        t
        for t in every
        if t.name() == argument or argument == "main" and t.is_a("main")
    ]
    if len(named) > 1:
        found = " ".join(f"{t.address:#x}" for t in named[:SHOWN])
        raise gdb.GdbError(
            f"{len(named)} threads are called {argument}: take one of {found}"
            + (" ..." if len(named) > SHOWN else "")
        )
    if named:
        return named[0]
    try:
        address = int(gdb.parse_and_eval(argument))
    except gdb.error:
        address = 0
    for t in every:
        if t.address == address:
            return t
    raise gdb.GdbError(f"no thread {argument}: see marcel threads")


# --- back-traces ---


class UserThread(Unwinder):
    """The kernel thread on which a user thread is shown that does not run there
    has its newest frame, which may be several, of inlined functions, and behind
    it those of the user thread."""

    def __init__(self):
        super().__init__("marcel")
        self.shown = None  # the kernel thread, its outermost frame, registers

    def show(self, registers):
        """On the selected kernel thread, from now on; number of the newest frame
        of the user thread."""
        self.put(None)
        frame = gdb.newest_frame()
        while frame.type() == gdb.INLINE_FRAME:
            frame = frame.older()
        level = frame.level()
        self.put((gdb.selected_thread().ptid, level, registers))
        return level + 1

    def put(self, shown):
        if shown != self.shown:
            self.shown = shown
            gdb.invalidate_cached_frames()

    def __call__(self, pending):
        if self.shown is None:
            return None
        ptid, level, registers = self.shown
        if pending.level() != level or gdb.selected_thread().ptid != ptid:
            return None
        info = pending.create_unwind_info(FrameId(registers))
        for name, value in registers.items():
            kind = pending.read_register(name).type
            info.add_saved_register(name, gdb.Value(value).cast(kind))
        return info


class FrameId:
    """Just below the thread's newest frame, where gdb expects frame 0."""

    def __init__(self, registers):
        word = gdb.lookup_type("unsigned long")
        sp = registers.get("rsp", registers.get("sp")) - 64
        pc = registers.get("rip", registers.get("pc"))
        self.sp = gdb.Value(sp).cast(word)
        self.pc = gdb.Value(pc).cast(word)


unwinder = UserThread()
register_unwinder(None, unwinder, replace=True)


def forget(_event=None):
    """The program goes on: nobody is shown any more."""
    unwinder.shown = None


gdb.events.cont.connect(forget)
gdb.events.exited.connect(forget)


def stack(thread, view):
    """gdb's lines, newest frame first."""
    lwp = thread.lwp(view)
    if STATES[thread.state] in ("new", "ended"):
        return []
    with Kept():
        if lwp is not None:
            return kernel_thread_stack(lwp.kernel_thread())
        if thread.is_a("foreign"):
            return kernel_thread_stack(kernel_thread_of(thread))
        first = unwinder.show(thread.registers())
        lines = gdb.execute("bt", to_string=True).splitlines()
        start = next(i for i, l in enumerate(lines) if l.startswith(f"#{first} "))
        return lines[start:]


def back_trace(thread, view):
    print("\n".join([thread.line(view)] + stack(thread, view)))


def path(lines):
    """What a stack has in common with others: functions and lines, without the
    numbers of frames, addresses and arguments."""
    found = []
    for line in lines:
        frame = FRAME.match(line)
        found.append(frame.groups() if frame else line)
    return tuple(found)


def kernel_thread_of(foreign):
    """gdb's number of the kernel thread that has this descriptor, or None."""
    with Kept():
        for thread in gdb.selected_inferior().threads():
            thread.switch()
            try:
                own = gdb.parse_and_eval("marcel_tls")["self"]
            except gdb.error:  # gdb has no libthread_db, or it is not begun
                continue
            if int(own) == foreign.address:
                return thread.num
    return None


def kernel_thread_stack(number):
    if number is None:
        return ["  (its kernel thread is not found: see thread apply all bt)"]
    every = gdb.selected_inferior().threads()
    next(t for t in every if t.num == number).switch()
    return gdb.execute("bt", to_string=True).splitlines()


# --- queues ---


def thread_type():
    return type_of("struct marcel_thread")


def deque_threads(deque):
    array = atomic(deque["array"])
    top, bottom = int(atomic(deque["top"])), int(atomic(deque["bottom"]))
    mask = int(array["size"]) - 1
    kind = gdb.lookup_type("struct marcel_thread").pointer()
    return [
        atomic(array["slot"][i & mask]).cast(kind) for i in range(top, bottom)
    ]


def list_threads(head):
    return [t.address for t in listed(head, thread_type(), "link")]


def slot_threads(slot):
    """marcel/sched/slot.h; an entry that a thief TOOK has no meaning."""
    entry, took = int(atomic(slot["entry"])) & ~1, 3
    if entry == 0 or int(atomic(slot["thief"])) == took:
        return []
    kind = gdb.lookup_type("struct marcel_thread").pointer()
    return [gdb.Value(entry).cast(kind)]


def remote_threads(mpsc):
    return [t.address for t in pushed(mpsc, thread_type(), "node")]


def show_queue(title, pointers, view):
    if not pointers:
        return
    print(f"{title}: {len(pointers)}")
    for pointer in pointers[:QUEUE_SHOWN]:
        print("  " + Thread(pointer).line(view))
    if len(pointers) > QUEUE_SHOWN:
        print(f"  and {len(pointers) - QUEUE_SHOWN} more")


def vps():
    sched = variable("marcel_sched")
    if not int(sched["vps"]):
        return []
    return [sched["vps"][i] for i in range(int(sched["nvp"]))]


# --- commands ---


class Marcel(gdb.Command):
    __doc__ = __doc__

    def __init__(self):
        super().__init__("marcel", gdb.COMMAND_STACK, prefix=True)

    def invoke(self, argument, from_tty):
        if argument:
            raise gdb.GdbError(f"no such command: marcel {argument}; see marcel")
        print(__doc__.strip())


class Threads(Command):
    """List the user threads, and the kernel threads that used marcel."""

    name = "threads"
    kind = gdb.COMMAND_STACK

    def run(self, argument):
        view = View()
        for t in threads():
            print(t.line(view))


class Bt(Command):
    """Back-trace a user thread, by address or name; "all": each of them."""

    name = "bt"
    kind = gdb.COMMAND_STACK

    def run(self, argument):
        view = View()
        which = argument.strip('"')
        if which in ("", "all"):
            for t in threads():
                back_trace(t, view)
                print()
        else:
            back_trace(thread_of(which), view)


class Stacks(Command):
    """Show each stack once, and the threads that have it: the most first."""

    name = "stacks"
    kind = gdb.COMMAND_STACK

    def run(self, argument):
        view, groups = View(), {}
        for t in threads():
            lines = stack(t, view)
            groups.setdefault(path(lines), (lines, []))[1].append(t)
        for lines, alike in sorted(groups.values(), key=lambda g: -len(g[1])):
            print(f"{len(alike)} thread{'s' if len(alike) > 1 else ''}:")
            for t in alike[:SHOWN]:
                print("  " + t.line(view))
            if len(alike) > SHOWN:
                print(f"  and {len(alike) - SHOWN} more")
            print("\n".join(lines + [""]))


class ThreadCommand(Command):
    """Show a user thread's frames; without one: the kernel thread's own."""

    name = "thread"
    kind = gdb.COMMAND_STACK

    def run(self, argument):
        which = argument.strip('"')
        if not which:
            unwinder.put(None)
            gdb.execute("frame 0")
            return
        view = View()
        t = thread_of(which)
        lwp = t.lwp(view)
        if STATES[t.state] in ("new", "ended"):
            raise gdb.GdbError("it has no stack to show: " + t.line(view))
        print(t.line(view))
        if lwp is None and not t.is_a("foreign"):
            gdb.execute(f"frame {unwinder.show(t.registers())}")
            return
        unwinder.put(None)
        number = lwp.kernel_thread() if lwp else kernel_thread_of(t)
        if number is None:
            raise gdb.GdbError("its kernel thread is not there")
        gdb.execute(f"thread {number}")


class Vps(Command):
    """List the virtual processors."""

    name = "vps"

    def run(self, argument):
        drivers = {l.drives(): l for l in lwps()}
        for vp in vps():
            number = int(vp["id"])
            lwp = drivers.get(number)
            if lwp is None:
                who = "nobody"
            elif lwp.thread == lwp.idle:
                asleep = int(atomic(vp["sleeper"]["asleep"])) == 1
                who = "idle, asleep" if asleep else "idle"
            else:
                who = f"thread {lwp.thread:#x}"
            section = int(atomic(vp["owner"])) & SECTION
            print(
                f"vp {number}: cpu {int(vp['cpu'])}, {who}"
                + (", in a blocking section" if section else "")
            )


class Lwps(Command):
    """List the kernel threads that drive virtual processors, or wait to."""

    name = "lwps"

    def run(self, argument):
        for lwp in lwps():
            vp = lwp.drives()
            does = "drives nothing" if vp is None else f"drives vp {vp}"
            on = "its idle loop"
            if lwp.thread != lwp.idle:
                on = f"thread {lwp.thread:#x}"
            print(
                f"lwp {int(lwp.pointer):#x}: gdb thread "
                f"{lwp.kernel_thread()}, {does}, {on}"
            )


class Queues(Command):
    """List the threads that are ready, by queue."""

    name = "queues"

    def run(self, argument):
        view = View()
        for vp in vps():
            name = f"vp {int(vp['id'])}"
            show_queue(f"{name} next", slot_threads(vp["next"]), view)
            show_queue(f"{name} remote", remote_threads(vp["remote"]), view)
            show_queue(f"{name} bound", list_threads(vp["bound"]), view)
            show_queue(f"{name} fifo", deque_threads(vp["fifo"]), view)
            show_queue(f"{name} seeds", deque_threads(vp["seeds"]), view)
        queues = variable("marcel_sched")["levelqs"]
        for i, level in enumerate(levels() if int(queues) else []):
            for band, name in enumerate(("real-time", "normal", "idle")):
                found = list_threads(queues[i]["list"][band])
                show_queue(f"{level_name(level)} {name}", found, view)


# The signals of preemption and cancellation are nothing to stop at. Others, by
# MARCEL_SIGNAL and MARCEL_CANCEL_SIGNAL, are the user's to handle.
gdb.execute("handle SIG61 SIG62 nostop noprint pass", to_string=True)

for command in (
    Marcel,
    Threads,
    Bt,
    Stacks,
    ThreadCommand,
    Vps,
    Lwps,
    Queues,
    Ltasks,
    Gates,
    Match,
    Attach,
    Each,
):
    command()
