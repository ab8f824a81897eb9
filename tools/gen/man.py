#!/usr/bin/env python3
"""Manual pages of section 3 from the public headers, whose comments they are.

  page HEADER OUTPUT     the page of one header, in mdoc
  links DIR HEADER...    a link in DIR for each function, to its header's page;
                         DIR is below DESTDIR's prefix where meson says one
  names HEADER...        "FUNCTION PAGE", a line each

A page shows each group of declarations and, below it, the comment that stands
above it in the header. What only a compiler of C++ sees is left out, and the
bodies of inline functions and of macros."""

import os
import re
import sys
import time

# Conditions that do not hold for a reader; of all others the first branch is
# shown.
FALSE = re.compile(r"__cplusplus|__EXCEPTIONS|__has_attribute")
FUNCTION = re.compile(
    r"^(?!typedef|struct \w+ \{|\s|#)[^;{}=]*?\b((?:marcel|piom|nm)_\w+)\s*\(", re.S
)
MACRO = re.compile(r"#define ((?:marcel|piom|nm)_\w+)\(")
ABOUT_INCLUDES = re.compile(r"^/\*.*\*/\n(?=(#if.*\n)?#include)", re.M)
QUALIFIERS = re.compile(r"^static inline |__extension__ ")
SENTENCE = re.compile(r"""(?<=[\w)'"][.!?])\s+""")
ESCAPES = {
    "\\": "\\e",
    "-": "\\-",
    "'": "\\(aq",
    "`": "\\(ga",
    "^": "\\(ha",
    "~": "\\(ti",
}


def page_of(path):
    """marcel/thread.h is marcel-thread(3), marcel/marcel.h is marcel(3)."""
    module = os.path.basename(os.path.dirname(path))
    name = os.path.splitext(os.path.basename(path))[0]
    return module if name == module else f"{module}-{name}"


# --- reading ---


def visible(lines):
    """Without directives, but for definitions, and what these switch off."""
    stack = []  # of (shown now, one branch was shown)
    undefined = {
        line.split()[1]: n
        for n, line in enumerate(lines)
        if line.startswith("#undef")
    }
    i = 0
    while i < len(lines):
        line = lines[i]
        i += 1
        word = re.match(r"#\s*(\w+)", line)
        word = word[1] if word else ""
        whole = line
        while word and whole.endswith("\\"):
            whole = whole[:-1].rstrip() + " " + lines[i].strip()
            i += 1
        if word in ("if", "ifdef", "ifndef"):
            holds = not FALSE.search(line)
            stack.append((holds, holds))
        elif word in ("elif", "else"):
            _, had = stack.pop()
            holds = not had and not FALSE.search(line)
            stack.append((holds, had or holds))
        elif word == "endif":
            stack.pop()
        elif all(shown for shown, _ in stack):
            if not word:
                yield line
            elif word == "define" and len(whole.split()) > 2:
                if undefined.get(re.split(r"\W", whole.split()[1])[0], 0) < i:
                    yield shorten(whole)


def shorten(define):
    """A macro with arguments is what one writes, not what it is made of."""
    call = re.match(r"#define \w+\([^)]*\)", define)
    return call[0] if call else define


def text_of(comment):
    """The lines of a comment without its stars."""
    body = re.sub(r"^/\*|\*/$", "", comment.strip())
    lines = [re.sub(r"^\s?\*( |$)?|^ ", "", l) for l in body.split("\n")]
    return "\n".join(l.expandtabs().rstrip() for l in lines).strip("\n")


def items(lines):
    """("text", comment), ("section", title) and ("code", declarations)."""
    code, depth = [], 0
    lines = iter(lines)
    for line in lines:
        if depth == 0 and line.startswith("/*"):
            while "*/" not in line:
                line += "\n" + next(lines)
            if "clang-format" in line:
                continue
            yield "code", code
            code = []
            title = re.match(r"/\* --- (.*) --- \*/", line)
            yield ("section", title[1]) if title else ("text", text_of(line))
            continue
        bare = re.sub(r"/\*.*?(\*/|$)", "", line)
        if bare == "{" and depth == 0 and is_function("\n".join(code)):
            while line != "}":
                line = next(lines)
            code[-1] += ";"
            continue
        depth += bare.count("{") - bare.count("}")
        if line.strip() or depth:
            code.append(line)
        elif code:
            yield "code", code
            code = []
    yield "code", code


def without_empty(all_items):
    """Sections in which nothing is left go."""
    for this, following in zip(all_items, all_items[1:] + [("section", "")]):
        if this[0] != "section" or following[0] != "section":
            yield this


def is_function(code):
    last = re.split(r";[^\n]*\n|^\s*$", code, flags=re.M)[-1]
    return FUNCTION.match(last.lstrip("\n")) is not None


class Header:
    """The file's own comment, and what follows, in order."""

    def __init__(self, path):
        self.path = path
        with open(path, encoding="utf-8") as f:
            text = f.read()
        comment, rest = text.split("*/", 1)
        self.intro = text_of(comment + "*/")
        rest = ABOUT_INCLUDES.sub("", rest)
        lines = list(visible(rest.split("\n")))
        self.items = list(without_empty([i for i in items(lines) if i[1]]))
        self.names = []
        for kind, value in self.items:
            if kind == "code":
                self.find_names(value)
        if not self.intro:
            sys.exit(f"{path}: it does not begin with a comment")

    def find_names(self, code):
        bare = re.sub(r"/\*.*?\*/", "", "\n".join(code), flags=re.S)
        bare = re.sub(r'"[^"]*"', "", bare)
        bare = re.sub(r"__attribute__\s*\(\(.*?\)\)(?=;|\n)", "", bare)
        for line in bare.split("\n"):
            macro = MACRO.match(line)
            if macro:
                self.names.append(macro[1])
        for piece in re.split(r";|^#[^\n]*$", bare, flags=re.M):
            function = FUNCTION.match(piece.strip())
            if function:
                self.names.append(function[1])


# --- writing ---


def escape(text):
    text = "".join(ESCAPES.get(c, c) for c in text)
    return "\\&" + text if text.startswith(".") else text


def literal(lines):
    yield ".Bd -literal"
    for line in lines:
        yield escape(QUALIFIERS.sub("", line.expandtabs(8)))
    yield ".Ed"


def is_drawn(paragraph):
    """Columns mean something: as it stands."""
    return re.search(r"^  |\S   *\S", paragraph, re.M) is not None


def prose(text):
    """Paragraphs, a sentence a line."""
    first = True
    for paragraph in re.split(r"\n\s*\n", text):
        drawn = is_drawn(paragraph)
        if not first and not drawn:
            yield ".Pp"
        first = False
        if drawn:
            yield from literal(paragraph.split("\n"))
            continue
        joined = " ".join(re.sub(r"(\w-)\n", r"\1", paragraph).split())
        for sentence in SENTENCE.split(joined):
            yield escape(sentence)


def short(intro):
    sentence = re.split(r"\.(?=\s|$)", " ".join(intro.split()))[0]
    sentence = re.sub(r"^[a-z]+( \(\w+\))?: ", "", sentence)
    if re.match(r"[A-Z][a-z]|A ", sentence):
        sentence = sentence[0].lower() + sentence[1:]
    return escape(sentence)


def date(path):
    epoch = os.environ.get("SOURCE_DATE_EPOCH") or os.path.getmtime(path)
    t = time.gmtime(float(epoch))
    return time.strftime("%B ", t) + f"{t.tm_mday}, {t.tm_year}"


def neighbours(path):
    folder = os.path.dirname(path)
    pages = {page_of(os.path.join(folder, n)) for n in os.listdir(folder)}
    return sorted(pages - {page_of(path)})


def body(header):
    """Declarations first, then what the header says of them above."""
    above = None
    for kind, value in header.items:
        if kind == "code":
            yield from literal(value)
            if above:
                yield ".Bl -item -offset indent"
                yield ".It"
                yield from prose(above)
                yield ".El"
            above = None
            continue
        if above:
            yield ".Pp"
            yield from prose(above)
        above = None
        if kind == "section":
            yield f".Ss {escape(value[0].upper() + value[1:])}"
        else:
            above = value
    if above:
        yield ".Pp"
        yield from prose(above)


def page(path):
    header, name = Header(path), page_of(path)
    module = name.split("-")[0]
    yield f'.\\" Made from {module}/{os.path.basename(path)} by tools/gen/man.py.'
    yield f".Dd {date(path)}"
    yield f".Dt {name.upper()} 3"
    yield ".Os"
    yield ".Sh NAME"
    names = [name] + [n for n in header.names if n != name]
    for i, n in enumerate(names):
        yield f".Nm {n}" + (" ," if i < len(names) - 1 else "")
    yield f".Nd {short(header.intro)}"
    yield ".Sh LIBRARY"
    yield f"lib{module}: \\-l{module}, or what pkg\\-config says of {module}"
    yield ".Sh SYNOPSIS"
    yield f".In {module}/{os.path.basename(path)}"
    yield ".Sh DESCRIPTION"
    yield from prose(header.intro)
    yield from body(header)
    yield ".Sh SEE ALSO"
    others = [f".Xr {n} 3" for n in neighbours(path)] + [".Xr marcel-env 7"]
    for line in others[:-1]:
        yield line + " ,"
    yield others[-1]


def write_page(path, output):
    with open(output, "w", encoding="utf-8") as f:
        f.write("\n".join(page(path)) + "\n")


def links(folder, paths):
    prefix = os.environ.get("MESON_INSTALL_DESTDIR_PREFIX", "")
    folder = os.path.join(prefix, folder)
    for path in paths:
        for name in Header(path).names:
            target = os.path.join(folder, name + ".3")
            if os.path.lexists(target):
                os.remove(target)
            os.symlink(page_of(path) + ".3", target)


def main():
    verb, rest = sys.argv[1], sys.argv[2:]
    if verb == "page":
        write_page(*rest)
    elif verb == "links":
        links(rest[0], rest[1:])
    elif verb == "names":
        for path in rest:
            for name in Header(path).names:
                print(name, page_of(path))
    else:
        sys.exit(f"man.py: {verb}: expected page, links or names")


if __name__ == "__main__":
    main()
