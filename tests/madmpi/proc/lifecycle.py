#!/usr/bin/env python3
"""What must not be done ends with a message and a nonzero exit code, and never
with a crash or a hang; alone and under mpirun.

usage: lifecycle.py PROGRAM MPIRUN
"""

import os
import re
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(__file__), '..', '..'))
import tap


def initial(handler):
    return {'MADMPI_INITIAL_ERRHANDLER': handler}


# name, environment, exit code (None: any but 0 and no signal), what stderr says
RULES = [
    ('before_init', {}, None, r'MPI_Barrier was called before MPI_Init'),
    ('after_finalize', {}, None, r'MPI_Send was called after MPI_Finalize'),
    ('always_allowed', {}, 0, r'^$'),
    ('single', {}, 0, r'^$'),
    ('funneled', {}, 0, r'^$'),
    ('serialized', {}, 0, r'^$'),
    ('multiple', {}, 0, r'^$'),
    ('main_thread', {}, 0, r'^$'),
    ('finalize_twice', {}, None,
     r'MPI_Finalize was called after MPI_Finalize'),
    ('init_after_finalize', {}, None, r'MPI_Init: MPI_ERR_OTHER: .*finalized'),
    ('one_aborts', {}, 43, r'MPI_Abort was called with 43'),
    ('aborts_with_0', {}, None, r'MPI_Abort was called with 0'),
    ('error_before', {}, None, r'MPI_Error_class: MPI_ERR_ARG'),
    ('error_after', {}, None, r'MPI_Error_class: MPI_ERR_ARG'),
    ('initial_returns', initial('mpi_errors_return'), 0, r'^$'),
    ('initial_is_fatal', initial('mpi_errors_are_fatal'), 0, r'^$'),
    ('initial_is_fatal', {}, 0, r'^$'),
    ('initial_aborts', initial('mpi_errors_abort'), None,
     r'MPI_Comm_size: MPI_ERR_COMM'),
    ('initial_is_fatal', initial('MPI_ERRORS_RETURN'), None,
     r'MADMPI_INITIAL_ERRHANDLER.*MPI_ERRORS_RETURN.*mpi_errors_return'),
    ('handler_remains', {}, 0, r'^$'),
    ('self_is_fatal', {}, None, r'MPI_Comm_size: MPI_ERR_COMM'),
    ('twice', {}, None, r'MPI_Init: MPI_ERR_OTHER: .*already'),
    ('no_finalize', {}, None, r'without MPI_Finalize'),
    ('own_exit_code', {}, 42, r'without MPI_Finalize'),
    ('fatal', {}, None, r'MPI_Send: MPI_ERR_RANK: dest is 17, .* \d process'),
    ('fatal_in_thread', {}, None, r'MPI_Recv: MPI_ERR_TAG: tag is -77'),
    ('aborts', {}, 7, r'MPI_Abort was called with 7'),
    ('unchecked', {'MADMPI_CHECK': '0'}, 0, r'^$'),
    ('unchecked', {'MADMPI_CHECK': 'maybe'}, None, r'MADMPI_CHECK.*maybe'),
    ('unchecked', {'MADMPI_LEAKS': 'yes'}, None, r'MADMPI_LEAKS.*yes'),
    ('unchecked', {'MADMPI_VERBOSE': '1'}, 0, r'MADMPI_CHECK=1'),
    ('unchecked', {'MADMPI_COLL_ALLREDUCE': 'tree'}, None,
     r'MADMPI_COLL_ALLREDUCE.*tree.*auto, doubling, ring'),
    ('forks', {}, 0, r'MPI_Send was called in a process made by fork'),
    ('leaves_objects', {}, 0, r'^$'),
    ('session_no_finalize', {}, None, r'without MPI_Session_finalize'),
    ('after_session', {}, None, r'MPI_Send was called after '
     r'MPI_Session_finalize'),
    ('session_after_world', {'MADMPI_STAY': '1'}, 0, r'^$'),
    ('session_forks', {}, 0, r'fork'),
    ('exit_in_thread', {}, 5, r'^($|mpirun: rank)'),
]


# The same for options of mpirun.
OPTIONS = [
    (['-initial-errhandler', 'mpi_errors_return'], 'initial_returns', 0,
     r'^$'),
    (['--initial-errhandler=mpi_errors_abort'], 'initial_aborts', None,
     r'MPI_Comm_size: MPI_ERR_COMM'),
    (['--initial-errhandler', 'mine'], 'initial_returns', 2,
     r'--initial-errhandler mine: expected mpi_errors_are_fatal'),
    # A job that has been left is left; alone it can be joined again.
    ([], 'session_after_world', None,
     r'MPI_Session_init: MPI_ERR_OTHER: .*MADMPI_STAY'),
]


def run(command, env):
    p = subprocess.run(command, env=tap.environment(**env),
                       capture_output=True, text=True)
    return p.returncode, p.stderr


def results(cases):
    for command, env, want, text, title in cases:
        code, err = run(command, env)
        right = code == want if want is not None else \
            0 < code < 128
        right = right and re.search(text, err, re.S) is not None
        yield title, tap.unless(right, code, err)


def main():
    program, mpirun = sys.argv[1:]
    ways = [([program], 'alone'), ([mpirun, '-n', '2', program], 'of two')]
    cases = [(prefix + [name], env, want, text,
              ' '.join([name] + list(env) + [way]))
             for prefix, way in ways for name, env, want, text in RULES]
    cases += [([mpirun, '-n', '2'] + options + [program, name], {}, want, text,
               ' '.join([name] + options))
              for options, name, want, text in OPTIONS]
    # Alone there is no launcher that would have forgotten it.
    cases.append(([program, 'session_after_world'], {}, 0, r'^$',
                  'session_after_world alone, left'))
    return tap.tell(len(cases), results(cases))


if __name__ == '__main__':
    sys.exit(main())
