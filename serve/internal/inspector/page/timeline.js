// The rows of a session, as they are in the list: what each says in a line or a few, when it was, and what it took.

import { chip, count, h, line, money, parsed, percent, pressed, rate, took } from "./dom.js";
import { gist } from "./fold.js";
import { lines, tally } from "./diff.js";
import { List } from "./virtual.js";

export const heads = () => h("div", { class: "row heads" }, h("span", { class: "seq" }, "#"), h("span", { class: "what" }, "step"), h("span", { class: "wf" }, "time in the run"), h("span", { class: "n in" }, "tokens"), h("span", { class: "n hit" }, "cache"), h("span", { class: "n cost" }, "cost"), h("span", { class: "n ms" }, "took"));

const marks = { run: "\u25b8", said: "\u275d", model: "\u25c6", tool: "\u25aa", question: "?", note: "\u00b7" };

// spans of a row: what is drawn of it on the axis of its run.
function bar(row, now) {
  const track = h("span", { class: "wf", "aria-hidden": "true" });
  const run = row.run;
  if (!run || row.type === "run") return track;
  const at = run.axis(now);
  const put = (a, b, c) => {
    const x = at(a), w = Math.max(at(b ?? run.until(now)) - x, 0);
    track.append(h("i", { class: c, style: { left: (x * 100).toFixed(3) + "%", width: `max(2px, ${(w * 100).toFixed(3)}%)` } }));
  };
  for (const [a, b] of (row.waits || []).slice(-2)) put(a, b, "wait");
  if (row.t0 !== undefined) put(row.t0, row.t1, (row.status === "error" || row.status === "denied" || row.status === "invalid" || row.failed && !row.done ? "bad " : "") + (row.type === "model" ? "model" : row.compacted ? "compact" : "tool") + (row.t1 === undefined && run.status === "running" ? " now" : ""));
  else if (!row.waits || !row.waits.length) put(row.time, row.time, "dot");
  return track;
}

export function spanOf(row, now = Date.now()) {
  const run = row.run;
  if (row.type === "run") return run.until(now) - run.start;
  if (row.t0 !== undefined) return row.t1 === undefined ? (run && run.over ? undefined : (run ? run.until(now) : now) - row.t0) : row.t1 - row.t0;
  const w = row.waits && row.waits[row.waits.length - 1];
  return w ? (w[1] ?? (run && run.status !== "interrupted" ? run.until(now) : now)) - w[0] : undefined;
}

// change is what a call of write or edit changes: {before, after, path}; null for others.
export function change(row) {
  const name = (row.name || "").toLowerCase();
  if (name !== "write" && name !== "edit") return null;
  const v = parsed(row.input);
  if (!v || typeof v.file_path !== "string") return null;
  if (typeof v.old_string === "string" && typeof v.new_string === "string") return { path: v.file_path, before: v.old_string, after: v.new_string, all: v.replace_all };
  if (typeof v.content === "string") return { path: v.file_path, before: "", after: v.content };
  return null;
}

function chips(row) {
  const all = [];
  const put = (text, t) => all.length < 4 && all.push(chip(text, t));
  if (row.type === "tool") {
    if (row.status === "running" && row.run && row.run.status === "running") put("running", "live");
    if (row.status === "waiting") put("waiting for you", "wait");
    if (row.judged && row.judged.input) put("rewritten", "note");
    if (row.status === "denied" || row.status === "invalid" || row.status === "rejected" || row.status === "canceled" || row.status === "unknown" || row.status === "error") put(row.status);
    if (row.answered && row.answered.approved) put(row.answered.session ? (row.answered.rule ? "its like approved" : "for the session") : row.answered.input ? "approved, edited" : "approved", "good");
    if (row.below) put("subagent \u2197", "note");
    if (row.result && row.result.background) put("background", "note");
    const c = row.tally === undefined ? (row.tally = count_(row)) : row.tally;
    if (c) all.push(h("span", { class: "tally" }, h("span", { class: "plus" }, "+" + c.more), h("span", { class: "minus" }, "\u2212" + c.less)));
  } else if (row.type === "model") {
    if (row.failures.length) put(row.failures.length === 1 ? "1 failure" : row.failures.length + " failures", row.done ? "wait" : "bad");
    if (row.retries) put("retried", "wait");
    if (!row.done && row.run && row.run.status === "running") put(row.said || row.thought ? "speaks" : "waits", "live");
    if (row.stop && !["end_turn", "tool_use"].includes(row.stop)) put(row.stop, "wait");
    if (row.status === "canceled") put("cut off", "wait");
  } else if (row.type === "run") put(row.run.status);
  else if (row.type === "said" && row.steering) put(row.by === "pawl" ? "from the loop" : "steering", "note");
  else if (row.type === "question") put(row.status === "waiting" ? "waiting for you" : row.status, row.status === "waiting" ? "wait" : undefined);
  return all;
}

function count_(row) {
  const c = change(row);
  if (!c || c.before.length + c.after.length > 200000) return null;
  return tally(lines(c.before, c.after, 0));
}

function says(row) {
  switch (row.type) {
    case "run": return h("span", { class: "t" }, [row.run.model, row.run.engine && row.run.engine !== "loop" && row.run.engine, row.run.attempt > 1 && "attempt " + row.run.attempt].filter(Boolean).join(" \u00b7 "));
    case "said": return h("span", { class: "t words", dir: "auto" }, cut(row.text || "(no text)", 900));
    case "question": return h("span", { class: "t words", dir: "auto" }, cut(row.text || "", 600));
    case "model": {
      if (row.done) {
        const parts = [];
        if (row.text) parts.push(h("span", { class: "t words", dir: "auto" }, cut(row.text, 700)));
        else {
          const calls = (row.message && row.message.parts || []).filter((p) => p.type === "tool_call").map((p) => p.name);
          parts.push(h("span", { class: "t dim" }, calls.length ? "calls " + line(calls.join(", "), 160) : "said nothing"));
        }
        return parts;
      }
      const live = row.said || row.thought || "";
      const last = row.failures[row.failures.length - 1];
      if (live) return h("span", { class: "t words live" + (row.said ? "" : " thought"), dir: "auto" }, live.length > 600 ? "\u2026" + live.slice(-600) : live);
      return h("span", { class: "t dim" }, last ? line((last.class ? last.class + ": " : "") + last.error, 200) : row.run && row.run.over ? "no reply" : "\u2026");
    }
    case "tool": {
      const out = row.output && !row.done ? row.output.trimEnd() : "";
      return [h("span", { class: "t mono" }, gist(row)), out && h("span", { class: "tail mono" }, line(out.slice(out.lastIndexOf("\n") + 1), 200))];
    }
  }
  return h("span", { class: "t dim" }, line(row.text, 240));
}

const cut = (t, n) => (t.length > n ? t.slice(0, n) + "\u2026" : t);

const whoOf = (row) => (row.type === "said" ? (row.by === "pawl" ? "pawl" : row.by || "you") : row.type === "model" ? (row.scope ? row.scope + " " : "") + "model" : row.name);

// spoken is a row for who hears it.
function spoken(row, now) {
  const what = row.type === "tool" ? `tool ${row.name}, ${row.status || "judged"}, ${gist(row).slice(0, 80)}` : row.type === "run" ? `run of ${row.name}, ${row.run.status}` : `${whoOf(row)}: ${line(row.text || "", 100)}`;
  const ms = spanOf(row, now);
  return `${row.first}. ${what}${ms !== undefined ? ", " + took(ms) : ""}`;
}

export function element(row, i, of, { selected, hit, now }) {
  const u = row.type === "run" ? row.run.spent.usage : row.usage, calls = row.type === "run" ? row.run.spent.calls : u ? 1 : 0;
  const hits = u && calls ? rate(u) : null;
  const ms = spanOf(row, now);
  return h("div", {
    class: `row ${row.type}${selected ? " selected" : ""}${hit ? " hit" : ""}${row.scope ? " scoped" : ""} ${row.status ? "is-" + String(row.status).split(" ")[0] : ""}`, id: "row-" + i, role: "option",
    "aria-selected": selected ? "true" : "false", "aria-posinset": i + 1, "aria-setsize": of, "aria-label": spoken(row, now), "data-i": i,
  },
  h("span", { class: "seq" }, row.first),
  h("div", { class: "what" }, h("b", { class: "who", "data-mark": marks[row.type] }, whoOf(row)), row.type === "tool" || row.type === "note" ? [says(row), chips(row)] : [chips(row), says(row)]),
  bar(row, now),
  h("span", { class: "n in" }, calls ? count((u.input_tokens || 0) + (u.cache_read_tokens || 0) + (u.cache_write_tokens || 0)) + " \u2192 " + count(u.output_tokens || 0) : ""),
  h("span", { class: "n hit" }, percent(hits)),
  h("span", { class: "n cost" }, calls ? money(row.type === "run" ? row.run.spent.cost : row.micros) : ""),
  h("span", { class: "n ms" }, ms === undefined ? "" : took(ms)));
}

const guesses = { run: 38, said: 46, model: 46, question: 46 };

// Timeline is the list of a session's rows, one of them selected.
export class Timeline {
  constructor(box, { select, after }) {
    this.box = box;
    this.session = null;
    this.selected = -1;
    this.hits = new Set();
    this.select = select;
    this.list = new List(box, {
      most: 60, guess: (i) => guesses[this.rows[i].type] || 27, after: (shown) => { this.bars(shown); after(); },
      version: (i) => `${this.rows[i].version}/${i === this.selected}/${this.hits.has(i)}`,
      make: (i) => element(this.rows[i], i, this.rows.length, { selected: i === this.selected, hit: this.hits.has(i), now: Date.now() }),
    });
    this.list.follows = true;
    pressed(box, (i) => this.choose(i, { open: true }));
  }

  get rows() { return this.session ? this.session.rows : []; }

  // moves reports whether a row looks otherwise as time goes by.
  moves(row) { return row.run && row.run.status === "running" && !row.run.over; }

  set(session) {
    this.session = session;
    this.selected = -1;
    this.hits = new Set();
    this.list.stuck = false;
    this.list.count = 0;
    this.list.fresh();
    this.list.count = this.rows.length;
  }

  // changed has what is new be seen.
  changed() {
    this.list.count = this.rows.length;
    this.list.soon();
  }

  // bars draws the bars of rows again whose run has gone on since. Rows stay the elements that they are: somebody may be about to click one.
  bars(shown, clock = false) {
    const now = Date.now();
    for (const [i, s] of shown) {
      const row = this.rows[i], run = row && row.run;
      if (!run || s.drawn === run.version && !(clock && this.moves(row))) continue;
      s.drawn = run.version;
      s.element.querySelector(".wf").replaceWith(bar(row, now));
      const ms = spanOf(row, now);
      if (ms !== undefined && (row.type === "run" || row.t1 === undefined)) s.element.querySelector(".ms").textContent = took(ms);
    }
  }

  tick() { this.bars(this.list.shown, true); }

  choose(i, { middle = false, open = false, quiet = false } = {}) {
    if (!this.rows.length) return;
    this.selected = Math.max(0, Math.min(i, this.rows.length - 1));
    this.box.setAttribute("aria-activedescendant", "row-" + this.selected);
    if (!quiet) this.list.show(this.selected, middle);
    this.list.soon();
    this.select(this.rows[this.selected], open);
  }

  row() { return this.rows[this.selected]; }
}
