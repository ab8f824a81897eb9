"""What the tests that are written in Python say of their cases, in TAP."""

import os
import shutil
import sys
import traceback


class Skip(Exception):
    """It cannot be tested here, and this is why."""


# Variables that have a program print, or check, more than it does by itself.
OBSERVERS = ('MARCEL_TRACE', 'MARCEL_DEADLOCK', 'MARCEL_CPUTIME', 'PIOM_STATS',
             'NMAD_STATS', 'MADMPI_LEAKS', 'MADMPI_CHECK')


def environment(**more):
    """For programs whose output is compared: this one's, without observers."""
    return {k: v for k, v in os.environ.items() if k not in OBSERVERS} | more


def need(program):
    if shutil.which(program) is None:
        raise Skip('%s is not installed' % program)


def unless(right, code, err):
    """What is wrong where a program has ended so."""
    return None if right else 'code %s, stderr:\n%s' % (code, err)


def wrong_with(check, *arguments):
    """What is wrong where check() fails: its text, None, or a Skip."""
    try:
        check(*arguments)
    except Skip as reason:
        return reason
    except AssertionError as reason:
        return str(reason) or traceback.format_exc()
    except Exception:  # the others go on
        return traceback.format_exc()
    return None


def tell(n, cases):
    """Of n cases, as they come: a title, and what is wrong: a text, None, or a
    Skip. Why comes before that it is so, for tools/tally.py. Returns the exit
    code."""
    code = number = 0
    print('1..%d' % n, flush=True)
    for number, (title, wrong) in enumerate(cases, 1):
        result = 'ok'
        if isinstance(wrong, Skip):
            title += ' # SKIP ' + ' '.join(str(wrong).split())
        elif wrong is not None:
            result, code = 'not ok', 1
            print('\n'.join('# ' + line for line in wrong.splitlines()))
        print('%s %d - %s' % (result, number, title), flush=True)
    return code if number == n else 1


def run(checks):
    """Functions that assert, or raise Skip; ends the program."""
    sys.exit(tell(len(checks),
                  ((check.__name__, wrong_with(check)) for check in checks)))
