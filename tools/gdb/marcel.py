"""User threads for gdb: live processes and core files, x86-64 and aarch64.

    marcel threads              all of them: state, name, what they wait for:
                                a mutex and who holds it, whose end, a message
                                of which peer, tag and size ...
    marcel bt [THREAD|all]      the stack of one, or of each
    marcel thread [THREAD]      look at this one: bt, up, info locals ... show
                                its frames, from 1 on; frame 0 is the kernel
                                thread's. Without THREAD: back to that
    marcel vps                  virtual processors and who runs on them
    marcel lwps                 kernel threads of ours
    marcel queues               threads that are ready, by queue
    marcel ltasks               pioman's tasks, by queue
    marcel gates                nmad's rails and gates: counters, what waits
                                to be sent
    marcel match                receives that are posted, messages that came
                                before theirs

A THREAD is an address that `marcel threads` shows, or a name. Needs the
libraries with debug information. Nothing is called in the program, and nothing
is written.
"""

import os
import sys

import gdb
from gdb.unwinder import Unwinder, register_unwinder

# pylint: disable=wrong-import-position
sys.path.insert(0, os.path.dirname(os.path.realpath(__file__)))
from marcel_gdb.memory import (
    atomic,
    container,
    listed,
    pushed,
    type_of,
    variable,
)
from marcel_gdb.memory import symbol as where
from marcel_gdb.messages import Gates, Match
from marcel_gdb.tasks import Ltasks, level_name, levels
from marcel_gdb.waits import Waits

sys.path.pop(0)

STATES = ["free", "new", "running", "parked", "woken", "ended"]
FLAGS = {"foreign": 1, "main": 2}
SECTION = 1  # MARCEL_SECTION, in an owner
QUEUE_SHOWN = 100  # threads of a queue that are listed


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
        self.target = unwinder.show(None)
        self.level = gdb.selected_frame().level()

    def __exit__(self, *error):
        if self.thread is not None and self.thread.is_valid():
            self.thread.switch()
        unwinder.show(self.target)
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
        return processor().registers(self.pointer["ctx"]["sp"])


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
    for t in every:
        if t.name() == argument:
            return t
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
    """Where a thread that does not run is shown, frame 1 is its newest."""

    def __init__(self):
        super().__init__("marcel")
        self.target = None

    def show(self, registers):
        """Show these registers' frames from now on; what was shown before."""
        before, self.target = self.target, registers
        if before != registers:
            gdb.invalidate_cached_frames()
        return before

    def __call__(self, pending):
        if self.target is None or pending.level() != 0:
            return None
        info = pending.create_unwind_info(FrameId(self.target))
        for name, value in self.target.items():
            kind = pending.read_register(name).type
            info.add_saved_register(name, gdb.Value(int(value)).cast(kind))
        return info


class FrameId:
    """Just below the thread's newest frame, where gdb expects frame 0."""

    def __init__(self, registers):
        regs = {name: int(value) for name, value in registers.items()}
        word = gdb.lookup_type("unsigned long")
        sp = regs.get("rsp", regs.get("sp")) - 64
        pc = regs.get("rip", regs.get("pc"))
        self.sp = gdb.Value(sp).cast(word)
        self.pc = gdb.Value(pc).cast(word)


unwinder = UserThread()
register_unwinder(None, unwinder, replace=True)


def forget(_event=None):
    """The program goes on: nobody is shown any more."""
    unwinder.target = None


gdb.events.cont.connect(forget)
gdb.events.exited.connect(forget)


def back_trace(thread, view):
    print(thread.line(view))
    lwp = thread.lwp(view)
    if STATES[thread.state] in ("new", "ended"):
        return
    with Kept():
        if lwp is not None:
            show_kernel_thread(lwp)
        elif thread.is_a("foreign"):
            print("  (a kernel thread of its own: see gdb's thread apply all)")
        else:
            unwinder.show(thread.registers())
            lines = gdb.execute("bt", to_string=True).splitlines()
            print("\n".join(line for line in lines if line[:2] != "#0"))


def show_kernel_thread(lwp):
    number = lwp.kernel_thread()
    if number is None:
        print("  (its kernel thread is not there)")
        return
    gdb.execute(f"thread {number}", to_string=True)
    print(gdb.execute("bt", to_string=True), end="")


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
        print(__doc__.strip())


class Threads(gdb.Command):
    """List the user threads, and the kernel threads that used marcel."""

    def __init__(self):
        super().__init__("marcel threads", gdb.COMMAND_STACK)

    def invoke(self, argument, from_tty):
        view = View()
        for t in threads():
            print(t.line(view))


class Bt(gdb.Command):
    """Back-trace a user thread, by address or name; "all": each of them."""

    def __init__(self):
        super().__init__("marcel bt", gdb.COMMAND_STACK)

    def invoke(self, argument, from_tty):
        view = View()
        which = argument.strip().strip('"')
        if which in ("", "all"):
            for t in threads():
                back_trace(t, view)
                print()
        else:
            back_trace(thread_of(which), view)


class ThreadCommand(gdb.Command):
    """Show a user thread's frames, from 1 on; without one: the kernel's."""

    def __init__(self):
        super().__init__("marcel thread", gdb.COMMAND_STACK)

    def invoke(self, argument, from_tty):
        which = argument.strip().strip('"')
        if not which:
            unwinder.show(None)
            gdb.execute("frame 0")
            return
        view = View()
        t = thread_of(which)
        lwp = t.lwp(view)
        if STATES[t.state] in ("new", "ended") or t.is_a("foreign"):
            raise gdb.GdbError("it has no stack to show: " + t.line(view))
        print(t.line(view))
        if lwp is None:
            unwinder.show(t.registers())
            gdb.execute("frame 1")
            return
        unwinder.show(None)
        number = lwp.kernel_thread()
        if number is None:
            raise gdb.GdbError("its kernel thread is not there")
        gdb.execute(f"thread {number}")


class Vps(gdb.Command):
    """List the virtual processors."""

    def __init__(self):
        super().__init__("marcel vps", gdb.COMMAND_STATUS)

    def invoke(self, argument, from_tty):
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


class Lwps(gdb.Command):
    """List the kernel threads that drive virtual processors, or wait to."""

    def __init__(self):
        super().__init__("marcel lwps", gdb.COMMAND_STATUS)

    def invoke(self, argument, from_tty):
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


class Queues(gdb.Command):
    """List the threads that are ready, by queue."""

    def __init__(self):
        super().__init__("marcel queues", gdb.COMMAND_STATUS)

    def invoke(self, argument, from_tty):
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
    ThreadCommand,
    Vps,
    Lwps,
    Queues,
    Ltasks,
    Gates,
    Match,
):
    command()
