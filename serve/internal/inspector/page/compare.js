// Two runs, or sessions, side by side: their steps aligned, and what differs marked.

import { count, fill, h, line, money, percent, pressed, pretty, rate, took, whole } from "./dom.js";
import { callsOf, gist, textOf } from "./fold.js";
import { script } from "./diff.js";
import { changes, long } from "./text.js";
import { spanOf } from "./timeline.js";
import { List } from "./virtual.js";

const said = (row) => (row.says && row.says.version === row.version ? row.says : (row.says = { version: row.version, text: content(row) })).text;
const content = (row) => (row.type === "model" ? (row.message ? textOf(row.message) + "\0" + JSON.stringify(callsOf(row.message).map((c) => [c.name, c.input])) : "") : row.type === "tool" ? [row.input, row.status, row.result ? row.result.content : "", row.judged ? row.judged.verdict : ""].join("\0") : row.type === "run" ? [row.run.agent, row.run.model, row.run.engine, row.run.status].join("\0") : row.kind === "resumed" ? "" : row.text || "");
const kind = (row) => row.type + "\0" + (row.type === "tool" ? row.name : row.type === "note" ? row.kind : "");
const shared = (a, b) => a.entries[0] === b.entries[0] || (a.entries[0].session === b.entries[0].session && a.first === b.first && a.entries.length === b.entries.length);
const same = (a, b) => kind(a) === kind(b) && (shared(a, b) || said(a) === said(b));

// align gives pairs {a, b, mark}: "=" the same, "~" another, "<" and ">" only there.
export function align(as, bs) {
  const out = [];
  const one = (a, b) => out.push({ a, b, mark: !b ? "<" : !a ? ">" : same(a, b) ? "=" : "~" });
  let i = 0, j = 0;
  const between = (x, y) => { // what is not the same: by its kind
    const l = as.slice(i, x), r = bs.slice(j, y);
    let p = 0, q = 0;
    for (const [u, v] of [...script(l, r, (a, b) => kind(a) === kind(b), 400), [l.length, r.length]]) {
      while (p < u) one(l[p++], null);
      while (q < v) one(null, r[q++]);
      if (u < l.length && v < r.length) one(l[p++], r[q++]);
    }
  };
  for (const [x, y] of [...script(as, bs, same, 800), [as.length, bs.length]]) {
    between(x, y);
    if (x < as.length && y < bs.length) one(as[x], bs[y]);
    i = x + 1, j = y + 1;
  }
  return out;
}

const words = { "=": "the same", "~": "differs", "<": "only on the left", ">": "only on the right" };
const signs = { "=": "", "~": "\u2260", "<": "\u25c2", ">": "\u25b8" };

function cell(row) {
  if (!row) return h("div", { class: "side none" });
  const text = row.type === "tool" ? gist(row) : row.type === "run" ? [row.run.model, row.run.status].join(" \u00b7 ") : row.type === "model" && !row.text && row.message ? "calls " + callsOf(row.message).map((c) => c.name).join(", ") : row.text || row.status || "";
  const ms = spanOf(row);
  return h("div", { class: "side " + row.type }, h("span", { class: "seq" }, row.first), h("div", { class: "what" }, h("b", { class: "who" }, row.type === "model" ? "model" : row.type === "said" ? row.by || "you" : row.name), h("span", { class: "t" + (row.type === "tool" ? " mono" : "") }, line(text, 260))), h("span", { class: "n" }, row.usage ? count((row.usage.output_tokens || 0)) : ""), h("span", { class: "n" }, ms === undefined ? "" : took(ms)));
}

export class Compare {
  constructor(box, { select, leave, go }) {
    Object.assign(this, { box, select, leave, go, only: false, at: -1 });
    this.head = h("header", { class: "heads2" });
    this.scroll = h("div", { class: "scroll", id: "pairs", role: "listbox", tabindex: "0", "aria-label": "Steps side by side" });
    box.append(this.head, this.scroll);
    this.pairs = [];
    this.list = new List(this.scroll, {
      most: 60, guess: () => 34, version: (i) => this.seen[i].mark + (i === this.at) + this.seen[i].n,
      make: (i) => {
        const p = this.seen[i];
        return h("div", { class: `pair m-${{ "=": "same", "~": "other", "<": "left", ">": "right" }[p.mark]}${i === this.at ? " selected" : ""}`, id: "pair-" + i, role: "option", "aria-selected": i === this.at ? "true" : "false", "aria-label": `${words[p.mark]}: ${(p.a || p.b).type} ${(p.a || p.b).name || ""}`, "aria-posinset": i + 1, "aria-setsize": this.seen.length, "data-i": i }, cell(p.a), h("span", { class: "mark", title: words[p.mark] }, signs[p.mark]), cell(p.b));
      },
    });
    this.seen = [];
    pressed(this.scroll, (i) => this.choose(i, true));
  }

  // set compares a with b: {session, run}, run being the number of one or undefined for all.
  set(a, b) {
    Object.assign(this, { a, b });
    const rows = (x) => (x.run === undefined ? x.session.rows : x.session.runs[x.run] ? x.session.runs[x.run].rows : []);
    this.pairs = align(rows(a), rows(b)).map((p, n) => ({ ...p, n }));
    this.draw();
  }

  draw() {
    const all = this.pairs, tally = { "=": 0, "~": 0, "<": 0, ">": 0 };
    for (const p of all) tally[p.mark]++;
    this.seen = this.only ? all.filter((p) => p.mark !== "=") : all;
    const side = (x) => {
      const spent = x.run === undefined ? x.session.spent : x.session.runs[x.run] ? x.session.runs[x.run].spent : x.session.spent, u = spent.usage;
      return h("div", { class: "side" }, h("button", { type: "button", class: "link", onclick: () => this.go(x.session.name) }, x.session.name), x.run !== undefined && x.session.runs[x.run] ? h("span", { class: "dim" }, " " + x.session.runs[x.run].name) : null,
        h("p", { class: "dim" }, [`${whole(spent.calls)} model calls`, `${count((u.input_tokens || 0) + (u.cache_read_tokens || 0) + (u.cache_write_tokens || 0))} \u2192 ${count(u.output_tokens || 0)} tokens`, rate(u) !== null && percent(rate(u)) + " cached", spent.calls > 0 && "cost " + money(spent.cost)].filter(Boolean).join(" \u00b7 ")));
    };
    fill(this.head, h("div", { class: "line" }, h("strong", {}, "Side by side"), h("span", { class: "dim", id: "tally" }, [`${whole(tally["="])} the same`, tally["~"] && `${whole(tally["~"])} differ`, tally["<"] && `${whole(tally["<"])} only left`, tally[">"] && `${whole(tally[">"])} only right`].filter(Boolean).join(" \u00b7 ")),
      h("span", { class: "grow" }), h("button", { type: "button", "aria-pressed": this.only ? "true" : "false", id: "only", onclick: () => this.toggle(), title: "d" }, "Differences only"), h("button", { type: "button", onclick: () => this.next(-1), title: "Previous difference (N)", "aria-label": "Previous difference" }, "\u2191"), h("button", { type: "button", onclick: () => this.next(1), title: "Next difference (n)", "aria-label": "Next difference" }, "\u2193"), h("button", { type: "button", onclick: () => this.leave() }, "Close")),
    h("div", { class: "sides" }, side(this.a), h("span", { class: "mark" }), side(this.b)));
    this.at = -1;
    this.list.count = 0;
    this.list.fresh();
    this.list.count = this.seen.length;
  }

  toggle() {
    this.only = !this.only;
    this.draw();
    this.next(1);
  }

  choose(i, open = false) {
    if (!this.seen.length) return;
    this.at = Math.max(0, Math.min(i, this.seen.length - 1));
    this.scroll.setAttribute("aria-activedescendant", "pair-" + this.at);
    this.list.show(this.at);
    this.list.soon();
    this.select(this.seen[this.at], open);
  }

  // next goes to the next difference, or the one before.
  next(way) {
    for (let i = this.at + way; i >= 0 && i < this.seen.length; i += way) if (this.seen[i].mark !== "=") return this.choose(i);
  }
}

// showPair puts what differs between two steps into the box.
export function showPair(box, p) {
  const open = [], row = p.a || p.b, body = h("div", { class: "body" });
  const put = (title, a, b, { mono = true } = {}) => {
    if (!a && !b) return;
    body.append(h("section", {}, h("h3", {}, title), a === b || !p.a || !p.b ? long(b || a, open, { kind: mono ? "mono" : "prose" }) : changes(a || "", b || "", open, { name: "left \u2192 right" })));
  };
  const tidy = (v) => (v === undefined ? "" : pretty(typeof v === "string" ? v : JSON.stringify(v)));
  const of = (f) => [p.a ? f(p.a) : "", p.b ? f(p.b) : ""];
  body.append(h("p", {}, h("span", { class: "chip " + (p.mark === "=" ? "dim" : "wait") }, words[p.mark])));
  if (row.type === "model") {
    put("Text", ...of((r) => (r.message ? textOf(r.message) : "")), { mono: false });
    put("Calls", ...of((r) => (r.message ? callsOf(r.message).map((c) => c.name + " " + tidy(c.input)).join("\n") : "")));
    const figure = (name, f) => h("tr", {}, h("th", { scope: "row" }, name), ...[p.a, p.b].map((r) => h("td", {}, r && r.usage ? f(r) : "\u2013")));
    body.append(h("table", { class: "figures" }, h("tbody", {}, figure("input", (r) => whole(r.usage.input_tokens || 0)), figure("cache read", (r) => whole(r.usage.cache_read_tokens || 0)), figure("hit rate", (r) => percent(rate(r.usage)) || "\u2013"), figure("output", (r) => whole(r.usage.output_tokens || 0)), figure("cost", (r) => money(r.micros)), figure("took", (r) => took(spanOf(r))))));
  } else if (row.type === "tool") {
    put("Input", ...of((r) => tidy(r.input)));
    put("Verdict", ...of((r) => (r.judged ? r.judged.verdict + (r.judged.reason ? ": " + r.judged.reason : "") : "")));
    put("Output", ...of((r) => (r.result ? r.result.content : r.status)));
  } else put("Text", ...of((r) => (r.type === "run" ? `agent ${r.run.agent}\nmodel ${r.run.model || ""}\nstatus ${r.run.status}` : r.text || "")), { mono: false });
  box.replaceChildren(h("header", {}, h("div", {}, h("h2", {}, h("span", { class: "kind" }, row.type), " ", row.name || ""), h("p", { class: "dim" }, [p.a && "left entry " + p.a.first, p.b && "right entry " + p.b.first].filter(Boolean).join(" \u00b7 "))), h("div", { class: "acts" }, h("button", { type: "button", class: "close", "aria-label": "Close details", onclick: () => box.dispatchEvent(new CustomEvent("shut")) }, "\u2715"))), body);
  return open;
}
