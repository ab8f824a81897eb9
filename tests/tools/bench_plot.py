#!/usr/bin/env python3
"""The page and the pictures that tools/bench/plot.py makes of made-up results."""
import base64
import os
import re
import tempfile
import xml.etree.ElementTree as xml

import bench_samples as made
from bench_samples import equal, tap

# What has no x: bars. Of what has two, a peer has none.
BARS = [["waiting", "shm", library, n, name, value + n / 1000, "cores"]
        for library, value in (("ours", 0.0005), ("a", 0.9))
        for n in range(3) for name in ("recv", "barrier")
        if (library, name) != ("a", "barrier")]
MACHINE = "what,value\ncommand,run.py --rounds 5 mpi\nCPU,Z80 <8 bits>\n"


def plot(folder, *args, machine=MACHINE, rows=None, **env):
    path = made.write(os.path.join(folder, "mpi"), rows or made.some() + BARS)
    if machine:
        with open(os.path.join(folder, "mpi", "machine.csv"), "w",
                  encoding="utf-8") as f:
            f.write(machine)
    done = made.tool("plot.py", *(args or [folder]), **env)
    return path, done


def page_of(folder):
    with open(os.path.join(folder, "report.html"), encoding="utf-8") as f:
        return f.read()


def inlined(page):
    return [xml.fromstring(base64.b64decode(data)) for data in re.findall(
        r'src="data:image/svg\+xml;base64,([^"]+)"', page)]


def texts(picture):
    return " ".join("".join(e.itertext()).strip() for e in picture.iter(
        "{http://www.w3.org/2000/svg}text"))


def a_page_has_all_pictures_in_it():
    tap.need("gnuplot")
    with tempfile.TemporaryDirectory() as folder:
        _, done = plot(folder)
        equal((done.returncode, done.stderr), (0, ""))
        equal(done.stdout.strip(), os.path.join(folder, "report.html"))
        page = page_of(folder)
        pictures = list(map(texts, inlined(page)))
        equal(len(pictures), 3)
        equal(page.count("<img"), 3)
        for text, wanted in zip(pictures, (
                ["latency, shm", "ours", "a", "b", "8B", "64K", "1M",
                 "time [µs], less is better", "message size [bytes]", "1,000"],
                ["overlap, tcp: hidden_sender",
                 "hidden share, more is better"],
                ["waiting, shm", "recv", "barrier", "[cores]"])):
            for word in wanted:
                assert word in text, f"no {word} in {text}"
        # Nothing is fetched from elsewhere.
        equal(re.findall(r'(?:src|href)="(?!data:|#)', page), [])


def what_has_no_peers_shares_a_picture():
    """Series of one unit; what is held against 1 is a difference."""
    rows = [["match", "tables", "ours", 0, f"{series}_{n}", n / 10, "ns"]
            for series in ("shuffle", "unexpected") for n in (10, 1000)]
    rows += [["pioman_progress", "polled", "ours", 0, name, 1.02, "ratio"]
             for name in ("clock_auto", "clock_poll")]
    with tempfile.TemporaryDirectory() as folder:
        _, done = plot(folder, rows=rows)
        equal((done.returncode, done.stderr), (0, ""))
        pictures = list(map(texts, inlined(page_of(folder))))
        equal(len(pictures), 2)
        progress, match = pictures
        for text, wanted in ((match, ["match, tables", "shuffle",
                                      "unexpected", "messages at once", "10",
                                      "1,000"]),
                             (progress, ["clock_auto", "change [%]"])):
            for word in wanted:
                assert word in text, f"no {word} in {text}"


def pictures_lie_beside_it():
    tap.need("gnuplot")
    with tempfile.TemporaryDirectory() as folder:
        plot(folder)
        found = sorted(os.listdir(os.path.join(folder, "pictures")))
        equal(found, [f"{name}.{kind}" for name in (
            "latency-shm-latency", "overlap-tcp-hidden_sender",
            "waiting-shm-cores") for kind in ("png", "svg")])
        for name in found[::2]:
            with open(os.path.join(folder, "pictures", name), "rb") as f:
                equal(f.read(8), b"\x89PNG\r\n\x1a\n")


def ratios_machine_and_command_are_told():
    tap.need("gnuplot")
    with tempfile.TemporaryDirectory() as folder:
        plot(folder)
        page = page_of(folder)
        for text in (
                "<td>0.50 (0.50..0.50) a</td><td>us</td>"
                "<td class='met'>&lt;= 0.9: met</td>",
                "<td>+1.00 (1.00..1.00) a</td>",
                "<td>CPU</td><td>Z80 &lt;8 bits&gt;</td>",
                "<td>command</td><td>run.py --rounds 5 mpi</td>"):
            assert text in page, f"no {text} in\n{page}"


def what_is_not_there_is_said():
    tap.need("gnuplot")
    with tempfile.TemporaryDirectory() as folder:
        plot(folder, machine=None)
        page = page_of(folder)
        assert "there is no machine.csv beside it" in page, page
        bandwidth = page.split(">Bandwidth</h2>")[1].split("<h2")[0]
        assert "Not in this result." in bandwidth, bandwidth


def results_of_several_folders_are_one_page():
    tap.need("gnuplot")
    with tempfile.TemporaryDirectory() as folder:
        other = os.path.join(folder, "other")
        made.write(other, [["rpc", "tcp", "ours", 0, "call", 2, "us"]])
        place = os.path.join(folder, "page")
        path, done = plot(os.path.join(folder, "one"), "--out", place,
                          os.path.join(folder, "one"), other)
        equal((done.returncode, done.stderr), (0, ""))
        page = page_of(place)
        assert path in page and "rpc, tcp: ours, rounds: 1" in page, page
        equal(len(inlined(page)), 4)


def without_gnuplot_it_says_so():
    with tempfile.TemporaryDirectory() as folder:
        empty = os.path.join(folder, "empty")
        os.mkdir(empty)
        _, done = plot(folder, PATH=empty)
        equal(done.returncode, 1)
        assert "plot: gnuplot is not in the PATH" in done.stderr, done.stderr
        equal(sorted(os.listdir(folder)), ["empty", "mpi"])


def a_gnuplot_that_fails_is_no_page():
    with tempfile.TemporaryDirectory() as folder:
        stub = os.path.join(folder, "bin", "gnuplot")
        os.mkdir(os.path.dirname(stub))
        with open(stub, "w", encoding="utf-8") as f:
            f.write("#!/bin/sh\necho no fonts >&2\nexit 1\n")
        os.chmod(stub, 0o755)
        _, done = plot(folder, PATH=os.path.dirname(stub))
        equal(done.returncode, 1)
        assert "could not draw latency-shm-latency: no fonts" in done.stderr, \
            done.stderr
        assert not os.path.exists(os.path.join(folder, "report.html"))


def wrong_files_are_named():
    with tempfile.TemporaryDirectory() as folder:
        path, done = plot(folder, rows=[["latency", "shm", "ours"]])
        equal(done.returncode, 1)
        assert f"plot: {path}, line 2: not 7 fields" in done.stderr, done.stderr
        missing = os.path.join(folder, "none")
        done = made.tool("plot.py", missing)
        equal(done.returncode, 1)
        assert f"plot: {missing}: No such file" in done.stderr, done.stderr
        made.write(os.path.join(folder, "twice"), made.some())
        made.write(os.path.join(folder, "mpi"), made.some())
        done = made.tool("plot.py", folder)
        assert "latency, shm is in " in done.stderr, done.stderr
        equal(made.tool("plot.py", "--colour").returncode, 2)


tap.run([a_page_has_all_pictures_in_it,
         what_has_no_peers_shares_a_picture, pictures_lie_beside_it,
         ratios_machine_and_command_are_told, what_is_not_there_is_said,
         results_of_several_folders_are_one_page, without_gnuplot_it_says_so,
         a_gnuplot_that_fails_is_no_page, wrong_files_are_named])
