"""What runs in turns say: medians, the 95 % interval of a median, whether a
target is met, and whether two results differ.

Values are {round: value}. Of two programs that ran in the same rounds the values
of a round are a pair: what drifts hits both. The rounds of two results are not
pairs.
"""
import functools
import math
import random
import statistics
from dataclasses import dataclass

DRAWS = 4000
LEAST = 3  # rounds, below which there is no interval
SLACK = 1.05
# Of these more is better, of all others less.
MORE_IS_BETTER = {"GB/s", "MB/s", "trips/s", "share"}
BEST = "the best peer's"


def median(values):
    return statistics.median(values.values())


def paired(values, base, of):
    """of(value, base's of the same round), in the order of rounds."""
    return {n: of(v, base[n]) for n, v in values.items() if n in base}


def times(a, b):
    return a / b if b else float("inf") if a else 1.0


def more(a, b):
    return a - b


def against(unit):
    """How two values of this unit are held against each other."""
    return more if unit == "share" else times


def middle(found):
    """The 95 % in the middle of what has been drawn."""
    found = sorted(found)
    cut = len(found) // 40
    return found[cut], found[-1 - cut]


def interval(values):
    """95 % interval of the median: rounds are drawn again, with replacement,
    and the middle 95 % of the medians taken. None of too few rounds. The same
    for the same values."""
    if len(values) < LEAST:
        return None
    pool = list(values.values())
    drawn = random.Random(len(pool))
    return middle(statistics.median(drawn.choices(pool, k=len(pool)))
                  for _ in range(DRAWS))


def best(columns, unit):
    """Whose median is best, of {name: values}; None if there are none."""
    choose = max if unit in MORE_IS_BETTER else min
    there = {name: values for name, values in columns.items() if values}
    if not there:
        return None
    return choose(there, key=lambda name: median(there[name]))


@dataclass
class Target:
    """That the names' values, by `how` against those of `of`, have this limit.
    `of`: BEST; or another name of ours, in which * is the end of this name; or
    None for the values themselves."""
    names: str  # SERIES, of all X, or a whole name
    sign: str  # <= or >=
    limit: float
    of: str = BEST
    how: str = "times"
    network: str = None  # all
    mpi: str = None  # all of ours

    def fits(self, name, network, mpi):
        return (self.network in (None, network) and self.mpi in (None, mpi)
                and self.names in (name, name.rpartition("_")[0]))

    def base(self, name):
        return self.of.replace("*", name.rpartition("_")[2])

    def met(self, span):
        """"<= r" is met when the interval reaches down to 1.05 r."""
        low, high = span
        if self.sign == "<=":
            return low <= self.limit * SLACK
        return high >= self.limit / SLACK

    def text(self):
        base = {BEST: "", None: ""}.get(self.of, f" {self.of}")
        words = {"times": " x" if base else "", "more": " more than"}[self.how]
        return f"{self.sign} {self.limit:g}{words}{base}"


def compared(target, name, ours, peers, unit):
    """The values that a target is about; None if what they are held against is
    not there. ours: {name: values}; peers: {peer: values} of this name."""
    if target.of is None:
        return ours[name]
    if target.of == BEST:
        against = best(peers, unit)
        base = peers.get(against)
    else:
        base = ours.get(target.base(name))
    if not base:
        return None
    return paired(ours[name], base, {"times": times, "more": more}[target.how])


def verdict(target, values):
    if not values:
        return "nothing to compare with"
    span = interval(values)
    if span is None:
        return f"fewer than {LEAST} rounds"
    return "met" if target.met(span) else "missed"


# --- two results ---

EXACT = 60  # values, up to which the chance is counted, not approximated


def apart(old, new, of):
    """The 95 % interval of of(median of new, median of old): the rounds of both
    are drawn again, each by itself."""
    pools = list(old.values()), list(new.values())
    drawn = random.Random(len(pools[0]) * 1000 + len(pools[1]))

    def again(pool):
        return statistics.median(drawn.choices(pool, k=len(pool)))

    return middle(of(again(pools[1]), again(pools[0])) for _ in range(DRAWS))


def ranks(values):
    """Of each, twice: those that are equal share the mean of theirs."""
    order = sorted(values)
    twice = {}
    for i, v in enumerate(order, 1):
        first, _ = twice.get(v, (i, i))
        twice[v] = first, i
    return [sum(twice[v]) for v in values]


@functools.lru_cache(maxsize=None)
def sums(twice, k):
    """{sum of k of these ranks: in how many ways}"""
    ways = [{0: 1}] + [{} for _ in range(k)]
    for rank in twice:
        for n in range(k, 0, -1):
            for total, count in ways[n - 1].items():
                ways[n][total + rank] = ways[n].get(total + rank, 0) + count
    return ways[k]


def mann_whitney(old, new):
    """The chance, two-sided, that values of one and the same source are dealt
    to two results at least as unevenly. Exact, ties included, of up to EXACT
    values; of more by the normal distribution."""
    a, b = list(old.values()), list(new.values())
    twice = ranks(a + b)
    n, total = len(twice), sum(twice[:len(a)])
    mean = len(a) * sum(twice) / n
    if n <= EXACT:
        ways = sums(tuple(sorted(twice)), len(a))
        far = sum(count for s, count in ways.items()
                  if abs(s - mean) >= abs(total - mean) - 1e-9)
        return far / math.comb(n, len(a))
    square = sum((r - sum(twice) / n) ** 2 for r in twice)
    variance = len(a) * len(b) * square / (n * (n - 1))
    if variance == 0:
        return 1.0
    return math.erfc(abs(total - mean) / math.sqrt(2 * variance))


def least_chance(n, m):
    """Of n and m rounds no less can come out of mann_whitney()."""
    return 2 / math.comb(n + m, n)


def holm(chances):
    """The same, such that with all of them together there is a chance of 5 %
    that any one is below 0.05 by accident."""
    order = sorted(range(len(chances)), key=lambda i: chances[i])
    found, least = [0.0] * len(chances), 0.0
    for left, i in zip(range(len(chances), 0, -1), order):
        least = max(least, min(1.0, left * chances[i]))
        found[i] = least
    return found
