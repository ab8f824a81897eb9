#!/usr/bin/env python3
"""MADMPI_LEAKS=1: MPI_Finalize lists what a program has not freed, each process
for itself, and nothing else; without it nothing is said.

usage: leaks.py PROGRAM MPIRUN
"""

import os
import re
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(__file__), '..', '..'))
import tap

ALL = r'%d process(es)?'
TALK = r', among "talk" of 1 process: '
# What is said of each program: "how many of what", and what each of them is, in
# any order; of more than four only four are shown. %d is the number of processes.
SAID = {
    'frees_all': [],
    'leaves_objects': [
        ('2 communicators', [ALL, '"mine" of 1 process']),
        ('1 group', [ALL]),
        ('7 datatypes', ['24 bytes with extent 120, not committed',
                         '"mine" of 1 bytes with extent 1'] +
         ['%s bytes with extent %s, not committed' % (i, i)
          for i in range(2, 7)]),
        ('1 operation', ['one that does not commute']),
        ('1 error handler', ['function 0x[0-9a-f]+']),
        ('1 info object', ['1 key, "key"']),
    ],
    'leaves_messages': [
        ('1 communicator', ['"talk" of 1 process']),
        ('3 requests', [
            'receive of 4 bytes from rank 0 with tag 7' + TALK + 'complete',
            'message with MPI_PROC_NULL: persistent, complete',
            'receive from rank any with tag any' + TALK +
            'persistent, not started']),
        ('1 matched message', ['12 bytes from rank 0 with tag 8']),
        ('2 attached buffers', ['1000 bytes',
                                '4096 bytes, of "talk" of 1 process']),
    ],
    'leaves_keyvals': [
        ('2 keyvals', [r'\d+, for communicators', r'\d+, for datatypes']),
    ],
    'leaves_in_a_session': [
        ('1 communicator of a session', ['"mine" of ' + ALL]),
        ('1 window of a session', ['32 bytes, among ' + ALL]),
        ('1 group of a session', [ALL]),
    ],
    'leaves_windows': [
        ('2 windows', ['32 bytes, among "wall" of 1 process',
                       '16 bytes, among ' + ALL]),
        ('1 keyval', [r'\d+, for windows']),
    ],
}


def said(program, mpirun, name, n, leaks):
    """The exit code, and the lines of each process."""
    p = subprocess.run([mpirun, '-n', str(n), program, name],
                       env=tap.environment(MADMPI_LEAKS=leaks),
                       capture_output=True, text=True)
    by_rank = {r: [] for r in range(n)}
    for line in p.stderr.splitlines():
        m = re.fullmatch(r'madmpi\[\d+\]: rank (\d+) has not freed (.*)', line)
        if m is None:
            return p.returncode, line
        by_rank[int(m[1])].append(m[2])
    return p.returncode, by_rank


def is_line(line, n, count, patterns):
    head, _, shown = line.partition(': ')
    items = shown.split('; ')
    if head != count or (len(patterns) > 4) != (items[-1] == '...'):
        return False
    items = [i for i in items if i != '...']
    if len(items) != min(4, len(patterns)):
        return False
    # Each is another one of the patterns.
    left = [p.replace('%d', str(n)) for p in patterns]
    for item in items:
        match = [p for p in left if re.fullmatch(p, item)]
        if not match:
            return False
        left.remove(match[0])
    return True


def is_right(got, n, wanted):
    code, by_rank = got
    return code == 0 and isinstance(by_rank, dict) and all(
        len(lines) == len(wanted) and
        all(is_line(line, n, *w) for line, w in zip(lines, wanted))
        for lines in by_rank.values())


def results(program, mpirun, cases):
    for name, n, leaks, wanted in cases:
        got = said(program, mpirun, name, n, leaks)
        yield ('%s of %d, MADMPI_LEAKS=%s' % (name, n, leaks),
               None if is_right(got, n, wanted) else str(got))


def main():
    program, mpirun = sys.argv[1:]
    cases = [(name, n, '1', SAID[name]) for name in SAID for n in (1, 3)]
    cases.append(('leaves_objects', 1, '0', []))
    return tap.tell(len(cases), results(program, mpirun, cases))


if __name__ == '__main__':
    sys.exit(main())
