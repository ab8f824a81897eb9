#!/usr/bin/env python3
"""Run meson test, and look at a test that hangs before ending it.

    watch.py [--spare SECONDS] [--every SECONDS] BUILD SAID COMMAND ...

COMMAND starts the tests of the folder BUILD, without limits (meson test -t 0):
those are here, SPARE seconds more than what the test's own time-out says, looked
at EVERY so many. Who has not ended by then does not end by itself, so it may be
looked at with a debugger: what each of its processes is, the state it is in, what
its user threads wait for and where its kernel threads are. SAID gets a line of
JSON for each such test, with "name", "seconds" and "lines", for tools/tally.py.
The exit code is COMMAND's.
"""
import argparse
import json
import os
import re
import signal
import subprocess
import sys
import time

UNKNOWN_S = 600  # the time-out of what is none of the folder's tests
PROCESSES = 12  # of a test, that are looked at
GDB_S = 20  # for each of them
FRAMES = 15  # of a stack
COLUMNS = 300
GDB = os.path.join(os.path.dirname(os.path.abspath(__file__)), "gdb", "marcel.py")


# --- processes ---


def text_of(pid, name):
    """Of a file of /proc; empty if the process is gone, or hides it."""
    try:
        with open(f"/proc/{pid}/{name}", encoding="utf-8", errors="replace") as f:
            return f.read()
    except OSError:
        return ""


def processes():
    """{pid: (parent, session, state, when it began)} of all."""
    found = {}
    for pid in filter(str.isdigit, os.listdir("/proc")):
        fields = text_of(pid, "stat").rpartition(")")[2].split()
        if fields:
            found[int(pid)] = (int(fields[1]), int(fields[3]), fields[0], fields[19])
    return found


def below(pid, table):
    """Its children, and theirs, and so on."""
    children = {}
    for child, (parent, *_) in table.items():
        children.setdefault(parent, []).append(child)
    found = []
    todo = [pid]
    while todo:
        more = children.get(todo.pop(), [])
        found += more
        todo += more
    return found


def family(test, table):
    """A test's processes: what it has started, and what is in its session,
    whose-ever child that has become."""
    of_session = [pid for pid, (_, session, *_) in table.items() if session == test]
    members = {*below(test, table), *of_session}
    for pid in of_session:
        members.update(below(pid, table))
    return sorted(members)


def tests_below(pid, table):
    """Those that meson has started: the first below that lead a session."""
    leaders = [p for p in below(pid, table) if table[p][1] == p]
    inner = {p for leader in leaders for p in below(leader, table)}
    return [p for p in leaders if p not in inner]


# --- what they are doing ---


def one_line(stack):
    """gdb's frames, the innermost first: by their functions; how marcel changes
    threads is the same everywhere."""
    names = re.findall(r"^#\d+ +(?:0x[0-9a-f]+ in )?([^ ]+) \(", stack, re.M)
    names = [n for n in names if not n.startswith(("marcel_switch", "marcel_ctx"))]
    more = [" < ..."] if len(names) > FRAMES else []
    return " < ".join(names[:FRAMES]) + "".join(more)


def user_threads(said):
    lines = [line.strip() for line in said.splitlines() if " waits for " in line]
    for part in re.split(r"\n(?=\d+ threads?:)", said)[1:]:
        lines.append(f"{part.partition(':')[0]} at {one_line(part)}")
    return lines


def kernel_threads(said):
    numbers = {}  # by stack
    for part in re.split(r"\n(?=Thread \d)", "\n" + said)[1:]:
        numbers.setdefault(one_line(part), []).append(part.split()[1])
    return [f"kernel thread {', '.join(n)} at {s}" for s, n in numbers.items()]


def stacks(pid):
    """What its user threads wait for, and the stacks of all threads."""
    command = ["gdb", "-nx", "-batch", "-iex", "set auto-load no",
               "-iex", "set debuginfod enabled off", "-p", str(pid), "-x", GDB,
               "-ex", "marcel threads", "-ex", "marcel stacks",
               "-ex", "echo == kernel threads\\n", "-ex", "thread apply all -s bt 30"]
    try:
        said = subprocess.run(command, stdin=subprocess.DEVNULL, text=True,
                              errors="replace", capture_output=True,
                              timeout=GDB_S, check=False)
    except subprocess.TimeoutExpired:
        return [f"gdb has not said anything within {GDB_S} s"]
    except OSError as error:
        return [f"gdb: {error.strerror}"]
    user, _, kernel = said.stdout.partition("== kernel threads\n")
    lines = user_threads(user) + kernel_threads(kernel)
    return (list(dict.fromkeys(lines))
            or said.stderr.splitlines()[-1:])


def look(pid, state):
    words = text_of(pid, "cmdline").replace("\0", " ").strip()
    where = {text_of(pid, f"task/{t}/wchan") for t in threads_of(pid)}
    if not words:  # one that has ended
        return [f"{pid} {state} {text_of(pid, 'comm').strip()}"]
    return [f"{pid} {state} {' '.join(sorted(where))}: {words}",
            *("  " + line for line in stacks(pid))]


def threads_of(pid):
    try:
        return os.listdir(f"/proc/{pid}/task")
    except OSError:
        return []


# --- tests ---


def tests_of(build):
    """COMMAND may just be configuring the folder: then none."""
    try:
        with open(os.path.join(build, "meson-info", "intro-tests.json"),
                  encoding="utf-8") as f:
            return json.load(f)
    except (OSError, ValueError):
        return []


def is_run_as(test, command, env):
    """What it is started by is before it, or in the place of a python."""
    words = test["cmd"]
    if os.path.basename(words[0]).startswith("python"):
        words = words[1:]
    return command[-len(words):] == words and all(
        env.get(k, "").startswith(v) for k, v in test["env"].items())


def recognised(pid, tests):
    """The name of the test that it is, and its time-out; or None: it may be on its
    way to exec()."""
    command = text_of(pid, "cmdline").split("\0")[:-1]
    env = dict(v.partition("=")[::2] for v in text_of(pid, "environ").split("\0"))
    for t in tests:
        if is_run_as(t, command, env):
            return t["name"], t["timeout"]
    return None


def ends_within(pid, began, seconds):
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        now = processes()
        if pid not in now or now[pid][2] == "Z" or now[pid][3] != began:
            return True
        time.sleep(0.1)
    return False


def send(function, pid, number):
    try:
        function(pid, number)
    except ProcessLookupError:
        pass


def end(test, members, table):
    """First by SIGTERM, upon which it may say something itself."""
    if test in members:
        send(os.killpg, test, signal.SIGTERM)
        ends_within(test, table[test][3], 5)
    now = processes()
    for pid in {*members, *family(test, now)}:
        if pid in now and now[pid][3] == table.get(pid, now[pid])[3]:
            send(os.kill, pid, signal.SIGKILL)


def report(test, name, seconds, said):
    table = processes()
    members = family(test, table)
    if not members:
        return
    lines = []
    for pid in members[:PROCESSES]:
        lines += look(pid, table[pid][2])
    if len(members) > PROCESSES:
        lines.append(f"and {len(members) - PROCESSES} more processes")
    entry = {"name": name, "seconds": int(seconds),
             "lines": [line[:COLUMNS] for line in lines]}
    said.write(json.dumps(entry) + "\n")
    said.flush()
    end(test, members, table)


def watch(process, options, said):
    began = {}  # {(pid, when it began): when it was seen first}
    limits = {}  # {the same: (name, seconds), once it is known}
    ended = set()
    while True:
        try:
            return process.wait(options.every)
        except subprocess.TimeoutExpired:
            pass
        table = processes()
        now = time.monotonic()
        there = {(p, table[p][3]) for p in tests_below(process.pid, table)}
        # meson also waits for who has a test's output after its end.
        there.update(key for key in began
                     if key[0] not in table and family(key[0], table))
        began = {key: began.get(key, now) for key in there}
        for key, first in began.items():
            limits.setdefault(key, None)
            if limits[key] is None and now - first > 0:
                limits[key] = recognised(key[0], tests_of(options.build))
            name, limit = limits[key] or (text_of(key[0], "cmdline"), UNKNOWN_S)
            if key not in ended and now - first > limit + options.spare:
                report(key[0], name, now - first, said)
                ended.add(key)


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--spare", type=float, default=300)
    parser.add_argument("--every", type=float, default=5)
    parser.add_argument("build")
    parser.add_argument("said")
    parser.add_argument("command", nargs=argparse.REMAINDER)
    options = parser.parse_args()
    # Who ends us ends our group, and meson ends its tests first.
    signal.signal(signal.SIGTERM, lambda *_: None)
    with open(options.said, "w", encoding="utf-8") as said:
        with subprocess.Popen(options.command) as process:
            code = watch(process, options, said)
    return code if code >= 0 else 128 - code


if __name__ == "__main__":
    sys.exit(main())
