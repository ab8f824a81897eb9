#!/usr/bin/env python3
"""The manual pages: man.py SOURCE BUILD prints TAP.

Each public header has a page with all its functions, pages are what formatters
take without a warning, and a tool's page has the options that the tool has."""

import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
import tap  # noqa: E402

root, build = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2])
man3 = build / "doc/man"
MODULES = ["marcel", "pioman", "nmad", "madmpi"]
headers = sorted(h for m in MODULES for h in root.glob(f"{m}/include/{m}/*.h"))
pages = sorted(
    [*root.glob("tools/*/*.1"), *root.glob("doc/man/*.[1-9]"), *man3.glob("*.[1-9]")]
)


def run(*command, **more):
    done = subprocess.run(
        command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, **more
    )
    return done.returncode, done.stdout


def page_of(header):
    module = header.parent.name
    return man3 / f"{module if header.stem == module else module + '-' + header.stem}.3"


def text_of(header):
    page = page_of(header)
    assert page.exists(), f"{header.name} has no page: name it in doc/man/meson.build"
    return page.read_text()


def functions_of(header):
    """As tools/gen/man.py does not look for them: by what precedes a bracket."""
    text = re.sub(r"/\*.*?\*/", "", header.read_text(), flags=re.S)
    text = re.sub(r"^#(el)?if.*(__cplusplus|__EXC).*(\n(?!#e).*)*", "", text, flags=re.M)
    text = text.replace("\\\n", " ")
    text = re.sub(r"^#define (\w+\([^)]*\))?.*", r"\1", text, flags=re.M)
    text = re.sub(r"\n\{(\n.*)*?\n\}|\"[^\"]*\"", "", text)
    return set(re.findall(r"\b((?:marcel|piom|nm)_\w+)\(", text))


def each_function_of_a_header_is_named_on_its_page():
    assert headers, "no headers"
    for header in headers:
        text = text_of(header)
        names = set(re.findall(r"^\.Nm (\S+)", text, re.M))
        lacks = functions_of(header) - names
        assert not lacks, f"{page_of(header).name} lacks {sorted(lacks)}"


def each_comment_of_a_header_is_on_its_page():
    for header in headers:
        shown = text_of(header).replace("\\&", "")
        shown = re.sub(r"\\(e|\(aq|\(ha|\(ti|\(ga)|^\..*|\W", "", shown, flags=re.M)
        for comment in re.findall(r"^/\*(?! ---).*?\*/", header.read_text(), re.M | re.S):
            words = re.sub(r"\W", "", comment)
            known = "clangformat" in words or words.startswith("Allthatnames")
            assert known or words in shown, f"{header.name}: {comment}"


def the_table_of_variables_has_what_is_read():
    table = (root / "doc/variables.md").read_text()
    for source in (p for m in MODULES for p in root.glob(f"{m}/**/*.c")):
        for name in re.findall(r'getenv\("(\w+)"\)', source.read_text()):
            assert f"`{name}`" in table, f"{source.name} reads {name}"


def man_finds_a_function():
    tap.need("man")
    with tempfile.TemporaryDirectory() as d:
        folder = pathlib.Path(d, "man3")
        folder.mkdir()
        for page in man3.glob("*.3"):
            shutil.copy(page, folder)
        code, out = run(
            sys.executable, root / "tools/gen/man.py", "links", folder, *headers
        )
        assert code == 0, out
        for name in ("marcel_create", "piom_cond_wait", "nm_sr_isend"):
            code, out = run("man", "-M", d, "3", name)
            assert code == 0 and name in out, f"man {name}: {out[:200]}"


def man_has_no_warnings():
    tap.need("man")
    tap.need("groff")
    for page in pages:
        done = subprocess.run(
            ["man", "--warnings", "-E", "UTF-8", "-l", "-Tutf8", "-Z", page],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
        )
        assert not done.stderr, f"{page}: {done.stderr.decode()}"


def mandoc_has_no_warnings():
    tap.need("mandoc")
    code, out = run("mandoc", "-T", "lint", "-W", "warning", *pages)
    assert code == 0, out


def options_in(text):
    return set(re.findall(r"(?<![\w-])(--?[a-z][\w-]*)", text))


def program_of(page):
    """What is built, or a script; None: mpicc, which leaves --help to another."""
    for folder in (build, root):
        program = folder / "tools" / page.parent.name / page.stem
        if program.is_file() and page.stem != "mpicc":
            return program
    return None


def the_page_of_a_tool_has_its_options():
    tap.need("man")
    tools = 0
    for page in root.glob("tools/*/*.1"):
        program = program_of(page)
        if program is None:
            continue
        tools += 1
        environment = dict(os.environ, MANWIDTH="200")
        _, shown = run("man", "-l", page, env=environment)
        code, told = run(program, "--help")
        assert code == 0, f"{program} --help: {told}"
        shown = options_in(re.sub("[‐−]", "-", re.sub(".\b", "", shown)))
        # Those that a line begins with; other programs' are in its text.
        own = re.findall(r"^ +(-.*?)(?:  |$)", told, re.M)
        assert own, f"{program} --help shows none"
        lacks = options_in("\n".join(own)) - shown
        assert not lacks, f"{page.name} lacks {sorted(lacks)}"
    assert tools >= 4, f"only {tools} tools are there"


def the_page_of_mpicc_has_its_options():
    tap.need("man")
    script = (root / "tools/wrap/mpicc.in").read_text()
    code = "\n".join(l for l in script.split("\n") if not l.startswith("#"))
    cases = re.findall(r"^\t?([-|\w: ]+)\)", code, re.M)
    known = {o for c in cases for o in re.findall(r"(?<![\w-])-\w[\w:-]*", c)}
    _, shown = run("man", "-l", root / "tools/wrap/mpicc.1")
    assert len(known) > 10, known
    lacks = {o for o in known if o not in re.sub("[‐−]", "-", shown)}
    assert not lacks, f"mpicc.1 lacks {sorted(lacks)}"


tap.run([
    each_function_of_a_header_is_named_on_its_page,
    each_comment_of_a_header_is_on_its_page,
    the_table_of_variables_has_what_is_read,
    man_finds_a_function,
    man_has_no_warnings,
    mandoc_has_no_warnings,
    the_page_of_a_tool_has_its_options,
    the_page_of_mpicc_has_its_options,
])
