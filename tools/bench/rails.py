"""Two rails of unequal rates, each alone and both at once.

Two hosts made of namespaces (tools/lab/net), joined by veth pairs that a token
bucket shapes. In each round the same program runs over the first rail, over the
second and over both, whose bandwidth is held against the sum of the two. How
fast they are nm-sample has measured before.
"""
import os
import statistics
import subprocess
import sys
import tempfile

import mpis as mpi

NET = os.path.join(mpi.ROOT, "tools", "lab", "net")
RAILS = ["tcp:eth0", "tcp:eth1"]
BOTH = "+".join(RAILS)
SIZES = {f"{n}M": str(n << 20) for n in (1, 2, 4, 8, 16)}
TARGET = 0.95
LIMIT = 600  # seconds for one run
CANNOT = 77  # exit code of NET: no namespaces here


def in_lab(build, rates, program, drivers, sampling):
    """The output of two ranks, one on each host."""
    mpirun = os.path.join(build, "tools", "launch", "mpirun")
    env = dict(os.environ, NMAD_DRIVER=drivers, NMAD_SAMPLING=sampling)
    done = subprocess.run([NET, "up", "2", rates, mpirun, "-n", "2", NET, "rank",
                           *program],
                          stdout=subprocess.PIPE, text=True, env=env,
                          timeout=LIMIT)
    if done.returncode not in (0, CANNOT):
        sys.exit(f"{' '.join(program)} has failed over {drivers}")
    return done.returncode, done.stdout


def measure(build, rates, program, drivers, sampling):
    """{size: MB/s}, of bytes and the us that these take one way"""
    _, text = in_lab(build, rates, [program, "-m", "1", "-r", "5",
                                    *SIZES.values()], drivers, sampling)
    us = {name.split("_")[1]: float(value)
          for name, value, _ in (line.split() for line in text.splitlines())}
    return {size: int(bytes_of) / us[size] for size, bytes_of in SIZES.items()}


def median_of(runs, size):
    return statistics.median(r[size] for r in runs)


def show(alone, both):
    print(f"{'':6}{'first':>8}{'second':>8}{'both':>8} {'min..max':>14}"
          "   of the sum (range)")
    for size in both[0]:
        speeds = sorted(r[size] for r in both)
        shares = sorted(r[size] / (a[size] + b[size])
                        for r, a, b in zip(both, *alone))
        share = statistics.median(shares)
        spread = f"{speeds[0]:.1f}..{speeds[-1]:.1f}"
        print(f"{size:6}{median_of(alone[0], size):8.1f}"
              f"{median_of(alone[1], size):8.1f}{statistics.median(speeds):8.1f}"
              f" {spread:>14}   {share:.3f} ({shares[0]:.3f}..{shares[-1]:.3f})"
              f"{'' if share >= TARGET else f'  below {TARGET}'}")


def compare(build, rounds, rates):
    print(f"\ntwo rails of {rates}, MB/s there and back", flush=True)
    with tempfile.TemporaryDirectory() as folder:
        program = mpi.ours(build).build("latency", folder)
        curves = os.path.join(folder, "curves")
        sample = os.path.join(build, "tools", "sample", "nm-sample")
        code, text = in_lab(build, rates, [sample, curves], BOTH, "off")
        if code == CANNOT:
            return
        print(text.rsplit("written", 1)[0], end="", flush=True)
        alone, both = ([], []), []
        for _ in range(rounds):
            for runs, rail in zip(alone, RAILS):
                runs.append(measure(build, rates, program, rail, "off"))
            both.append(measure(build, rates, program, BOTH, curves))
    show(alone, both)
