"""What a machine is, as far as results depend on it, and with what they were
made: machine.csv, lines "what,value" beside the samples.
"""
import csv
import functools
import json
import os
import platform
import re
import shlex
import subprocess
import sys
import time

import samples

NAME = "machine.csv"
COLUMNS = ["what", "value"]
CPU = "/sys/devices/system/cpu"
PREFIXES = ("MARCEL_", "PIOM_", "NMAD_", "MADMPI_", "UCX_", "OMPI_", "MPIR_")
# What says a version: its first line that has a digit.
VERSIONS = {
    "gcc": ["gcc", "--version"],
    "clang": ["clang", "--version"],
    "MPICH": ["mpichversion"],
    "Open MPI": ["mpirun.openmpi", "--version"],
    "UCX": ["ucx_info", "-v"],
    "GNU Pth": ["pth-config", "--version"],
    "Go": ["go", "version"],
    "valgrind": ["valgrind", "--version"],
}
BOOST = "/usr/include/boost/version.hpp"
# Of no interest to who asks whether two machines are the same.
OF_THE_RUN = ("command", "begun", "load at start", "load at end")


def text_of(path):
    try:
        with open(path, encoding="utf-8") as f:
            return f.read().strip()
    except OSError:
        return ""


def said(command):
    """The first line with a digit, if the command is there."""
    try:
        done = subprocess.run(command, stdout=subprocess.PIPE,
                              stderr=subprocess.DEVNULL, text=True,
                              stdin=subprocess.DEVNULL, timeout=20, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return ""
    if done.returncode != 0:
        return ""
    lines = [x.strip() for x in done.stdout.splitlines() if re.search(r"\d", x)]
    return " ".join(lines[0].split()) if lines else ""


def cpus():
    info = text_of("/proc/cpuinfo")
    model = re.search(r"^(?:model name|CPU part)\s*: (.*)", info, re.M)
    cores = {tuple(text_of(f"{CPU}/cpu{n}/topology/{what}") for what in (
        "physical_package_id", "core_id")) for n in os.sched_getaffinity(0)}
    governors = sorted({text_of(f"{CPU}/cpu{n}/cpufreq/scaling_governor")
                        or "none shown" for n in os.sched_getaffinity(0)})
    return {
        "CPU": f"{model[1] if model else 'unknown'} ({platform.machine()})",
        "CPUs allowed": f"{len(os.sched_getaffinity(0))} of {os.cpu_count()}, "
                        f"{len(cores)} cores, "
                        f"{len({package for package, _ in cores})} packages",
        "virtual": "yes" if re.search(r"^flags.*\bhypervisor\b", info, re.M)
                   else "not that the CPU says",
        "governor": ", ".join(governors),
    }


def memory():
    found = re.search(r"MemTotal:\s+(\d+) kB", text_of("/proc/meminfo"))
    return f"{int(found[1]) / (1 << 20):.1f} GB" if found else "unknown"


def built(build):
    """By which compiler, as that has written into it, and with which options
    libmarcel was made."""
    try:
        with open(os.path.join(build, "marcel", "libmarcel.so"), "rb") as f:
            by = re.search(rb"(?:GCC: |[^\0]*clang version )[^\0]+", f.read())
        with open(os.path.join(build, "meson-info", "intro-buildoptions.json"),
                  encoding="utf-8") as f:
            options = {o["name"]: o["value"] for o in json.load(f)}
    except (OSError, ValueError):
        return "unknown"
    compiler = by[0].decode(errors="replace") if by else "unknown compiler"
    return compiler + "".join(f", {name}={options[name]}" for name in (
        "buildtype", "optimization", "b_sanitize") if name in options)


def tree(root):
    commit = said(["git", "-C", root, "rev-parse", "--short=12", "HEAD"])
    if not commit:
        return "unknown"
    changed = subprocess.run(["git", "-C", root, "diff", "--quiet", "HEAD"],
                             stderr=subprocess.DEVNULL, check=False).returncode
    return commit + (" and changes" if changed else "")


def load():
    return " ".join(text_of("/proc/loadavg").split()[:3])


@functools.cache
def versions():
    """Of compilers and peers that are there."""
    boost = re.search(r'BOOST_LIB_VERSION "(.*)"', text_of(BOOST))
    found = {name: said(command) for name, command in VERSIONS.items()}
    found["Boost"] = boost[1].replace("_", ".") if boost else ""
    return {name: version for name, version in found.items() if version}


def describe(build, root):
    """{what: value}, as it is now."""
    variables = [f"{k}={v}" for k, v in sorted(os.environ.items())
                 if k.startswith(PREFIXES)]
    return {
        "command": shlex.join(sys.argv),
        "begun": time.strftime("%Y-%m-%d %H:%M:%S %z"),
        "load at start": load(),
        **cpus(),
        "memory": memory(),
        "kernel": f"{platform.system()} {platform.release()}",
        "C library": " ".join(platform.libc_ver()),
        "tree": tree(root),
        "build": built(build),
        **versions(),
        "variables": " ".join(variables) or "none of ours or the peers' are set",
    }


def path_beside(path):
    return os.path.join(os.path.dirname(path), NAME)


def write(path, description):
    """Beside these samples; what the load is now, too."""
    with open(path_beside(path), "w", newline="", encoding="utf-8") as f:
        out = csv.writer(f, lineterminator="\n")
        out.writerow(COLUMNS)
        out.writerows({**description, "load at end": load()}.items())


def read(path):
    """Of the machine of these samples; {} if nothing says which."""
    beside = path_beside(path)
    if not os.path.exists(beside):
        return {}
    with open(beside, newline="", encoding="utf-8") as f:
        rows = list(csv.reader(f))
    if rows[:1] != [COLUMNS] or any(len(row) != 2 for row in rows):
        raise samples.Wrong(f"{beside}: its lines are not {','.join(COLUMNS)}")
    return dict(rows[1:])


def differences(one, other):
    """[(what, in the one, in the other)]"""
    return [(what, one.get(what, "-"), other.get(what, "-"))
            for what in dict.fromkeys([*one, *other])
            if what not in OF_THE_RUN and one.get(what) != other.get(what)]
