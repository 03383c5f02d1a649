// What a row says, in full.

import { chip, day, h, line, money, parsed, percent, pretty, rate, took, whole, size } from "./dom.js";
import { callsOf, reasoningOf, textOf } from "./fold.js";
import { change, spanOf } from "./timeline.js";
import { changes, long } from "./text.js";

const section = (title, ...children) => h("section", {}, h("h3", {}, title), ...children);
const facts = (...pairs) => h("dl", { class: "facts" }, pairs.filter(([, v]) => v !== undefined && v !== null && v !== "" && v !== false).map(([k, v]) => h("div", {}, h("dt", {}, k), h("dd", {}, v))));

function tokens(u, micros, ms) {
  if (!u) return null;
  return facts(["input", whole(u.input_tokens || 0)], ["cache read", whole(u.cache_read_tokens || 0)], ["cache write", whole(u.cache_write_tokens || 0)], ["cache hit rate", percent(rate(u)) || "\u2013"],
    ["output", whole(u.output_tokens || 0)], ["reasoning", u.reasoning_tokens ? whole(u.reasoning_tokens) : ""], ["cost", micros === null || micros === undefined ? "not known" : money(micros)], ["took", took(ms)]);
}

const images = /^image\/(png|jpeg|gif|webp)$/;

function files(all) {
  return (all || []).slice(0, 20).map((f) => h("figure", {},
    f.data && images.test(f.mime) && f.data.length < 8 << 20 && h("img", { src: `data:${f.mime};base64,${f.data}`, alt: f.name || "an image" }),
    h("figcaption", {}, [f.name || "file", f.mime, f.data && size(Math.floor(f.data.length * 3 / 4)), f.url].filter(Boolean).join(" \u00b7 "))));
}

function input(row, value, open) {
  const c = change({ name: row.name, input: value });
  if (c) return [changes(c.before, c.after, open, { name: c.path + (c.all ? " (everywhere)" : "") })];
  const v = parsed(value);
  if (v && typeof v.command === "string") {
    const rest = Object.fromEntries(Object.entries(v).filter(([k]) => k !== "command"));
    return [long(v.command, open), Object.keys(rest).length > 0 && long(pretty(rest), open)];
  }
  return [long(pretty(value ?? ""), open)];
}

const asText = (v) => (typeof v === "string" ? v : JSON.stringify(v));

function ofModel(row, open) {
  const m = row.message, out = [];
  out.push(tokens(row.usage, row.micros, row.ms || spanOf(row)));
  for (const f of row.failures) out.push(section("Failed", h("p", {}, chip(f.class || "error", "bad")), long(f.error || "", open, { kind: "prose" })));
  if (row.retries) out.push(section("Tried again", row.retries.slice(-20).map((r) => h("p", { class: "prose" }, `attempt ${r.attempt}: ${r.text}`))));
  if (row.heard && row.heard.length) out.push(section("Heard on the way", row.heard.slice(0, 20).map((x) => long(textOf(x), open, { kind: "prose" }))));
  const thought = m ? reasoningOf(m) : row.thought;
  if (thought) out.push(section("Reasoning", long(thought, open, { kind: "prose thought" })));
  const text = m ? textOf(m) : row.said;
  if (text) out.push(section("Text", long(text, open, { kind: "prose" })));
  if (m) {
    const calls = callsOf(m);
    if (calls.length) out.push(section(calls.length === 1 ? "Call" : `${calls.length} calls`, calls.slice(0, 30).map((c) => h("div", { class: "call" }, h("code", {}, c.name || c.type), " ", h("span", { class: "dim mono" }, line(asText(c.input || ""), 300)))), calls.length > 30 && h("p", { class: "dim" }, `and ${calls.length - 30} more`)));
    out.push(...files((m.parts || []).filter((p) => p.type === "file")));
    const cited = (m.parts || []).flatMap((p) => p.citations || p.sources || []).slice(0, 30);
    if (cited.length) out.push(section("Sources", cited.map((c) => h("p", { class: "prose" }, [c.title, c.url, c.quote && "\u201c" + line(c.quote, 200) + "\u201d"].filter(Boolean).join(" \u00b7 ")))));
  }
  const all = row.entries.find((e) => e.kind === "model.finished");
  out.push(facts(["stopped because", row.stop], ["provider says", row.why], ["reply id", all && all.data.id]));
  return out;
}

function ofTool(row, open, go) {
  const out = [], j = row.judged, a = row.answered, r = row.result;
  const given = row.given !== undefined && j && j.input ? row.given : undefined;
  if (row.below) out.push(h("p", {}, h("button", { type: "button", class: "link", onclick: () => go(row.below) }, "Open the subagent's session \u2197"), " ", h("span", { class: "dim" }, row.below)));
  if (j) {
    out.push(section("Judged", h("p", {}, chip(j.verdict), j.once && chip("each time", "dim")), j.reason && long(j.reason, open, { kind: "prose" }),
      given !== undefined && [h("h4", {}, "the hook rewrote the input"), changes(pretty(asText(given)), pretty(j.input), open, { name: "input" })],
      j.context && [h("h4", {}, "for the model, behind the result"), long(j.context, open, { kind: "prose" })],
      j.ends && h("p", { class: "prose" }, "ended the run: " + j.ends)));
  }
  if (row.asked) out.push(section("Asked", row.asked.prompt && long(row.asked.prompt, open, { kind: "prose" }), row.asked.unknown && h("p", { class: "prose" }, "The call had begun, and its outcome is not known: approving runs it again.")));
  if (a) {
    out.push(section("Answered", h("p", {}, chip(a.approved ? "approved" : "rejected"), a.session && chip("for the session", "note"), a.by && h("span", { class: "dim" }, " by " + a.by)), a.text && long(a.text, open, { kind: "prose" }),
      a.rule && h("p", { class: "mono" }, a.rule), a.input && row.asked && row.asked.call && [h("h4", {}, "with another input"), changes(pretty(row.asked.call.input || ""), pretty(a.input), open, { name: "input" })]));
  }
  out.push(section("Input", ...input(row, row.input, open)));
  if (r) {
    out.push(section("Output", h("p", {}, chip(r.outcome), r.class && chip(r.class, "dim"), r.final && chip("final", "note"), h("span", { class: "dim" }, " " + took(row.ms))), r.warning && h("p", { class: "prose warn" }, r.warning), r.ends && h("p", { class: "prose warn" }, "a hook ended the run: " + r.ends), r.content ? long(r.content, open) : h("p", { class: "dim" }, "nothing"), ...files(r.files)));
  } else if (row.output) out.push(section("Output so far", long(row.output, open)));
  return out;
}

function ofRun(run) {
  return [
    facts(["run", run.id], ["agent", run.agent], ["model", run.model], ["engine", run.engine], ["attempt", run.attempt > 1 ? run.attempt : ""], ["began", day(run.start)], ["took", took(spanOf({ type: "run", run }))], ["model calls", whole(run.spent.calls)], ["tool calls", whole(run.tools)]),
    run.spent.calls > 0 && section("Tokens", tokens(run.spent.usage, run.spent.cost)),
  ];
}

// show puts a row into the box. It gives what has to be closed before another one is shown.
export function show(box, row, { go, fork, compare, raw = new Set(), onraw = () => {} }) {
  const open = [];
  const title = row.type === "run" ? "run" : row.type === "said" ? (row.steering ? "steering" : "prompt") : row.type === "note" ? row.name : row.type;
  const name = row.type === "tool" || row.type === "model" ? row.name : row.type === "run" ? row.name : row.type === "said" ? row.by || "you" : "";
  const last = row.entries[row.entries.length - 1];
  const body = h("div", { class: "body" });
  switch (row.type) {
    case "run": body.append(...ofRun(row.run).filter(Boolean)); break;
    case "model": body.append(...ofModel(row, open).filter(Boolean)); break;
    case "tool": body.append(...ofTool(row, open, go).filter(Boolean)); break;
    case "said": body.append(long(row.text || "", open, { kind: "prose" }), ...files((row.message && row.message.parts || []).filter((p) => p.type === "file"))); break;
    case "question": body.append(long(row.text || "", open, { kind: "prose" }), row.answered ? section("Answered", h("p", {}, chip(row.answered.approved ? "answered" : "rejected", row.answered.approved ? "good" : "bad")), long(row.answered.text || "", open, { kind: "prose" })) : h("p", { class: "dim" }, row.done ? "not answered: its run is over" : "not answered yet")); break;
    default: {
      const d = last ? last.data : {};
      if (row.link) body.append(h("p", {}, h("button", { type: "button", class: "link", onclick: () => go(row.link) }, "Open " + row.link + " \u2197")));
      if (row.compacted) body.append(tokens(row.usage, row.micros, row.ms) || "");
      for (const [k, v] of Object.entries(d)) if (typeof v === "string" && v) body.append(section(k.replaceAll("_", " "), long(v, open, { kind: k === "stack" || k === "command" ? "mono" : "prose" })));
      if (row.compacted && d.edit) body.append(...[...(d.edit.head || []), ...(d.edit.tail || [])].slice(0, 3).map((m) => section("Summary", long(textOf(m), open, { kind: "prose" }))));
    }
  }
  const raws = h("section", { class: "raws" }, h("h3", {}, row.entries.length === 1 ? "Raw entry" : "Raw entries"));
  for (const e of row.entries.slice(-12)) {
    const holder = h("div", {});
    const d = h("details", {}, h("summary", {}, h("span", { class: "mono" }, `${e.seq} ${e.kind}`), h("span", { class: "dim" }, day(e.at))), holder);
    const put = () => {
      const { at, ...entry } = e;
      if (!holder.firstChild) holder.append(long(JSON.stringify(entry, null, 2), open));
    };
    if (raw.has(e.seq)) d.open = true, put();
    d.addEventListener("toggle", () => {
      if (d.open) put();
      onraw(e.seq, d.open);
    });
    raws.append(d);
  }
  box.replaceChildren(
    h("header", {}, h("div", {}, h("h2", {}, h("span", { class: "kind" }, title), " ", name), h("p", { class: "dim" }, [`entry ${row.first}${last && last.seq !== row.first ? "\u2013" + last.seq : ""}`, day(row.time), row.scope && "in " + row.scope].filter(Boolean).join(" \u00b7 "))),
      h("div", { class: "acts" }, fork && h("button", { type: "button", onclick: () => fork(row), title: "Fork from here (f)" }, "Fork"), compare && h("button", { type: "button", onclick: () => compare(row), title: "Compare (c)" }, "Compare"), h("button", { type: "button", class: "close", "aria-label": "Close details", onclick: () => box.dispatchEvent(new CustomEvent("shut")) }, "\u2715"))),
    body, raws);
  return open;
}
