#!/usr/bin/env python3
"""What must not be done ends with a message and a nonzero exit code, and never
with a crash or a hang; alone and under mpirun.

usage: lifecycle.py PROGRAM MPIRUN
"""

import os
import re
import subprocess
import sys

# name, environment, exit code (None: any but 0 and no signal), what stderr says
RULES = [
    ('before_init', {}, None, r'MPI_Barrier was called before MPI_Init'),
    ('after_finalize', {}, None, r'MPI_Send was called after MPI_Finalize'),
    ('always_allowed', {}, 0, r'^$'),
    ('twice', {}, None, r'MPI_Init: MPI_ERR_OTHER: .*already'),
    ('no_finalize', {}, None, r'without MPI_Finalize'),
    ('own_exit_code', {}, 42, r'without MPI_Finalize'),
    ('fatal', {}, None, r'MPI_Send: MPI_ERR_RANK: dest is 17, .* \d process'),
    ('fatal_in_thread', {}, None, r'MPI_Recv: MPI_ERR_TAG: tag is -77'),
    ('aborts', {}, 7, r'MPI_Abort was called with 7'),
    ('unchecked', {'MADMPI_CHECK': '0'}, 0, r'^$'),
    ('unchecked', {'MADMPI_CHECK': 'maybe'}, None, r'MADMPI_CHECK.*maybe'),
    ('unchecked', {'MADMPI_VERBOSE': '1'}, 0, r'MADMPI_CHECK=1'),
    ('forks', {}, 0, r'MPI_Send was called in a process made by fork'),
    ('leaves_objects', {}, 0, r'^$'),
]


def run(command, env):
    try:
        p = subprocess.run(command, env=dict(os.environ, **env), timeout=60,
                           capture_output=True, text=True)
        return p.returncode, p.stderr
    except subprocess.TimeoutExpired:
        return 'hangs', ''


def main():
    program, mpirun = sys.argv[1:]
    ways = [([program], 'alone'), ([mpirun, '-n', '2', program], 'of two')]
    number, good = 0, True
    print('1..%d' % (len(RULES) * len(ways)))
    for prefix, way in ways:
        for name, env, want, text in RULES:
            code, err = run(prefix + [name], env)
            right = code == want if want is not None else \
                isinstance(code, int) and 0 < code < 128
            right = right and re.search(text, err, re.S) is not None
            number += 1
            print('%s %d - %s %s %s' % ('ok' if right else 'not ok', number,
                                        name, ' '.join(env), way))
            if not right:
                print('# code %s, stderr:' % code)
                print('\n'.join('# ' + line for line in err.splitlines()))
                good = False
    return 0 if good else 1


if __name__ == '__main__':
    sys.exit(main())
