"""Results that are made up, for the tests of tools/bench."""
import os
import subprocess
import sys

TOOLS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..",
                     "tools", "bench")
sys.path[:0] = [TOOLS, os.path.join(os.path.dirname(__file__), "..")]
import samples  # noqa: E402
import tap  # noqa: E402


def equal(found, wanted):
    assert found == wanted, f"{found}, not {wanted}"


def rounds(*values):
    return dict(enumerate(values))


def words(text):
    return " ".join(text.split())


def write(folder, rows, name=samples.SAMPLES):
    path = os.path.join(folder, name)
    os.makedirs(folder, exist_ok=True)
    with open(path, "w", encoding="utf-8") as f:
        f.write(",".join(samples.COLUMNS) + "\n")
        f.writelines(",".join(map(str, row)) + "\n" for row in rows)
    return path


def some():
    """Latency: ours takes half as long as a, the better one; b failed in the
    last round. Of overlap 1 of 1 is hidden; a hides nothing."""
    rows = []
    for n in range(5):
        drift = 1 + n
        for size, us in (("8B", 1), ("64K", 20), ("1M", 300)):
            name = f"latency_{size}"
            rows.append(["latency", "shm", "ours", n, name, us * drift, "us"])
            rows.append(["latency", "shm", "a", n, name, 2 * us * drift, "us"])
            if n < 4:
                rows.append(["latency", "shm", "b", n, name, 3 * us * drift,
                             "us"])
        for size in ("32K", "1M"):
            rows.append(["overlap", "tcp", "ours", n, f"hidden_sender_{size}",
                         1.0, "share"])
            rows.append(["overlap", "tcp", "a", n, f"hidden_sender_{size}",
                         0.0, "share"])
    return rows


def tool(name, *args, **env):
    return subprocess.run(
        [sys.executable, os.path.join(TOOLS, name), *args],
        capture_output=True, text=True, check=False,
        env=dict(os.environ, **env))
