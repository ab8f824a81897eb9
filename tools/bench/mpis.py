"""MPI programs, compiled from the same source with every MPI that is found and
run in turns.
"""
import os
import shutil
import subprocess
import sys

import hosts
import turns

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
PEERS = ["mpich", "openmpi"]
SOURCES = os.path.join(ROOT, "tests", "bench", "mpi")


def source(program):
    return os.path.join(SOURCES, program + ".c")


class Mpi:
    """One MPI: how to compile, and how to run ranks over a network."""

    def __init__(self, name, compiler, launch, networks, threads="-pthread",
                 crowd=(), args=()):
        self.name = name
        self.compiler = compiler
        self.launch = launch
        # name: options of the launcher, environment, and if there is one, the
        # command that runs a program where its rank is to be
        self.networks = networks
        self.threads = threads  # what a program with threads is compiled with
        self.crowd = list(crowd)  # options of the launcher for > 1 rank a core
        self.args = list(args)  # in front of the program's

    def compile(self, program, out, optimize="-O2"):
        """What the compiler says if it fails, else None."""
        done = subprocess.run(
            [self.compiler, optimize, "-w", "-o", out, source(program),
             *self.threads.split()], stderr=subprocess.PIPE, text=True,
            check=False)
        return done.stderr if done.returncode != 0 else None

    def build(self, program, folder):
        out = os.path.join(folder, f"{program}.{os.path.basename(self.compiler)}")
        if not os.path.exists(out):
            wrong = self.compile(program, out)
            if wrong is not None:
                print(wrong, file=sys.stderr, end="")
                raise subprocess.CalledProcessError(1, self.compiler)
        return out

    def with_setting(self, what, env, args=()):
        """The same with another environment and arguments, named after it."""
        return Mpi(f"{self.name} {what}".rstrip(), self.compiler, self.launch,
                   {n: (extra, dict(old, **env), *before)
                    for n, (extra, old, *before) in self.networks.items()},
                   self.threads, self.crowd, [*self.args, *args])

    def job(self, program, network, args, ranks=2):
        extra, env, *before = self.networks[network]
        if ranks > len(os.sched_getaffinity(0)):
            extra = extra + self.crowd
        command = [*self.launch, *extra, "-n", str(ranks),
                   *(before[0] if before else []), program, *self.args, *args]
        return turns.Job(self.name, command, env)


def is_there(name, compiler, wanted, say):
    """A compiler may be there without its mpi.h."""
    if name not in wanted:
        return False
    there = shutil.which(compiler) is not None and subprocess.run(
        [compiler, "-fsyntax-only", "-x", "c", "-"], text=True,
        input="#include <mpi.h>\n", stderr=subprocess.DEVNULL).returncode == 0
    if not there:
        say(f"{name}: not installed; tools/bench/peers does so")
    return there


def ours(build):
    tools = os.path.join(build, "tools")
    return Mpi("ours", os.path.join(tools, "wrap", "mpicc"),
               [os.path.join(tools, "launch", "mpirun")],
               {"shm": ([], {"NMAD_DRIVER": "shm"}),
                "tcp": ([], {"NMAD_DRIVER": "tcp"}),
                hosts.NETWORK: hosts.OURS},
               "-DBENCH_USER_THREADS -lmarcel")


def find(build, wanted, say=print):
    """Ours first."""
    mpis = [ours(build)]
    if is_there("mpich", "mpicc.mpich", wanted, say):
        mpis.append(Mpi("mpich", "mpicc.mpich", ["mpiexec.hydra"],
                        {"shm": ([], {}),
                         "tcp": ([], {"UCX_TLS": "tcp,self"}),
                         hosts.NETWORK: hosts.MPICH}))
    if is_there("openmpi", "mpicc.openmpi", wanted, say):
        root = {"OMPI_ALLOW_RUN_AS_ROOT": "1",
                "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
        tcp = ["--mca", "pml", "ob1", "--mca", "btl", "tcp,self"]
        mpis.append(Mpi("openmpi", "mpicc.openmpi", ["mpirun.openmpi"],
                        {"shm": ([], root), "tcp": (tcp, root),
                         hosts.NETWORK: (hosts.OPENMPI, root)},
                        crowd=["--oversubscribe"]))
    return mpis
