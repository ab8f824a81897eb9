#!/usr/bin/env python3
"""The library exports the whole tables, and nothing else.

Every function of the tables is there, as a strong PMPI_ name and a weak MPI_
name at the same address, and every variable; of a pair with large counts both
forms have a body, or none; nothing else is exported but the functions of libc
that SOURCES stand before, and AddressSanitizer's names of variables. The last
line says how many functions have a body, and which have none: these answer
MPI_ERR_UNSUPPORTED_OPERATION.

usage: exports.py TABLES LIST LIBRARY [SOURCES]
"""

import csv
import os
import re
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(__file__), '..', '..'))
import tap


def read_tables(tables):
    """The names of the functions, and those of the variables."""
    functions, variables = set(), set()
    for name in 'functions.csv', 'fortran.csv':
        with open(os.path.join(tables, name), newline='') as f:
            for r in csv.DictReader(f):
                (functions if r['parameters'] else variables).add(r['name'])
    return functions, variables


def read_symbols(library):
    """What the library defines for others: name -> (address, kind)."""
    out = subprocess.run(['nm', '-D', '--defined-only', library], check=True,
                         capture_output=True, text=True).stdout
    symbols = {}
    for line in out.splitlines():
        address, kind, name = line.split()
        symbols[name.split('@')[0]] = (address, kind)
    return symbols


def names_before_libc(sources):
    names = set()
    for source in sources:
        with open(source) as f:
            text = f.read()
        names.update(re.findall(r'^BASE_PUBLIC [^(]*?(\w+)\(', text, re.M))
        # Made by a macro, from several names of one function.
        for several in re.findall(r'^[A-Z]+\((\w+(?:, \w+)*)\)$', text, re.M):
            names.update(several.split(', '))
    return names


def is_pair(symbols, name):
    """MPI_X is weak over a strong PMPI_X."""
    weak, strong = symbols.get(name), symbols.get('P' + name)
    return weak is not None and strong is not None and \
        weak[1] in ('W', 'V') and strong[1] == 'T' and weak[0] == strong[0]


def rules(table, variables, symbols, bodies, of_mpi, before_libc):
    """(rule, the names that break it)."""
    return [
        ('the tables are exported', of_mpi ^ table),
        ('variables are exported as data',
         {n for n in variables if symbols.get(n, ('', ''))[1] not in 'DB'}),
        ('what has a body is in the table', bodies - table),
        ('MPI_ is weak over PMPI_',
         {n for n in of_mpi if not is_pair(symbols, n)}),
        ('pairs with large counts are whole', {
            n for n in table if n.endswith('_c') and n[:-2] in table and
            (n in bodies) != (n[:-2] in bodies)}),
        ('nothing else is exported',
         {s for s in symbols
          if not s.startswith(('MPI_', 'PMPI_', '__odr_asan.'))} -
         {'_init', '_fini'} - before_libc),
    ]


def main():
    tables, listed, library, *sources = sys.argv[1:]
    table, variables = read_tables(tables)
    symbols = read_symbols(library)
    before_libc = names_before_libc(sources)
    with open(listed) as f:
        bodies = set(f.read().split())
    of_mpi = {s[1:] if s.startswith('PMPI_') else s for s in symbols
              if s.startswith(('MPI_', 'PMPI_'))} - variables

    found = rules(table, variables, symbols, bodies, of_mpi, before_libc)
    code = tap.tell(len(found), (
        (name, '\n'.join(sorted(breaks)) if breaks else None)
        for name, breaks in found))
    missing = sorted(table - bodies)
    print('# note: %d of %d functions, and their PMPI_ forms, are exported; '
          '%d written, %d unsupported: %s' % (
              len(of_mpi & table), len(table), len(bodies), len(missing),
              ' '.join(missing) or 'none'))
    return code


if __name__ == '__main__':
    sys.exit(main())
