#!/usr/bin/env python3
"""The MPI 5.0 standard ABI: from its tables to C.

The tables in madmpi/abi/ are facts of the standard; fortran.csv is what the ABI
leaves to the provider of a Fortran binding, and its rows without parameters are
variables. From them come

  header    mpi.h: all types, constants, callbacks and prototypes
  bodies    the prototypes of the bodies, madmpi_send() for MPI_Send
  forwards  the exported functions: PMPI_X calls the body, MPI_X is weak over it
  list      the names of the functions that have a body

A body is written once, in terms of MPI_Count. Where the standard has a pair X
and X_c, the form with int widens its arguments and narrows its results; the
form with MPI_Count passes them on. What is written is what has a body: a
function definition madmpi_x in one of the sources. The rest is exported all the
same, and answers MPI_ERR_UNSUPPORTED_OPERATION, until its body is there.
"""

import argparse
import csv
import os
import re
import sys

# These may be called before MPI_Init and after MPI_Finalize: section 12.4.1 of
# the standard, and what asks for nothing of the job.
ALWAYS = {
    'MPI_Init', 'MPI_Init_thread', 'MPI_Initialized', 'MPI_Finalized',
    'MPI_Get_version', 'MPI_Get_library_version', 'MPI_Error_string',
    'MPI_Error_class', 'MPI_Add_error_class',
    'MPI_Add_error_code', 'MPI_Add_error_string', 'MPI_Remove_error_class',
    'MPI_Remove_error_code', 'MPI_Remove_error_string', 'MPI_Wtime', 'MPI_Wtick',
    'MPI_Session_init', 'MPI_Session_create_errhandler',
    'MPI_Session_call_errhandler',
    'MPI_Errhandler_free', 'MPI_Aint_add', 'MPI_Aint_diff', 'MPI_Pcontrol',
    'MPI_Status_set_source', 'MPI_Status_set_tag', 'MPI_Status_set_error',
    'MPI_Status_get_source', 'MPI_Status_get_tag', 'MPI_Status_get_error',
}
ALWAYS_PATTERN = re.compile(r'MPI_\w+_(from|to)int$|MPI_(Info|T|Abi)_|'
                            r'MPI_\w+_(c|f|f08)2(c|f|f08)$')

# The result is MPI_UNDEFINED where an int cannot hold it; all other results
# that do not fit are the error MPI_ERR_VALUE_TOO_LARGE.
UNDEFINED = {'MPI_Get_count', 'MPI_Get_elements', 'MPI_Type_size',
             'MPI_Pack_size'}

# Read before they are written.
INOUT = {'position', 'buflen'}

# Constructors of datatypes: the body is told which form was called, because
# MPI_Type_get_envelope tells the program.
TOLD = {
    'MPI_Type_contiguous', 'MPI_Type_vector', 'MPI_Type_create_hvector',
    'MPI_Type_indexed', 'MPI_Type_create_hindexed',
    'MPI_Type_create_indexed_block', 'MPI_Type_create_hindexed_block',
    'MPI_Type_create_struct', 'MPI_Type_create_subarray',
    'MPI_Type_create_darray', 'MPI_Type_create_resized',
}

# Old names for large results: the same body.
SAME_BODY = {
    'MPI_Type_size_x': 'MPI_Type_size',
    'MPI_Type_get_extent_x': 'MPI_Type_get_extent',
    'MPI_Type_get_true_extent_x': 'MPI_Type_get_true_extent',
    'MPI_Get_elements_x': 'MPI_Get_elements',
    'MPI_Status_set_elements_x': 'MPI_Status_set_elements',
}

# A Fortran handle is the number of the C handle: likewise the same body.
FORTRAN_HANDLE = re.compile(r'(MPI_(?!Status)\w+)_(c2f|f2c)$')
NUMBER = {'c2f': 'toint', 'f2c': 'fromint'}

# Types of integer constants that C++ would not convert to from int.
ENUMS = {
    'MPI_T_cb_safety': 'MPI_T_CB_REQUIRE_',
    'MPI_T_source_order': 'MPI_T_SOURCE_',
}


def read(folder, name):
    with open(os.path.join(folder, name), newline='') as f:
        return list(csv.DictReader(f))


class Param:
    """One parameter: its type, its name, what follows the name."""

    def __init__(self, text):
        self.text = text
        m = re.match(r'(.*?)(\w+)((?:\[\d*\])*)$', text)
        if text in ('void', '...'):
            self.type, self.name, self.dims = text, '', ''
        else:
            self.type = m.group(1).strip()
            self.name = m.group(2)
            self.dims = m.group(3)


class Function:
    def __init__(self, row):
        self.name = row['name']
        self.returns = row['returns']
        self.parameters = row['parameters']
        self.params = [Param(p) for p in
                       re.split(r',\s*', row['parameters'])]
        self.deprecated = row['deprecated_since']

    def body(self):
        return 'madmpi_' + self.name[len('MPI_'):].lower()


def is_array(p):
    return p.dims == '[]' and p.type in ('const int', 'const MPI_Count',
                                         'const MPI_Aint')


def widens(a, b):
    """True if the int form's parameter a can be passed as b."""
    if a.name != b.name or a.dims != b.dims:
        return False
    if a.type == b.type:
        return True
    return (a.type, b.type) in (
        ('int', 'MPI_Count'), ('int', 'MPI_Aint'), ('MPI_Aint', 'MPI_Count'),
        ('int *', 'MPI_Count *'), ('int *', 'MPI_Aint *'),
        ('MPI_Aint *', 'MPI_Count *'), ('const int', 'const MPI_Count'),
        ('const int', 'const MPI_Aint'), ('const MPI_Aint', 'const MPI_Count'))


def is_pair(small, large):
    return len(small.params) == len(large.params) and all(
        widens(a, b) for a, b in zip(small.params, large.params))


class Api:
    def __init__(self, folder):
        self.handles = read(folder, 'handles.csv')
        self.constants = read(folder, 'constants.csv')
        self.callbacks = read(folder, 'callbacks.csv')
        fortran = read(folder, 'fortran.csv')
        self.variables = [r for r in fortran if not r['parameters']]
        self.functions = [Function(r) for r in read(folder, 'functions.csv') +
                          fortran if r not in self.variables]
        self.by_name = {f.name: f for f in self.functions}

    def large(self, f):
        """The form whose types the body has: X_c for X, else f itself."""
        c = self.by_name.get(f.name + '_c')
        return c if c and is_pair(f, c) else None

    def small(self, f):
        """X for X_c, where one body serves both."""
        s = self.by_name.get(f.name[:-2]) if f.name.endswith('_c') else None
        return s if s and is_pair(s, f) else None

    def body_of(self, f):
        """The function that names the body which f calls."""
        m = FORTRAN_HANDLE.match(f.name)
        name = '%s_%s' % (m[1], NUMBER[m[2]]) if m else \
            SAME_BODY.get(f.name, '')
        f = self.by_name.get(name, f)
        return self.small(f) or f

    def body_params(self, f):
        """The parameters of the body named by f, as text."""
        large = self.large(f)
        if not large:
            return f.parameters
        out = []
        for a, b in zip(f.params, large.params):
            if is_array(a) and a.type == 'const int' and a.type != b.type:
                out.append('struct madmpi_array ' + a.name)
            else:
                out.append(b.text)
        if f.name in TOLD:
            out.append('bool is_large')
        return ', '.join(out)


def write(path, lines):
    with open(path, 'w') as f:
        f.write('\n'.join(lines) + '\n')


def negative(value):
    return '(%s)' % value if value.startswith('-') else value


def header_types(api):
    out = ['typedef intptr_t MPI_Aint;', 'typedef int64_t MPI_Offset;',
           'typedef int64_t MPI_Count;', 'typedef int MPI_Fint;', '']
    for integer, name in ('int', 'MPI_Status'), ('MPI_Fint', 'MPI_F08_status'):
        out += ['typedef struct {']
        out += ['\t%s MPI_%s;' % (integer, field) for field in
                ('SOURCE', 'TAG', 'ERROR', 'internal[5]')]
        out += ['} %s;' % name, '']
    out += ['typedef struct %s *%s;' % (h['opaque_struct'], h['handle_type'])
            for h in api.handles]
    for name, prefix in ENUMS.items():
        of = [c for c in api.constants if c['name'].startswith(prefix)]
        out += ['', 'typedef enum %s {' % name]
        out += ['\t%s = %s,' % (c['name'], c['value']) for c in of[:-1]]
        out += ['\t%s = %s' % (of[-1]['name'], of[-1]['value']),
                '} %s;' % name]
    return out


def header_callbacks(api):
    out = []
    for c in api.callbacks:
        if c['returns'].startswith('= '):
            out.append('typedef %s %s;' % (c['returns'][2:],
                                           c['typedef_name']))
        else:
            out.append('typedef %s(%s)(%s);' %
                       (c['returns'] + ' ', c['typedef_name'],
                        c['parameters']))
    return out


def header_constants(api):
    """Macros, so that #if can ask for them too."""
    out = []
    for c in api.constants:
        name, kind, value = c['name'], c['kind'], c['value']
        if any(name.startswith(p) for p in ENUMS.values()):
            continue
        if name == 'MPI_ABI_Count':
            continue  # a help of the reference header, no part of the ABI
        if kind in ('integer', 'alias'):
            out.append('#define %s %s' % (name, negative(value)))
        else:
            out.append('#define %s ((%s)%s)' %
                       (name, c['c_type'].replace('*', ' *', 1),
                        negative(value)))
    return out


def make_header(api, path):
    lines = ['/* The MPI 5.0 standard ABI. Made by tools/gen/mpi_abi.py. */',
             '#ifndef MPI_H_ABI', '#define MPI_H_ABI', '',
             '#include <stdint.h>', '', '#ifdef __cplusplus', 'extern "C" {',
             '#endif', '']
    lines += header_types(api) + ['']
    lines += header_callbacks(api) + ['']
    lines += header_constants(api) + ['']
    for prefix in ('', 'P'):
        lines += ['%s %s%s(%s);' % (f.returns, prefix, f.name, f.parameters)
                  for f in api.functions]
        lines.append('')
    lines += ['extern %s%s;' % (v['returns'], v['name'])
              for v in api.variables] + ['']
    lines += ['#ifdef __cplusplus', '}', '#endif', '',
              '#ifdef MADMPI_COMPAT', '#include <mpi-compat.h>', '#endif', '',
              '#endif']
    write(path, lines)


def make_bodies(api, path):
    lines = ['/* The bodies of the MPI functions, which the generated forms',
             ' * call. Made by tools/gen/mpi_abi.py. */',
             '#ifndef MADMPI_BODIES_H', '#define MADMPI_BODIES_H', '',
             '#include <stdbool.h>', '',
             '#include <mpi.h>', '#include "core/array.h"', '']
    for f in api.functions:
        if api.body_of(f) is f:
            lines.append('%s %s(%s);' % (f.returns, f.body(),
                                         api.body_params(f)))
    lines += ['', '#endif']
    write(path, lines)


def implemented(api, sources):
    """Functions whose body is defined in one of the sources."""
    found = set()
    for path in sources:
        with open(path) as f:
            found.update(re.findall(r'^(?:int|double|MPI_\w+) (madmpi_\w+)\(',
                                    f.read(), re.M))
    return [f for f in api.functions if api.body_of(f).body() in found]


def is_always(f):
    return f.name in ALWAYS or ALWAYS_PATTERN.match(f.name) is not None


def narrowed(a, b):
    return a.type == 'int *' and b.type in ('MPI_Count *', 'MPI_Aint *')


def recorded(api, f, call):
    """The call of a body, with what MARCEL_TRACE and MARCEL_DEADLOCK tell."""
    number = api.functions.index(f)
    return ['was = marcel_function_begin("%s");' % f.name,
            'marcel_trace(MARCEL_TRACE_MPI_ENTER, %d, 0);' % number,
            'rc = %s;' % call,
            'marcel_trace(MARCEL_TRACE_MPI_LEAVE, %d, (unsigned)rc);' % number,
            'marcel_function_end(was);']


def forward(api, f):
    """The definition of one exported function, as lines."""
    named = api.body_of(f)
    target = api.large(named) or named
    wide = [p.name for p in target.params]
    before, after, args = [], [], []

    for a, b in zip(f.params, target.params):
        if narrowed(a, b):
            old = '%s ? *%s : 0' % (a.name, a.name)
            before.append('\t%s wide_%s = %s;' % (
                b.type[:-2], a.name, old if a.name in INOUT else '0'))
            args.append('%s ? &wide_%s : 0' % (a.name, a.name))
            after.append(a.name)
        elif is_array(b) and 'struct madmpi_array ' + b.name in \
                api.body_params(named):
            args.append('madmpi_array_%s(%s)' %
                        ('int' if a.type == 'const int' else 'count', a.name))
        elif a.type != '...':
            args.append(a.name)
    if named.name in TOLD:
        args.append('false' if f is named else 'true')
    call = '%s(%s)' % (named.body(), ', '.join(x for x in args if x))
    traced = not is_always(f) and f.returns == 'int'
    out = ['BASE_PUBLIC %s P%s(%s)' % (f.returns, f.name, f.parameters), '{']
    out += before
    if traced:
        out.append('\tconst char *was;')
    if after or traced:
        out.append('\tint rc;')
    if not is_always(f):
        out.append('\tmadmpi_enter("%s");' % f.name)
    if traced and not after:
        out += ['\tif (!marcel_is_watched())', '\t\treturn %s;' % call]
    if traced:
        out += ['\t%s' % line for line in recorded(api, f, call)]
    elif after:
        out.append('\trc = %s;' % call)
    if not after:
        out.append('\treturn %s;' % ('rc' if traced else call))
    else:
        how = 'undefined' if f.name in UNDEFINED else 'fit'
        for name in after:
            out += ['\tif (rc == MPI_SUCCESS)',
                    '\t\trc = madmpi_narrow_%s("%s", wide_%s, %s);' %
                    (how, f.name, name, name)]
        out.append('\treturn rc;')
    assert len(wide) == len(f.params), f.name
    return out + ['}', '']


def names(api):
    """Those that calls have in a trace, by number."""
    out = ['const char *const madmpi_function_names[] = {']
    out += ['\t"%s",' % f.name for f in api.functions]
    return out + ['};', '', 'const unsigned madmpi_functions = %d;' %
                  len(api.functions), '']


def excuse(f):
    """What a function without a body does, as statements."""
    comm = next((p.name for p in f.params if p.type == 'MPI_Comm'), None)

    # The tool interface has no error handler; files have that of MPI_FILE_NULL.
    # A result that is no code is no handle.
    if f.name.startswith('MPI_T_'):
        return ['return MPI_T_ERR_NOT_SUPPORTED;']
    if f.returns != 'int' or f.name.endswith('_toint'):
        return ['return 0;']
    if f.name.startswith(('MPI_File_', 'MPI_Register_datarep')):
        return ['return madmpi_file_unsupported("%s");' % f.name]
    return ['return madmpi_unsupported(%s, "%s");' % (
        'madmpi_comm_of(%s)' % comm if comm else 'NULL', f.name)]


def unsupported(f):
    """The definition of an exported function without a body, as lines."""
    out = ['BASE_PUBLIC %s P%s(%s)' % (f.returns, f.name, f.parameters), '{']
    out += ['\t(void)%s;' % p.name for p in f.params if p.name]
    if not is_always(f):
        out.append('\tmadmpi_enter("%s");' % f.name)
    return out + ['\t' + line for line in excuse(f)] + ['}', '']


def make_forwards(api, sources, path):
    lines = ['/* The exported functions. Made by tools/gen/mpi_abi.py. */',
             '#include <base/compiler.h>', '#include <base/hang.h>',
             '#include <base/trace.h>',
             '#include <mpi.h>',
             '#include "bodies.h"', '#include "comm/comm.h"',
             '#include "core/enter.h"', '#include "env/error.h"', '']
    lines += names(api)
    written = {f.name for f in implemented(api, sources)}
    for f in api.functions:
        lines += forward(api, f) if f.name in written else unsupported(f)
        lines += ['BASE_PUBLIC __attribute__((weak, alias("P%s"))) %s %s(%s);'
                  % (f.name, f.returns, f.name, f.parameters), '']
    write(path, lines)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split('\n')[0])
    parser.add_argument('what', choices=['header', 'bodies', 'forwards',
                                         'list'])
    parser.add_argument('tables', help='folder of the csv files')
    parser.add_argument('out', help='file to write')
    parser.add_argument('sources', nargs='*', help='files that hold bodies')
    args = parser.parse_args()
    api = Api(args.tables)
    if args.what == 'header':
        make_header(api, args.out)
    elif args.what == 'bodies':
        make_bodies(api, args.out)
    elif args.what == 'forwards':
        make_forwards(api, args.sources, args.out)
    else:
        write(args.out, [f.name for f in implemented(api, args.sources)])
    return 0


if __name__ == '__main__':
    sys.exit(main())
