/*
 * What marcel-trace has put into this page, made fit to be drawn.
 *
 * Times are nanoseconds from the first event. A lane has rows; the slices of a
 * row are in order and do not overlap, so that both their starts and their ends
 * are sorted and every question about them is a binary search.
 */
"use strict";

/* In the order of lanes.py's KINDS: what a slice is. Drawn in this order, from
 * below, where a column shows shares. */
const KINDS = [
  { id: "thread", label: "thread runs" },
  { id: "mpi", label: "MPI call" },
  { id: "ltask", label: "ltask" },
  { id: "idle", label: "idle: polls" },
  { id: "sleeping", label: "sleeps" },
  { id: "ready", label: "ready, waits for a core" },
  { id: "blocked", label: "blocked" },
  { id: "kernel", label: "waits in the kernel" },
  { id: "lost", label: "events lost" },
];
const KIND = Object.fromEntries(KINDS.map((k, i) => [k.id, i]));

function sums(deltas) {
  const all = new Float64Array(deltas.length);
  let t = 0;

  for (let i = 0; i < deltas.length; i++) {
    t += deltas[i];
    all[i] = t;
  }
  return all;
}

/* The first index in [from, values.length) whose value is greater than t. */
function above(values, t, from = 0) {
  let low = from, high = values.length;

  while (low < high) {
    const mid = (low + high) >> 1;

    if (values[mid] > t)
      high = mid;
    else
      low = mid + 1;
  }
  return low;
}

class Row {
  constructor(data) {
    this.start = sums(data.start);
    this.end = this.start.map((t, i) => t + data.length[i]);
    this.kind = Uint8Array.from(data.kind);
    this.name = Uint32Array.from(data.name);
    this.detail = Uint32Array.from(data.detail);
    this.count = this.start.length;
    this.found = null; /* how many of the first i slices match the search */
    this.shares = null;
  }

  /* The first slice that has not ended at t. */
  first(t) {
    return above(this.end, t);
  }

  /* The first slice after i that begins at t or later; near i, mostly. */
  next(i, t) {
    let step = 1;

    while (i + step < this.count && this.start[i + step] < t)
      step *= 2;
    let low = i + (step >> 1), high = Math.min(i + step, this.count);

    while (low < high) {
      const mid = (low + high) >> 1;

      if (this.start[mid] < t)
        low = mid + 1;
      else
        high = mid;
    }
    return Math.max(low, i + 1);
  }

  at(t) {
    const i = this.first(t);

    return i < this.count && this.start[i] <= t ? i : -1;
  }

  /* How long the slices from i on, before j, are of each kind. */
  time(i, j) {
    if (this.shares === null)
      this.shares = this.prefix();
    return this.shares.map((sum) => (sum === null ? 0 : sum[j] - sum[i]));
  }

  prefix() {
    const shares = KINDS.map(() => null);

    for (let i = 0; i < this.count; i++)
      shares[this.kind[i]] ??= new Float64Array(this.count + 1);
    shares.forEach((sum, k) => {
      for (let i = 0; sum !== null && i < this.count; i++)
        sum[i + 1] = sum[i] + (this.kind[i] === k ? this.end[i] - this.start[i] : 0);
    });
    return shares;
  }

  /* The time of each kind up to t. */
  until(t) {
    const i = this.first(t);
    const all = this.time(0, i);

    if (i < this.count && this.start[i] < t)
      all[this.kind[i]] += t - this.start[i];
    return all;
  }

  /* names: which entries of the table of names match. */
  search(names) {
    if (names === null) {
      this.found = null;
      return 0;
    }
    this.found = new Uint32Array(this.count + 1);
    for (let i = 0; i < this.count; i++)
      this.found[i + 1] = this.found[i] +
        (names[this.name[i]] || names[this.detail[i]] ? 1 : 0);
    return this.found[this.count];
  }

  matches(i, j) {
    return this.found === null || this.found[j] > this.found[i];
  }
}

class Lane {
  constructor(data, group, thread) {
    this.label = data.name;
    this.group = group;
    this.thread = thread; /* of a user thread, not of a core */
    this.rows = data.rows.map((row) => new Row(row));
    this.marks = {
      time: sums(data.marks.time),
      name: data.marks.name,
      detail: data.marks.detail,
    };
  }
}

class Group {
  constructor(data) {
    this.label = data.label;
    this.about = data.about;
    this.open = true;
    this.lanes = data.lanes.map((lane) => new Lane(lane, this, false));
    this.threads = data.threads.map((lane) => new Lane(lane, this, true));
    this.threadsOpen = this.threads.length <= 8;
    this.states = {
      time: sums(data.states.time),
      running: data.states.running,
      ready: data.states.ready,
      blocked: data.states.blocked,
    };
    this.most = this.states.time.reduce((most, _, i) => Math.max(most,
      this.states.running[i] + this.states.ready[i] + this.states.blocked[i]), 1);
  }
}

class Messages {
  constructor(data) {
    Object.assign(this, data);
    this.send = sums(data.send);
    this.receive = this.send.map((t, i) => t + data.flight[i]);
    this.count = this.send.length;
    this.latest = new Float64Array(this.count); /* of those up to here */
    this.longest = 0;
    for (let i = 0, late = -Infinity; i < this.count; i++) {
      late = Math.max(late, this.receive[i]);
      this.latest[i] = late;
    }
    this.found = null;
  }

  text(i) {
    return `message from ${this.source[i]} to ${this.target[i]}, ` +
      `peer ${this.source[i]} peer ${this.target[i]}, tag ${this.tag[i]}, ` +
      `${this.bytes[i]} bytes`;
  }

  search(text) {
    if (text === null) {
      this.found = null;
      return 0;
    }
    let count = 0;

    this.found = new Uint8Array(this.count);
    for (let i = 0; i < this.count; i++)
      if (hasWords(this.text(i), text)) {
        this.found[i] = 1;
        count++;
      }
    return count;
  }
}

/* "tag 7" is not in "tag 77". */
function hasWords(text, words) {
  const at = text.toLowerCase().indexOf(words);

  if (at < 0)
    return false;
  if (!/\d$/.test(words) || !/\d/.test(text[at + words.length] ?? ""))
    return true;
  return hasWords(text.slice(at + 1), words);
}

class Trace {
  constructor(data) {
    this.title = data.title;
    this.about = data.about;
    this.notes = data.notes;
    this.begin = data.begin;
    this.end = Math.max(data.end, data.begin + 1);
    this.names = data.names;
    this.groups = data.ranks.map((rank) => new Group(rank));
    this.lanes = this.groups.flatMap((group) => group.lanes);
    this.messages = new Messages(data.messages);
    this.kinds = new Set();
    for (const lane of this.everyLane())
      for (const row of lane.rows)
        for (const kind of row.kind)
          this.kinds.add(kind);
  }

  everyLane() {
    return this.groups.flatMap((group) => group.lanes.concat(group.threads));
  }

  /* How many slices and messages have the words; null: no search. */
  search(words) {
    const text = words === null ? null : words.toLowerCase();
    const names = text === null ? null :
      this.names.map((name) => (hasWords(name, text) ? 1 : 0));
    let count = this.messages.search(text);

    for (const lane of this.everyLane())
      for (const row of lane.rows)
        count += row.search(names);
    return count;
  }
}

function number(x) {
  return String(x).replace(/\B(?=(\d{3})+$)/g, "\u202f");
}

/* A length of time, with the digits that matter. */
function span(ns) {
  const units = [[1e9, "s"], [1e6, "ms"], [1e3, "µs"], [1, "ns"]];
  const [unit, name] = units.find(([u]) => Math.abs(ns) >= u) ?? units[3];

  return `${parseFloat((ns / unit).toPrecision(4))} ${name}`;
}
