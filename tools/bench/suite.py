"""The MPI benchmarks of tests/bench/mpi: how each is run, its targets, and a run
of them in turns, whose samples go to a file.
"""
import subprocess
import tempfile
from dataclasses import dataclass, field

import hosts
import mpis as mpi
import samples
import turns
from stats import Target

BOTH = ("shm", "tcp")
SHM = ("shm",)
HOSTS = (hosts.NETWORK,)
LIMIT = 120  # seconds for one run of one program
KERNEL = ("kernel", {}, ["-t", "kernel"])


@dataclass
class Benchmark:
    """A program, beside the peers; as `settings` of ours, too: what it is
    called, environment, arguments."""
    name: str
    runs: list  # ranks and arguments of each
    networks: tuple = SHM
    settings: list = field(default_factory=list)
    targets: list = field(default_factory=list)
    program: str = None  # None: as name
    peers: bool = True
    limit: int = LIMIT
    always: bool = True  # whether it is one of "all"

    def source(self):
        return self.program or self.name


MANY_TARGETS = [
    Target("burst", "<=", 1.0), Target("shuffle", "<=", 1.0),
    *[Target(series, "<=", limit, None, network=network)
      for network, limits in {
          "shm": {"burst": 0.12, "shuffle": 0.2, "anysource": 0.25,
                  "wildcard": 0.25, "unexpected": 0.15},
          "tcp": dict.fromkeys(["burst", "shuffle", "anysource", "wildcard",
                                "unexpected"], 0.5)}.items()
      for series, limit in limits.items()]]

BENCHMARKS = [
    Benchmark("latency", [(2, [])], BOTH, targets=[
        *[Target(f"latency_{size}", "<=", limit, network="shm")
          for size, limit in {"8B": 1.0, "256B": 1.0, "4K": 1.0, "32K": 1.0,
                              "64K": 0.9, "1M": 0.5, "4M": 0.6}.items()],
        *[Target(f"latency_{size}", "<=", limit, network="tcp")
          for size, limit in {"8B": 1.0, "4K": 1.0, "64K": 1.0,
                              "1M": 1.05}.items()]]),
    Benchmark("bandwidth", [(2, [])], BOTH),
    Benchmark("rate", [(2, [])], BOTH,
              [KERNEL, ("fifo", {"NMAD_STRATEGY": "fifo"}, []),
               ("aggreg", {"NMAD_STRATEGY": "aggreg"}, [])],
              [Target("rate_1", "<=", 1.0, network="shm"),
               Target("rate_1", "<=", 0.15, network="tcp")]),
    Benchmark("many", [(2, [])], BOTH, targets=MANY_TARGETS),
    Benchmark("many_30000", [(2, ["-r", "1", "30000"])], BOTH, program="many",
              targets=MANY_TARGETS, always=False),
    Benchmark("many_ours", [(2, ["1000", "100000", "1000000"])], BOTH,
              program="many", peers=False, always=False, targets=[
                  Target("burst", "<=", 1.5, "burst_1000"),
                  *[Target(series, "<=", 2.5, f"{series}_1000")
                    for series in ("shuffle", "anysource", "wildcard",
                                   "unexpected")]]),
    Benchmark("communicators", [(2, [])], targets=[
        Target("latency", "<=", 1.1, "latency_0")]),
    Benchmark("threads", [(2, [])], BOTH, [KERNEL], [
        Target("one_1", ">=", 1.0, network="shm"),
        Target("one", ">=", 0.7, "one_1"),
        Target("each_8", ">=", 1.2, "each_1"),
        Target("each_128", ">=", 1.0, "each_1")]),
    Benchmark("load", [(2, [])], SHM, [
        KERNEL, ("ticks 1 ms", {"MARCEL_TIMESLICE_US": "1000"}, []),
        ("favoured", {}, ["-f", "1000"])], [
            Target("mean", "<=", 0.1, mpi="ours kernel"),
            Target("mean", "<=", 50, None, mpi="ours ticks 1 ms"),
            Target("p99", "<=", 1200, None, mpi="ours ticks 1 ms"),
            Target("most", "<=", 20000, None, mpi="ours")]),
    Benchmark("overlap", [(2, [])], BOTH, targets=[
        Target("hidden_sender", ">=", 0.95, None, network="shm"),
        Target("hidden_receiver", ">=", 0.9, None, network="shm"),
        Target("hidden_sender", ">=", 0.8, None, network="tcp"),
        Target("hidden_receiver", ">=", 0.8, None, network="tcp")]),
    Benchmark("computes", [(2, [])], SHM, [
        ("poll", {"PIOM_MODE": "poll"}, []),
        ("asking", {"NMAD_ANNOUNCE": "0"}, [])], [
            Target("send", "<=", 100, "plain_*", "more"),
            Target("send", "<=", 1.2, "plain_*")]),
    Benchmark("datatypes", [(2, [])]),
    Benchmark("oversubscribed", [(4, []), (8, [])], SHM, targets=[
        Target(series, "<=", 1.0)
        for series in ("barrier", "ring", "alltoall", "allreduce", "pairs")]),
    Benchmark("collectives", [(2, []), (4, []), (8, [])], targets=[
        Target("barrier_2", "<=", 1.0),
        *[Target(f"{name}_2", "<=", 1.0)
          for name in ("bcast", "reduce", "allreduce", "gather", "scatter",
                       "allgather", "alltoall")]]),
    Benchmark("onesided", [(2, ["-c", cases]) for cases in (
        "put,get,fetch", "computes", "put_created,get_created,fetch_created",
        "computes_created")], limit=20, targets=[
            Target("computes", "<=", 100, "waits_*", "more"),
            Target("computes_created", "<=", 100, "waits_created_*", "more")]),
    Benchmark("partitioned", [(2, ["-c", "partitioned"]),
                              (2, ["-c", "sends"])], SHM, [KERNEL],
              [Target("partitioned", "<=", 1.0, "sends_*")], limit=20),
    Benchmark("background", [(2, ["-c", cases]) for cases in (
        "iallreduce,ibcast,ialltoall", "put,get", "put_created,get_created")],
              limit=20),
    Benchmark("waiting", [(2, [])], SHM, targets=[
        Target(series, "<=", 0.001, None) for series in ("recv", "barrier")]),
    Benchmark("hosts_latency", [(2, ["8", "4096", "65536", "1048576"])], HOSTS,
              program="latency", always=False, targets=[
                  Target("latency", "<=", 1.0)]),
    Benchmark("hosts_bandwidth",
              [(2, ["-c", "stream", "1048576", "16777216"])], HOSTS,
              program="bandwidth", always=False, targets=[
                  Target("stream", ">=", 1.0)]),
    Benchmark("hosts_rate", [(2, ["1"])], HOSTS, program="rate", always=False,
              targets=[Target("rate", "<=", 1.0)]),
    Benchmark("hosts_overlap", [(2, ["-u", "1000", "65536", "1048576"])], HOSTS,
              program="overlap", always=False),
]
NAMES = [b.name for b in BENCHMARKS]
TARGETS = {b.name: b.targets for b in BENCHMARKS}
BETWEEN_HOSTS = [b.name for b in BENCHMARKS if b.networks == HOSTS]


def find(name):
    return next(b for b in BENCHMARKS if b.name == name)


class Failures:
    """What fails is named, and that run of its benchmark not made any more."""

    def __init__(self):
        self.found = set()

    def add(self, benchmark, network, name, launch, wrong):
        ranks, args = launch
        print(f"{benchmark}, {network}: {name} fails: {turns.why(wrong)}; "
              f"ranks: {ranks}, arguments: {' '.join(args) or 'none'}",
              flush=True)
        self.found.add((benchmark, network, name, launch))

    def __contains__(self, key):
        return key in self.found

    def ours(self):
        return [f[:3] for f in self.found if samples.is_ours(f[2])]


def columns(benchmark, mpis):
    """Ours, its settings, the peers."""
    ours = mpis[0]
    return [ours, *[ours.with_setting(*s) for s in benchmark.settings],
            *(mpis[1:] if benchmark.peers else [])]


def launches(benchmark, args):
    """Ranks and arguments of each; with args only the ranks differ."""
    return dict.fromkeys((ranks, tuple(own if args is None else args))
                         for ranks, own in benchmark.runs)


def run_one(benchmark, network, mpis, rounds, args, folder, out, failures):
    """A B C A B C ..."""
    every = columns(benchmark, mpis)
    for n in range(rounds):
        for launch in launches(benchmark, args):
            for one in every:
                ranks, own = launch
                of = benchmark.name, network, one.name, launch
                if of in failures:
                    continue
                try:
                    program = one.build(benchmark.source(), folder)
                    job = one.job(program, network, own, ranks)
                    values = job.run(benchmark.limit)
                except (subprocess.SubprocessError, OSError,
                        ValueError) as wrong:
                    failures.add(*of, wrong)
                    continue
                out.add(benchmark.name, network, one.name, n, values)


def measure(names, mpis, rounds, networks, args, out):
    """All of these, or those that are always run."""
    failures = Failures()
    with tempfile.TemporaryDirectory() as folder:
        for name in names or [b.name for b in BENCHMARKS if b.always]:
            benchmark = find(name)
            for network in benchmark.networks:
                if network in networks:
                    print(f"{name}, {network} ...", flush=True)
                    run_one(benchmark, network, mpis, rounds, args, folder,
                            out, failures)
    turns.ours_have_failed(failures.ours())
