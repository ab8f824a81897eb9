#!/usr/bin/env python3
"""A process that ends while its threads or its exit handlers are in MPI keeps
the exit code of exit(), and gives the true reason; alone and under mpirun.

usage: ending.py PROGRAM MPIRUN
"""

import os
import re
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(__file__), '..', '..'))
import tap

WITHOUT = r'without MPI_Finalize'
MINE = r'(?!.*was called)'
# who calls exit(), what the others do, code of exit(), of the process, stderr
RULES = [(ender, others, code, code or 1, '^' + MINE + '.*' + WITHOUT)
         for ender in ('return', 'exit', 'user', 'posix')
         for others in ('none', 'user', 'posix')
         for code in (5, 0)]
RULES += [
    # Exit handlers may use MPI, and end it.
    ('return', 'finalizes_before', 5, 5, r'^' + MINE),
    ('return', 'finalizes_before', 0, 0, r'^$'),
    ('return', 'finalizes_after', 0, 0, r'^$'),
    ('exit', 'finalizes_after', 5, 5, r'^' + MINE),
    ('return', 'talks_before', 5, 5, '^' + MINE + '.*' + WITHOUT),
    ('return', 'talks_after', 5, 5, '^' + MINE + '.*' + WITHOUT),
    # But not after its end, whatever exit() was given.
    ('finalized', 'talks_before', 5, 1, r'was called after MPI_Finalize'),
    ('finalized', 'talks_after', 0, 1, r'was called after MPI_Finalize'),
    # Calls of other threads that come too late wait for the end.
    *[(ender, others, code, code, r'^' + MINE if code else r'^$')
      for ender, others in (('return', 'posix_late'),
                            ('handler', 'posix_late'),
                            ('handler', 'user_late'),
                            ('session', 'posix_late'),
                            ('session', 'user_late'),
                            ('session_posix', 'user_late'),
                            ('session_user', 'user_late'))
      for code in (5, 0)],
    # Functions that skip the exit handlers.
    ('_exit', 'user', 5, 5, r'^' + MINE),
    ('quick_exit', 'posix', 5, 5, r'^' + MINE),
]
WAYS = {'alone': [], 'of two': ['-n', '2']}


def results(program, mpirun):
    for way, options in WAYS.items():
        for ender, others, code, want, text in RULES:
            command = ([mpirun] + options if options else []) + [
                program, ender, others, str(code)]
            p = subprocess.run(command, capture_output=True, text=True)
            right = p.returncode == want and re.search(
                text, p.stderr, re.S) is not None
            yield ('%s ends, %s, code %d, %s' % (ender, others, code, way),
                   tap.unless(right, p.returncode, p.stderr))


def main():
    program, mpirun = sys.argv[1:]
    return tap.tell(len(RULES) * len(WAYS), results(program, mpirun))


if __name__ == '__main__':
    sys.exit(main())
