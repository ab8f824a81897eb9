#!/usr/bin/env python3
"""The page of marcel-trace --html, in a browser without a window: what its code
says that it has drawn, and that there is a picture. Prints TAP."""

import functools
import html
import json
import os
import re
import struct
import tempfile
import zlib

import browser
from run import Run, equal, folder, has
import tap  # run.py has put its folder into the path
from writer import Writer, job

A, B, C = 0x1000, 0x2000, 0x3000


@functools.cache
def page_of(make):
    """What marcel-trace makes of these writers."""
    with folder(*make()) as where:
        equal(Run(where, "--html", "t.html", "t").code, 0)
        with open(os.path.join(where, "t.html"), encoding="utf-8") as f:
            return f.read()


def browse(make, place="", script=""):
    """(its text, a picture); after what a script has done to it."""
    with tempfile.NamedTemporaryFile("w", suffix=".html", encoding="utf-8") as f:
        f.write(page_of(make) + script)
        f.flush()
        text, picture, said = browser.look(f.name, place)
    assert not said, "\n".join(said)
    return text, picture


def drawn(make, place="", script=""):
    """What the page says, and its text."""
    text, _ = browse(make, place, script)
    told = re.search(r'data-drawn="([^"]*)"', text)
    assert told, text[-2000:]
    return json.loads(html.unescape(told[1])), text


@functools.cache
def whole():
    return drawn(job)


def expected_lanes_are_drawn():
    found, text = whole()
    equal(found["lanes"], [
        "rank 0: VP 0", "rank 0: VP 1", "rank 0: user threads", "rank 0: main",
        "rank 0: solver", "rank 1: VP 0", "rank 1: VP 1", "rank 1: watcher (55)",
        "rank 1: user threads", "rank 1: main", "rank 1: solver",
    ])
    equal(found["marks"], 1)
    has(text, "<h1>made &lt;b&gt;up</h1>")
    has(text, "rank 0: 5 events were lost")
    for kind in ("thread", "mpi", "ltask", "idle", "sleeping", "ready", "blocked",
                 "lost"):
        assert found["kinds"].get(kind, 0) > 0, (kind, found["kinds"])
    for name in ("main", "solver", "MPI_Recv", "a message", "5 events lost"):
        assert name in found["texts"], (name, found["texts"])


def arrows_lead_to_the_receivers():
    found, _ = whole()
    equal(found["arrows"], [
        "rank 0: VP 0 -> rank 1: VP 1, tag 7, 8 bytes",
        "rank 1: VP 0 -> rank 0: VP 1, tag 77, 1048576 bytes",
    ])


def a_stretch_shows_what_happens_then():
    found, _ = drawn(job, "from=0.0000002&to=0.0000008&threads=0")
    equal(found["arrows"], [])
    equal(found["kinds"], {"thread": 4})
    equal(found["lanes"][2:4], ["rank 0: user threads", "rank 1: VP 0"])
    found, _ = drawn(job, "from=0.000002&to=0.0000025&find=nobody")
    equal(found["arrows"], ["rank 0: VP 0 -> rank 1: VP 1, tag 7, 8 bytes"])
    equal(found["matches"], 0)


def a_search_finds_tags_and_names():
    found, text = drawn(job, "find=tag 7")
    has(text, 'data-found="1"')
    equal(len(found["arrows"]), 2)
    found, text = drawn(job, "find=mpi_recv")
    has(text, 'data-found="3"')
    equal(found["matches"], 3)


USER = """<script>
const canvas = document.getElementById("picture");
const box = canvas.getBoundingClientRect();

canvas.setPointerCapture = () => {}; /* there is no such pointer */
function mouse(kind, x, y, more) {
  const at = { clientX: box.left + x, clientY: box.top + y, bubbles: true };

  canvas.dispatchEvent(kind === "wheel" ? new WheelEvent(kind, { ...at, ...more }) :
    new PointerEvent(kind, { ...at, pointerId: 1, button: 0, ...more }));
}
function drag(from, to, y, more) {
  mouse("pointerdown", from, y, more);
  mouse("pointermove", to, y, more);
  mouse("pointerup", to, y, more);
}
function press(key) {
  document.body.dispatchEvent(new KeyboardEvent("keydown", { key, bubbles: true }));
}
const said = [];
const told = () => document.getElementById("details").textContent;
%s
page.draw();
document.body.dataset.said = JSON.stringify(said);
</script>"""


def used(script, place=""):
    """What is drawn at the end, and what the script has kept in said."""
    found, text = drawn(job, place, USER % script)
    return found, json.loads(html.unescape(re.search(r'data-said="([^"]*)"', text)[1]))


def a_click_tells_all_about_what_is_there():
    """On the thread of the first VP, the arrow's head, a rank's name, the legend."""
    _, said = used("""
const [message, x0, y0, x1, y1] = page.painter.shown[0];
drag(page.painter.x(300), page.painter.x(300), 64);
said.push(told());
mouse("pointermove", x1, y1);
said.push(document.getElementById("tip").textContent);
drag(x1, x1, y1);
said.push(told());
drag(20, 20, 40);
page.draw();
said.push(page.painter.drawn.lanes.length);
document.querySelector("[data-kind=arrow]").click();
page.draw();
said.push(page.painter.drawn.arrows.length);
""")
    has(said[0], "main")
    has(said[0], "thread runs")
    has(said[0], "rank 0, VP 0")
    for text in said[1:3]:
        has(text, "message from 0 to 1")
        has(text, "tag 7, 8 bytes")
        has(text, "received 1.7 µs later on VP 1, here after 1.6 µs")
    equal(said[3:], [6, 0])


def wheel_and_drag_choose_what_is_shown():
    found, said = used("""
const x = page.painter.x(2000);
mouse("wheel", x, 100, { deltaY: -400 });
page.draw();
said.push(page.painter.x(2000) - x, page.view.last - page.view.first);
drag(300, 400, 100);
page.draw();
said.push(page.painter.x(2000) - x);
press("f");
page.draw();
said.push(page.view.last - page.view.first);
drag(page.painter.x(2000), page.painter.x(3000), 100, { shiftKey: true });
""")
    near, narrow, moved, whole = said
    assert abs(near) < 1 and abs(moved - near - 100) < 1e-6, said
    assert narrow < whole * 0.6, said
    assert abs(found["from"] - 2000) < 20 and abs(found["to"] - 3000) < 20, found


def keys_go_from_match_to_match_and_to_the_other_end():
    found, said = used("""
page.input.value = "mpi_recv";
page.search();
page.view.show(0, 500);
page.draw();
press("n");
said.push((page.view.first + page.view.last) / 2);
press("Escape");
said.push(page.input.value);
page.view.show(1100, 1300);
page.draw();
page.view.selected = { message: 0 };
press("m");
""")
    equal(said, [975, ""])
    equal((found["from"] + found["to"]) / 2, 2900)


def crowd():
    """A VP with a hundred thousand slices, and a thousand threads."""
    w = Writer(nvp=1)
    for n in range(1000):
        w.new(n, 0, A + 64 * n, f"worker {n}")
    for n in range(33000):
        w.run(1000 + n * 300, 0, A + 64 * (n % 1000))
        w.block(1000 + n * 300 + 190, 0, A + 64 * (n % 1000))
        w.idle(1000 + n * 300 + 200, 0)
    return [w]


def a_hundred_thousand_slices_share_the_columns():
    found, _ = drawn(crowd)
    equal(found["lanes"], ["rank 0: VP 0", "rank 0: user threads"])
    assert 500 < found["columns"] < 1000, found["columns"]
    found, _ = drawn(crowd, "from=0.001&to=0.001003")
    equal(found["kinds"]["thread"], 11)


def beside():
    w = Writer(nvp=1)
    w.new(0, 0, A, "main")
    w.idle(0, 0)
    for n in range(5):
        w.run(10 + n, 0, A)
        w.idle(10 + n, 0)
    w.run(20, 0, A)
    w.idle(1000000, 0)
    return [w]


def a_long_slice_that_begins_beside_a_short_one_is_drawn():
    found, _ = drawn(beside)
    has(found["texts"], "runs")
    equal(found["kinds"]["thread"], 2)


def pixels(png):
    """(width, rows of RGB bytes) of a picture with 8 bits a colour."""
    at, data = 8, b""
    while at < len(png):
        length, kind = struct.unpack_from(">I4s", png, at)
        if kind == b"IHDR":
            width, height, depth, colours = struct.unpack_from(">IIBB", png, at + 8)
        elif kind == b"IDAT":
            data += png[at + 8 : at + 8 + length]
        at += length + 12
    equal(depth, 8)
    size = {2: 3, 6: 4}[colours]
    raw, line = zlib.decompress(data), bytes(width * size)
    rows = []
    for y in range(height):
        start = y * (width * size + 1)
        line = unfiltered(raw[start], raw[start + 1 : start + 1 + width * size], line, size)
        rows.append({bytes(line[x : x + 3]) for x in range(0, len(line), size)})
    return width, rows


def unfiltered(kind, line, above, size):
    found = bytearray(line)
    for i, value in enumerate(line):
        left = found[i - size] if i >= size else 0
        corner = above[i - size] if i >= size else 0
        if kind == 1:
            found[i] = value + left & 255
        elif kind == 2:
            found[i] = value + above[i] & 255
        elif kind == 3:
            found[i] = value + (left + above[i]) // 2 & 255
        elif kind == 4:
            guess = left + above[i] - corner
            far = [(abs(guess - p), n) for n, p in enumerate((left, above[i], corner))]
            found[i] = value + (left, above[i], corner)[min(far)[1]] & 255
    return found


def there_is_a_picture():
    """The colours of draw.js are on the screen."""
    width, rows = pixels(browse(job)[1])
    equal(width, 1000)
    for name, colour in (("MPI call", "8b5cc7"), ("idle", "dce6ee"), ("ltask", "f08c2e"),
                         ("lost", "e5484d")):
        lines = sum(bytes.fromhex(colour) in row for row in rows)
        assert lines > 8, f"{name}: in {lines} lines"


def nothing_is_fetched():
    page = page_of(job)
    assert not re.search(r"(src|href)\s*=|url\(|@import|fetch\(|https?:", page)


tap.run([
    nothing_is_fetched,
    expected_lanes_are_drawn,
    arrows_lead_to_the_receivers,
    a_stretch_shows_what_happens_then,
    a_search_finds_tags_and_names,
    a_click_tells_all_about_what_is_there,
    wheel_and_drag_choose_what_is_shown,
    keys_go_from_match_to_match_and_to_the_other_end,
    a_hundred_thousand_slices_share_the_columns,
    a_long_slice_that_begins_beside_a_short_one_is_drawn,
    there_is_a_picture,
])
