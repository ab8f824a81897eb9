#!/usr/bin/env python3
"""MPI_Finalize waits for what can complete, names what cannot, and never gives
a false reason; alone, and over shared memory and TCP.

usage: pending.py PROGRAM MPIRUN
"""

import os
import re
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(__file__), '..', '..'))
import tap

ALONE, FEW = {1}, {2, 3}

# Operations that no other process can complete: the numbers of processes,
# whether the program can cancel the operation, and how the message names it; N
# is the rank of the peer.
MUST = [
    ('irecv', ALONE | FEW, True, 'receive of 4 bytes from rank N with tag 3'),
    ('irecv_any', ALONE | FEW, True,
     'receive of 4 bytes from rank any with tag any'),
    ('irecv_in_dup', ALONE | FEW, True,
     'receive of 4 bytes from rank 0 with tag 3, among 1 process'),
    ('persistent', ALONE | FEW, True,
     r'receive of 4 bytes from rank N with tag 3, .*: persistent, active'),
    ('isendrecv', ALONE | FEW, True, 'MPI_Isendrecv among'),
    ('precv', ALONE | FEW, False,
     'MPI_Precv_init with rank N and tag 3, among'),
    ('ibarrier', FEW, False, 'MPI_Ibarrier among "MPI_COMM_WORLD"'),
    ('ibcast', FEW, False, 'MPI_Ibcast among'),
    ('barrier_init', FEW, False, 'MPI_Barrier_init among'),
]
# Operations for which no other process waits: how many the message counts, and
# how it names the first.
MAY = [
    ('isend', '1 operation', 'send of 4194304 bytes to rank N with tag 3'),
    ('isend_freed', '1 operation',
     'send of 4194304 bytes to rank N with tag 3'),
    ('issend', '1 operation', 'send of 4 bytes to rank N with tag 3'),
    ('isends', r'\d+ operations', 'send of 1000 bytes to rank N with tag 3'),
    ('bsend', '1 operation', 'a buffered send'),
    ('bsend_of_world', '1 operation', 'a buffered send'),
    ('iflush', '2 operations', 'MPI_Buffer_iflush.*; a buffered send'),
    ('irecv_freed', '1 operation',
     'receive of 4 bytes from rank N with tag 3'),
    ('isendrecv_freed', '1 operation', 'MPI_Isendrecv'),
    ('psend', '1 operation', 'MPI_Psend_init with rank N and tag 3'),
    ('grequest', '1 operation', 'MPI_Grequest_start'),
]
ITSELF = ['late', 'comes', 'barriers', 'works', 'puts']
TOGETHER = ['meet', 'works_elsewhere']


def refusal(n, what):
    return (r'MPI_Finalize: MPI_ERR_PENDING: 1 operation of rank 0 can never '
            r'complete: ' + what.replace('N', str(1 % n)))


def refused(kind, n, can_cancel, what, codes=()):
    """Arguments, exit code, all of stderr."""
    yield [kind, 'finalizes'], 18, r'[^\n]*%s.*' % refusal(n, what)
    for code in codes:
        yield ([kind, 'exits', str(code)], code or 1,
               r'(?!.*exited with).*the process exits although '
               r'MPI_Finalize has failed.*')
    if can_cancel:
        yield [kind, 'cancels'], 0, ''


LEFT = (r'[^\n]*rank 0 leaves %s behind that (?:is|are) not complete: '
        r'%s[^\n]*\n')


def left_behind(kind, n, number, what):
    yield ([kind, 'finalizes'], 0,
           LEFT % (number, what.replace('N', str(1 % n))))


def cannot_leave(n):
    yield (['nm_session'], 1,
           r'[^\n]*sessions of nmad are still in use\n(?!.*exited with).*the '
           r'process could not leave the job.*')
    yield (['session'], 1,
           r'[^\n]*rank 0 leaves the job, but 1 operation is not complete: '
           r'receive of 4 bytes from rank 0 with tag 3[^\n]*\n'
           r'(?!.*exited with).*the process could not leave the job.*')
    if n > 1:  # a thread of the library runs it
        yield (['ibarrier', 'finalizes'], 1,
               r'[^\n]*rank 0 leaves the job, but 1 operation is not complete: '
               r'MPI_Ibarrier[^\n]*\n'
               r'(?!.*exited with).*the process could not leave the job.*',
               {'MADMPI_STAY': '1'})


def compared(n):
    """Rounds do not meet what only one process has called."""
    for kind, sizes, _, what in MUST:
        if kind in ('ibarrier', 'ibcast') and n in sizes:
            yield ([kind, 'finalizes'], 18, r'[^\n]*%s.*' % refusal(n, what),
                   {'MADMPI_CHECK': '2'})


def with_threads(n):
    """Threads that begin sessions meanwhile, also if there is one VP only."""
    for env in {}, {'MARCEL_NVP': '1'}:
        if n > 1:
            yield ['session_before'], 0, '', env
            yield ['session_after_refusal'], 0, '', env
        yield (['session_waits'], 0, LEFT % (
            '1 operation', 'send of 4194304 bytes to rank %d' % (1 % n)), env)
        yield ['session_late'], 0, '', env
        yield ['session_early'], 0, '', env


def cases_of(n):
    """Each kind; of three processes a few. Arguments, exit code, all of
    stderr, and more environment."""
    few = ('irecv', 'ibcast', 'isends', 'isendrecv_freed')
    for kind, sizes, can_cancel, what in MUST:
        if n in sizes and (n < 3 or kind in few):
            yield from refused(kind, n, can_cancel, what,
                               (0, 5) if kind == 'irecv' else ())
    for kind, number, what in MAY:
        if n < 3 or kind in few:
            yield from left_behind(kind, n, number, what)
    for kind in ITSELF + (TOGETHER if n > 1 else []):
        yield [kind], 0, ''
    yield from compared(n)
    yield from with_threads(n)
    if n < 3:
        yield from cannot_leave(n)


WAYS = [(1, None), (2, 'shm'), (3, 'tcp')]

# Kind, processes, network, who dies, before which of its steps. A process in
# the midst of the tree makes nine in a round, a leaf three.
DEATHS = ([('irecv_in_dup', 4, 'shm', victim, step)
           for victim in (0, 1, 3) for step in range(0, 12, 1 + (victim < 2))]
          + [('isend_freed', 3, 'tcp', 1, step) for step in range(0, 8, 2)]
          + [('irecv_in_dup', 4, 'tcp', 0, step) for step in range(0, 20, 5)]
          # Rank 0 may learn of it after rank 1 has come through the round.
          + [('irecv_in_dup', 4, 'tcp', 2, step) for step in (2, 5, 8, 11)])


def death(program, mpirun, kind, n, driver, victim, step):
    """All others come out."""
    command = [mpirun, '-n', str(n), '--keep-going', program, 'dies', kind,
               str(victim), str(step)]
    p = subprocess.Popen(command, env=tap.environment(NMAD_DRIVER=driver),
                         stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                         text=True)
    out = 0
    while out < n - 1 and p.stdout.readline() == 'out\n':
        out += 1
    p.terminate()
    rest, err = p.communicate()
    right = (out == n - 1 and 'out' not in rest and
             'can never complete' not in err.split('lost rank')[-1])
    return ('%s, %d of %d dies at step %d, %s' % (kind, victim, n, step, driver),
            tap.unless(right, p.returncode, err))


def results(program, mpirun):
    for n, driver in WAYS:
        start = [mpirun, '-n', str(n)] if driver else []
        for arguments, want, text, *more in cases_of(n):
            env = dict(*more, **({'NMAD_DRIVER': driver} if driver else {}))
            p = subprocess.run(start + [program] + arguments,
                               env=tap.environment(**env),
                               capture_output=True, text=True)
            right = p.returncode == want and re.fullmatch(
                text, p.stderr, re.S) is not None
            yield (' '.join(arguments + ['of %d,' % n] + [
                '%s=%s' % setting for setting in env.items()]),
                   tap.unless(right, p.returncode, p.stderr))
    yield leaks([mpirun, '-n', '2', program])
    for one in DEATHS:
        yield death(program, mpirun, *one)


def leaks(command):
    """MADMPI_LEAKS still lists the requests, after what was left behind."""
    p = subprocess.run(command + ['issend', 'finalizes'], text=True,
                       env=tap.environment(MADMPI_LEAKS='1',
                                           NMAD_DRIVER='shm'),
                       capture_output=True)
    right = p.returncode == 0 and re.fullmatch(
        r'[^\n]*rank 0 leaves 1 operation [^\n]*\n'
        r'[^\n]*rank 0 has not freed 1 request: send of 4 bytes [^\n]*\n',
        p.stderr) is not None
    return 'MADMPI_LEAKS=1', tap.unless(right, p.returncode, p.stderr)


def main():
    program, mpirun = sys.argv[1:]
    number = sum(len(list(cases_of(n))) for n, _ in WAYS) + 1 + len(DEATHS)
    return tap.tell(number, results(program, mpirun))


if __name__ == '__main__':
    sys.exit(main())
