#!/usr/bin/env python3
"""Completion of mpirun: what mpirun itself says, and what bash and zsh make of
it when somebody types at a terminal.

complete.py MPIRUN SCRIPTS: prints TAP. SCRIPTS is the folder of mpirun.bash.
"""

import os
import pathlib
import pty
import re
import select
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
import tap  # noqa: E402

LIMIT_S = int(os.environ.get("TEST_TIMEOUT", "120")) or None

mpirun, scripts = (pathlib.Path(p).resolve() for p in sys.argv[1:3])


def asked(*words):
    """What may come, each with its text; or what it is (":files")."""
    told = subprocess.run([mpirun, "--complete", *words], check=True,
                          stdout=subprocess.PIPE, text=True).stdout
    lines = told.splitlines()
    if lines and lines[0].startswith(":"):
        assert len(lines) == 1, told
        return lines[0]
    assert all(line.count("\t") == 1 for line in lines), told
    return dict(line.split("\t") for line in lines)


def equal(got, wanted):
    assert got == wanted, f"{got}, not {wanted}"


# --- what mpirun says ---


def options_are_those_of_help():
    shown = subprocess.run([mpirun, "--help"], check=True,
                           stdout=subprocess.PIPE, text=True).stdout
    names = set()
    for line in re.findall(r"^  (-.*)", shown, re.M):
        names |= set(re.findall(r"--?[a-z][a-z-]*", line.split("  ")[0]))
    equal(set(asked("-")), names)
    assert all(asked("-").values()), "one has no text"


def options_go_on_as_they_begin():
    equal(set(asked("-n", "2", "--t")), {"--tag-output", "--timeout"})
    equal(asked("--no-such"), {})


def values_are_what_the_option_takes():
    equal(set(asked("--bind-to", "")),
          {"core", "hwthread", "l3cache", "numa", "package", "none"})
    equal(set(asked("--bind-to", "n")), {"numa", "none"})
    equal(set(asked("--bind-to=n")), {"--bind-to=numa", "--bind-to=none"})
    equal(set(asked("-initial-errhandler", "mpi_errors_a")),
          {"mpi_errors_are_fatal", "mpi_errors_abort"})
    equal(asked("-n", ""), {})
    equal(asked("-wdir", "/t"), ":directories")
    equal(asked("--wdir=/t"), ":directories")
    equal(asked("-configfile", ""), ":files")
    equal(asked("-x", "PA"), ":variables")


def each_word_offered_is_taken():
    for option in ["--bind-to", "--initial-errhandler"]:
        for word in asked(option, ""):
            subprocess.run([mpirun, option, word, "true"], check=True,
                           stderr=subprocess.DEVNULL)


def programs_come_after_options():
    equal(asked(""), ":command 0")
    equal(asked("-n", "2", "--tag-output", "l"), ":command 3")
    equal(asked("-n", "2", "ls", "-"), ":command 2")
    equal(asked("-n", "2", "--", "-"), ":command 3")
    equal(asked("--bind-to=core", "ls", "--bind-to", ""), ":command 1")


def each_colon_begins_anew():
    equal(asked("-n", "2", "ls", "-l", ":", "l"), ":command 5")
    equal(set(asked("ls", ":", "--tag")), {"--tag-output"})
    equal(asked("ls", ":", "-n", "1", "ls", "-", "a"), ":command 4")


# --- what shells make of it ---


class Terminal:
    """A shell that somebody types at. What it shows is waited for."""

    def __init__(self, folder, *command):
        self.pid, self.fd = pty.fork()
        if self.pid == 0:
            os.chdir(folder)
            os.environ.update(
                PATH=f"{folder}:/usr/bin:/bin", TERM="dumb",
                HOME=folder, HISTFILE="", MADMPI_WORD_OF_THE_TEST="1")
            os.execvp(command[0], command)
        self.seen = ""

    def until(self, text):
        while text not in self.seen:
            ready, _, _ = select.select([self.fd], [], [], LIMIT_S)
            assert ready, f"{text!r} does not come after {self.seen!r}"
            try:
                self.seen += os.read(self.fd, 4096).decode()
            except OSError:
                raise AssertionError(f"it ends: {self.seen!r}") from None

    def type(self, text):
        self.seen = ""
        os.write(self.fd, text.encode())

    def completes(self, typed, shown):
        """The tab makes it that. The line is dropped then."""
        self.type(typed + "\t")
        self.until(shown)
        self.type("\x15")

    def close(self):
        os.close(self.fd)
        os.waitpid(self.pid, 0)


def completes_at_a_terminal(shell, *start):
    tap.need(shell[0])
    with tempfile.TemporaryDirectory() as folder:
        os.mkdir(f"{folder}/a-folder")
        program = pathlib.Path(folder, "prog-of-the-test")
        program.write_text("#!/bin/sh\n")
        program.chmod(0o755)
        for name in ["mpirun", "mpiexec"]:
            pathlib.Path(folder, name).symlink_to(mpirun)
        terminal = Terminal(folder, *shell)
        for line in start:
            terminal.type(line + "\n")
        terminal.type("echo rea''dy\n")
        terminal.until("ready\r\n")
        terminal.completes("mpirun --ta", "mpirun --tag-output ")
        terminal.completes("mpiexec --report", "mpiexec --report-bindings ")
        terminal.completes("mpirun --bind-to pac", "--bind-to package ")
        terminal.completes("mpirun --bind-to=pac", "--bind-to=package ")
        terminal.completes("mpirun -n 2 -wdir a-f", "-wdir a-folder/")
        terminal.completes("mpirun --wdir=a-f", "--wdir=a-folder/")
        terminal.completes("mpirun -x MADMPI_WORD", "MADMPI_WORD_OF_THE_TEST")
        terminal.completes("mpirun -n 2 prog-of", "-n 2 prog-of-the-test ")
        terminal.completes("mpirun ls : -n 2 ./prog-of",
                           ": -n 2 ./prog-of-the-test ")
        terminal.completes("mpirun ls a-f", "mpirun ls a-folder/")
        terminal.close()


def bash_completes():
    completes_at_a_terminal(
        ["bash", "--norc", "--noprofile", "-i"],
        "bind 'set enable-bracketed-paste off'",
        f"PS1='$ '; source {scripts}/mpirun.bash")


def zsh_completes():
    completes_at_a_terminal(
        ["zsh", "-f", "-i"],
        "unsetopt zle_bracketed_paste; unset zle_bracketed_paste; PS1='$ '",
        f"mkdir functions; cp {scripts}/mpirun.zsh functions/_mpirun",
        "fpath=($PWD/functions $fpath)",
        "autoload -U compinit; compinit -u -D")


tap.run([options_are_those_of_help, options_go_on_as_they_begin,
         values_are_what_the_option_takes, each_word_offered_is_taken,
         programs_come_after_options, each_colon_begins_anew,
         bash_completes, zsh_completes])
