"""Programs in turns, A B C A B C ..., so that drifts of the machine hit all
alike, and tables of what they print: lines "name value unit".
"""
import os
import signal
import statistics
import subprocess

LIMIT = 300  # seconds for one run of one program
GRACE = 10  # seconds for a launcher that is told to end


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


class Job:
    """A command under a setting, and the name of that."""

    def __init__(self, name, command, env):
        self.name = name
        self.command = command
        self.env = env

    def run(self, limit=LIMIT):
        """{name: (value, unit)} of what it prints; subprocess's errors."""
        with subprocess.Popen(self.command, env=dict(os.environ, **self.env),
                              stdout=subprocess.PIPE, text=True,
                              start_new_session=True) as started:
            try:
                text, _ = started.communicate(timeout=limit)
            except BaseException:
                end(started)
                raise
        if started.returncode != 0:
            raise subprocess.CalledProcessError(started.returncode,
                                                self.command)
        values = {}
        for line in text.splitlines():
            name, value, unit = line.split()
            values[name] = (float(value), unit)
        return values


def take(jobs, rounds, record=None):
    """{name of the job: [{name: (value, unit)} per round]}; record(name, round,
    {name: (value, unit)}) is told of each."""
    results = {job.name: [] for job in jobs}
    for n in range(rounds):
        for job in jobs:
            values = job.run()
            results[job.name].append(values)
            if record is not None:
                record(job.name, n, values)
    return results


def median(runs, name):
    return statistics.median(r[name][0] for r in runs)


def pairs(runs, base, name, of):
    """of(value, the base's of the same round), sorted."""
    return sorted(of(r[name][0], b[name][0]) for r, b in zip(runs, base))


def ratio(runs, base, name):
    found = pairs(runs, base, name, lambda a, b: a / b)
    return (f"{statistics.median(found):5.2f} "
            f"({found[0]:.2f}..{found[-1]:.2f})")


def more_ns(runs, base, name):
    """How many ns more than the base's us."""
    found = pairs(runs, base, name, lambda a, b: 1000 * (a - b))
    return (f"{statistics.median(found):5.0f} "
            f"({found[0]:.0f}..{found[-1]:.0f})")


def beside(title, results, against, words):
    """The medians of each job, and what each is `against` the first."""
    first, *others = results
    print(f"\n{title}\n{'':18}{first:>14}"
          + "".join(f"{o:>14}   {words:22}" for o in others))
    for name, (_, unit) in results[first][0].items():
        line = f"{name:18}{median(results[first], name):14.4f}"
        for o in others:
            line += (f"{median(results[o], name):14.4f}   "
                     f"{against(results[o], results[first], name):22}")
        print(f"{line} {unit}", flush=True)
