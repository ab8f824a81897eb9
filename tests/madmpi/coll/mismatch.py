#!/usr/bin/env python3
"""What does not fit together is named, with MADMPI_CHECK=2: the function, what
it is here and what elsewhere. Whichever process says it first.

usage: mismatch.py COLLECTIVES MESSAGES MPIRUN
"""

import os
import re
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(__file__), '..', '..'))
import tap

WORLD = ' of MPI_COMM_WORLD'
OTHERS = ' of the other group of the communicator'


def values(what, rest, odd):
    """What differs in rank 2, as that and as the others see it."""
    return ['%s %s here, but %s on rank 2%s' % (what, rest, odd, WORLD),
            '%s %s here, but %s on rank 0%s' % (what, odd, rest, WORLD)]


def alone(what):
    return ['%s here than on rank %d%s' % (what, r, WORLD) for r in (0, 2)]


def elements(comm, sent, here, to='[012]'):
    return ['a message from rank [012]%s to rank %s of %s with tag 5 has other '
            'elements than its receive: %s sent, up to %s received' %
            (' of the other group' if 'the ' in comm else '', to, comm, sent,
             here)]


SENT, HERE = '3 x MPI_DOUBLE', '6 x MPI_FLOAT'

# function, case, class, what any of the processes may say; of messages
MESSAGES = [
    ('MPI_Recv', 'recv', 'TYPE', elements('ring', SENT, HERE)),
    ('MPI_Recv', 'inter', 'TYPE', elements('the communicator', SENT, HERE)),
    ('MPI_Recv', 'structs', 'TYPE',
     elements('ring', '10 elements of several types', '100 x MPI_BYTE')),
    ('MPI_Wait', 'partitions', 'TYPE', elements('ring', SENT, HERE)),
    ('MPI_Waitall', 'waitall', 'IN_STATUS',
     [r'1 request failed, the first with MPI_ERR_TYPE \(%s\)' % text
      for text in elements('ring', SENT, HERE)]),
]

# likewise, of collective operations
COLLECTIVES = [
    ('MPI_Barrier', 'order', 'OTHER',
     values('the order is another: earlier collective calls of other kinds '
            'are', 1, 0)),
    ('MPI_(Barrier|Allreduce)', 'function', 'OTHER',
     values('the function is', 'MPI_Allreduce', 'MPI_Barrier')),
    ('MPI_Bcast', 'root', 'ROOT', values('root is', 1, 0)),
    ('MPI_Reduce', 'op', 'OP', values('the operation is', 'sum', 'max')),
    ('MPI_Scan', 'count', 'COUNT', values('the bytes are', 8, 12)),
    ('MPI_Bcast', 'type', 'TYPE', alone('the elements are of other types')),
    ('MPI_Gather', 'part', 'COUNT', values('the bytes are', 8, 4)),
    ('MPI_Gatherv', 'none_of_some', 'COUNT',
     ['rank 2 sends 0 bytes to rank 0' + WORLD + ', which expects 4']),
    ('MPI_Scatterv', 'more_of_some', 'COUNT',
     ['rank 0 sends 4 bytes to rank 2' + WORLD + ', which expects 8']),
    ('MPI_Alltoallv', 'pair', 'COUNT',
     ['rank 2 sends 0 bytes to rank 0' + WORLD + ', which expects 4']),
    ('MPI_Allgatherv', 'counts', 'COUNT', alone('the counts are others')),
    ('MPI_(Barrier|Allreduce)', 'inter_function', 'OTHER',
     ['the function is MPI_Barrier here, but MPI_Allreduce on rank 0' + OTHERS,
      'the function is MPI_Allreduce here, but MPI_Barrier on rank 0' +
      OTHERS]),
    ('MPI_Bcast', 'inter_nobody', 'ROOT',
     ['root is nobody here, but 0 on rank 0' + OTHERS,
      'root is 0 here, but nobody on rank 0' + OTHERS]),
    ('MPI_Alltoall', 'inter_pair', 'COUNT',
     ['rank 0 of the other group sends 8 bytes to rank [01] of the '
      'communicator, which expects 4',
      'rank 0 sends 8 bytes to rank [01] of the other group of the '
      'communicator, which expects 4']),
]


def said(program, mpirun, name):
    """The exit code and what was said."""
    p = subprocess.run([mpirun, '-n', '3', program, name],
                       env=tap.environment(MADMPI_CHECK='2'),
                       capture_output=True, text=True)
    return p.returncode, p.stderr


def cases(collectives, messages, mpirun):
    rules = ([(collectives, rule) for rule in COLLECTIVES] +
             [(messages, rule) for rule in MESSAGES])
    for program, (function, name, error, texts) in rules:
        code, err = said(program, mpirun, name)
        right = code != 0 and any(
            re.search(r'^nmad\[\d+\]: %s: MPI_ERR_%s: %s$' %
                      (function, error, text), err, re.M) for text in texts)
        yield name, tap.unless(right, code, err)


if __name__ == '__main__':
    sys.exit(tap.tell(len(COLLECTIVES) + len(MESSAGES),
                      cases(*sys.argv[1:])))
