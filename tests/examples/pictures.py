#!/usr/bin/env python3
"""The shipped pictures are those that their script makes, byte for byte."""
import pathlib
import subprocess
import sys
import tempfile

shipped = pathlib.Path(sys.argv[1]) / "examples" / "pictures"
with tempfile.TemporaryDirectory() as made:
    subprocess.run([sys.executable, shipped / "make.py", made], check=True)
    names = sorted(p.name for p in pathlib.Path(made).iterdir())
    assert names == ["coals.ppm", "sparks.pgm"], names
    for name in names:
        same = (shipped / name).read_bytes() == (
            pathlib.Path(made) / name
        ).read_bytes()
        assert same, f"{name} differs from what make.py makes"
