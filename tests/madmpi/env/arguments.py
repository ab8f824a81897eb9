#!/usr/bin/env python3
"""From the table of functions to calls with each argument wrong in turn.

Writes a C file that arguments.c includes: for each function that is exported a
function which calls it with arguments of which at most one is wrong, and a list
of what may be wrong with the error classes that may come of it. Which arguments
are right and which are wrong follows from type and name of the parameter
(RULES), in a few functions from the function (FOR); a parameter without a rule
ends this program, so none is passed over. Functions that are not on the list
have no body, and say so whatever they are given: zeros.

usage: arguments.py TABLES LIST OUT
"""

import csv
import os
import re
import sys

# They return no error code: nothing can be said.
NO_CODE = re.compile(r'MPI_\w+_(from|to)int$|MPI_(?!Status)\w+_(c2f|f2c)$|'
                     r'MPI_Aint_|MPI_Wti')
# Called once, or never to return: tests/madmpi/proc/.
ONCE = {'MPI_Init', 'MPI_Init_thread', 'MPI_Finalize', 'MPI_Abort'}
# A right call needs two processes: alone, the communicator is wrong, too.
NO_RIGHT_CALL = {'MPI_Intercomm_create', 'MPI_Intercomm_merge',
                 'MPI_Intercomm_create_from_groups',
                 'MPI_Comm_remote_size', 'MPI_Comm_remote_group'}

# Handles: the class, the null handle, and constants of other kinds.
HANDLES = {
    'MPI_Comm': ('COMM', 'MPI_COMM_NULL'),
    'MPI_Group': ('GROUP', 'MPI_GROUP_NULL'),
    'MPI_Datatype': ('TYPE', 'MPI_DATATYPE_NULL'),
    'MPI_Op': ('OP', 'MPI_OP_NULL'),
    'MPI_Errhandler': ('ERRHANDLER', 'MPI_ERRHANDLER_NULL'),
    'MPI_Info': ('INFO', 'MPI_INFO_NULL'),
    'MPI_Request': ('REQUEST', 'MPI_REQUEST_NULL'),
    'MPI_Message': ('REQUEST', 'MPI_MESSAGE_NULL'),
    'MPI_Session': ('SESSION', 'MPI_SESSION_NULL'),
    'MPI_Win': ('WIN', 'MPI_WIN_NULL'),
    'MPI_File': ('FILE', 'MPI_FILE_NULL'),
}

# These want a communicator with a topology.
TOPOLOGY = [
    (r'MPI_(Cart_(get|rank|coords|shift|sub)|Cartdim_get)$', 'cart'),
    (r'MPI_(Graph_(get|neighbors|neighbors_count)|Graphdims_get)$', 'graph'),
    (r'MPI_(Dist_graph_neighbors|Neighbor_|Ineighbor_)', 'dist_graph'),
]

# A function that changes or ends what such a parameter points to.
INOUT = re.compile(r'MPI_(\w+_free(_keyval)?|Comm_disconnect|Session_finalize|Type_commit|Wait|Test|'
                   r'Cancel|Start|Mrecv|Imrecv)$')
# These may be given the null handle.
NULL_ALLOWED = re.compile(
    r'MPI_(Wait|Test|Parrived|Request_get_status|Comm_get_name|Type_get_name|Win_get_name|'
    r'Alloc_mem|Comm_dup_with_info|Comm_idup_with_info|Comm_split_type|'
    r'Session_get_num_psets|Session_get_nth_pset|Lookup_name|'
    r'Comm_create_from_group|Intercomm_create_from_groups|'
    r'Dist_graph_create(_adjacent)?|File_\w+|'
    r'Win_create|Win_create_dynamic|Win_allocate|Win_allocate_shared)'
    r'(_c)?:(request|comm|datatype|info|win|file|fh)$|MPI_\w+_init(_c)?:info$')
# Pointers that are handed over, not followed: anything goes.
ANY_POINTER = {'extra_state', 'location'}

COUNT = [('-1', 'COUNT|ARG'), ('INT_MIN', 'COUNT|ARG')]
RANK = [('-1', 'RANK'), ('MPI_UNDEFINED', 'RANK'), ('MPI_ROOT', 'RANK'),
        ('1', 'RANK'), ('INT_MAX', 'RANK')]
ROOT = [(v, 'ROOT') for v in ('-1', '1', 'MPI_PROC_NULL', 'MPI_ROOT',
                              'INT_MAX')]
KEYVAL = [('MPI_KEYVAL_INVALID', 'KEYVAL'), ('-1', 'KEYVAL'),
          ('1 << 30', 'KEYVAL'), ('freed_keyval()', 'KEYVAL')]
ARRAY = [('NULL', 'ARG|COUNT')]
NEGATIVE = ARRAY + [('negative', 'COUNT|ARG')]
OUT = [('NULL', 'ARG')]
F_IGNORED = [('MPI_F_STATUS_IGNORE', 'ARG'), ('MPI_F_STATUSES_IGNORE', 'ARG')]
F08_IGNORED = [('MPI_F08_STATUS_IGNORE', 'ARG'),
               ('MPI_F08_STATUSES_IGNORE', 'ARG')]
TEXT = [('NULL', 'ARG')]

# By type and name, as regular expressions: a right value, wrong ones.
RULES = [
    # --- numbers ---
    (r'int|MPI_Count|MPI_Aint', r'count|sendcount|recvcount|incount|outcount|'
     r'origin_count|result_count|target_count',
     '1', COUNT),
    (r'int|MPI_Count|MPI_Aint', r'insize|outsize', '64',
     [('-1', 'ARG|COUNT|TRUNCATE'), ('3', 'ARG|COUNT|TRUNCATE')]),
    (r'int|MPI_Count', r'blocklength', '1', COUNT),
    (r'int', r'n', '1', [('-1', 'ARG|COUNT')]),
    (r'int', r'partitions', '2', [('-1', 'ARG')]),
    (r'int', r'partition(_low|_high)?', '0',
     [('-1', 'ARG'), ('2', 'ARG'), ('INT_MIN', 'ARG'), ('INT_MAX', 'ARG')]),
    (r'int', r'length', '1', [('-1', 'COUNT|ARG')]),
    (r'int', r'dest|remote_leader', '0', RANK),
    (r'int', r'local_leader', '0', RANK),
    (r'int', r'source', '0', RANK[1:]),
    (r'int', r'root', '0', ROOT),
    (r'int', r'target_rank', '0', RANK),
    (r'MPI_Aint', r'target_disp', '0',
     [('-1', 'DISP|RMA_RANGE'), ('1000', 'RMA_RANGE'),
      ('INTPTR_MAX', 'RMA_RANGE|DISP')]),
    (r'int|MPI_Aint', r'disp_unit', '4', [('0', 'DISP'), ('-1', 'DISP')]),
    (r'int', r'assert', '0', [('1', 'ASSERT'), ('-1', 'ASSERT')]),
    (r'int', r'lock_type', 'MPI_LOCK_SHARED', [('0', 'LOCKTYPE'),
                                               ('-1', 'LOCKTYPE')]),
    (r'int', r'tag|sendtag|recvtag', '0', [('-1', 'TAG'), ('-5', 'TAG'),
                                           ('INT_MIN', 'TAG')]),
    (r'int', r'comm_keyval|keyval', 'right.comm_keyval',
     KEYVAL + [('right.type_keyval', 'KEYVAL')]),
    (r'int', r'win_keyval', 'right.win_keyval',
     KEYVAL + [('right.comm_keyval', 'KEYVAL')]),
    (r'int', r'type_keyval', 'right.type_keyval',
     KEYVAL + [('right.comm_keyval', 'KEYVAL')]),
    (r'int', r'errorclass', 'MPI_ERR_OTHER',
     [('-1', 'ARG'), ('1 << 30', 'ARG')]),
    (r'int', r'errorcode', 'MPI_ERR_OTHER', [('-1', 'ARG'),
                                             ('1 << 30', 'ARG')]),
    (r'int', r'color', '0', [('-1', 'ARG')]),
    (r'int', r'split_type', 'MPI_COMM_TYPE_SHARED', [('77', 'ARG')]),
    (r'int', r'valuelen', '16', [('-1', 'ARG|INFO_VALUE')]),
    (r'int', r'key|high|commute|flag|error|argc', '0', []),
    (r'const int', r'level', '0', []),
    (r'int|MPI_Count|MPI_Aint', r'stride|lb|extent', '4', []),
    (r'MPI_Aint', r'size', '64', [('-1', 'SIZE|ARG')]),
    (r'int|MPI_Count', r'size', 'sizeof(memory)', [('-1', 'ARG|SIZE')]),
    (r'int', r'ndims', '1', [('-1', 'ARG|DIMS')]),
    (r'int', r'order', 'MPI_ORDER_C', [('77', 'ARG')]),
    (r'int', r'rank', '0', [('-1', 'ARG|RANK'), ('1', 'ARG|RANK')]),
    (r'int', r'logical_size', '4', [('0', 'ARG'), ('-1', 'ARG'), ('3', 'ARG')]),
    (r'int', r'typeclass', 'MPI_TYPECLASS_INTEGER', [('77', 'ARG')]),
    (r'int', r'p|r', '6', [('10000', 'ARG')]),
    (r'int|MPI_Count', r'max_(integers|datatypes)', '8',
     [('-1', 'ARG|COUNT'), ('0', 'ARG|COUNT')]),
    (r'int|MPI_Count', r'max_(addresses|large_counts)', '8',
     [('-1', 'ARG|COUNT')]),
    # --- topologies ---
    (r'int', r'nnodes', '1', [('-1', 'ARG|DIMS|TOPOLOGY')]),
    (r'int', r'maxdims', '1', [('-1', 'ARG|DIMS'), ('0', 'ARG|DIMS')]),
    (r'int', r'direction', '0', [('-1', 'ARG|DIMS'), ('1', 'ARG|DIMS')]),
    (r'int', r'max(index|edges|neighbors)', '1', [('0', 'ARG')]),
    (r'int', r'(max)?(in|out)degree', '1', [('-1', 'ARG')]),
    (r'int', r'disp|reorder', '0', []),
    (r'const int\[\]', r'dims', 'ones', ARRAY + [('negative', 'DIMS'),
                                                ('zeros', 'DIMS')]),
    (r'const int\[\]', r'periods|remain_dims', 'zeros', ARRAY),
    (r'const int\[\]', r'coords', 'zeros', [('NULL', 'ARG'),
                                           ('negative', 'ARG')]),
    (r'const int\[\]', r'indx', 'ones', NEGATIVE),
    (r'const int\[\]', r'edges', 'zeros', [('NULL', 'ARG'),
                                          ('negative', 'ARG|RANK'),
                                          ('ones', 'ARG|RANK')]),
    (r'const int\[\]', r'sources|destinations', 'zeros',
     [('NULL', 'ARG'), ('negative', 'RANK|ARG'), ('ones', 'RANK|ARG')]),
    (r'const int\[\]', r'degrees', 'ones', NEGATIVE),
    (r'const int\[\]', r'(source|dest)?weights', 'ones',
     NEGATIVE + [('MPI_WEIGHTS_EMPTY', 'ARG')]),
    (r'int\[\]', r'dims|periods|coords|neighbors|sources|destinations|indx|'
     r'edges|(source|dest)weights', 'results.i', OUT),
    # --- arrays that are read ---
    (r'const (int|MPI_Count)\[\]', r'recvcounts|sendcounts', 'ones', NEGATIVE),
    (r'const (int|MPI_Count)\[\]', r'array_of_blocklengths', 'ones', NEGATIVE),
    (r'const (int|MPI_Count)\[\]', r'array_of_(sub)?sizes|array_of_gsizes|'
     r'array_of_psizes', 'ones', NEGATIVE),
    (r'const (int|MPI_Count)\[\]', r'array_of_starts', 'zeros', NEGATIVE),
    (r'const int\[\]', r'array_of_distribs', 'distribs', NEGATIVE),
    (r'const int\[\]', r'array_of_dargs', 'dargs', ARRAY + [('negative',
                                                             'ARG')]),
    (r'const (int|MPI_Count|MPI_Aint)\[\]',
     r'\w*displs|array_of_displacements', 'zeros', ARRAY),
    (r'const int\[\]', r'array_of_partitions', 'zeros',
     [('NULL', 'ARG'), ('negative', 'ARG')]),
    (r'const int\[\]', r'ranks1?', 'zeros',
     [('NULL', 'ARG|RANK'), ('negative', 'RANK'), ('ones', 'RANK')]),
    (r'int\[\]\[3\]', r'ranges', 'range',
     [('NULL', 'ARG|RANK'), ('range_outside', 'RANK|ARG'),
      ('range_endless', 'ARG|RANK'), ('range_below', 'RANK|ARG')]),
    (r'const MPI_Datatype\[\]', r'\w*types', 'types',
     [('NULL', 'ARG|TYPE'), ('types_null', 'TYPE'),
      ('types_freed()', 'TYPE')]),
    (r'(const )?MPI_Request\[\]', r'array_of_requests', None,
     [('NULL', 'ARG|REQUEST'), ('requests_freed()', 'REQUEST|IN_STATUS'),
      ('requests_foreign()', 'REQUEST|IN_STATUS')]),
    # --- arrays that are written; there is nothing for two of them ---
    (r'int\[\]', r'array_of_integers', 'results.i', OUT),
    (r'MPI_Datatype\[\]', r'array_of_datatypes', 'results.type', OUT),
    (r'MPI_Aint\[\]', r'array_of_addresses', 'results.a', []),
    (r'MPI_Count\[\]', r'array_of_large_counts', 'results.c', []),
    # --- text ---
    (r'const char \*', r'key', '"key"',
     [('NULL', 'INFO_KEY|ARG'), ('""', 'INFO_KEY'),
      ('long_text', 'INFO_KEY')]),
    (r'const char \*', r'value', '"value"',
     [('NULL', 'INFO_VALUE|ARG'), ('long_text', 'INFO_VALUE')]),
    (r'const char \*', r'string', '"text"', TEXT + [('long_text', 'ARG')]),
    (r'const char \*', r'comm_name|type_name|win_name', '"name"', TEXT),
    (r'const char\[\]|const char \*', r'datarep', '"external32"',
     [('NULL', 'ARG'), ('"tape"', 'ARG|UNSUPPORTED_DATAREP')]),
    (r'char \*\[\]', r'argv', 'NULL', []),
    (r'const char \*', r'pset_name', '"mpi://SELF"',
     TEXT + [('"mpi://MOON"', 'ARG')]),
    (r'const char \*', r'service_name', '"ocean"', TEXT),
    (r'const char \*', r'stringtag', '"tag"', TEXT + [('long_text', 'ARG')]),
    # --- functions; 0 is a constant where attributes are copied, deleted ---
    (r'MPI_Comm_errhandler_function \*', r'\w+', 'ignore', OUT),
    (r'MPI_Session_errhandler_function \*', r'\w+', 'ignore_session', OUT),
    (r'MPI_Win_errhandler_function \*', r'\w+', 'ignore_win', OUT),
    (r'MPI_File_errhandler_function \*', r'\w+', 'ignore_file', OUT),
    (r'MPI_User_function \*', r'\w+', 'add', OUT),
    (r'MPI_Grequest_query_function \*', r'\w+', 'query', OUT),
    (r'MPI_Grequest_free_function \*', r'\w+', 'let_go', OUT),
    (r'MPI_Grequest_cancel_function \*', r'\w+', 'cancel', OUT),
    (r'MPI_User_function_c \*', r'\w+', 'add_large', OUT),
    (r'MPI_\w*(copy|delete|Copy|Delete)\w* \*', r'\w+', 'NULL', []),
    # --- memory of messages ---
    (r'const void \*', r'buf|sendbuf|inbuf|origin_addr|compare_addr', 'data.out',
     [('NULL', 'BUFFER')]),
    (r'void \*', r'buf|recvbuf|outbuf|inoutbuf|origin_addr|result_addr', 'data.in',
     [('NULL', 'BUFFER')]),
    (r'void \*', r'buffer', 'data.in', [('NULL', 'BUFFER|ARG')]),
    (r'void \*', r'logical_(true|false)', 'data.in', [('NULL', 'ARG')]),
    (r'void \*', r'base', 'malloc(1)', []),
    # --- results ---
    (r'MPI_Status \*', r'status|array_of_statuses', 'statuses', []),
    (r'MPI_Status\[\]', r'array_of_statuses', 'statuses', []),
    (r'const MPI_Status \*', r'status', 'statuses', OUT),
    (r'const MPI_Status \*', r'c_status', 'statuses', OUT),
    (r'MPI_Status \*', r'c_status', '&statuses[1]', OUT),
    (r'(const )?MPI_Fint \*', r'f_status', 'results.i', OUT + F_IGNORED),
    (r'(const )?MPI_F08_status \*', r'f08_status', '&results.f08',
     OUT + F08_IGNORED),
    (r'int\[\]', r'array_of_indices|ranks2', 'results.i', OUT),
    (r'void \*', r'attribute_val|baseptr|buffer_addr', '&results.p', OUT),
    (r'char \*', r'\w+', 'results.text', OUT),
    (r'(int|MPI_Count|MPI_Aint) \*', r'position|buflen', None, OUT + [
        ('below zero', 'ARG|TRUNCATE')]),
    (r'int \*', r'\w+', 'results.i', OUT),
    (r'MPI_Count \*', r'\w+', 'results.c', OUT),
    (r'MPI_Aint \*', r'\w+', 'results.a', OUT),
]

# In an epoch between processes, and the operations that have one.
RMA = re.compile(r'MPI_(R?(put|get|accumulate|get_accumulate)|Fetch_and_op|'
                 r'Compare_and_swap)$', re.I)

# What a function says otherwise: by function without _c and parameter.
FOR = {
    # Not significant in process 0.
    ('MPI_Exscan', 'recvbuf'): ('data.in', []),
    ('MPI_Iexscan', 'recvbuf'): ('data.in', []),
    ('MPI_Exscan_init', 'recvbuf'): ('data.in', []),
    ('MPI_Reduce_local', 'inbuf'): ('data.out', [('NULL', 'BUFFER|ARG')]),
    ('MPI_Group_translate_ranks', 'n'): ('1', [('-1', 'ARG|COUNT')]),
    ('MPI_Info_get_nthkey', 'n'): ('0', [('-1', 'ARG'), ('1', 'ARG')]),
    ('MPI_Info_delete', 'key'): (
        '"key"', [('NULL', 'INFO_KEY|ARG'), ('""', 'INFO_KEY'),
                  ('long_text', 'INFO_KEY'), ('"another"', 'INFO_NOKEY')]),
    ('MPI_Info_get', 'value'): ('results.text', [('NULL', 'ARG|INFO_VALUE')]),
    ('MPI_Info_get_string', 'value'): ('results.text',
                                       [('NULL', 'ARG|INFO_VALUE')]),
    ('MPI_Comm_set_attr', 'attribute_val'): ('NULL', []),
    ('MPI_Type_set_attr', 'attribute_val'): ('NULL', []),
    ('MPI_Attr_put', 'attribute_val'): ('NULL', []),
    ('MPI_Session_get_nth_pset', 'n'): ('0', [('-1', 'ARG'), ('2', 'ARG')]),
    ('MPI_Session_get_nth_pset', 'pset_name'): ('results.text',
                                                [('NULL', 'ARG')]),
    ('MPI_Session_attach_buffer', 'buffer'): ('memory', [('NULL',
                                                          'BUFFER|ARG')]),
    ('MPI_Win_set_attr', 'attribute_val'): ('NULL', []),
    ('MPI_Win_create', 'base'): ('memory', []),
    ('MPI_Win_attach', 'base'): ('memory', [('NULL', 'ARG')]),
    ('MPI_Win_detach', 'base'): ('memory', [('NULL', 'RMA_ATTACH'),
                                            ('memory + 1', 'RMA_ATTACH')]),
    ('MPI_Buffer_attach', 'buffer'): ('memory', [('NULL', 'BUFFER|ARG')]),
    ('MPI_Comm_attach_buffer', 'buffer'): ('memory', [('NULL',
                                                       'BUFFER|ARG')]),
    ('MPI_Status_set_source', 'source'): ('0', []),
    ('MPI_Status_set_tag', 'tag'): ('0', []),
    ('MPI_Add_error_string', 'errorcode'): (
        'own_code()', [('-1', 'ARG'), ('MPI_ERR_OTHER', 'ARG')]),
    ('MPI_Remove_error_class', 'errorclass'): (
        'own_class()', [('-1', 'ARG'), ('MPI_ERR_OTHER', 'ARG'),
                        ('own_code()', 'ARG')]),
    ('MPI_Remove_error_code', 'errorcode'): (
        'own_code()', [('-1', 'ARG'), ('MPI_ERR_OTHER', 'ARG'),
                       ('own_class()', 'ARG')]),
    ('MPI_Remove_error_string', 'errorcode'): (
        'own_code()', [('-1', 'ARG'), ('MPI_ERR_OTHER', 'ARG')]),
    ('MPI_Dims_create', 'dims'): ('no_dims()', [('NULL', 'ARG'),
                                                ('(int *)negative', 'DIMS')]),
    ('MPI_Type_match_size', 'size'): ('4', [('3', 'ARG'), ('-1', 'ARG')]),
    ('MPI_Type_create_darray', 'size'): ('1', [('-1', 'ARG'), ('2', 'ARG')]),
}

# Of the tool interface, whose errors are its own: by function, type and name.
INDEX = [(v, 'T_ERR_INVALID_INDEX') for v in ('-1', 'INT_MAX', 'INT_MIN')]
T_NULL = [('NULL', 'T_ERR_INVALID')]
T_RULES = [
    # There are no events: all that concerns one is wrong.
    (r'MPI_T_(event_(?!get_num|get_index)|source_get_[it])', r'.*', r'.*',
     None, []),
    (r'', r'int', r'required', 'MPI_THREAD_SINGLE', [('77', 'T_ERR_INVALID')]),
    (r'', r'int', r'\w+_index|indx', '0', INDEX),
    (r'', r'int', r'var_class', 'MPI_T_PVAR_CLASS_COUNTER',
     [('0', 'T_ERR_INVALID_NAME')]),
    (r'', r'int', r'len', '1', [('-1', 'T_ERR_INVALID')]),
    (r'', r'int\[\]', r'indices', 'results.i', T_NULL),
    (r'', r'const char \*', r'name', None,
     T_NULL + [('""', 'T_ERR_INVALID_NAME')]),
    (r'', r'MPI_T_enum', r'enumtype', 'tool_enum()',
     [(v, 'T_ERR_INVALID_HANDLE') for v in
      ('MPI_T_ENUM_NULL', '(MPI_T_enum)odd', '(MPI_T_enum)right.op')]),
    (r'', r'MPI_T_cvar_handle', r'handle', 'tool.cvar',
     [(v, 'T_ERR_INVALID_HANDLE') for v in
      ('MPI_T_CVAR_HANDLE_NULL', '(MPI_T_cvar_handle)odd',
       '(MPI_T_cvar_handle)right.op')]),
    (r'', r'MPI_T_pvar_handle', r'handle', 'tool.pvar',
     [(v, 'T_ERR_INVALID_HANDLE') for v in
      ('MPI_T_PVAR_HANDLE_NULL', '(MPI_T_pvar_handle)odd',
       '(MPI_T_pvar_handle)right.op')]),
    (r'', r'MPI_T_pvar_session', r'session', 'tool.session',
     [(v, 'T_ERR_INVALID_SESSION') for v in
      ('MPI_T_PVAR_SESSION_NULL', '(MPI_T_pvar_session)odd',
       '(MPI_T_pvar_session)right.op')]),
    # Whoever asks for no result gets none.
    (r'MPI_T_\w+_get_(info|item)$', r'.*\*', r'.*', 'NULL', []),
    (r'', r'(const )?void \*', r'buf', 'memory', T_NULL),
    (r'', r'void \*', r'obj_handle', 'NULL', []),
    (r'', r'int \*', r'\w+', 'results.i', T_NULL),
]
# A right call of these is an error that says what cannot be done.
REFUSES = re.compile(r'MPI_(Abi_set_|Lookup_name)|'
                     r'MPI_T_(pvar_(start|stop|reset|write|readreset)|'
                     r'cvar_write)$|'
                     r'MPI_T_(event_(?!get_num)|source_get_[it])')

# What is done before a call, and after it with what it has returned.
ROUND = [
    (r'MPI_(Send|Ssend|Rsend|Isend|Issend|Irsend)$',
     'expect_message', 'end_expected'),
    (r'MPI_I?Bsend$|MPI_Ibsend$', 'attach_and_expect', 'end_and_detach'),
    (r'MPI_(Recv|Irecv)$', 'send_message', 'end_receive'),
    (r'MPI_(I?probe|Probe)$', 'send_message', 'end_probe'),
    (r'MPI_(Mprobe|Improbe)$', 'send_message', 'end_receive'),
    (r'MPI_Buffer_attach$', None, 'end_attach'),
    (r'MPI_Buffer_detach$', 'attach', 'end_detach'),
    (r'MPI_Comm_attach_buffer$', None, 'end_comm_attach'),
    (r'MPI_Comm_detach_buffer$', 'comm_attach', 'end_comm_detach'),
    (r'MPI_Session_attach_buffer$', None, 'end_session_attach'),
    (r'MPI_Session_detach_buffer$', 'session_attach', 'end_session_detach'),
    (r'MPI_Session_get_nth_pset$', 'make_room', None),
    (r'MPI_Info_(set|delete|get\w*)$', 'set_key', None),
    (r'MPI_Alloc_mem$', None, 'free_memory'),
    (r'MPI_Grequest_complete$', None, 'end_completed'),
    (r'MPI_(Pready\w*|Parrived)$', None, 'end_partitioned'),
    (r'MPI_T_init_thread$', None, 'end_tool'),
    (r'MPI_T_finalize$', 'begin_tool', None),
    (r'MPI_(Comm|Type|Win)_delete_attr$|MPI_Attr_delete$', 'set_attrs', None),
    (RMA.pattern.replace('MPI_', '(?i:MPI_') + ')|MPI_Win_flush', 'lock_all',
     'end_lock_all'),
    (r'MPI_Win_lock$', None, 'end_lock'),
    (r'MPI_Win_unlock$', 'lock', 'end_unlock'),
    (r'MPI_Win_lock_all$', None, 'end_all_locked'),
    (r'MPI_Win_unlock_all$', 'lock_all', 'end_unlock_all'),
    (r'MPI_Win_post$', None, 'end_post'),
    (r'MPI_Win_start$', 'post', 'end_start'),
    (r'MPI_Win_complete$', 'post_and_start', 'end_complete'),
    (r'MPI_Win_wait$', 'post_start_complete', 'end_wait'),
    (r'MPI_Win_test$', 'post_start_complete', 'end_test'),
    (r'MPI_Win_attach$', None, 'end_win_attach'),
    (r'MPI_Win_detach$', 'win_attach', 'end_win_detach'),
]

IN_PLACE = re.compile(r'MPI_I?(all|reduce(_init)?$|reduce_scatter|exscan|scan|'
                      r'gather)', re.I)
# Requests that can only be waited for.
COLLECTIVE = re.compile(r'MPI_I(all|barrier|bcast|exscan|gather|neighbor|'
                        r'reduce|scan|scatter)')


def split(text):
    """A parameter as type and name, an array's brackets with the type."""
    m = re.match(r'(.*?)(\w+)((?:\[\d*\])*)$', text)
    return m[1].strip() + m[3], m[2]


def stem(function):
    return function[:-2] if function.endswith('_c') else function


def handle(function, kind, name):
    """A handle that is read: a right one, wrong ones."""
    code, null = HANDLES[kind]
    short = kind[4:].lower()
    topology = kind == 'MPI_Comm' and next(
        (t for pattern, t in TOPOLOGY if re.match(pattern, function)), None)
    wrong = [('(%s)0' % kind, code), ('freed_%s()' % short, code),
             ('(%s)foreign_to("%s")' % (kind, kind), code),
             ('(%s)odd' % kind, code)]
    wrong += [('(%s)%s' % (kind, c), code) for c in
              ('MPI_INT', 'MPI_SUM', 'MPI_COMM_WORLD', 'MPI_GROUP_EMPTY',
               'MPI_ERRORS_RETURN', 'MPI_MESSAGE_NO_PROC', 'MPI_INFO_ENV')
              if not is_of_kind(c, kind)]
    if not NULL_ALLOWED.match('%s:%s' % (function, name)):
        wrong.append((null, code))
    if topology:
        wrong.append(('right.comm', 'TOPOLOGY'))
        return 'right.' + topology, wrong
    right = 'right.' + short
    if kind == 'MPI_Win' and re.search('attach|detach', function):
        right = 'right.dynamic'
        wrong.append(('right.win', 'RMA_FLAVOR'))
    if RMA.match(stem(function)) and kind == 'MPI_Op':
        right = 'MPI_SUM'
        wrong += [('right.op', 'OP'), ('MPI_MINLOC', 'OP')]
    if RMA.match(stem(function)) and name == 'datatype':
        right = 'MPI_INT'
        wrong.append(('right.datatype', 'TYPE'))
    if function == 'MPI_Grequest_complete':
        right = 'completed_general()'
    if function.startswith('MPI_Pready'):
        right = 'active_partitioned(0)'
    if function == 'MPI_Parrived':
        right = 'active_partitioned(1)'
    return right, wrong


def is_of_kind(constant, kind):
    return {'MPI_INT': 'MPI_Datatype', 'MPI_SUM': 'MPI_Op',
            'MPI_COMM_WORLD': 'MPI_Comm', 'MPI_GROUP_EMPTY': 'MPI_Group',
            'MPI_ERRORS_RETURN': 'MPI_Errhandler',
            'MPI_MESSAGE_NO_PROC': 'MPI_Message',
            'MPI_INFO_ENV': 'MPI_Info'}[constant] == kind


def more(function, kind, name, params):
    """What is wrong because of the function's other arguments."""
    names = {n for _, n in params}
    talks = names & {'comm', 'win'} or function.startswith('MPI_Reduce_local') or \
        'message' in names
    if kind == 'MPI_Datatype' and talks:
        yield 'right.uncommitted', 'TYPE'
    if stem(function) == 'MPI_Type_get_contents' and name == 'datatype':
        yield 'MPI_INT', 'TYPE|ARG'
    if kind == 'MPI_Op' and 'datatype' in names and 'win' not in names:
        for op in 'MPI_MINLOC', 'MPI_REPLACE', 'MPI_NO_OP':
            yield op, 'OP'
    if kind == 'MPI_Info' and stem(function) == 'MPI_Comm_set_info':
        yield 'MPI_INFO_NULL', 'INFO'
    if kind.endswith('void *') and name.endswith('buf') or \
            name.endswith('_addr') and RMA.match(stem(function)):
        allowed = IN_PLACE.match(stem(function)) and name == 'sendbuf' or \
            re.match(r'MPI_I?scatter', function, re.I) and name == 'recvbuf'
        if not allowed and (stem(function), name) not in FOR:
            yield 'MPI_IN_PLACE', 'BUFFER|ARG'
    if name == 'recvbuf' and 'sendbuf' in names:
        if re.match(r'MPI_I?(all|reduce|scan|exscan|gather)', function, re.I):
            yield 'data.out', 'BUFFER'
    if kind == 'MPI_Count' and name.endswith('count') and talks:
        yield 'INT64_MAX', 'COUNT|TRUNCATE'
    if name in ('tag', 'sendtag') and names & {'dest', 'group'}:
        yield 'MPI_ANY_TAG', 'TAG'
    if name.endswith('keyval') and re.search('set_attr|put|delete', function):
        yield 'MPI_TAG_UB', 'KEYVAL'


def inout(function, kind, name):
    """A pointer to a handle, or a keyval, which the call changes or ends:
    declarations, wrong ones with what makes them so, what follows."""
    if kind == 'int *':
        base, short = 'int', ('type_keyval' if 'Type' in function else
                              'win_keyval' if 'Win' in function else
                              'comm_keyval')
        wrong = [(v, c) for v, c in KEYVAL if 'freed' not in v]
        wrong += [('freed_keyval()', 'KEYVAL'), ('MPI_TAG_UB', 'KEYVAL')]
    else:
        base = kind[:-2]
        short = base[4:].lower()
        wrong = handle(function, base, name)[1]
        if function == 'MPI_Start':
            short = 'persistent'
            wrong.append(('fresh_request()', 'REQUEST'))
        if function in ('MPI_Cancel', 'MPI_Request_free', 'MPI_Start'):
            wrong.append(('MPI_REQUEST_NULL', 'REQUEST'))
        wrong += {'MPI_Comm_free': [('MPI_COMM_WORLD', 'COMM')],
                  'MPI_Comm_disconnect': [('MPI_COMM_SELF', 'COMM')],
                  'MPI_Type_free': [('MPI_INT', 'TYPE')],
                  'MPI_Op_free': [('MPI_SUM', 'OP')],
                  'MPI_Info_free': [('MPI_INFO_ENV', 'INFO')],
                  }.get(function, [])
    code = wrong[0][1]
    declare = ['\t%s kept_%s = fresh_%s();' % (base, name, short),
               '\t%s its_%s = kept_%s, *%s = &its_%s;' %
               (base, name, name, name, name)]
    cases = [('%s = NULL' % name, 'ARG|' + code)]
    cases += [('its_%s = %s' % (name, v), c) for v, c in dict(wrong).items()]
    after = ['\tif (rc != MPI_SUCCESS || its_%s == kept_%s)' % (name, name),
             '\t\tend_%s(kept_%s);' % (short, name)]
    return declare, cases, after


def rule(function, kind, name):
    of = (stem(function), name)
    if of in FOR:
        return FOR[of]
    if name in ANY_POINTER:
        return 'NULL', []
    for kinds, names, right, wrong in RULES:
        if re.fullmatch(kinds, kind) and re.fullmatch(names, name):
            return right, list(wrong)
    sys.exit('%s: there is no rule for "%s %s"' % (function, kind, name))


def declaration(kind, name, right):
    m = re.match(r'(.*?)((?:\[\d*\])+)$', kind)
    if not m:
        return '\t%s%s%s = %s;' % (kind, '' if kind.endswith('*') else ' ',
                                   name, right)
    if m[2] == '[][3]':
        return '\tint (*%s)[3] = %s;' % (name, right)
    if m[1] in ('const int', 'const MPI_Count', 'const MPI_Aint'):
        right += '_c' if m[1] != 'const int' else ''
    return '\t%s *%s = %s;' % (m[1], name, right)


def parameter(function, kind, name, params):
    """Declarations, cases, what is done after the call."""
    base = kind[:-2] if kind.endswith(' *') else ''
    wide = re.search(r'MPI_(Count|Aint)\[\]', kind)
    if INOUT.match(stem(function)) and (
            base in HANDLES and (base == 'MPI_Message' or
                                 'recv' not in function) or kind == 'int *' and name.endswith('keyval')):
        return inout(stem(function), kind, name)
    if base in HANDLES:
        short = base[4:].lower()
        if base == 'MPI_Request' and function.endswith(('_init', '_init_c')):
            short = 'persistent'
        elif COLLECTIVE.match(function):
            short = 'collective'
        elif function == 'MPI_Grequest_start':
            short = 'general'
        return (['\t%s its_%s = %s, *%s = &its_%s;' %
                 (base, name, HANDLES[base][1], name, name)],
                [('%s = NULL' % name, 'ARG')],
                ['\tif (its_%s != %s)' % (name, HANDLES[base][1]),
                 '\t\tend_%s(its_%s);' % (short, name)])
    if kind in HANDLES:
        right, wrong = handle(function, kind, name)
    else:
        right, wrong = rule(function, kind, name)
    wrong = wrong + list(more(function, kind, name, params))
    after = []
    if name in ('position', 'buflen'):
        t = kind[:-2]
        declare = ['\t%s its_%s = %s, *%s = &its_%s;' % (
            t, name, '0' if name == 'position' else '16', name, name)]
        return declare, [('%s = NULL' % name, 'ARG'),
                         ('its_%s = -1' % name, 'ARG|TRUNCATE')] + (
            [('its_%s = 61' % name, 'ARG|TRUNCATE')]
            if name == 'position' else []), []
    if name == 'array_of_requests':
        right = 'requests_%s()' % ('persistent' if 'Startall' in function
                                   else 'fresh')
        after = ['\tend_requests(rc);']
    cases = []
    for value, code in dict(wrong).items():
        if wide and value in ('negative', 'ones', 'zeros'):
            value += '_c'
        cases.append(('%s = %s' % (name, value), code))
    return [declaration(kind, name, right)], cases, after


def tool_parameter(function, kind, name):
    """As parameter(), of the tool interface."""
    base = re.sub(r'[ *]*$', '', kind)
    if kind.endswith('handle *') or kind == 'MPI_T_pvar_session *':
        short = base[6:].replace('_handle', '').replace('pvar_session',
                                                        'session')
        after = ['\tif (rc %s MPI_SUCCESS)' % (
            '!=' if function.endswith('_free') else '=='),
                 '\t\tend_tool_%s(kept_%s);' % (short, name)]
        if function.endswith('_free'):
            right = 'fresh_tool_%s()' % short
            wrong = [('its_%s = (%s)%s' % (name, base, v), 'T_ERR_INVALID_' + (
                'SESSION' if short == 'session' else 'HANDLE'))
                     for v in ('0', 'odd', 'right.op')]
            declare = ['\t%s kept_%s = %s, its_%s = kept_%s, *%s = &its_%s;'
                       % (base, name, right, name, name, name, name)]
        else:
            wrong = []
            declare = ['\t%s its_%s = (%s)0, *%s = &its_%s;' % (
                base, name, base, name, name)]
            after[1] = after[1].replace('kept', 'its')
        return (declare, [('%s = NULL' % name, 'T_ERR_INVALID')] + wrong,
                after)
    for functions, kinds, names, right, wrong in T_RULES:
        if re.match(functions, function) and re.fullmatch(kinds, kind) and \
                re.fullmatch(names, name):
            break
    else:
        sys.exit('%s: there is no rule for "%s %s"' % (function, kind, name))
    if right is None and kind == 'const char *':
        right = '"nmad_sends"' if 'pvar' in function else \
            '"nmad"' if 'category' in function else '"MADMPI_CHECK"'
    if right is None:
        points = kind.endswith(('[]', '_function'))
        return ['\t%s *%s = NULL;' % (kind.replace('[]', ''), name)
                if points else
                '\t%s %s = (%s)0;' % (kind, name, kind)], [], []
    return ([declaration(kind, name, right)],
            [('%s = %s' % (name, v), c) for v, c in wrong], [])


def write_function(out, f):
    function, text = f['name'], f['parameters']
    params = [] if text == 'void' else [
        split(p) for p in re.split(r',\s*', text) if p != '...']
    before, end = next(((b, e) for pattern, b, e in ROUND
                        if re.match(pattern, stem(function))), (None, None))
    declare, cases, after = [], [], []
    for kind, name in params:
        d, c, a = tool_parameter(function, kind, name) \
            if function.startswith('MPI_T_') else \
            parameter(function, kind, name, params)
        declare += d
        cases += [(what, code + '|COMM' if function in NO_RIGHT_CALL else code)
                  for what, code in c]
        # What a request makes is not there before it has ended.
        after = a + after if 'request' in name else after + a
    out.append('static int call_%s(int wrong)' % function)
    out += ['{', '\tint rc;'] + declare + ['']
    if before:
        out.append('\t%s();' % before)
    out.append('\tswitch (wrong) {')
    for i, (statement, _) in enumerate(cases):
        out += ['\tcase %d:' % (i + 1), '\t\t%s;' % statement, '\t\tbreak;']
    out += ['\tdefault:', '\t\tbreak;', '\t}',
            '\trc = %s(%s);' % (function, ', '.join(n for _, n in params))]
    out += after
    if end:
        out.append('\t%s(rc);' % end)
    out += ['\treturn rc;', '}', '']
    if cases:
        out.append('static const struct wrong wrong_%s[] = {' % function)
        out += ['\t{ "%s", { %s } },' % (
            statement.replace('"', '\\"'),
            ', '.join(('MPI_' if c.startswith('T_') else 'MPI_ERR_') + c
                      for c in dict.fromkeys(codes.split('|'))))
            for statement, codes in cases]
        out += ['};', '']
    return len(cases)


def write_unsupported(out, f):
    function, text = f['name'], f['parameters']
    n = 0 if text == 'void' else len(
        [p for p in text.split(',') if p.strip() != '...'])
    code = 'MPI_T_ERR_NOT_SUPPORTED' if function.startswith('MPI_T_') else \
        'MPI_ERR_UNSUPPORTED_OPERATION'
    out += ['static int call_%s(int wrong)' % function, '{', '\t(void)wrong;',
            '\treturn %s(%s);' % (function, ', '.join(['0'] * n)), '}', '',
            'static const struct wrong wrong_%s[] = {' % function,
            '\t{ "no body", { %s } },' % code, '};', '']
    return '\t{ "%s", call_%s, wrong_%s, 1, 0 },' % (function, function,
                                                   function)


def main():
    tables, listed, path = sys.argv[1:]
    table = {}
    for name in 'functions.csv', 'fortran.csv':
        with open(os.path.join(tables, name), newline='') as f:
            table |= {r['name']: r for r in csv.DictReader(f)
                      if r['parameters']}
    with open(listed) as f:
        listed = f.read().split()
    names = [n for n in listed if n not in ONCE and not NO_CODE.match(n)]
    out = ['/* Made by arguments.py. */', '']
    rows = []
    for name in names:
        n = write_function(out, table[name])
        rows.append('\t{ "%s", call_%s, %s, %d, %d },' % (
            name, name, 'wrong_' + name if n else 'NULL', n,
            name not in NO_RIGHT_CALL and not REFUSES.match(name)))
    rows += [write_unsupported(out, table[n]) for n in table
             if n not in listed and not NO_CODE.match(n)]
    out += ['static const struct function functions[] = {'] + rows + ['};']
    with open(path, 'w') as f:
        f.write('\n'.join(out) + '\n')
    return 0


if __name__ == '__main__':
    sys.exit(main())
