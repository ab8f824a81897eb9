#!/usr/bin/env python3
"""What is left of ranks that do not come to their end: all that they did before,
and that they did not. Prints TAP."""

import os
import resource
import subprocess

from run import Run, arrows, equal, folder, has, lane, slices
import tap  # run.py has put its folder into the path

MPIRUN, ENDS = os.environ["MPIRUN"], os.environ["ENDS"]
resource.setrlimit(resource.RLIMIT_CORE, (0, 0))  # for abort()


def shown(how, *, dies):
    """The events, and what the tool has said; of two files, whatever happens."""
    with folder() as where:
        done = subprocess.run([MPIRUN, "-n", "2", ENDS, how], check=False,
                              capture_output=True, text=True,
                              env=dict(os.environ, MARCEL_TRACE=os.path.join(where, "t")))
        equal((done.returncode != 0), dies)
        equal(sorted(os.listdir(where)), ["t.0", "t.1"])
        run = Run(where, "--json", "t.json", "--html", "t.html", "--summary", "t")
        equal(run.code, 0)
        assert "lost" not in run.err and "no chunk" not in run.err, run.err
        return run.json(), run.err


def calls(events, rank):
    return [name for name, *_ in slices(events, lane(events, "main", 1000000 + rank),
                                        "mpi")]


def who_dies_in_mid_message_is_shown_up_to_there():
    """By a signal that nobody sees, and by one that is the program's own."""
    for how in ("kill", "abort"):
        events, err = shown(how, dies=True)
        has(err, "t.1: it has no end")
        equal(calls(events, 1)[-1], "MPI_Probe")
        has(str(calls(events, 0)), "MPI_Isend")
        large = [a for a in arrows(events) if a[2] == 5]
        equal([(a[0][0][0], a[1][0][0], a[3]) for a in large], [(0, 1, 4 << 20)])


def a_call_that_is_never_left_goes_on_to_the_end():
    events, err = shown("finalize", dies=True)
    has(err, "t.1: it has no end")
    has(err, "rank 1: main did not come back from MPI_Finalize")
    equal(calls(events, 1)[-1], "MPI_Finalize")


def the_child_of_a_fork_leaves_its_parents_file_alone():
    events, err = shown("fork", dies=False)
    assert "no end" not in err and "nobody" not in err, err
    for rank in range(2):
        equal(calls(events, rank)[-2:], ["MPI_Barrier", "MPI_Finalize"])
        users = [e["args"]["name"] for e in events if e["name"] == "thread_name"
                 and e["pid"] == 1000000 + rank]
        assert len(users) < 100, users  # a hundred are the child's


tap.run([
    who_dies_in_mid_message_is_shown_up_to_there,
    a_call_that_is_never_left_goes_on_to_the_end,
    the_child_of_a_fork_leaves_its_parents_file_alone,
])
