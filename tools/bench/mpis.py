"""MPI programs, compiled from the same source with every MPI that is found and
run in turns.
"""
import os
import shutil
import statistics
import subprocess
import tempfile

import turns

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
SOURCES = os.path.join(ROOT, "tests", "bench", "mpi")


class Mpi:
    """One MPI: how to compile, and how to run ranks over a network."""

    def __init__(self, name, compiler, launch, networks):
        self.name = name
        self.compiler = compiler
        self.launch = launch
        self.networks = networks

    def build(self, source, folder):
        out = os.path.join(folder, source + "." + self.compiler.split("/")[-1])
        if not os.path.exists(out):
            subprocess.run(
                [self.compiler, "-O2", "-w", "-o", out,
                 os.path.join(SOURCES, source + ".c")],
                check=True)
        return out

    def with_env(self, what, more):
        """The same with another setting, named after it."""
        return Mpi(f"{self.name} {what}", self.compiler, self.launch,
                   {n: (extra, dict(env, **more))
                    for n, (extra, env) in self.networks.items()})

    def job(self, program, network, args, ranks=2):
        extra, env = self.networks[network]
        command = self.launch + extra + ["-n", str(ranks), program] + args
        return turns.Job(self.name, command, env)


def is_there(name, compiler, wanted):
    """A compiler may be there without its mpi.h."""
    if name not in wanted:
        return False
    there = shutil.which(compiler) is not None and subprocess.run(
        [compiler, "-fsyntax-only", "-x", "c", "-"], text=True,
        input="#include <mpi.h>\n", stderr=subprocess.DEVNULL).returncode == 0
    if not there:
        print(f"{name}: not installed; tools/bench/peers does so")
    return there


def find(build, wanted):
    """Ours first."""
    tools = os.path.join(build, "tools")
    mpis = [Mpi("ours", os.path.join(tools, "wrap", "mpicc"),
                [os.path.join(tools, "launch", "mpirun")],
                {"shm": ([], {"NMAD_DRIVER": "shm"}),
                 "tcp": ([], {"NMAD_DRIVER": "tcp"})})]
    if is_there("mpich", "mpicc.mpich", wanted):
        mpis.append(Mpi("mpich", "mpicc.mpich", ["mpiexec.hydra"],
                        {"shm": ([], {}),
                         "tcp": ([], {"UCX_TLS": "tcp,self"})}))
    if is_there("openmpi", "mpicc.openmpi", wanted):
        root = {"OMPI_ALLOW_RUN_AS_ROOT": "1",
                "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
        tcp = ["--mca", "pml", "ob1", "--mca", "btl", "tcp,self"]
        mpis.append(Mpi("openmpi", "mpicc.openmpi", ["mpirun.openmpi"],
                        {"shm": ([], root), "tcp": (tcp, root)}))
    return mpis


def is_ours(name):
    return name.startswith("ours")


def show(title, results, name_of_ours):
    """One of ours beside the peers, and the median of the paired ratios to the
    best of these."""
    peers = [m for m in results if not is_ours(m)]
    print(f"\n{title}")
    head = f"{'':18}{name_of_ours:>12} {'min..max':>22}"
    print(head + "".join(f"{p:>12}" for p in peers)
          + ("   ours/best (range)" if peers else ""))
    for name, (_, unit) in results[name_of_ours][0].items():
        ours = [r[name][0] for r in results[name_of_ours]]
        line = f"{name:18}{statistics.median(ours):12.4f} "
        line += f"{f'{min(ours):.4f}..{max(ours):.4f}':>22}"
        for p in peers:
            line += f"{turns.median(results[p], name):12.4f}"
        if peers:
            best = min(peers, key=lambda p: turns.median(results[p], name))
            line += "   " + turns.ratio(results[name_of_ours], results[best],
                                        name)
        print(f"{line}  {unit}", flush=True)


def run(mpis, source, network, args, rounds, ranks=2):
    with tempfile.TemporaryDirectory() as folder:
        return turns.take([m.job(m.build(source, folder), network, args, ranks)
                           for m in mpis], rounds)


def compare(title, mpis, source, network, args, rounds, change=None):
    """`change`: of what a run has printed, what is shown instead."""
    results = run(mpis, source, network, args, rounds)
    if change is not None:
        results = {name: [change(values) for values in runs]
                   for name, runs in results.items()}
    for m in mpis:
        if is_ours(m.name):
            show(title, results, m.name)
