#!/usr/bin/env python3
"""mpi.h compiles as C and as C++ without a warning, and says what the tables
say: every constant has its value, every function exists in both spellings.

usage: header.py TABLES INCLUDE CC CXX
"""

import csv
import os
import subprocess
import sys
import tempfile

C = ['-std=c99', '-Wall', '-Wextra', '-pedantic', '-Werror']
CXX = ['-x', 'c++', '-std=c++11', '-Wall', '-Wextra', '-pedantic', '-Werror']


def read(folder, name):
    with open(os.path.join(folder, name), newline='') as f:
        return list(csv.DictReader(f))


def program(folder):
    """A program that returns the number of constants that are wrong."""
    out = ['#include <mpi.h>', '#include <mpi.h>', '#include <stdio.h>',
           '#if MPI_VERSION != 5 || MPI_ABI_VERSION != 1', '#error version',
           '#endif',
           'typedef char status_is_32_bytes[sizeof(MPI_Status) == 32 ? 1 : -1];',
           'typedef void (*any_function)(void);',
           'static int wrong;',
           'static void same(long long a, long long b, const char *what)',
           '{ if (a != b) { wrong++; printf("# %s is %lld, not %lld\\n", what,'
           ' a, b); } }',
           'int main(void)', '{']
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
    functions = read(folder, 'functions.csv')
    for f in functions:
        # Taking the address by type checks the prototype against the table.
        for prefix in ('', 'P'):
            out.append('\t\t{ %s (*f)(%s) = %s%s; any_function g = '
                       '(any_function)f; wrong += g != 0; }' %
                       (f['returns'], f['parameters'], prefix, f['name']))
    return out + ['\t}', '\treturn wrong;', '}'], n, len(functions)


def main():
    tables, include = sys.argv[1:3]
    text, constants, functions = program(tables)
    ok = True
    print('1..2')
    with tempfile.TemporaryDirectory() as tmp:
        source = os.path.join(tmp, 'all.c')
        with open(source, 'w') as f:
            f.write('\n'.join(text) + '\n')
        for i, (cc, flags) in enumerate(((sys.argv[3], C),
                                         (sys.argv[4], CXX))):
            # Functions that are not implemented are only declared: compile
            # all, and run with their addresses left out.
            exe = os.path.join(tmp, 'all')
            good = subprocess.run(
                cc.split() + flags + ['-I', include, '-c', source, '-o',
                                      os.devnull]).returncode == 0
            good = good and subprocess.run(
                cc.split() + flags + ['-O1', '-I', include, '-o', exe,
                                      '-Wl,--unresolved-symbols=ignore-all',
                                      source]).returncode == 0
            good = good and subprocess.run([exe]).returncode == 0
            print('%s %d - %s: %d constants, %d functions' %
                  ('ok' if good else 'not ok', i + 1, cc, constants,
                   functions))
            ok = ok and good
    return 0 if ok else 1


if __name__ == '__main__':
    sys.exit(main())
