"""The MPI benchmarks between two hosts made of namespaces (tools/lab/net), which
a veth pair joins by way of a bridge.

The suite runs inside the lab, beside its hosts: run.py starts itself there.
"""
import os
import subprocess
import sys

import turns

LIMIT = 3600  # seconds for all of it
CANNOT = 77  # exit code of NET: no namespaces here
HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
NET = os.path.join(ROOT, "tools", "lab", "net")
AGENT = os.path.join(HERE, "host_agent")
NETWORK = "hosts"

# Where the launcher of Open MPI is, which has daemons on the hosts.
SWITCH = ["ip", "address", "replace", "10.0.0.254/24", "dev", "sw0"]

OURS = ([], {"NMAD_DRIVER": "tcp:eth0"}, [NET, "rank"])
MPICH = (["-launcher", "fork", "-iface", "lo", "-hosts", "h0:1,h1:1"],
         {"UCX_TLS": "tcp,self", "UCX_NET_DEVICES": "eth0"}, [NET, "rank"])
OPENMPI = [
    "--bind-to", "none",
    "--host", "10.0.0.1,10.0.0.2",
    *[word for name, value in {
        "plm_rsh_agent": AGENT,
        "oob_tcp_if_include": "10.0.0.0/24",
        "pml": "ob1",
        "btl": "tcp,self",
        "btl_tcp_if_include": "10.0.0.0/24",
    }.items() for word in ("--mca", name, value)]]


def inside():
    """Whether the hosts are there."""
    return "NET_HOSTS" in os.environ


def measure(build, rounds, peers, out, names):
    """All of `names`, in a lab, where run.py writes what it measures itself."""
    command = [
        NET, "up", "2", "max", sys.executable, os.path.join(HERE, "run.py"),
        "--build", build, "--rounds", str(rounds), "--peers", ",".join(peers),
        "--networks", NETWORK, "--out", out, "mpi", *names]
    with subprocess.Popen(command) as started:
        try:
            code = started.wait(LIMIT)
        except KeyboardInterrupt:  # of a ^C it has heard, too, and writes
            try:
                started.wait(2 * turns.GRACE)
            except subprocess.TimeoutExpired:
                started.terminate()
            raise
        except subprocess.TimeoutExpired:
            started.kill()
            raise
    if code == CANNOT:
        raise turns.Cannot("no hosts can be made of namespaces here")
    if code != 0:
        raise turns.Cannot(f"the benchmarks between hosts failed: {code}")
