"""One clock for all hosts.

The processes of a host share a clock. Those of different hosts are related by
messages: none arrives before it was sent. With o the correction of a host's
clock, a message from A to B that was sent at s and arrived at r says

    s + o(A) <= r + o(B)        so  o(A) - o(B) <= r - s,

and the least r - s of all of them is the bound that matters. Such bounds are
lengths of the edges of a graph, and the shortest ways in it tell how far apart
two corrections can be at most. Each host takes the middle of what is possible
between it and the first one. Both ends of all these intervals keep to all
bounds, so their middle does too.

A cycle of negative length is a contradiction: the clocks have drifted meanwhile.
Then the time is cut in halves, quarters, and so on, until no part has one; each
part has corrections of its own, and between the middles of parts they change
steadily."""

import bisect
import collections
import math

PARTS = 1 << 10  # of the time, at most

# host: name; shift: ns to add; error: half of the interval, None: not known
# from messages; sides: how many messages it has to the others, and from them.
Correction = collections.namedtuple("Correction", "host shift error sides")

# ns: from send to arrival, by the clocks of hosts a and b; at: of the arrival
Flight = collections.namedtuple("Flight", "a b ns at")


def to_ns(clocks):
    """The function from ticks to ns of CLOCK_REALTIME as it was at the start, of
    all processes of a host, by the first and the last of their pairs."""
    first = min(clocks, key=lambda c: c.ticks)
    last = max(clocks, key=lambda c: c.ticks)
    ticks, ns = last.ticks - first.ticks, last.monotonic - first.monotonic
    if ticks == 0 or ns <= 0:
        ticks = ns = 1
    zero, base = first.ticks, first.realtime
    return lambda t: base + (t - zero) * ns // ticks


def can_convert(clocks, in_ns):
    return in_ns or len({c.ticks for c in clocks}) > 1


def bounds_of(flights):
    bounds = {}
    for a, b, ns, _ in flights:
        if a != b:
            bounds[a, b] = min(ns, bounds.get((a, b), ns))
    return bounds


def shortest(hosts, bounds, slack):
    """Between all pairs; None: a cycle is negative. Every bound may be missed by
    slack."""
    far = {(a, b): 0 if a == b else math.inf for a in hosts for b in hosts}
    for pair, bound in bounds.items():
        far[pair] = min(far[pair], bound + slack)
    for via in hosts:
        for a in hosts:
            for b in hosts:
                way = far[a, via] + far[via, b]
                if way < far[a, b]:
                    far[a, b] = way
    return None if any(far[a, a] < 0 for a in hosts) else far


def least_slack(hosts, bounds):
    """The least by which all bounds have to be missed: 0, if they agree."""
    if shortest(hosts, bounds, 0) is not None:
        return 0
    low, high = 0, max(1, -2 * min(bounds.values()))
    while shortest(hosts, bounds, high) is None:
        high *= 2
    while low + 1 < high:
        middle = (low + high) // 2
        if shortest(hosts, bounds, middle) is None:
            low = middle
        else:
            high = middle
    return high


def middle(upper, lower):
    """Of the interval; its near end, if the other is not known."""
    if upper < math.inf and lower > -math.inf:
        return (upper + lower) // 2
    return upper if upper < math.inf else lower


def align(hosts, flights):
    """hosts: names, the first is the one to go by. Returns corrections, by host, and
    by how much messages still come too early."""
    sides = {host: [0, 0] for host in hosts}
    for flight in flights:
        if flight.a != flight.b:
            sides[flight.a][0] += 1
            sides[flight.b][1] += 1
    bounds = bounds_of(flights)
    slack = least_slack(hosts, bounds)
    far = shortest(hosts, bounds, slack)
    first = hosts[0]
    found = {}
    for host in hosts:
        # o(host) - o(first) <= far[host, first], and o(first) is 0.
        upper, lower = far[host, first], -far[first, host]
        if upper == math.inf and lower == -math.inf:
            shift, error = 0, None
        elif upper == math.inf or lower == -math.inf:
            shift, error = middle(upper, lower), None
        else:
            shift, error = middle(upper, lower), (upper - lower + 1) // 2
        found[host] = Correction(host, shift, error, tuple(sides[host]))
    return found, slack


class Moving:
    """The correction of a host at any time of its clock; knots: (time, shift)."""

    def __init__(self, correction, knots=()):
        self.correction = correction
        self.times = [at for at, _ in knots]
        self.shifts = [shift for _, shift in knots]

    def at(self, t):
        if len(self.times) < 2:
            return self.correction.shift
        i = min(max(bisect.bisect(self.times, t), 1), len(self.times) - 1)
        (a, b), (x, y) = self.times[i - 1 : i + 1], self.shifts[i - 1 : i + 1]
        return x + (t - a) * (y - x) // (b - a)

    def drift(self):
        """In millionths."""
        if len(self.times) < 2:
            return 0
        return ((self.shifts[-1] - self.shifts[0]) * 1e6
                / (self.times[-1] - self.times[0]))


def parts_of(flights, shifts, parts):
    """The flights of each part of the time, and the middles of these."""
    times = [f.at + shifts[f.b] for f in flights]
    begin, end = min(times), max(times) + 1
    found = [[] for _ in range(parts)]
    for flight, at in zip(flights, times):
        found[(at - begin) * parts // (end - begin)].append(flight)
    middles = [begin + (end - begin) * (2 * i + 1) // (2 * parts) for i in range(parts)]
    return found, middles


def follow(hosts, flights):
    """Moving corrections, by host, and by how much messages still come too early."""
    whole, slack = align(hosts, flights)
    if slack == 0:
        return {host: Moving(whole[host]) for host in hosts}, 0
    shifts = {host: whole[host].shift for host in hosts}
    parts, agree = 1, False
    while not agree and parts < PARTS:
        parts *= 2
        cut, middles = parts_of(flights, shifts, parts)
        agree = all(shortest(hosts, bounds_of(part), 0) is not None for part in cut)
    done = [align(hosts, part)[0] for part in cut]
    found = {}
    for host in hosts:
        knots = [(middles[i] - shifts[host], part[host].shift, part[host].error)
                 for i, part in enumerate(done) if part[host].error is not None]
        errors = [error for *_, error in knots]
        one = whole[host]._replace(error=max(errors)) if errors else whole[host]
        found[host] = Moving(one, [knot[:2] for knot in knots])
    early = max(f.at - f.ns + found[f.a].at(f.at - f.ns) - f.at - found[f.b].at(f.at)
                for f in flights)
    return found, max(early, 0)
