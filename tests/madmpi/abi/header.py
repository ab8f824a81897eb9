#!/usr/bin/env python3
"""mpi.h compiles as C and as C++ without a warning, with and without the names
that MPI 3.0 deleted, and says what the tables say: every constant has its value,
every function exists in both spellings, and all statuses have one layout.

usage: header.py TABLES INCLUDE[:INCLUDE...] CC CXX
"""

import csv
import os
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(__file__), '..', '..'))
import tap

C = ['-std=c99', '-Wall', '-Wextra', '-pedantic', '-Werror']
CXX = ['-x', 'c++', '-std=c++11', '-Wall', '-Wextra', '-pedantic', '-Werror']


def read(folder, name):
    with open(os.path.join(folder, name), newline='') as f:
        return list(csv.DictReader(f))


def program(folder):
    """A program that returns the number of constants that are wrong."""
    out = ['#include <mpi.h>', '#include <mpi.h>', '#include <stdio.h>',
           '#include <stddef.h>',
           '#if MPI_VERSION != 5 || MPI_ABI_VERSION != 1', '#error version',
           '#endif',
           'typedef char status_is_32_bytes[sizeof(MPI_Status) == 32 ? 1 : -1];',
           'typedef void (*any_function)(void);',
           'static int wrong;',
           'static void same(long long a, long long b, const char *what)',
           '{ if (a != b) { wrong++; printf("# %s is %lld, not %lld\\n", what,'
           ' a, b); } }',
           'int main(void)', '{',
           '\tint **fint_is_int = &MPI_F_STATUS_IGNORE;',
           '\t(void)fint_is_int;']
    out += ['\tsame(offsetof(MPI_F08_status, MPI_%s), MPI_F_%s * sizeof(int), '
            '"MPI_F_%s");' % (name, name, name)
            for name in ('SOURCE', 'TAG', 'ERROR')]
    out += ['\tsame(sizeof(%s), 4 * MPI_F_STATUS_SIZE, "size of %s");' %
            (name, name) for name in ('MPI_Status', 'MPI_F08_status')]
    n = 0
    for c in read(folder, 'constants.csv'):
        name, value = c['name'], c['value']
        if name == 'MPI_ABI_Count':
            continue
        if c['kind'] == 'pointer constant':
            out.append('\t{ %s v = %s; same((long long)(intptr_t)v, %s, "%s");'
                       ' }' % (c['c_type'], name, value, name))
        elif c['kind'] == 'value':
            out.append('\t{ %s v = %s; same(v, %s, "%s"); }' %
                       (c['c_type'], name, value, name))
        elif c['kind'] == 'alias':
            out.append('\tsame((long long)(intptr_t)%s, (long long)(intptr_t)'
                       '%s, "%s");' % (name, value, name))
        else:
            out.append('\tsame(%s, %s, "%s");' % (name, value, name))
        n += 1
    out.append('\tif (wrong < 0) {')
    rows = read(folder, 'functions.csv') + read(folder, 'fortran.csv')
    for v in rows:
        if not v['parameters']:
            out.append('\t\t{ %s*v = &%s; wrong += v != 0; }' %
                       (v['returns'], v['name']))
    functions = [r for r in rows if r['parameters']]
    for f in functions:
        # Taking the address by type checks the prototype against the table.
        for prefix in ('', 'P'):
            out.append('\t\t{ %s (*f)(%s) = %s%s; any_function g = '
                       '(any_function)f; wrong += g != 0; }' %
                       (f['returns'], f['parameters'], prefix, f['name']))
    return out + ['\t}', '\treturn wrong;', '}'], n, len(functions)


def passes(command):
    done = subprocess.run(command, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, text=True)
    assert done.returncode == 0, '%s: exit code %d\n%s' % (
        ' '.join(command), done.returncode, done.stdout)


def compiles(compiler, include, source, exe):
    """Functions that are not implemented are only declared: all is compiled,
    and run with their addresses left out."""
    compiler = compiler + ['-I' + folder for folder in include.split(':')]
    for flags in [], ['-DMADMPI_COMPAT'], ['-include', 'mpi-compat.h']:
        passes(compiler + flags + ['-c', source, '-o', os.devnull])
    passes(compiler + ['-O1', '-o', exe,
                       '-Wl,--unresolved-symbols=ignore-all', source])
    passes([exe])


def results(tables, include, c, cxx):
    text, constants, functions = program(tables)
    with tempfile.TemporaryDirectory() as tmp:
        source = os.path.join(tmp, 'all.c')
        with open(source, 'w') as f:
            f.write('\n'.join(text) + '\n')
        for cc, flags in (c, C), (cxx, CXX):
            yield ('%s: %d constants, %d functions' % (cc, constants, functions),
                   tap.wrong_with(compiles, cc.split() + flags, include, source,
                                  os.path.join(tmp, 'all')))


sys.exit(tap.tell(2, results(*sys.argv[1:])))
