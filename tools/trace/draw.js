/*
 * Paints the lanes that can be seen.
 *
 * What it has painted is told in the attribute data-drawn of the body, as JSON:
 * there is nothing else in a canvas that a test, or a program that reads the
 * page aloud, could look at.
 */
"use strict";

const SIDE = 210;   /* names of lanes */
const AXIS = 26;
const HEAD = 28;    /* of a rank */
const CHART = 44;   /* how many user threads do what */
const ROW = 19, CALL = 15, THIN = 13, GAP = 5;
const NEAR = 5;     /* arrows whose ends are nearer to each other's are one */
const BOX = 1.5;    /* pixels; slices that are narrower share columns */
const TOLD = 200;   /* of each thing, in data-drawn */

const LIGHT = {
  paper: "#ffffff", side: "#f6f7f9", line: "#e6e9ee", ink: "#1b2330", soft: "#667085",
  head: "#eceff4", accent: "#d4380d", found: "#ffd43b", arrow: "27,35,48", mark: "#d4380d",
  kinds: {
    thread: "#4f8ad6", mpi: "#8b5cc7", ltask: "#f08c2e", idle: "#dce6ee",
    sleeping: "#c3cad5", ready: "#f7cfc2", blocked: "#d5dae2", kernel: "#6fb39a",
    lost: "#e5484d",
  },
  dark: 0,
};
const DARK = {
  paper: "#14181f", side: "#1b2029", line: "#272e39", ink: "#e6e9ef", soft: "#98a2b3",
  head: "#212834", accent: "#ff8a5c", found: "#ffd43b", arrow: "230,233,239",
  mark: "#ff8a5c",
  kinds: {
    thread: "#3f74bd", mpi: "#8457bd", ltask: "#d97a22", idle: "#2e3b48",
    sleeping: "#4a5361", ready: "#6e4a40", blocked: "#39414d", kernel: "#3f8a6f",
    lost: "#d13438",
  },
  dark: 1,
};
const PALE = new Set(["idle", "sleeping", "ready", "blocked"]);
const LOW = new Set(["sleeping", "blocked"]); /* a line: nothing goes on there */

function threadColour(name, theme) {
  const hash = Math.imul(name + 1, 0x9e3779b1) >>> 0;
  const hue = 190 + (hash % 33);
  const light = (theme.dark ? 34 : 41) + ((hash >>> 8) % 5) * 4;

  return `hsl(${hue} ${48 + ((hash >>> 12) % 3) * 9}% ${light}%)`;
}

class Painter {
  constructor(canvas, trace) {
    this.canvas = canvas;
    this.trace = trace;
    this.names = new Map(trace.names.map((name, i) => [name, i]));
    this.colours = new Map();
    this.setTheme(false);
    this.resize();
  }

  setTheme(dark) {
    this.theme = dark ? DARK : LIGHT;
    this.kindColours = KINDS.map((kind) => this.theme.kinds[kind.id]);
    this.colours.clear();
  }

  resize() {
    const ratio = window.devicePixelRatio || 1;
    const box = this.canvas.getBoundingClientRect();

    this.width = Math.max(box.width, SIDE + 50);
    this.height = Math.max(box.height, AXIS + 20);
    this.canvas.width = Math.round(this.width * ratio);
    this.canvas.height = Math.round(this.height * ratio);
    this.pen = this.canvas.getContext("2d");
    this.pen.setTransform(ratio, 0, 0, ratio, 0, 0);
    this.pen.textBaseline = "middle";
  }

  /* What is where from top to bottom, without scrolling. */
  layout() {
    const items = [];
    let y = AXIS;
    const add = (item, height) => {
      items.push({ ...item, y, height });
      y += height;
    };
    const laneHeight = (lane) => (lane.thread ? THIN : ROW) + GAP +
      Math.max(0, lane.rows.length - 1) * (lane.thread ? THIN : CALL);

    this.at = new Map(); /* of lanes: the middle of their first row */
    for (const group of this.trace.groups) {
      add({ what: "rank", group }, HEAD);
      for (const lane of group.lanes) {
        this.at.set(lane, group.open ? y + ROW / 2 + 2 : y - HEAD / 2);
        if (group.open)
          add({ what: "lane", lane, group }, laneHeight(lane));
      }
      if (!group.open || group.threads.length === 0)
        continue;
      add({ what: "threads", group }, CHART);
      if (group.threadsOpen)
        for (const lane of group.threads)
          add({ what: "lane", lane, group }, laneHeight(lane));
    }
    this.items = items;
    this.total = y + 8;
  }

  x(t) {
    return SIDE + (t - this.view.first) * this.scale;
  }

  time(x) {
    return this.view.first + (x - SIDE) / this.scale;
  }

  draw(view) {
    this.view = view;
    this.scale = (this.width - SIDE) / (view.last - view.first);
    this.layout();
    view.scroll = Math.max(0, Math.min(view.scroll, this.total - this.height));
    this.drawn = { lanes: [], texts: [], slices: 0, columns: 0, kinds: {}, arrows: [],
      arrowsInAll: 0, marks: 0, matches: 0, from: view.first, to: view.last };
    this.shown = []; /* arrows, to be found again */
    const { pen, theme } = this;

    pen.fillStyle = theme.paper;
    pen.fillRect(0, 0, this.width, this.height);
    pen.save();
    pen.beginPath();
    pen.rect(0, AXIS, this.width, this.height - AXIS);
    pen.clip();
    pen.translate(0, -view.scroll);
    const seen = this.items.filter((item) => item.y + item.height > view.scroll + AXIS &&
      item.y < view.scroll + this.height);

    this.grid();
    this.inside(() => seen.forEach((item) => this.item(item)));
    if (!view.hidden.has("arrow"))
      this.inside(() => this.arrows());
    this.side(seen);
    pen.restore();
    this.axis();
    document.body.dataset.drawn = JSON.stringify(this.drawn);
  }

  /* Not over the names. */
  inside(paint) {
    this.pen.save();
    this.pen.beginPath();
    this.pen.rect(SIDE, 0, this.width - SIDE, Math.max(this.total, this.height) +
      this.view.scroll);
    this.pen.clip();
    paint();
    this.pen.restore();
  }

  item(item) {
    if (item.what === "lane")
      this.lane(item);
    else if (item.what === "threads")
      this.chart(item);
    else {
      this.pen.fillStyle = this.theme.head;
      this.pen.fillRect(0, item.y, this.width, item.height);
    }
  }

  lane(item) {
    const { lane } = item;
    let y = item.y + 2;

    this.told("lanes", `${lane.group.label}: ${lane.label}`);
    this.pen.fillStyle = this.theme.line;
    this.pen.fillRect(SIDE, item.y + item.height - 1, this.width - SIDE, 1);
    lane.rows.forEach((row, depth) => {
      const high = lane.thread ? THIN : depth === 0 ? ROW : CALL;

      this.row(lane, row, y, high - 1);
      y += high;
    });
    if (!this.view.hidden.has("mark"))
      this.laneMarks(lane, item.y);
  }

  told(list, text) {
    if (this.drawn[list].length < TOLD)
      this.drawn[list].push(text);
  }

  row(lane, row, y, high) {
    const { first, last } = this.view;
    let i = row.first(first);

    while (i < row.count && row.start[i] <= last) {
      const from = this.x(row.start[i]), to = this.x(row.end[i]);

      if (to - from >= BOX) {
        this.slice(lane, row, i, [Math.max(from, SIDE - 2), y,
          Math.min(to, this.width + 2), high]);
        i++;
        continue;
      }
      const edge = Math.floor(from) + 1;
      let next = row.next(i, this.time(edge));

      /* One that begins here may be long: the last one. */
      if ((row.end[next - 1] - row.start[next - 1]) * this.scale >= BOX)
        next--;
      this.column(lane, row, i, next, [edge - 1, y, high]);
      i = next;
    }
  }

  /* Neither searched for, nor of the thread that is pointed out. */
  isDim(lane, row, i, j) {
    const { focus } = this.view;

    if (row.found !== null)
      return !row.matches(i, j);
    if (focus === null || j - i > 200)
      return false;
    if (lane.thread)
      return this.names.get(lane.label) !== focus;
    for (; i < j; i++)
      if (row.name[i] === focus || row.detail[i] === focus)
        return false;
    return true;
  }

  colour(lane, row, i) {
    const kind = row.kind[i];

    if (kind !== KIND.thread)
      return this.kindColours[kind];
    const name = lane.thread ? this.names.get(lane.label) ?? 0 : row.name[i];

    if (!this.colours.has(name))
      this.colours.set(name, threadColour(name, this.theme));
    return this.colours.get(name);
  }

  slice(lane, row, i, [from, y, to, high]) {
    const { pen, theme, view } = this;
    const id = KINDS[row.kind[i]].id;
    const wide = Math.max(to - from - (to - from > 3 ? 0.7 : 0), 1);

    if (view.hidden.has(id))
      return;
    const dim = this.isDim(lane, row, i, i + 1);
    const low = LOW.has(id);

    this.drawn.slices++;
    this.drawn.kinds[id] = (this.drawn.kinds[id] ?? 0) + 1;
    pen.globalAlpha = dim ? 0.22 : 1;
    pen.fillStyle = this.colour(lane, row, i);
    if (low)
      pen.fillRect(from, y + high - 4, wide, 3);
    else if (wide > 5) {
      pen.beginPath();
      pen.roundRect(from, y, wide, high, 2.5);
      pen.fill();
    } else
      pen.fillRect(from, y, wide, high);
    if (id === "lost")
      this.hatch(from, y, wide, high);
    if (row.found !== null && !dim) {
      this.drawn.matches++;
      pen.fillStyle = theme.found;
      pen.fillRect(from, y + high - 3, Math.max(wide, 2), 3);
    }
    if (view.selected?.row === row && view.selected.i === i) {
      pen.strokeStyle = theme.accent;
      pen.lineWidth = 2;
      pen.strokeRect(from + 1, y + 1, Math.max(wide - 2, 1), high - 2);
    }
    if (wide > 26)
      this.text(this.sliceText(lane, row, i, id), [Math.max(from, SIDE), y, to, high],
        PALE.has(id) ? theme.soft : "#ffffff", low);
    pen.globalAlpha = 1;
  }

  sliceText(lane, row, i, id) {
    const { names } = this.trace;

    if (id === "blocked" || id === "ready")
      return names[row.detail[i]] || names[row.name[i]];
    return names[row.name[i]];
  }

  text(text, [from, y, to, high], colour, low) {
    const { pen } = this;
    const room = to - from - 8;
    const size = Math.min(high - 3, low ? 9 : 11.5);

    if (room < 12 || size < 8)
      return;
    pen.font = `${size}px system-ui, "DejaVu Sans", sans-serif`;
    const wide = pen.measureText(text).width;

    if (wide > room) {
      const fits = Math.floor(text.length * room / wide) - 1;

      if (fits < 2)
        return;
      text = text.slice(0, fits) + "…";
    }
    pen.fillStyle = colour;
    pen.fillText(text, from + 4, low ? y + high / 2 - 1.5 : y + high / 2 + 0.5);
    this.told("texts", text);
  }

  hatch(x, y, wide, high) {
    const { pen } = this;

    pen.save();
    pen.beginPath();
    pen.rect(x, y, wide, high);
    pen.clip();
    pen.strokeStyle = "rgba(255,255,255,.55)";
    pen.lineWidth = 2;
    pen.beginPath();
    for (let at = x - high; at < x + wide; at += 8) {
      pen.moveTo(at, y + high);
      pen.lineTo(at + high, y);
    }
    pen.stroke();
    pen.restore();
  }

  /* The shares of slices i to j, which begin in one column of pixels. */
  column(lane, row, i, j, [x, y, high]) {
    const { pen, view } = this;
    const dim = this.isDim(lane, row, i, j);
    const times = row.time(i, j);
    const whole = Math.max(row.end[j - 1] - row.start[i], 1 / this.scale);
    let bottom = y + high;

    this.drawn.columns++;
    pen.globalAlpha = dim ? 0.22 : 1;
    if (j === i + 1 && KINDS[row.kind[i]].id === "mpi")
      times[row.kind[i]] = whole; /* short, and yet to be seen */
    times.forEach((ns, k) => {
      const { id } = KINDS[k];

      if (ns === 0 || view.hidden.has(id) || LOW.has(id))
        return;
      const part = Math.max(Math.min(ns / whole, 1) * high, 2);

      this.drawn.kinds[id] = (this.drawn.kinds[id] ?? 0) + 1;
      pen.fillStyle = j === i + 1 ? this.colour(lane, row, i) : this.kindColours[k];
      pen.fillRect(x, Math.max(bottom - part, y), 1, Math.min(part, bottom - y));
      bottom = Math.max(bottom - part, y);
    });
    if (row.found !== null && !dim) {
      this.drawn.matches++;
      pen.fillStyle = this.theme.found;
      pen.fillRect(x, y + high - 4, 2, 4);
    }
    pen.globalAlpha = 1;
  }

  laneMarks(lane, y) {
    const { pen, theme, view } = this;
    const { time } = lane.marks;
    let before = -99;

    pen.fillStyle = theme.mark;
    for (let i = above(time, view.first - 1); i < time.length && time[i] <= view.last; i++) {
      const x = this.x(time[i]);
      const next = i + 1 < time.length ? this.x(time[i + 1]) : Infinity;

      if (x - before < 2) /* on top of it */
        continue;
      this.drawn.marks++;
      if (Math.min(x - before, next - x) < 8)
        pen.fillRect(x - 0.5, y - 1, 1, 6);
      else {
        pen.beginPath();
        pen.moveTo(x - 4.5, y - 1);
        pen.lineTo(x + 4.5, y - 1);
        pen.lineTo(x, y + 7);
        pen.fill();
      }
      before = x;
    }
  }

  /* Running below, then ready, then blocked. */
  chart(item) {
    const { group } = item;
    const { states } = group;
    const count = states.time.length;
    const high = item.height - 8, bottom = item.y + item.height - 3;
    const parts = ["running", "ready", "blocked"];
    const colours = ["thread", "ready", "blocked"].map((id) => this.theme.kinds[id]);
    let i = 0;

    this.told("lanes", `${group.label}: user threads`);
    for (let x = SIDE; x < this.width && count > 0; x++) {
      i = above(states.time, this.time(x + 0.5), i);
      if (i === 0)
        continue;
      let y = bottom;

      parts.forEach((part, k) => {
        const step = states[part][i - 1] / group.most * high;

        this.pen.fillStyle = colours[k];
        this.pen.fillRect(x, y - step, 1, step);
        y -= step;
      });
      i = Math.max(0, i - 1);
    }
  }

  /* Many that would lie upon each other are one. */
  arrows() {
    const { messages, lanes } = this.trace;
    const { first, last } = this.view;
    const seen = new Set();
    const found = [];

    for (let i = above(messages.latest, first); i < messages.count &&
         messages.send[i] <= last; i++) {
      if (messages.receive[i] < first)
        continue;
      this.drawn.arrowsInAll++;
      const from = this.x(messages.send[i]), to = this.x(messages.receive[i]);
      const key = `${messages.from[i]} ${messages.to[i]} ${Math.round(from / NEAR)} ` +
        Math.round((to - from) / NEAR);
      const special = this.isPointedOut(i);

      if (seen.has(key) && !special)
        continue;
      seen.add(key);
      found.push([i, from, to, special]);
    }
    const some = found.filter((arrow) => arrow[3]).length > 0 ||
      messages.found !== null;
    const alpha = Math.max(0.1, Math.min(0.6, 70 / found.length));

    for (const [i, from, to, special] of found)
      this.arrow(i, [from, this.at.get(lanes[messages.from[i]])],
        [to, this.at.get(lanes[messages.to[i]])], { special, alpha: some ? 0.07 : alpha });
  }

  isPointedOut(i) {
    const { selected, hover } = this.view;

    return selected?.message === i || hover?.message === i ||
      this.trace.messages.found?.[i] === 1;
  }

  arrow(i, [x0, y0], [x1, y1], { special, alpha }) {
    const { pen, theme, trace } = this;
    const { messages, lanes } = trace;
    const same = y0 === y1;
    const down = Math.sign(y1 - y0);
    const size = special ? 9 : 7;

    y0 += same ? -6 : down * 8;
    y1 += same ? -6 : -down * 8;
    const angle = same ? 0.8 : Math.atan2(y1 - y0, x1 - x0);

    pen.strokeStyle = pen.fillStyle = special ? theme.accent :
      `rgba(${theme.arrow},${alpha})`;
    pen.lineWidth = special ? 2 : 1;
    pen.beginPath();
    pen.moveTo(x0, y0);
    if (same)
      pen.quadraticCurveTo((x0 + x1) / 2, y0 - 16, x1, y1);
    else
      pen.lineTo(x1 - 4 * Math.cos(angle), y1 - 4 * Math.sin(angle));
    pen.stroke();
    pen.beginPath();
    pen.moveTo(x1, y1);
    pen.lineTo(x1 - size * Math.cos(angle - 0.38), y1 - size * Math.sin(angle - 0.38));
    pen.lineTo(x1 - size * Math.cos(angle + 0.38), y1 - size * Math.sin(angle + 0.38));
    pen.fill();
    pen.beginPath();
    pen.arc(x0, y0, special ? 3 : 2, 0, 7);
    pen.fill();
    this.shown.push([i, x0, y0, x1, y1]);
    if (this.drawn.arrows.length < TOLD) {
      const end = (n) => `${lanes[n].group.label}: ${lanes[n].label}`;

      this.drawn.arrows.push(`${end(messages.from[i])} -> ${end(messages.to[i])}, ` +
        `tag ${messages.tag[i]}, ${messages.bytes[i]} bytes`);
    }
  }

  /* --- names and time --- */

  steps() {
    const room = 110 / this.scale;
    const power = 10 ** Math.floor(Math.log10(room));
    const step = [1, 2, 5, 10].map((n) => n * power).find((s) => s >= room);

    return Math.max(step, 1);
  }

  eachStep(paint) {
    const step = this.steps();

    for (let t = Math.ceil(this.view.first / step) * step; t <= this.view.last; t += step)
      paint(t, this.x(t), step);
  }

  grid() {
    this.pen.fillStyle = this.theme.line;
    this.eachStep((_, x) => this.pen.fillRect(Math.round(x), 0, 1,
      this.view.scroll + this.height));
  }

  axis() {
    const { pen, theme } = this;

    pen.fillStyle = theme.side;
    pen.fillRect(0, 0, this.width, AXIS);
    pen.fillStyle = theme.line;
    pen.fillRect(0, AXIS - 1, this.width, 1);
    pen.font = '11px system-ui, "DejaVu Sans", sans-serif';
    pen.textAlign = "center";
    this.eachStep((t, x, step) => {
      if (x < SIDE + 24 || x > this.width - 30)
        return;
      pen.fillStyle = theme.soft;
      pen.fillText(stepText(t, step, this.view.last), x, AXIS / 2);
      pen.fillRect(Math.round(x), AXIS - 5, 1, 4);
    });
    pen.textAlign = "left";
    pen.fillStyle = theme.soft;
    pen.fillText(`shown: ${span(this.view.last - this.view.first)}`, 14, AXIS / 2);
  }

  side(seen) {
    const { pen, theme } = this;

    pen.fillStyle = theme.side;
    pen.fillRect(0, 0, SIDE, this.view.scroll + this.height);
    for (const item of seen) {
      const middle = item.y + Math.min(item.height, item.what === "lane" ? ROW + 3 :
        item.height) / 2;

      if (item.what === "rank")
        this.rankName(item, middle);
      else if (item.what === "threads")
        this.chartName(item);
      else {
        pen.font = `${item.lane.thread ? 10.5 : 12}px system-ui, "DejaVu Sans", sans-serif`;
        pen.fillStyle = item.lane.thread ? theme.soft : theme.ink;
        this.fit(item.lane.label, item.lane.thread ? 40 : 26, middle -
          (item.lane.thread ? 2.5 : 0), SIDE - 10);
      }
    }
    pen.fillStyle = theme.line;
    pen.fillRect(SIDE - 1, 0, 1, this.view.scroll + this.height);
  }

  rankName(item, middle) {
    const { pen, theme } = this;
    const { group } = item;

    pen.fillStyle = theme.head;
    pen.fillRect(0, item.y, SIDE, item.height);
    pen.font = '650 12.5px system-ui, "DejaVu Sans", sans-serif';
    pen.fillStyle = theme.ink;
    pen.fillText(`${group.open ? "▾" : "▸"} ${group.label}`, 10, middle);
    pen.font = '11.5px system-ui, "DejaVu Sans", sans-serif';
    pen.fillStyle = theme.soft;
    pen.fillText(group.about, SIDE + 10, middle);
  }

  chartName(item) {
    const { pen, theme } = this;
    const { group } = item;

    pen.font = '12px system-ui, "DejaVu Sans", sans-serif';
    pen.fillStyle = theme.ink;
    pen.fillText(`${group.threadsOpen ? "▾" : "▸"} ${number(group.threads.length)} ` +
      `user thread${group.threads.length === 1 ? "" : "s"}`, 14, item.y + 14);
    pen.font = '10.5px system-ui, "DejaVu Sans", sans-serif';
    pen.fillStyle = theme.soft;
    pen.fillText(`at most ${number(group.most)} at once`, 27, item.y + 30);
  }

  fit(text, x, y, edge) {
    const { pen } = this;

    while (text.length > 3 && x + pen.measureText(text).width > edge)
      text = text.slice(0, -2) + "…";
    pen.fillText(text, x, y);
  }

  /* --- what is at a place of the canvas --- */

  pick(x, y) {
    const below = y + this.view.scroll;

    if (y < AXIS)
      return null;
    const item = this.items.find((one) => below >= one.y && below < one.y + one.height);

    if (item && item.what !== "lane")
      return { item };
    if (x < SIDE)
      return item ? { item } : null;
    return this.pickArrow(x, below) ?? (item ? this.pickInLane(item, x, below) : null);
  }

  pickArrow(x, y) {
    let best = null, near = 7;

    if (this.view.hidden.has("arrow"))
      return null;
    for (const [i, x0, y0, x1, y1] of this.shown)
      for (const far of [Math.hypot(x - x0, y - y0), Math.hypot(x - x1, y - y1)])
        if (far < near) {
          near = far;
          best = i;
        }
    return best === null ? null : { message: best };
  }

  pickInLane(item, x, y) {
    const { lane } = item;
    const { time } = lane.marks;
    const t = this.time(x);
    const i = above(time, t - 5 / this.scale);

    if (y < item.y + 8 && i < time.length && time[i] < t + 5 / this.scale)
      return { lane, mark: i };
    const first = lane.thread ? THIN : ROW, later = lane.thread ? THIN : CALL;
    const depth = y < item.y + 2 + first ? 0 :
      1 + Math.floor((y - item.y - 2 - first) / later);
    const row = lane.rows[depth];
    const at = row ? this.nearest(row, t) : -1;

    return at < 0 ? { lane } : { lane, row, i: at };
  }

  /* Narrow slices are hit within two pixels. */
  nearest(row, t) {
    const i = row.first(t - 2 / this.scale);

    if (row.at(t) >= 0)
      return row.at(t);
    return i < row.count && row.start[i] <= t + 2 / this.scale ? i : -1;
  }
}

/* With as many digits as the step needs; all steps in one unit. */
function stepText(t, step, last) {
  const [unit, name] = [[1e9, "s"], [1e6, "ms"], [1e3, "µs"], [1, "ns"]]
    .find(([u]) => last >= u) ?? [1, "ns"];
  const digits = Math.max(0, Math.ceil(-Math.log10(step / unit) - 1e-9));

  return `${(t / unit).toFixed(Math.min(digits, 9))} ${name}`;
}
