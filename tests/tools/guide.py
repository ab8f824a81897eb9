#!/usr/bin/env python3
"""doc/guide.md, word by word: guide.py SOURCE BUILD [--clone]. Prints TAP, a test a
chapter.

What stands behind <!-- file: NAME --> is written there, blocks of sh are run, one
after the other as in one terminal, and a block of text is what the one before it
has printed; ... in it is anything. Blocks of `sh slurm` are run in tools/lab/slurm,
those of `sh gdb` where gdb may attach.

With --clone the guide begins in a clone of SOURCE and its install commands are run
as they stand, which takes minutes. Without, they install BUILD, as it is."""

import pathlib
import re
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
import tap  # noqa: E402

root, build = pathlib.Path(sys.argv[1]), sys.argv[2]
is_clone = "--clone" in sys.argv[3:]

# `meson install` puts BUILD where --prefix would have had it.
IN_PLACE = """
ninja() { :; }
meson() {
	[[ $1 == install ]] || return 0
	DESTDIR=$HOME/root command meson install -C '%s' --no-rebuild --quiet
	local mpicc=$(find "$HOME/root" -path '*/bin/mpicc')
	ln -s "${mpicc%%/bin/mpicc}" "$HOME/mpi"
}
"""


def blocks(text):
    """(kind, argument, block) in their order."""
    name = None
    pattern = r"^<!-- file: (\S+) -->$|^```(\w+) ?(\w*)\n(.*?)^```$|^## ([^\n]*)$"
    for match in re.finditer(pattern, text, re.M | re.S):
        file, kind, how, block, title = match.groups()
        if title:
            yield "chapter", title, ""
        elif kind and name:
            yield "file", name, block
        elif kind in ("sh", "text"):
            yield kind, how, block
        elif kind:
            sys.exit(f"doc/guide.md: a block of {kind} that is no file:\n{block}")
        name = file


class Terminal:
    """Keeps the folder and the variables from block to block."""

    def __init__(self, home):
        self.home = home
        self.state = home / ".state"
        self.printed = ""
        self.run(f"cd '{root}'", env={"HOME": str(home)})
        if is_clone:
            self.run(f"git clone -q '{root}' \"$HOME/clone\"; cd \"$HOME/clone\"")

    def run(self, block, how="", env=None, before=""):
        script = self.home / ".script"
        load = f". '{self.state}'\n" if self.state.exists() else ""
        keep = f"\n{{ export -p; echo \"cd '$PWD'\"; }} >'{self.state}'\n"
        script.write_text(f"{load}{before}set -e\n{block}{keep}")
        command = ["bash", script]
        if how == "gdb":
            tap.need("gdb")
        if how == "slurm":
            command = [root / "tools/lab/slurm", "up", "2", *command]
        command = ["env", "-u", "LD_LIBRARY_PATH", *command]
        command[3:3] = [f"{v}={text}" for v, text in (env or {}).items()]
        done = subprocess.run(
            [*command],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        if how == "slurm" and done.returncode == 77:
            raise tap.Skip(done.stdout.strip())
        if how == "gdb" and "ptrace: " in done.stdout:
            raise tap.Skip("the kernel does not let gdb attach")
        if how == "gdb" and "has no debug information" in done.stdout:
            raise tap.Skip("a build without debug information")
        # How Slurm says that the last job is not over everywhere.
        self.printed = re.sub(r"^srun: job \d+ .*\n", "", done.stdout, flags=re.M)
        assert done.returncode == 0, f"{block}exit code {done.returncode}\n{self.printed}"

    def has_printed(self, text):
        pattern = re.escape(text).replace(r"\.\.\.", ".*")
        assert re.fullmatch(pattern, self.printed, re.S), (
            f"shown:\n{text}printed:\n{self.printed}"
        )

    def folder(self):
        cd = self.state.read_text().strip().split("\n")[-1]
        return pathlib.Path(cd[len("cd '") : -1])


def chapter(terminal, steps, title):
    before = ""
    if title == "Install" and not is_clone:
        before = IN_PLACE % build
    for kind, argument, block in steps:
        if kind == "file":
            (terminal.folder() / argument).write_text(block)
        elif kind == "sh":
            terminal.run(block, argument, before=before)
        else:
            terminal.has_printed(block)


def results(chapters):
    with tempfile.TemporaryDirectory(prefix="guide.") as home:
        terminal = Terminal(pathlib.Path(home))
        for title, steps in chapters:
            yield title, tap.wrong_with(chapter, terminal, steps, title)


def main():
    chapters = []
    for kind, argument, block in blocks((root / "doc/guide.md").read_text()):
        if kind == "chapter":
            chapters.append((argument, []))
        else:
            chapters[-1][1].append((kind, argument, block))
    sys.exit(tap.tell(len(chapters), results(chapters)))


if __name__ == "__main__":
    main()
