"""What the tests that run a program say of their cases, in TAP."""

import sys


def tell(n, cases):
    """Of n cases, as they come: a title, and what is wrong, or None. Returns
    the exit code."""
    good = True
    print('1..%d' % n)
    for number, (title, wrong) in enumerate(cases, 1):
        print('%s %d - %s' % ('ok' if wrong is None else 'not ok', number,
                              title))
        if wrong is not None:
            print('\n'.join('# ' + line for line in wrong.splitlines()))
            good = False
        sys.stdout.flush()
    return 0 if good else 1


def unless(right, code, err):
    """What is wrong where a program has ended so."""
    return None if right else 'code %s, stderr:\n%s' % (code, err)
