#!/usr/bin/env python3
"""<marcel/pthread.h>: what is not offered does not compile, and the compiler
says why.

  refused.py INCLUDES COMPILER ...
"""

import os
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", ".."))
import tap  # noqa: E402

NAMES = {
    "pthread_sigqueue": "do not queue",
    "pthread_getcpuclockid": "no clock",
    "pthread_setattr_default_np": "environment",
    "pthread_getattr_default_np": "environment",
    "pthread_attr_setsigmask_np": "mask of signals",
    "pthread_attr_getsigmask_np": "mask of signals",
    "pthread_mutex_consistent": "not robust",
    "pthread_mutex_getprioceiling": "no priority ceiling",
    "pthread_mutex_setprioceiling": "no priority ceiling",
    "pthread_mutexattr_getprioceiling": "no priority ceiling",
    "pthread_mutexattr_setprioceiling": "no priority ceiling",
    "sem_open": "shared by processes",
    "sem_close": "shared by processes",
    "sem_unlink": "shared by processes",
}


def results(includes, compiler):
    command = compiler + ["-D_GNU_SOURCE", "-I", includes]
    command += ["-fsyntax-only", "-x", "c", "-"]
    for name, why in NAMES.items():
        for use in (name + "(0, 0)", "(void *)&" + name):
            source = "#include <marcel/pthread.h>\nvoid f(void);\n"
            source += "void f(void)\n{\n\t(void)" + use + ";\n}\n"
            run = subprocess.run(
                command, input=source, capture_output=True, text=True
            )
            good = run.returncode != 0 and why in run.stderr
            yield use, tap.unless(good, run.returncode, run.stderr)


sys.exit(tap.tell(2 * len(NAMES), results(sys.argv[1], sys.argv[2:])))
