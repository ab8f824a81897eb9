#!/usr/bin/env python3
"""The library exports what is implemented, and nothing else.

Each function of the list is in the table, has a strong PMPI_ name and a weak
MPI_ name at the same address; both forms of a pair with large counts are there;
nothing but MPI functions and the functions of libc that SOURCES stand before is
exported.

usage: exports.py TABLES LIST LIBRARY [SOURCES]
"""

import csv
import os
import re
import subprocess
import sys


def main():
    tables, listed, library, *sources = sys.argv[1:]
    with open(os.path.join(tables, 'functions.csv'), newline='') as f:
        table = {r['name'] for r in csv.DictReader(f)}
    with open(listed) as f:
        names = set(f.read().split())
    out = subprocess.run(['nm', '-D', '--defined-only', library], check=True,
                         capture_output=True, text=True).stdout
    before_libc = set()
    for source in sources:
        with open(source) as f:
            text = f.read()
            before_libc.update(re.findall(r'^BASE_PUBLIC [^(]*?(\w+)\(',
                                          text, re.M))
            # Made by a macro, from several names of one function.
            for several in re.findall(r'^[A-Z]+\((\w+(?:, \w+)*)\)$', text, re.M):
                before_libc.update(several.split(', '))
    symbols = {}
    for line in out.splitlines():
        address, kind, name = line.split()
        symbols[name] = (address, kind)

    def show(title, bad):
        for name in sorted(bad):
            print('# %s: %s' % (title, name))
        return not bad

    results = []

    def rule(name, good):
        results.append(good)
        print('%s %d - %s' % ('ok' if good else 'not ok', len(results), name))

    print('1..5')
    rule('what is implemented is in the table',
         show('not in the table', names - table))
    exported = {s[1:] for s in symbols if s.startswith('PMPI_')}
    rule('what is implemented is exported and the other way round',
         show('only one of them', exported ^ names))
    rule('MPI_ is weak over PMPI_', show('not so', {
        n for n in names
        if symbols.get(n, ('', ''))[1] not in ('W', 'V') or
        symbols.get('P' + n, ('', ''))[1] != 'T' or
        symbols[n][0] != symbols['P' + n][0]}))
    rule('pairs with large counts are whole', show('half', {
        n for n in table if n.endswith('_c') and n[:-2] in table and
        (n in names) != (n[:-2] in names)}))
    rule('nothing else is exported', show('foreign', {
        s for s in symbols if not s.startswith(('MPI_', 'PMPI_')) and
        s not in ('_init', '_fini') and s not in before_libc}))
    print('# %d of %d functions of the ABI are implemented' %
          (len(names), len(table)))
    return 0 if all(results) else 1


if __name__ == '__main__':
    sys.exit(main())
