"""Several processes, the ranks of a job, in one gdb."""

import os

import gdb

from .command import Command
from .memory import variable


# --- which processes these are ---


def read(path):
    """A file of the kernel's, or nothing: the process has ended."""
    try:
        with open(path, encoding="utf-8", errors="replace") as f:
            return f.read()
    except OSError:
        return ""


def parents():
    """Of each process of this host."""
    found = {}
    for name in filter(str.isdigit, os.listdir("/proc")):
        fields = read(f"/proc/{name}/stat").rpartition(")")[2].split()
        if len(fields) > 1:
            found[int(name)] = int(fields[1])
    return found


def is_ours(pid):
    return "/libmarcel.so" in read(f"/proc/{pid}/maps")


def ranks_of(pid):
    """The process itself, or those that it has started, if it is a launcher."""
    if not os.path.exists(f"/proc/{pid}"):
        raise gdb.GdbError(f"{pid}: there is no such process")
    if is_ours(pid):
        return [pid]
    parent = parents()
    found = []
    for p in sorted(parent):
        above = p
        while above in parent and above != pid:
            above = parent[above]
        if above == pid and is_ours(p):
            found.append(p)
    if not found:
        raise gdb.GdbError(
            f"{pid}: neither it nor what it has started uses libmarcel.so, or it "
            "may not be read"
        )
    return found


# --- gdb's inferiors ---


def attached():
    return [i for i in gdb.inferiors() if i.pid and i.threads()]


def select(inferior):
    """Its first thread; gdb's own command would tell of it."""
    min(inferior.threads(), key=lambda t: t.num).switch()


def set_quiet(is_quiet):
    """Whether gdb says where it goes; older ones always do."""
    try:
        gdb.execute(f"set suppress-cli-notifications {'on' if is_quiet else 'off'}")
    except gdb.error:
        pass


def attach(pid):
    if pid in [i.pid for i in gdb.inferiors()]:
        return
    before, added = gdb.selected_inferior(), None
    if before.pid:
        gdb.execute("add-inferior", to_string=True)
        added = max(i.num for i in gdb.inferiors())
        gdb.execute(f"inferior {added}", to_string=True)
    try:
        gdb.execute(f"attach {pid}", to_string=True)
    except gdb.error as error:
        if added is not None:
            select(before)
            gdb.execute(f"remove-inferiors {added}", to_string=True)
        raise gdb.GdbError(f"{pid}: {error}") from error


def rank():
    """Of the selected process and its job, or None."""
    try:
        core = variable("nm_core_self", "nmad")
        return (int(core["rank"]), int(core["size"])) if int(core) else None
    except (gdb.GdbError, gdb.error):
        return None


def by_rank():
    """(title, inferior), by rank; those that have none come last."""
    found = []
    for inferior in attached():
        select(inferior)
        known = rank()
        title = f"rank {known[0]} of {known[1]}" if known else "no rank"
        order = known[0] if known else 1 << 31
        found.append((order, inferior.num, f"{title}, pid {inferior.pid}", inferior))
    return [(title, inferior) for _, _, title, inferior in sorted(found)]


class Attach(Command):
    """Attach to processes, or to all ranks that a launcher (mpirun) has started.

    marcel attach PID ..."""

    name = "attach"
    kind = gdb.COMMAND_RUNNING
    needs_process = False

    def run(self, argument):
        pids = argument.split()
        if not pids or not all(map(str.isdigit, pids)):
            raise gdb.GdbError("marcel attach: pids are wanted, of ranks or of mpirun")
        set_quiet(True)
        try:
            for pid in pids:
                for found in ranks_of(int(pid)):
                    attach(found)
        finally:
            set_quiet(False)
        ranks = by_rank()
        for title, inferior in ranks:
            print(f"inferior {inferior.num}: {title}")
        select(ranks[0][1])


class Each(Command):
    """Do a command in each process that gdb has, by rank: marcel each COMMAND"""

    name = "each"
    kind = gdb.COMMAND_RUNNING

    def run(self, argument):
        if not argument:
            raise gdb.GdbError("marcel each: which command?")
        before = gdb.selected_thread()
        for title, inferior in by_rank():
            if not inferior.is_valid() or not inferior.threads():
                continue  # what was done to another has ended it
            select(inferior)
            print(f"--- {title}")
            try:
                gdb.execute(argument)
            except gdb.error as error:  # the others go on
                gdb.write(f"{error}\n", gdb.STDERR)
        if before is not None and before.is_valid():
            before.switch()
