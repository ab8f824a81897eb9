"""Programs in turns, A B C A B C ..., so that drifts of the machine hit all
alike. They print lines "name value unit".
"""
import os
import select
import signal
import subprocess
import tempfile

import samples

LIMIT = 300  # seconds for one run of one program
GRACE = 10  # seconds for a launcher that is told to end


class Cannot(Exception):
    """What is not there, or has failed: as it is told."""


def why(wrong):
    """It failed, in a few words."""
    if isinstance(wrong, subprocess.TimeoutExpired):
        return f"not done after {wrong.timeout:.0f} s"
    if isinstance(wrong, subprocess.CalledProcessError):
        by = wrong.returncode
        said = (wrong.stderr or "").strip().splitlines()[-1:]
        return (f"exit code {by}" if by >= 0 else f"signal {-by}") + "".join(
            f": {line}" for line in said)
    if isinstance(wrong, LookupError):
        return f"{wrong} is not in what was printed"
    if isinstance(wrong, OSError) and wrong.filename:
        return f"{wrong.filename}: {wrong.strerror}"
    return str(wrong)


def end(launcher):
    """A launcher ends its ranks when it is asked to, else all are killed."""
    launcher.terminate()
    try:
        launcher.wait(GRACE)
    except subprocess.TimeoutExpired:
        pass
    try:
        os.killpg(launcher.pid, signal.SIGKILL)
    except ProcessLookupError:
        pass


def wait(launcher, limit):
    """Popen.wait() with a limit looks every 50 ms, and so would be measured."""
    fd = os.pidfd_open(launcher.pid)
    try:
        if not select.select([fd], [], [], limit)[0]:
            raise subprocess.TimeoutExpired(launcher.args, limit)
    finally:
        os.close(fd)
    return launcher.wait()


def values_of(text):
    values = {}
    for line in text.splitlines():
        try:
            name, value, unit = line.split()
            values[name] = (samples.finite(value), unit)
        except ValueError:
            raise ValueError(f"it printed '{line}', not NAME VALUE UNIT")
    return values


class Job:
    """A command under a setting, and the name of that."""

    def __init__(self, name, command, env):
        self.name = name
        self.command = command
        self.env = env

    def output(self, limit=LIMIT):
        """OSError and subprocess's errors."""
        with tempfile.TemporaryFile("w+", encoding="utf-8",
                                    errors="replace") as said:
            with subprocess.Popen(
                    self.command, env=dict(os.environ, **self.env),
                    stdout=said, start_new_session=True) as started:
                try:
                    code = wait(started, limit)
                except BaseException:
                    end(started)
                    raise
            if code != 0:
                raise subprocess.CalledProcessError(code, self.command)
            said.seek(0)
            return said.read()

    def run(self, limit=LIMIT):
        """{name: (value, unit)} of what it prints; ValueError, too."""
        return values_of(self.output(limit))


def take(every, rounds, out, limit=LIMIT, rename=lambda name: name, silent=()):
    """every: [(benchmark, setting, job)]. Names are stored as rename() has them.
    What fails is told, but of exit codes that are `silent`, and not run again;
    Cannot at the end if that was ours."""
    failed = {}
    for n in range(rounds):
        before = None
        for at in every:
            benchmark, setting, job = at
            if at in failed:
                continue
            if before != (benchmark, setting):
                before = benchmark, setting
                print(f"{benchmark}, {setting}, round {n + 1} ...", flush=True)
            try:
                values = job.run(limit)
            except (subprocess.SubprocessError, OSError, ValueError) as wrong:
                failed[at] = getattr(wrong, "returncode", None) not in silent
                if failed[at]:
                    print(f"{benchmark}, {setting}: {job.name} fails: "
                          f"{why(wrong)}; {' '.join(job.command)}", flush=True)
                continue
            out.add(benchmark, setting, job.name, n,
                    {rename(name): value for name, value in values.items()})
    ours_have_failed(at for at, told in failed.items()
                     if told and samples.is_ours(at[2].name))


def ours_have_failed(which):
    """Cannot, if there are any: benchmark, setting, job or its name."""
    names = sorted({" ".join([*of[:2], getattr(of[2], "name", of[2])])
                    for of in which})
    if names:
        raise Cannot("ours fails: " + ", ".join(names))
