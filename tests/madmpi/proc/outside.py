#!/usr/bin/env python3
"""From the table of functions to a call of each, with nothing but zeros, for
outside.c, which makes it when MPI does not run.

usage: outside.py TABLES OUT
"""

import csv
import os
import re
import sys

# Table 9 in section 12.4.1 of MPI 4.1, what MPI 5.0 has added to it, and what
# concerns no object: this library allows it, too.
ALWAYS = re.compile(r'''MPI_(
    Initialized|Finalized|Get_version|Get_library_version|
    Info_\w+|Session_init|Session_create_errhandler|Session_call_errhandler|
    Errhandler_free|Error_string|Error_class|
    (Add|Remove)_error_(class|code|string)|T_\w+|
    Abi_\w+|\w+_(to|from)int|\w+_(c|f|f08)2(c|f|f08)|
    Status_[gs]et_(source|tag|error)|
    Aint_add|Aint_diff|Wtime|Wtick|Pcontrol)$''', re.X)
# The beginning.
BEGIN = {'MPI_Init', 'MPI_Init_thread'}


def main():
    tables, path = sys.argv[1:]
    table = {}
    for name in 'functions.csv', 'fortran.csv':
        with open(os.path.join(tables, name), newline='') as f:
            table |= {r['name']: r for r in csv.DictReader(f)
                      if r['parameters']}
    names = [n for n in table if n not in BEGIN]
    out = ['/* Made by outside.py. */', '']
    for name in names:
        text = table[name]['parameters']
        n = 0 if text == 'void' else len(
            [p for p in text.split(',') if p.strip() != '...'])
        out += ['static void call_%s(void)' % name, '{',
                '\t%s(%s);' % (name, ', '.join(['0'] * n)), '}', '']
    out += ['static const struct function functions[] = {']
    out += ['\t{ "%s", call_%s, %d },' % (
        n, n, ALWAYS.match(n) is not None) for n in names]
    with open(path, 'w') as f:
        f.write('\n'.join(out + ['};', '']))
    return 0


if __name__ == '__main__':
    sys.exit(main())
