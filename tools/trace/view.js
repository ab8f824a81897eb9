/* What the user does: choose, move, zoom, search, fold. */
"use strict";

const LEGEND = KINDS.map((kind) => kind.id).concat("arrow", "mark");
const EXTRA = { arrow: "message", mark: "interrupt, end of a time slice" };

class View {
  constructor(trace) {
    this.trace = trace;
    this.hidden = new Set();
    this.hover = this.selected = this.focus = null;
    this.scroll = 0;
    this.words = null;
    this.all();
  }

  all() {
    const room = (this.trace.end - this.trace.begin) * 0.01;

    this.first = this.trace.begin - room;
    this.last = this.trace.end + room;
  }

  show(first, last) {
    const { begin, end } = this.trace;
    const least = 20; /* ns */
    const most = (end - begin) * 1.2 + least;
    const wide = Math.min(Math.max(last - first, least), most);
    const middle = Math.min(Math.max((first + last) / 2, begin), end);

    this.first = middle - wide / 2;
    this.last = middle + wide / 2;
  }

  /* t stays where it is. */
  zoom(factor, t) {
    const wide = this.last - this.first;
    const least = 20, most = (this.trace.end - this.trace.begin) * 1.2 + least;
    const next = Math.min(Math.max(wide * factor, least), most);

    this.first = t - (t - this.first) * next / wide;
    this.last = this.first + next;
  }

  move(ns) {
    this.show(this.first + ns, this.last + ns);
  }
}

class Page {
  constructor() {
    const find = (id) => document.getElementById(id);

    this.trace = new Trace(JSON.parse(find("trace").textContent));
    this.view = new View(this.trace);
    this.canvas = find("picture");
    this.small = find("overview");
    this.tip = find("tip");
    this.details = find("details");
    this.help = find("help");
    this.input = document.querySelector("#find input");
    this.output = document.querySelector("#find output");
    this.fill(find);
    this.painter = new Painter(this.canvas, this.trace);
    this.dark = window.matchMedia("(prefers-color-scheme: dark)");
    this.dark.addEventListener("change", () => this.retheme());
    this.readAddress();
    this.retheme();
    this.listen();
  }

  fill(find) {
    const { trace } = this;
    const counts = [`${number(trace.messages.count)} messages`,
      span(trace.end - trace.begin)];

    document.querySelector("#about h1").textContent = trace.title;
    document.querySelector("#about p").textContent = [trace.about, ...counts].join(" · ");
    for (const note of trace.notes) {
      const item = document.createElement("li");

      item.textContent = note;
      find("notes").append(item);
    }
    this.legend = find("legend");
    this.tell(null);
  }

  /* #from=1.5&to=1.6&find=tag 7&threads=1: seconds */
  readAddress() {
    const given = new URLSearchParams(location.hash.slice(1));
    const from = parseFloat(given.get("from")), to = parseFloat(given.get("to"));

    if (from < to)
      this.view.show(from * 1e9, to * 1e9);
    if (given.has("threads"))
      for (const group of this.trace.groups)
        group.threadsOpen = given.get("threads") === "1";
    if (given.has("find")) {
      this.input.value = given.get("find");
      this.search();
    }
  }

  retheme() {
    this.painter.setTheme(this.dark.matches);
    this.fillLegend();
    this.resize();
  }

  fillLegend() {
    const { theme } = this.painter;

    this.legend.replaceChildren();
    for (const id of LEGEND) {
      const kind = KIND[id];

      if (kind !== undefined && !this.trace.kinds.has(kind))
        continue;
      const button = document.createElement("button"), sign = document.createElement("i");

      button.type = "button";
      button.dataset.kind = id;
      button.title = "show or hide";
      button.setAttribute("aria-pressed", String(!this.view.hidden.has(id)));
      sign.className = id === "mark" || id === "arrow" ? id : LOW.has(id) ? "low" : "";
      sign.style.background = theme.kinds[id] ?? theme.ink;
      sign.style.color = theme.mark;
      button.append(sign, EXTRA[id] ?? KINDS[kind].label);
      this.legend.append(button);
    }
  }

  resize() {
    this.painter.resize();
    this.drawOverview();
    this.draw();
  }

  draw() {
    this.painter.draw(this.view);
    this.drawWindow();
  }

  /* At most once for each picture of the screen. */
  redraw() {
    this.due ??= requestAnimationFrame(() => {
      this.due = null;
      this.draw();
    });
  }

  /* --- the overview: what part of the VPs runs threads --- */

  drawOverview() {
    const ratio = window.devicePixelRatio || 1;
    const box = this.small.getBoundingClientRect();
    const base = this.base = document.createElement("canvas");

    base.width = this.small.width = Math.round(box.width * ratio);
    base.height = this.small.height = Math.round(box.height * ratio);
    this.smallWidth = Math.max(box.width, 1);
    const pen = base.getContext("2d");
    const rows = this.trace.lanes.map((lane) => lane.rows[0])
      .filter((row) => row && row.kind.some((k) => k === KIND.thread || k === KIND.idle));
    const { theme } = this.painter;
    const high = base.height - 6;
    let before = rows.map((row) => row.until(this.trace.begin));

    pen.fillStyle = theme.paper;
    pen.fillRect(0, 0, base.width, base.height);
    for (let x = 0; x < base.width && rows.length > 0; x++) {
      const t = this.trace.begin + (this.trace.end - this.trace.begin) * (x + 1) / base.width;
      const now = rows.map((row) => row.until(t));
      let y = base.height;

      for (const id of ["thread", "kernel", "lost", "idle"]) {
        const k = KIND[id];
        const ns = now.reduce((sum, times, r) => sum + times[k] - before[r][k], 0);
        const whole = rows.length * (this.trace.end - this.trace.begin) / base.width;
        const part = high * Math.min(ns / whole, 1);

        pen.fillStyle = theme.kinds[id];
        pen.fillRect(x, y - part, 1, part);
        y -= part;
      }
      before = now;
    }
  }

  drawWindow() {
    const pen = this.small.getContext("2d");
    const { width, height } = this.small;
    const { begin, end } = this.trace;
    const at = (t) => (t - begin) / (end - begin) * width;
    const from = Math.max(at(this.view.first), 0), to = Math.min(at(this.view.last), width);
    const { theme } = this.painter;

    pen.drawImage(this.base, 0, 0);
    if (from <= 0 && to >= width)
      return;
    pen.fillStyle = theme.dark ? "rgba(0,0,0,.4)" : "rgba(90,100,115,.42)";
    pen.fillRect(0, 0, from, height);
    pen.fillRect(to, 0, width - to, height);
    pen.strokeStyle = theme.accent;
    pen.lineWidth = 2;
    pen.strokeRect(from, 1, Math.max(to - from, 2), height - 2);
  }

  /* --- what is told in words --- */

  /* [title, line, ...] of what is picked. */
  words(picked) {
    if (picked === null)
      return null;
    if (picked.message !== undefined)
      return this.messageWords(picked.message);
    const { lane, row, i } = picked;
    const { names } = this.trace;

    if (picked.mark !== undefined)
      return [names[lane.marks.name[picked.mark]],
        names[lane.marks.detail[picked.mark]],
        `at ${span(lane.marks.time[picked.mark])}`, `${lane.group.label}, ${lane.label}`];
    if (row === undefined)
      return null;
    const kind = KINDS[row.kind[i]];
    const title = lane.thread && row.kind[i] !== KIND.mpi ?
      `${lane.label}: ${names[row.name[i]]}` : names[row.name[i]];

    return [title, names[row.detail[i]], kind.label,
      `${span(row.end[i] - row.start[i])}, from ${span(row.start[i])}`,
      `${lane.group.label}, ${lane.label}`].filter((text) => text !== "");
  }

  messageWords(i) {
    const m = this.trace.messages;
    const { lanes } = this.trace;
    const end = (n) => lanes[n].label;

    return [`message from ${m.source[i]} to ${m.target[i]}`,
      `tag ${m.tag[i]}, ${number(m.bytes[i])} bytes, session ${m.session[i]}`,
      `sent at ${span(m.send[i])} on ${end(m.from[i])}`,
      `received ${span(m.receive[i] - m.send[i])} later on ${end(m.to[i])}` +
        (m.arrive[i] < m.receive[i] - m.send[i] ? `, here after ${span(m.arrive[i])}` : ""),
      ...(m.unexpected[i] ? ["came unexpected: nobody waited for it yet"] : [])];
  }

  tell(picked) {
    const words = this.words(picked);

    this.details.replaceChildren();
    if (words === null) {
      this.details.textContent = "Click something to learn all about it. " +
        "The wheel zooms, dragging moves, ? shows all keys.";
      return;
    }
    words.forEach((text, i) => {
      const part = document.createElement(i === 0 ? "b" : "span");

      part.textContent = text;
      this.details.append(part);
    });
    if (picked.message !== undefined)
      this.addButton("other end (m)", () => this.otherEnd());
    else if (picked.row)
      this.addButton("zoom to it", () => {
        const { row, i } = picked;
        const room = (row.end[i] - row.start[i]) * 0.5 + 50;

        this.view.show(row.start[i] - room, row.end[i] + room);
        this.redraw();
      });
  }

  addButton(text, act) {
    const button = document.createElement("button");

    button.type = "button";
    button.textContent = text;
    button.addEventListener("click", act);
    this.details.append(button);
  }

  otherEnd() {
    const i = this.view.selected?.message;
    const m = this.trace.messages;

    if (i === undefined)
      return;
    const wide = this.view.last - this.view.first;
    const middle = (this.view.last + this.view.first) / 2;
    const far = (t) => Math.abs(t - middle);
    const there = far(m.send[i]) < far(m.receive[i]);
    const t = there ? m.receive[i] : m.send[i];

    this.view.show(t - wide / 2, t + wide / 2);
    this.view.scroll = this.painter.at.get(
      this.trace.lanes[there ? m.to[i] : m.from[i]]) - this.painter.height / 2;
    this.redraw();
  }

  showTip(event) {
    const words = this.words(this.view.hover);

    this.tip.hidden = words === null;
    if (words === null)
      return;
    this.tip.replaceChildren();
    words.forEach((text, i) => {
      const line = document.createElement(i === 0 ? "b" : "div");

      line.textContent = text;
      this.tip.append(line);
    });
    const { width, height } = this.tip.getBoundingClientRect();
    const x = event.clientX + 16, y = event.clientY + 18;

    this.tip.style.left = `${Math.min(x, window.innerWidth - width - 8)}px`;
    this.tip.style.top =
      `${y + height > window.innerHeight - 8 ? event.clientY - height - 12 : y}px`;
  }

  /* --- search --- */

  search() {
    const text = this.input.value.trim();

    this.view.words = text === "" ? null : text;
    const count = this.trace.search(this.view.words);

    this.output.textContent = this.view.words === null ? "" :
      `${number(count)} found`;
    document.body.dataset.found = count;
  }

  /* The next match after the middle, or before it. */
  step(forward) {
    const middle = (this.view.first + this.view.last) / 2;
    const wide = this.view.last - this.view.first;
    let best = null;
    const offer = (t, lane) => {
      if (forward ? t > middle + wide * 1e-6 : t < middle - wide * 1e-6)
        if (best === null || Math.abs(t - middle) < Math.abs(best.t - middle))
          best = { t, lane };
    };

    for (const lane of this.trace.everyLane())
      for (const row of lane.rows)
        for (let i = 0; row.found !== null && i < row.count; i++)
          if (row.matches(i, i + 1))
            offer((row.start[i] + row.end[i]) / 2, lane);
    const m = this.trace.messages;

    for (let i = 0; m.found !== null && i < m.count; i++)
      if (m.found[i])
        offer(m.receive[i], this.trace.lanes[m.to[i]]);
    if (best === null)
      return;
    this.view.show(best.t - wide / 2, best.t + wide / 2);
    const item = this.painter.items.find((one) => one.lane === best.lane);

    if (item)
      this.view.scroll = item.y - this.painter.height / 2;
    this.redraw();
  }

  clear() {
    this.view.selected = this.view.focus = null;
    this.input.value = "";
    this.search();
    this.tell(null);
    this.canvas.focus();
    this.redraw();
  }

  /* --- mouse and keys --- */

  listen() {
    const { canvas } = this;

    window.addEventListener("resize", () => this.resize());
    canvas.addEventListener("wheel", (e) => this.wheel(e), { passive: false });
    canvas.addEventListener("pointerdown", (e) => this.press(e));
    canvas.addEventListener("pointermove", (e) => this.point(e));
    canvas.addEventListener("pointerup", (e) => this.release(e));
    canvas.addEventListener("pointerleave", () => {
      this.tip.hidden = true;
    });
    this.small.addEventListener("pointerdown", (e) => {
      this.small.setPointerCapture(e.pointerId);
      this.moveWindow(e);
    });
    this.small.addEventListener("pointermove", (e) => {
      if (e.buttons & 1)
        this.moveWindow(e);
    });
    this.input.addEventListener("input", () => {
      this.search();
      this.redraw();
    });
    document.getElementById("find").addEventListener("submit", (e) => e.preventDefault());
    document.addEventListener("keydown", (e) => this.key(e));
    document.getElementById("buttons").addEventListener("click", (e) =>
      this.act(e.target.dataset.do));
    this.legend.addEventListener("click", (e) => this.toggle(e.target.closest("button")));
  }

  toggle(button) {
    if (button === null)
      return;
    const { kind } = button.dataset;

    if (!this.view.hidden.delete(kind))
      this.view.hidden.add(kind);
    button.setAttribute("aria-pressed", String(!this.view.hidden.has(kind)));
    this.redraw();
  }

  moveWindow(event) {
    const { begin, end } = this.trace;
    const t = begin + event.offsetX / this.smallWidth * (end - begin);
    const wide = this.view.last - this.view.first;
    const next = wide > (end - begin) * 0.9 ? (end - begin) * 0.1 : wide;

    this.view.show(t - next / 2, t + next / 2);
    this.redraw();
  }

  wheel(event) {
    const much = event.deltaMode === 1 ? event.deltaY * 20 : event.deltaY;

    event.preventDefault();
    this.tip.hidden = true;
    if (event.offsetX < SIDE)
      this.view.scroll += much;
    else if (event.shiftKey || Math.abs(event.deltaX) > Math.abs(event.deltaY))
      this.view.move((event.deltaX || much) / this.painter.scale);
    else
      this.view.zoom(Math.exp(Math.max(-300, Math.min(300, much)) * 0.0022),
        this.painter.time(event.offsetX));
    this.redraw();
  }

  press(event) {
    if (event.button !== 0)
      return;
    this.canvas.setPointerCapture(event.pointerId);
    this.grip = { x: event.offsetX, y: event.offsetY, moved: false, first: this.view.first,
      last: this.view.last, scroll: this.view.scroll, stretch: event.shiftKey };
  }

  point(event) {
    const { grip, view, painter } = this;

    if (grip && Math.hypot(event.offsetX - grip.x, event.offsetY - grip.y) > 3)
      grip.moved = true;
    if (grip?.moved) {
      this.tip.hidden = true;
      this.drag(event);
      return;
    }
    const picked = painter.pick(event.offsetX, event.offsetY);
    const before = view.hover?.message;

    view.hover = picked?.item ? null : picked;
    this.canvas.classList.toggle("link", picked?.item !== undefined &&
      picked.item.what !== "lane");
    this.showTip(event);
    if (before !== view.hover?.message)
      this.redraw();
  }

  drag(event) {
    const { grip, view, painter } = this;
    const ns = (event.offsetX - grip.x) / painter.scale;

    if (!grip.stretch) {
      this.canvas.classList.add("moving");
      view.show(grip.first - ns, grip.last - ns);
      view.scroll = grip.scroll - (event.offsetY - grip.y);
      this.redraw();
      return;
    }
    const pen = painter.pen;

    this.draw();
    pen.fillStyle = "rgba(31,95,208,.16)";
    pen.fillRect(grip.x, AXIS, event.offsetX - grip.x, painter.height);
    pen.fillStyle = painter.theme.ink;
    pen.font = '650 13px system-ui, "DejaVu Sans", sans-serif';
    pen.textAlign = "center";
    pen.fillText(span(Math.abs(ns)), (grip.x + event.offsetX) / 2, AXIS + 14);
    pen.textAlign = "left";
  }

  release(event) {
    const { grip } = this;

    this.grip = null;
    this.canvas.classList.remove("moving");
    if (!grip)
      return;
    if (!grip.moved)
      this.click(event);
    else if (grip.stretch) {
      const [a, b] = [grip.x, event.offsetX].map((x) => this.painter.time(x));

      this.view.show(Math.min(a, b), Math.max(a, b));
      this.redraw();
    }
  }

  click(event) {
    const picked = this.painter.pick(event.offsetX, event.offsetY);
    const { names } = this.painter;

    this.canvas.focus();
    if (picked?.item?.what === "rank")
      picked.item.group.open = !picked.item.group.open;
    else if (picked?.item?.what === "threads")
      picked.item.group.threadsOpen = !picked.item.group.threadsOpen;
    else {
      const { lane, row, i } = picked ?? {};

      this.view.selected = picked;
      this.view.focus = null;
      if (lane?.thread)
        this.view.focus = names.get(lane.label) ?? null;
      else if (row && row.kind[i] === KIND.thread)
        this.view.focus = row.name[i];
      else if (row && row.kind[i] === KIND.mpi && row.detail[i] !== 0)
        this.view.focus = row.detail[i];
      this.tell(this.words(picked) === null ? null : picked);
    }
    this.redraw();
  }

  act(what) {
    const { view } = this;
    const middle = (view.first + view.last) / 2;

    if (what === "in" || what === "out")
      view.zoom(what === "in" ? 0.6 : 1 / 0.6, middle);
    else if (what === "fit")
      view.all();
    else if (what === "help")
      this.help.showModal();
    this.redraw();
  }

  key(event) {
    if (event.ctrlKey || event.metaKey || event.altKey || this.help.open)
      return;
    if (event.key === "Escape")
      this.clear();
    else if (event.target === this.input) {
      if (event.key === "Enter")
        this.step(!event.shiftKey);
      return;
    } else if (!this.shortcut(event.key))
      return;
    event.preventDefault();
    this.redraw();
  }

  shortcut(key) {
    const { view } = this;
    const wide = view.last - view.first;
    const keys = {
      w: () => this.act("in"), "+": () => this.act("in"), "=": () => this.act("in"),
      s: () => this.act("out"), "-": () => this.act("out"),
      a: () => view.move(-wide * 0.2), ArrowLeft: () => view.move(-wide * 0.2),
      d: () => view.move(wide * 0.2), ArrowRight: () => view.move(wide * 0.2),
      ArrowUp: () => { view.scroll -= 60; }, ArrowDown: () => { view.scroll += 60; },
      PageUp: () => { view.scroll -= 400; }, PageDown: () => { view.scroll += 400; },
      f: () => view.all(), "?": () => this.act("help"), "/": () => this.input.select(),
      m: () => this.otherEnd(), n: () => this.step(true), N: () => this.step(false),
    };

    if (!Object.hasOwn(keys, key))
      return false;
    keys[key]();
    return true;
  }
}

window.page = new Page();
