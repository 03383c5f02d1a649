// A session's entries are read into rows here: one for a model call, one for a tool call with what was judged, asked and answered about it, one for whatever else there is. Nothing here knows of the page.

import { line, parsed } from "./dom.js";

export const textOf = (m) => (m && m.parts || []).filter((p) => p.type === "text").map((p) => p.text).join("");
export const reasoningOf = (m) => (m && m.parts || []).filter((p) => p.type === "reasoning").map((p) => p.text).join("\n");
export const callsOf = (m) => (m && m.parts || []).filter((p) => p.type === "tool_call" || p.type === "provider_call");

const none = () => ({ input_tokens: 0, output_tokens: 0, cache_read_tokens: 0, cache_write_tokens: 0, reasoning_tokens: 0 });
const plus = (u, v) => { for (const k in u) u[k] += v[k] || 0; };

// Spent is what model calls took. A cost that is not known makes the whole unknown.
class Spent {
  constructor() {
    this.usage = none();
    this.micros = 0;
    this.unknown = false;
    this.calls = 0;
  }

  add(d) {
    this.calls++;
    plus(this.usage, d.usage || {});
    if (d.cost_micros === undefined || d.cost_micros === null) this.unknown = true;
    else this.micros += d.cost_micros;
  }

  get cost() { return this.unknown ? null : this.micros; }
}

export const died = "its process died";

// stands is where a session stands, in a word or two.
export const stands = (s) => (s.waits ? "waits for you" : s.status === "running" && !s.driven ? died : s.status || "");

const causes = { awaiting_person: "waits for a person", user_cancel: "by a person; it can be resumed", user_input: "for what a person says", host_shutdown: "its server was shut down; it can be resumed", journal: "the journal could not be written", commit: "the run is over, but what comes behind it failed" };

class Run {
  constructor(e, index) {
    const d = e.data;
    Object.assign(this, { id: e.run, index, agent: d.agent, model: d.model, engine: d.engine, attempt: d.attempt || 1, seq: e.seq, status: "running", spent: new Spent(), steps: 0, tools: 0 });
    this.start = Date.parse(e.time);
    this.last = this.start;
    this.rows = [];
    this.handovers = 0;
    this.parked = 0; // how long it waited to be resumed
    this.version = 0;
  }

  get name() { return this.id + (this.attempt > 1 ? " #" + this.attempt : ""); }

  // becomes has the run's first row say so, too, and what is under way.
  becomes(status) {
    this.status = status;
    this.version++;
    for (const r of this.rows) if (r.type === "run" || r.status === "running") r.version++;
  }

  get over() { return this.end !== undefined; }

  // until is how far it has come, by now.
  until(now) { return this.end ?? (this.status === "running" ? now : this.last); }

  // close has nothing of the run go on, or wait, from a time on.
  close(at, status) {
    this.end = at;
    for (const r of this.rows) {
      if (r.status !== "running" && r.status !== "waiting") continue;
      const w = r.waits && r.waits[r.waits.length - 1];
      if (w) w[1] ??= at;
      if (r.status === "running") r.t1 ??= at;
      r.status = "canceled";
      r.done = true;
      r.version++;
    }
    this.becomes(status);
  }

  // axis maps a time to a place from 0 to 1. Where nothing was done for long (a person was waited for), it is shortened: what was done is to be seen.
  axis(now) {
    const end = Math.max(this.over ? this.last : this.until(now), this.start + 1);
    if (this.drawn && this.drawn.version === this.version && this.drawn.end === end) return this.drawn.at;
    const busy = [];
    for (const r of this.rows) {
      if (r.t0 === undefined) continue;
      const t1 = r.t1 === undefined ? end : r.t1, l = busy[busy.length - 1];
      if (l && r.t0 <= l[1]) l[1] = Math.max(l[1], t1);
      else busy.push([r.t0, t1]);
    }
    let work = 0;
    for (const [a, b] of busy) work += b - a;
    const long = Math.max(1000, work * 0.08), knots = [[this.start, 0]];
    let at = this.start, x = 0;
    const idle = (to) => {
      if (to <= at) return;
      x += to - at > long ? long : to - at;
      knots.push([to, x]);
      at = to;
    };
    for (const [a, b] of busy) {
      idle(a);
      if (b > at) knots.push([b, (x += b - at)]), at = b;
    }
    idle(end);
    x = x || 1;
    const f = (t) => {
      let lo = 0, hi = knots.length - 1;
      if (t <= knots[0][0]) return 0;
      if (t >= knots[hi][0]) return 1;
      while (hi - lo > 1) {
        const mid = (lo + hi) >> 1;
        if (knots[mid][0] <= t) lo = mid; else hi = mid;
      }
      const [t0, x0] = knots[lo], [t1, x1] = knots[hi];
      return (x0 + (t1 > t0 ? (x1 - x0) * (t - t0) / (t1 - t0) : 0)) / x;
    };
    this.drawn = { version: this.version, end, at: f };
    return f;
  }
}

// Session is what is known of one.
export class Session {
  constructor(name) {
    this.name = name;
    this.entries = [];
    this.rows = [];
    this.runs = [];
    this.spent = new Spent();
    this.rowOf = new Map(); // number of an entry → row
    this.open = new Map(); // effects and calls of the run → row
    this.run = null;
    this.seq = 0;
  }

  // add takes an entry; those that are here already are passed over.
  add(e) {
    if (e.seq <= this.seq) return null;
    this.seq = e.seq;
    this.entries.push(e);
    const at = Date.parse(e.time);
    e.at = at;
    if (this.run) {
      if (this.run.status === died) this.run.becomes("running"); // it lives
      this.run.last = Math.max(this.run.last, at);
      this.run.version++;
    }
    const f = folds[e.kind];
    const row = f ? f(this, e, e.data || {}, at) : this.note(e, e.kind, line(JSON.stringify(e.data)));
    if (row) {
      if (!row.entries.includes(e)) row.entries.push(e);
      row.version++;
      this.rowOf.set(e.seq, row);
    }
    return row;
  }

  // died has the run stand still: nobody drives it.
  died() { if (this.run && this.run.status === "running" && !this.run.over) this.run.becomes(died); }

  row(type, e, more) {
    const row = { type, index: this.rows.length, run: this.run, entries: [], first: e.seq, time: e.at, version: 0, ...more };
    this.rows.push(row);
    if (this.run) this.run.rows.push(row);
    return row;
  }

  note(e, name, text, more) { return this.row("note", e, { kind: e.kind, name, text, scope: e.key && e.key.scope, ...more }); }

  keyed(e) { return keyOf(e.run, e.key); }

  // call is the row of a tool call.
  call(e, id) {
    const k = "call\0" + e.run + "\0" + id;
    let row = this.open.get(k);
    if (!row) {
      row = this.row("tool", e, { call: id, name: "", input: "", scope: e.key && e.key.scope, step: this.lastModel, waits: [], status: "" });
      this.open.set(k, row);
      const asked = this.lastModel && this.lastModel.message && callsOf(this.lastModel.message).find((c) => c.id === id);
      if (asked) {
        row.name = asked.name;
        row.given = asked.input;
        row.input = asked.input;
      }
      if (this.run) this.run.tools++;
    }
    return row;
  }

  // delta is something that is said while an effect goes on.
  delta(d) {
    if (d.kind === "warning") {
      this.warning = d.text;
    }
    if (d.session !== this.name && d.session) return null;
    const row = d.key && this.open.get(keyOf(d.run, d.key)) || d.key && this.open.get("call\0" + d.run + "\0" + d.key.id);
    if (!row || row.done) return null;
    if (d.kind === "retry") {
      (row.retries ||= []).push({ attempt: d.attempt, text: d.text });
      row.said = row.thought = row.output = undefined;
      row.speaks = d.attempt;
    } else {
      if ((row.speaks ?? d.attempt) > d.attempt) return null;
      row.speaks = d.attempt;
      if (d.kind === "text.delta") row.said = (row.said || "") + d.text;
      else if (d.kind === "reasoning.delta") row.thought = (row.thought || "") + d.text;
      else if (d.kind === "tool.output") row.output = ((row.output || "") + d.text).slice(-(64 << 10));
      else if (d.kind === "warning") (row.warnings ||= []).push(d.text);
      else return null;
    }
    row.version++;
    return row;
  }
}

const keyOf = (run, k) => run + "\0" + (k ? `${k.scope || ""}\0${k.op}\0${k.id || ""}` : "");

const folds = {
  "session.created"(s, e, d) {
    if (s.run && !s.run.over) s.run.close(s.run.last, "cut by the fork"); // what was under way there is not the fork's
    s.open.clear();
    s.run = null;
    const text = d.parent ? `fork of ${d.parent} at entry ${d.at}` : d.task_of ? `task of ${d.task_of}` : "session begins";
    if (d.parent) s.parent = d.parent, s.forkedAt = d.at;
    return s.note(e, d.parent ? "fork" : d.task_of ? "task" : "session", text, { link: d.parent || d.task_of });
  },
  "run.started"(s, e, d) {
    if (s.run && !s.run.over) s.run.close(s.run.last, s.run.id === e.run ? "revised" : "closed by a new prompt");
    s.open.clear();
    s.lastModel = null;
    s.run = new Run(e, s.runs.length);
    s.runs.push(s.run);
    return s.row("run", e, { name: d.agent || "run" });
  },
  resumed(s, e, d, at) {
    if (s.run) {
      s.run.handovers++;
      s.run.end = undefined;
      s.run.becomes("running");
    }
    return s.note(e, "resumed", "the run goes on");
  },
  said(s, e, d) { return s.row("said", e, { by: d.by || "", text: textOf(d.message), message: d.message, steering: !!e.key, scope: e.key && e.key.scope }); },
  seeded: (s, e) => s.note(e, "seeded", "what the run begins with was changed"),
  prepared: (s, e, d) => s.note(e, "prepared", [d.system && "system prompt: " + line(d.system, 120), d.moved && "the beginning was changed", d.output && "answer has a schema"].filter(Boolean).join(" · ") || "hooks are done with the prompt"),
  "model.started"(s, e, d, at) {
    const row = s.row("model", e, { name: d.model || s.run && s.run.model || "model", scope: e.key && e.key.scope, id: e.key && e.key.id, t0: at, status: "running", failures: [], begun: s.run && s.run.handovers });
    s.open.set(s.keyed(e), row);
    return row;
  },
  "model.finished"(s, e, d, at) {
    const row = s.open.get(s.keyed(e)) || s.row("model", e, { name: d.model || "model", scope: e.key && e.key.scope, id: e.key && e.key.id, failures: [] });
    row.t1 = at;
    row.t0 = d.ms && at - d.ms > (row.t0 || 0) ? at - d.ms : row.t0 ?? at;
    Object.assign(row, { status: d.partial ? "canceled" : "ok", done: true, message: d.message, usage: d.usage, micros: d.cost_micros ?? null, ms: d.ms || 0, stop: d.stop, why: d.reason, heard: d.heard, text: textOf(d.message), said: undefined, thought: undefined });
    if (d.model) row.name = d.model;
    s.lastModel = row;
    if (s.run) s.run.spent.add(d), s.run.steps++;
    s.spent.add(d);
    return row;
  },
  "model.failed"(s, e, d, at) {
    const row = s.open.get(s.keyed(e)) || s.row("model", e, { name: s.run && s.run.model || "model", scope: e.key && e.key.scope, failures: [], t0: at });
    row.failures.push({ class: d.class, error: d.error, time: at });
    row.said = row.thought = undefined;
    row.failed = at;
    return row;
  },
  "tool.judged"(s, e, d) {
    const row = s.call(e, d.call);
    if (d.name) row.name = d.name;
    row.judged = d;
    if (d.input) row.input = d.input;
    if (d.verdict === "deny" || d.verdict === "invalid") row.status = d.verdict === "deny" ? "denied" : "invalid", row.done = true, row.t0 = row.t1 = e.at;
    return row;
  },
  asked(s, e, d, at) {
    if (!d.call) {
      const row = s.row("question", e, { name: "question", text: d.prompt, asked: d, waits: [[at, undefined]], status: "waiting", scope: e.key && e.key.scope });
      s.open.set("asked\0" + d.id, row);
      return row;
    }
    const row = s.call(e, d.call.id);
    Object.assign(row, { name: d.call.name, input: d.call.input || row.input, asked: d, status: "waiting" });
    row.waits.push([at, undefined]);
    s.open.set("asked\0" + d.id, row);
    return row;
  },
  answered(s, e, d, at) {
    const row = s.open.get("asked\0" + d.id) || s.call(e, d.id);
    const w = row.waits[row.waits.length - 1];
    if (w && w[1] === undefined) w[1] = at;
    row.answered = d;
    if (d.name) row.name = d.name;
    if (d.input) row.input = d.input;
    if (row.type === "question") row.status = d.approved ? "answered" : "rejected", row.done = true;
    else row.status = d.approved ? "approved" : "rejected";
    if (!d.approved && row.type === "tool") row.done = true;
    return row;
  },
  "tool.started"(s, e, d, at) {
    const row = s.call(e, d.call.id);
    Object.assign(row, { name: d.call.name, input: d.call.input, status: "running", t0: at, t1: undefined, done: false, begun: s.run && s.run.handovers });
    s.open.set(s.keyed(e), row);
    return row;
  },
  "tool.finished"(s, e, d, at) {
    const row = s.call(e, d.call);
    const again = row.t0 === undefined || s.run && row.begun !== s.run.handovers;
    row.t1 = again ? at : Math.min(at, row.t0 + (d.ms || 0));
    if (again) row.t0 = at - (d.ms || 0);
    Object.assign(row, { name: d.name || row.name, status: d.outcome, done: !d.ask, result: d, output: undefined, ms: d.ms || 0 });
    return row;
  },
  "task.started"(s, e, d) {
    const row = s.call(e, d.call);
    row.below = d.session;
    return row;
  },
  "command.started"(s, e, d, at) {
    const row = s.note(e, "command", d.command, { t0: at, status: "running", command: d });
    s.open.set("command\0" + d.id, row);
    return row;
  },
  "command.ended"(s, e, d, at) {
    const row = s.open.get("command\0" + d.id);
    const how = d.reason + (d.signal ? " " + d.signal : d.code ? " " + d.code : "");
    if (!row) return s.note(e, "command ended", `${d.id}: ${how}`);
    Object.assign(row, { t1: at, status: how, ms: d.ms || 0 });
    return row;
  },
  compacted(s, e, d, at) {
    const row = s.note(e, d.error ? "compaction failed" : "compacted", d.error || `${d.tokens_before || 0} → ${d.tokens_after || 0} tokens`, { t0: at - (d.ms || 0), t1: at, ms: d.ms || 0, usage: d.usage, micros: d.cost_micros ?? null, status: d.error ? "error" : "ok", compacted: d });
    if (d.usage) {
      if (s.run) s.run.spent.add(d);
      s.spent.add(d);
    }
    return row;
  },
  stopped: (s, e, d) => (d.again || d.steered || d.errors ? s.note(e, d.again ? "sent back" : d.steered ? "steered" : "stop hooks", d.again || (d.errors || []).join("; ") || "somebody said something meanwhile", { status: d.errors ? "error" : "" }) : s.note(e, "stopped", "the model is done")),
  parked(s, e, d) {
    if (s.run) s.run.becomes("interrupted");
    return s.note(e, "interrupted", [causes[d.cause] || d.cause, d.cause !== "awaiting_person" && d.detail].filter(Boolean).join(": "), { status: "interrupted" });
  },
  board: (s, e) => s.note(e, "board", "changed"),
  visited: (s, e, d) => s.note(e, "node", d.node + (d.cached ? " (from its cache)" : "")),
  failed: (s, e, d) => s.note(e, "failed", [d.class, d.error].filter(Boolean).join(": "), { status: "error" }),
  timed: (s, e, d) => s.note(e, "clock", d.at),
  "run.finished"(s, e, d, at) {
    if (s.run) {
      s.run.last = at;
      s.run.close(at, d.status);
    }
    return s.note(e, d.status, [d.discarded && "discarded", d.reason, d.error && (d.class ? d.class + ": " : "") + d.error].filter(Boolean).join(" · "), { status: d.status, end: true });
  },
};

// gist is what a call is about, in a line.
export function gist(row) {
  const in_ = parsed(row.input);
  if (!in_) return line(typeof row.input === "string" ? row.input : "");
  for (const k of ["command", "file_path", "path", "pattern", "query", "url", "prompt", "description", "question", "name"]) {
    if (typeof in_[k] === "string" && in_[k]) return line(in_[k]);
  }
  const all = Object.keys(in_);
  return all.length ? line(JSON.stringify(in_)) : "";
}

// has reports whether a text is anywhere in what an entry says: find is a RegExp without "g".
export function has(v, find) {
  if (typeof v === "string") return find.test(v);
  if (Array.isArray(v)) return v.some((x) => has(x, find));
  if (v && typeof v === "object") return Object.entries(v).some(([k, x]) => k !== "signature" && has(x, find));
  return false;
}
export const holds = (e, find) => has(e.data, find) || find.test(e.kind) || has(e.run || "", find);
