"""What runs in turns say: medians, the 95 % interval of a median, and whether a
target is met.

Values are {round: value}. Of two programs that ran in the same rounds the values
of a round are a pair: what drifts hits both.
"""
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
