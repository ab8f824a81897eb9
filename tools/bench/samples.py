"""Results: folders with samples.csv, what programs printed in each round, and
machine.csv, on what machine that was.
"""
import csv
import io
import os
import re

COLUMNS = ["benchmark", "setting", "library", "round", "name", "value", "unit"]
SAMPLES = "samples.csv"
OURS = "ours"
UNITS = {"B": 1, "K": 1 << 10, "M": 1 << 20, "": 1}


class Wrong(Exception):
    """A file that is none of ours: which, where and why."""


class Sheet:
    """One benchmark in one setting: over a network, on so many CPUs."""

    def __init__(self, benchmark, setting):
        self.benchmark = benchmark
        self.setting = setting
        self.units = {}  # name: unit, in the order of the program
        self.libraries = {}  # library: {name: {round: value}}

    def add(self, library, n, name, value, unit):
        if self.units.setdefault(name, unit) != unit:
            raise ValueError(f"{name} is in {unit} and {self.units[name]}")
        of = self.libraries.setdefault(library, {}).setdefault(name, {})
        if n in of:
            raise ValueError(f"round {n} of {library}'s {name} is there twice")
        of[n] = value

    def of(self, library, name):
        return self.libraries.get(library, {}).get(name, {})

    def ours(self):
        return [x for x in self.libraries if is_ours(x)]

    def peers(self, name):
        return {x: self.of(x, name) for x in self.libraries if not is_ours(x)}

    def rounds(self):
        return len({n for names in self.libraries.values()
                    for values in names.values() for n in values})


def is_ours(library):
    return library == OURS or library.startswith(OURS + " ")


def point(name):
    """Series and x of a name; x is None if it has none."""
    found = re.fullmatch(r"(.+)_(\d+)([BKM]?)", name)
    if found is None:
        return name, None
    return found[1], int(found[2]) * UNITS[found[3]]


# --- writing ---

class Writer:
    """What is there of an earlier run is gone. There is a folder, and a file in
    it, as soon as there is a sample. To be used by `with`."""

    def __init__(self, path):
        if os.path.exists(path):
            os.remove(path)
        self.path = path
        self.file = None

    def is_empty(self):
        return self.file is None

    def add(self, benchmark, setting, library, n, values):
        """values: {name: (value, unit)}"""
        if self.is_empty() and values:
            os.makedirs(os.path.dirname(self.path), exist_ok=True)
            self.file = open(self.path, "w", newline="", encoding="utf-8")
            self.write([COLUMNS])
        self.write([benchmark, setting, library, n, name, value, unit]
                   for name, (value, unit) in values.items())

    def write(self, rows):
        """At once, so that no half of a line is there if the run is cut off."""
        text = io.StringIO()
        csv.writer(text, lineterminator="\n").writerows(rows)
        if not self.is_empty():
            self.file.write(text.getvalue())
            self.file.flush()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if not self.is_empty():
            self.file.close()


# --- reading ---

def finite(text):
    value = float(text)
    if value != value or value in (float("inf"), float("-inf")):
        raise ValueError(f"value {text} is no number")
    return value


def read_file(path):
    """Sheets in the order of the file."""
    try:
        with open(path, newline="", encoding="utf-8") as f:
            text = f.read()
    except (OSError, UnicodeDecodeError) as wrong:
        raise Wrong(f"{path}: {getattr(wrong, 'strerror', None) or wrong}")
    rows = csv.DictReader(io.StringIO(text, newline=""))
    if rows.fieldnames != COLUMNS:
        raise Wrong(f"{path}: its columns are not {','.join(COLUMNS)}")
    sheets = {}
    try:
        for row in rows:
            if None in row or None in row.values():
                raise ValueError(f"not {len(COLUMNS)} fields")
            key = row["benchmark"], row["setting"]
            sheets.setdefault(key, Sheet(*key)).add(
                row["library"], int(row["round"]), row["name"],
                finite(row["value"]), row["unit"])
        if not text.endswith("\n"):
            raise ValueError("it is cut off")
    except (ValueError, csv.Error) as wrong:
        raise Wrong(f"{path}, line {rows.line_num}: {wrong}")
    return list(sheets.values())


def files(place):
    """The samples of a result: the file itself, or those in its folder and in
    the folders of that."""
    if not os.path.isdir(place):
        return [place]
    found = [os.path.join(place, SAMPLES)]
    found += [os.path.join(place, sub, SAMPLES)
              for sub in sorted(os.listdir(place))]
    found = [path for path in found if os.path.isfile(path)]
    if not found:
        raise Wrong(f"{place}: neither it nor a folder in it has {SAMPLES}")
    return found


def read(place):
    """{path of the samples: its sheets}; one benchmark in one setting is in one
    of the files."""
    result, seen = {}, {}
    for path in files(place):
        result[path] = read_file(path)
        for sheet in result[path]:
            key = sheet.benchmark, sheet.setting
            if seen.setdefault(key, path) != path:
                raise Wrong(f"{path}: {', '.join(key)} is in {seen[key]}, too")
    if not seen:
        raise Wrong(f"{place}: no samples are in it")
    return result
