"""A browser without a window, and a job to show in it."""

import shutil
import subprocess
import tempfile

import run  # noqa: F401; puts the folder of tap.py into the path
import tap
from writer import FOREIGN, Writer

BROWSERS = ["chromium", "chromium-browser", "google-chrome", "chrome"]
BROWSER = next(filter(None, map(shutil.which, BROWSERS)), None)
A, B = 0x1000, 0x2000


def job():
    """Two ranks; "main" sends 8 bytes with tag 7, "solver" takes them in."""
    ranks = [Writer(r, 2, "alpha", 2, program="made <b>up") for r in range(2)]
    for w in ranks:
        w.new(0, 0, A, "main")
        w.new(10, 0, B, "solver")
        w.run(20, 0, A)
        w.run(30, 1, B)
    a, b = ranks
    a.enter(1000, 0, "MPI_Send")
    a.send(1200, 0, 1, peer=1, tag=7, bytes=8)
    a.leave(1500, 0, "MPI_Send")
    b.enter(900, 1, "MPI_Recv")
    b.block(1000, 1, B, "a message")
    b.idle(1050, 1)
    b.arrive(2800, 1, 1, peer=0, tag=7, bytes=8)
    b.receive(2900, 1, 1, peer=0, tag=7, bytes=8)
    b.ltask(3000, 1, 250, 0xF00)
    b.ready(3000, 1, B)
    b.run(3100, 1, B)
    b.leave(3200, 1, "MPI_Recv")
    b.lane(3900, FOREIGN, 55, "watcher")
    b.interrupt(4000, FOREIGN, 9)
    b.send(5000, 0, 1, peer=0, tag=77, bytes=1 << 20)
    a.arrive(7000, 1, 1, peer=1, tag=77, bytes=1 << 20)
    a.receive(8000, 1, 1, peer=1, tag=77, bytes=1 << 20)
    for w in ranks:
        w.block(8500, 0, A, "join")
        w.idle(8600, 0)
        w.sleep(9000, 0)
        w.block(9300, 1, B, "cond")
        w.idle(9400, 1)
        w.wake(10000, 0)
    a.new_chunk(0, lost=5)
    a.idle(12000, 0)
    return ranks


def browse(path, place, *options):
    """With a folder of its own, so that no other browser is asked to do it."""
    if BROWSER is None:
        raise tap.Skip("no chromium here")
    with tempfile.TemporaryDirectory() as own:
        return subprocess.run(
            [BROWSER, "--headless", "--no-sandbox", "--disable-gpu", "--no-first-run",
             "--host-resolver-rules=MAP * ~NOTFOUND", "--enable-logging=stderr",
             f"--user-data-dir={own}", "--window-size=1000,800", *options,
             f"file://{path}#{place}"],
            capture_output=True, check=False, timeout=110,
        )
