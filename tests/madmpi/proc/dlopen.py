#!/usr/bin/env python3
"""The library can be dlopened, without its symbols becoming global, by a
program that knows nothing of it, and initialized.

usage: dlopen.py LIBRARY
"""

import ctypes
import sys

WORLD, SELF, BYTE = (ctypes.c_void_p(n) for n in (0x101, 0x102, 0x247))


def main():
    mpi = ctypes.CDLL(sys.argv[1], mode=ctypes.RTLD_LOCAL)
    number = ctypes.c_int(-1)
    good = mpi.MPI_Init(None, None) == 0
    good = good and mpi.MPI_Comm_size(WORLD, ctypes.byref(number)) == 0
    good = good and number.value == 1
    out = ctypes.create_string_buffer(b'hello')
    into = ctypes.create_string_buffer(6)
    request = ctypes.c_void_p()
    good = good and mpi.MPI_Irecv(into, 6, BYTE, 0, 5, SELF,
                                  ctypes.byref(request)) == 0
    good = good and mpi.MPI_Send(out, 6, BYTE, 0, 5, SELF) == 0
    good = good and mpi.MPI_Wait(ctypes.byref(request), None) == 0
    good = good and into.value == b'hello'
    good = good and mpi.MPI_Barrier(WORLD) == 0
    good = good and mpi.MPI_Finalize() == 0
    print('1..1\n%s 1 - dlopened, initialized, used' %
          ('ok' if good else 'not ok'))
    return 0 if good else 1


if __name__ == '__main__':
    sys.exit(main())
