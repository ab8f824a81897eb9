#!/usr/bin/env python3
"""A program that was built without this library, its header and a library of
stubs made from the tables of the ABI alone, runs on it, bound lazily: a function
that the library lacks is missing when it is called, and not before.

usage: foreign.py TABLES PROGRAM.c CC LIBRARY MPIRUN
"""

import csv
import os
import re
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(__file__), '..', '..'))
import tap

# What the tables say in words.
HEAD = """
#include <stdint.h>
typedef intptr_t MPI_Aint;
typedef int64_t MPI_Offset;
typedef int64_t MPI_Count;
typedef struct {
	int MPI_SOURCE;
	int MPI_TAG;
	int MPI_ERROR;
	int MPI_internal[5];
} MPI_Status;
typedef enum { cb_safety_ = 0 } MPI_T_cb_safety;
typedef enum { source_order_ = 0 } MPI_T_source_order;
"""
LATER = 'MPI_Function_of_a_later_standard'


def read(folder, name):
    with open(os.path.join(folder, name), newline='') as f:
        return list(csv.DictReader(f))


def zeros(parameters):
    """Arguments, which need not make sense: pointers and numbers take a 0."""
    n = 0 if parameters == 'void' else len(
        [p for p in parameters.split(',') if p.strip() != '...'])
    return ', '.join(['0'] * n)


def stubs(folder):
    """A library that has them all, to link with."""
    names = [f['name'] for f in read(folder, 'functions.csv')] + [LATER]
    return ''.join('void %s%s(void) {}\n' % (prefix, n)
                   for n in names for prefix in ('', 'P'))


def header(folder):
    out = [HEAD]
    out += ['typedef struct %s *%s;' % (h['opaque_struct'], h['handle_type'])
            for h in read(folder, 'handles.csv')]
    for c in read(folder, 'callbacks.csv'):
        if c['returns'].startswith('= '):
            out.append('typedef %s %s;' % (c['returns'][2:],
                                           c['typedef_name']))
        else:
            out.append('typedef %s (%s)(%s);' % (
                c['returns'], c['typedef_name'], c['parameters']))
    for c in read(folder, 'constants.csv'):
        out.append('#define %s (%s%s)' % (
            c['name'], '(%s)' % c['c_type']
            if c['kind'] in ('pointer constant', 'value') else '', c['value']))
    functions = read(folder, 'functions.csv')
    for f in functions:
        for prefix in ('', 'P'):
            out.append('%s %s%s(%s);' % (f['returns'], prefix, f['name'],
                                         f['parameters']))
    out += ['void %s(void);' % LATER, 'static void call_all(void)', '{']
    out += ['\t%s%s(%s);' % (prefix, f['name'], zeros(f['parameters']))
            for f in functions for prefix in ('', 'P')]
    return '\n'.join(out + ['\t%s();' % LATER, '}', ''])


def build(tables, source, cc, library, tmp):
    """The program, to be run with the library."""
    program = os.path.join(tmp, 'program')
    stub = os.path.join(tmp, 'libmpi_abi.so')
    for name, text in (('tables.h', header(tables)),
                       ('stubs.c', stubs(tables))):
        with open(os.path.join(tmp, name), 'w') as f:
            f.write(text)
    subprocess.run(
        cc + ['-shared', '-fPIC', '-Wl,-soname,libmpi_abi.so.0',
              os.path.join(tmp, 'stubs.c'), '-o', stub], check=True)
    subprocess.run(
        cc + ['-Wall', '-Werror', '-Wno-nonnull', '-I', tmp, source, '-o',
              program, stub, '-Wl,-z,lazy',
              '-Wl,-rpath,' + os.path.dirname(library)], check=True)
    return program


RULES = [
    ('what is not called is not missed', [], 0, r'^$'),
    ('what is called is named', ['later'], 127, LATER),
]


def cases(program, ways):
    env = tap.environment()
    env.pop('LD_BIND_NOW', None)
    for way, prefix in ways:
        for name, args, code, text in RULES:
            p = subprocess.run(prefix + [program] + args, env=env,
                               capture_output=True, text=True)
            right = p.returncode == code and \
                re.search(text, p.stderr) is not None and \
                (code != 0 or 'fine' in p.stdout)
            yield name + ' ' + way, tap.unless(right, p.returncode, p.stderr)


def main():
    tables, source, cc, library, mpirun = sys.argv[1:]
    ways = [('alone', []), ('of two', [mpirun, '-n', '2'])]
    with tempfile.TemporaryDirectory() as tmp:
        program = build(tables, source, cc.split(), library, tmp)
        return tap.tell(len(RULES) * len(ways), cases(program, ways))


if __name__ == '__main__':
    sys.exit(main())
