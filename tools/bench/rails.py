"""Two rails of unequal rates, each alone and both at once.

Two hosts made of namespaces (tools/lab/net), joined by veth pairs that a token
bucket shapes. In each round the same program runs over the first rail, over the
second and over both, whose bandwidth is held against the sum of the two. How
fast they are nm-sample has measured before.
"""
import os
import subprocess
import tempfile

import mpis as mpi
import samples
import turns
from stats import Target

NET = os.path.join(mpi.ROOT, "tools", "lab", "net")
RAILS = ["tcp:eth0", "tcp:eth1"]
BOTH = "+".join(RAILS)
SIZES = [str(n << 20) for n in (1, 2, 4, 8, 16)]
TARGETS = {"rails": [Target("of_sum", ">=", 0.95, None)]}
LIMIT = 600  # seconds for one run
CANNOT = 77  # exit code of NET: no namespaces here


def bandwidths(values):
    """{rate_SIZE: MB/s} of {latency_SIZE: us}"""
    found = {}
    for name, (us, _) in values.items():
        _, size = samples.point(name)
        found["rate_" + name.rpartition("_")[2]] = size / us, "MB/s"
    return found


def shares(one, other, both):
    """{of_sum_SIZE: which share of both alone they have at once}"""
    return {name.replace("rate", "of_sum"): (
        both[name][0] / (one[name][0] + other[name][0]), "share")
        for name in both}


def add_round(out, benchmark, setting, n, three):
    """three: {library: latencies}, of each alone and of both."""
    found = {library: bandwidths(values) for library, values in three.items()}
    *_, both = found
    found[both] = {**found[both], **shares(*found.values())}
    for library, values in found.items():
        out.add(benchmark, setting, library, n, values)


def in_lab(build, name, rates, program, drivers, sampling):
    """Two ranks, one on each host."""
    mpirun = os.path.join(build, "tools", "launch", "mpirun")
    return turns.Job(name, [NET, "up", "2", rates, mpirun, "-n", "2", NET,
                            "rank", *program],
                     {"NMAD_DRIVER": drivers, "NMAD_SAMPLING": sampling})


def sample(build, rates, curves):
    """Into this file; what it says of them."""
    job = in_lab(build, "nm-sample", rates, [
        os.path.join(build, "tools", "sample", "nm-sample"), curves], BOTH,
        "off")
    done = subprocess.run(job.command, stdout=subprocess.PIPE, text=True,
                          env=dict(os.environ, **job.env), timeout=LIMIT)
    if done.returncode == CANNOT:
        raise turns.Cannot("no hosts can be made of namespaces here")
    done.check_returncode()
    print(done.stdout.rsplit("written", 1)[0], end="", flush=True)


def measure(build, rounds, rates, out):
    with tempfile.TemporaryDirectory() as folder:
        program = [mpi.ours(build).build("latency", folder), "-m", "1", "-r",
                   "5", *SIZES]
        curves = os.path.join(folder, "curves")
        print(f"\ntwo rails of {rates}", flush=True)
        sample(build, rates, curves)
        jobs = [in_lab(build, name, rates, program, drivers, sampling)
                for name, drivers, sampling in (
                    ("ours first rail", RAILS[0], "off"),
                    ("ours second rail", RAILS[1], "off"),
                    ("ours both", BOTH, curves))]
        for n in range(rounds):
            print(f"rails, {rates}, round {n + 1} ...", flush=True)
            add_round(out, "rails", rates, n,
                      {job.name: job.run(LIMIT) for job in jobs})
