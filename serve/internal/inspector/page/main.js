// The page: what is open, what the keys do, and what goes on while it is looked at.

import * as api from "./api.js";
import { chip, count, fill, h, line, money, pause, percent, rate, took, whole } from "./dom.js";
import { Session, has, holds, stands } from "./fold.js";
import { Timeline, heads } from "./timeline.js";
import { show } from "./detail.js";
import { Compare, showPair } from "./compare.js";
import { Sessions } from "./sessions.js";
import { Waiting } from "./pending.js";
import { askFork, askOther, askToken, help } from "./dialog.js";

const $ = (id) => document.getElementById(id);
const pageOf = 400;

api.asker(askToken);

// What is told, at the bottom, until it has been read.
let toasting;
function toast(text, bad = true) {
  const t = $("toast");
  fill(t, h("span", {}, text), h("button", { type: "button", class: "close", "aria-label": "Close", onclick: quiet }, "\u2715"));
  t.className = bad ? "bad" : "";
  t.hidden = false;
  clearTimeout(toasting);
  toasting = setTimeout(quiet, bad ? 9000 : 3500);
}
function quiet() { $("toast").hidden = true; }
const tell = (text) => { $("told").textContent = text; };
const trying = async (f) => {
  try {
    return await f();
  } catch (err) {
    if (err.name !== "AbortError") toast(err.message);
    return undefined;
  }
};

// Dark and light.
const themes = ["", "dark", "light"];
function theme(to) {
  document.documentElement.dataset.theme = to;
  $("theme").textContent = to === "" ? "Auto" : to === "dark" ? "Dark" : "Light";
  localStorage.setItem("pawl-theme", to);
}
theme(themes.includes(localStorage.getItem("pawl-theme")) ? localStorage.getItem("pawl-theme") : "");
const nextTheme = () => theme(themes[(themes.indexOf(document.documentElement.dataset.theme) + 1) % themes.length]);

// The head of a session, made once.
const find = h("input", { id: "find", type: "search", placeholder: "Search in this session", "aria-label": "Search in this session", autocomplete: "off", spellcheck: "false" });
const found = h("span", { id: "found", class: "dim", role: "status" });
const title = h("h2", { id: "title" }), state = h("span", { id: "state" }), line1 = h("span", { id: "live", class: "dim", role: "status" }), stats = h("dl", { id: "stats" });
const headButton = (id, text, f, t) => h("button", { type: "button", id, onclick: f, title: t }, text);
$("head").append(
  h("div", { class: "line" }, headButton("menu", "\u2630", () => document.body.classList.toggle("menu"), "Sessions"), title, state, line1, h("span", { class: "grow" }), h("span", { class: "search", role: "search" }, find, found, headButton("back", "\u2191", () => step(-1), "Previous (N)"), headButton("on", "\u2193", () => step(1), "Next (n)")), headButton("fork", "Fork", () => forkFrom(timeline.row()), "Fork from the step (f)"), headButton("compare", "Compare", () => compareWith(), "Side by side (c)")),
  h("div", { class: "line" }, stats));
$("back").setAttribute("aria-label", "Previous match");
$("on").setAttribute("aria-label", "Next match");
$("cols").append(heads());

const raw = new Set(); // entries whose JSON is open
let here = null; // what is open: {session, info, abort, …}
let comparing = null;
let shownRow = null, shownVersion = -1, open = [], detailTimer = 0;

const timeline = new Timeline($("timeline"), { select: (row, wants) => detail(row, wants), after: () => highlight() });
const list = new Sessions($("sessions"), { filter: $("filter"), status: $("status"), sum: $("sum"), looked: news, open: (name, focus) => { go(name); if (focus) $("timeline").focus(); }, failed: (err) => { if (err && (!list.failing || list.failing !== err.message)) toast(err.message); list.failing = err && err.message; } });
const waiting = new Waiting($("waiting"), async (body) => {
  await api.answer(here.session.name, body);
  tell(body.approved ? "Approved" : "Rejected");
  refresh();
});

// --- where the page is: #/s/NAME[/ENTRY], #/compare/A/B?ra=1&rb=2, #/new

const enc = encodeURIComponent;
const go = (name, seq) => { location.hash = "#/s/" + enc(name) + (seq ? "/" + seq : ""); };

async function route() {
  document.body.classList.remove("menu");
  const [path, query] = location.hash.slice(1).split("?");
  let parts;
  try {
    parts = path.split("/").slice(1).map(decodeURIComponent);
  } catch {
    parts = [];
  }
  closeDetail();
  leaveCompare();
  if (parts[0] === "compare" && parts.length === 3) {
    const q = new URLSearchParams(query || ""), n = (k) => (q.has(k) ? +q.get(k) : undefined);
    return showCompare({ name: parts[1], run: n("ra") }, { name: parts[2], run: n("rb") });
  }
  if (parts[0] === "s" && parts[1]) return enter(parts[1], +parts[2] || 0);
  return enter(null);
}
window.addEventListener("hashchange", route);

// load reads a session's record, in pages, and hands on what there is so far.
async function load(name, signal, so) {
  const session = new Session(name);
  for (;;) {
    const { entries, more } = await api.page(name, session.seq, pageOf, { signal });
    for (let i = 0; i < entries.length; i++) {
      session.add(entries[i]);
      if (i % 100 === 99) await pause();
    }
    if (signal.aborted) throw new DOMException("left", "AbortError");
    so(session, more);
    if (!more || !entries.length) return session;
    await pause();
  }
}

async function enter(name, seq) {
  if (here) here.abort.abort();
  const now = (here = { session: new Session(name || ""), info: null, abort: new AbortController(), live: "" });
  list.now = name || "";
  tell("");
  waiting.set([]);
  find.value = "";
  search("");
  document.body.classList.toggle("empty", !name);
  timeline.set(now.session);
  head();
  compose();
  document.title = name ? name + " \u00b7 Pawl" : "Pawl";
  if (!name) return;
  const { signal } = now.abort;
  try {
    refresh();
    let first = true;
    await load(name, signal, (session, more) => {
      now.session = session;
      now.live = more ? `loading ${whole(session.seq)}\u2026` : "";
      if (first) timeline.set(session), first = false;
      else timeline.changed();
      head();
    });
    if (seq && now.session.rowOf.get(seq)) timeline.choose(now.session.rowOf.get(seq).index, { middle: true });
    else if (now.session.run && !now.session.run.over) timeline.list.toEnd();
    now.loaded = true;
    left(now);
    head();
    await api.follow(name, now.session.seq, (e) => { if (here === now) came(now, e); }, (what, wait) => {
      if (now.lost && what === "live") quiet(); // what was said of it is not so any more
      now.lost = what !== "live";
      now.live = now.lost ? `cut off, again in ${took(wait)}` : "live";
      if (here === now) head(), compose(), now.lost || refresh();
    }, signal);
  } catch (err) {
    if (err.name === "AbortError" || here !== now) return;
    now.live = "";
    head();
    toast(err.status === 404 ? `There is no session ${name}.` : err.message);
    if (err.status === 404) location.replace("#/new");
  }
}

// left has a run be seen as what it is, when nobody drives it any more.
function left({ session, info, loaded }) {
  if (!loaded || !info || info.status !== "running" || info.driven || info.seq !== session.seq) return;
  session.died();
  timeline.changed();
}

// came is an event of the session that is open.
const tells = new Set(["asked", "answered", "parked", "run.finished", "run.started", "resumed"]);
const ends = new Set(["parked", "run.finished", "run.started"]);
function came(now, e) {
  const row = e.v ? now.session.add(e) : now.session.delta(e);
  if (!row && !e.v) {
    if (e.kind === "run.left") refresh();
    else if (e.kind === "warning") toast(e.text);
    return;
  }
  timeline.changed();
  if (e.v) {
    if (tells.has(e.kind)) refresh();
    if (e.kind === "asked") tell("Waiting for you: " + line((e.data.call ? e.data.call.name + " " : "") + (e.data.prompt || ""), 120));
    if (ends.has(e.kind)) now.stopping = false;
    if (e.kind === "run.started" || e.kind === "resumed") tell("A run is under way");
    if (e.kind === "parked" && e.data.cause !== "awaiting_person") tell("The run was interrupted: it can be resumed");
    if (e.kind === "run.finished") tell("The run is over: " + e.data.status), list.look();
    if (sought && row && holds(e, sought.find)) mark(row);
    head();
  }
  if (row === shownRow && !detailTimer) detailTimer = setTimeout(() => { detailTimer = 0; if (row === shownRow && row.version !== shownVersion && !comparing) again(row); }, 200);
}

// news has it be asked where the session stands, when the list says that somebody has begun to drive it, or does no more: of a process that died there is no event.
function news(sessions) {
  const s = here && here.info && sessions.find((x) => x.session === here.session.name);
  if (s && !s.driven !== !here.info.driven) refresh();
}

// refresh asks where the session stands, soon.
let refreshing;
function refresh() {
  clearTimeout(refreshing);
  refreshing = setTimeout(async () => {
    const now = here;
    if (!now || !now.session.name) return;
    try {
      const info = await api.session(now.session.name, { signal: now.abort.signal });
      if (here !== now) return;
      now.info = info;
      left(now);
      if (!comparing) waiting.set(info.pending || []);
      head();
      compose();
      const run = now.session.run, over = run && run.status !== "running"; // then it is about to be left here, too
      if (info.here) setTimeout(() => { if (here === now && now.info === info) refresh(); }, over ? 300 : 15000);
    } catch { /* whoever follows the session says so */ }
  }, 60);
}

let headed = 0;
function head() {
  cancelAnimationFrame(headed);
  headed = requestAnimationFrame(() => {
    const { session: s, info, live, stopping } = here, u = s.spent.usage;
    const status = info ? stands(info) : s.run ? s.run.status : "";
    fill(title, s.name ? (s.name.length > 160 ? s.name.slice(0, 160) + "\u2026" : s.name) : "New session");
    title.title = s.name;
    fill(state, status && chip(status));
    fill(line1, live, stopping && " \u00b7 stops behind this step");
    line1.className = live === "live" ? "live" : live.startsWith("cut") ? "lost" : "dim";
    let active = 0;
    for (const r of s.runs) active += r.until(Date.now()) - r.start;
    const fact = (k, v, t) => h("div", { title: t }, h("dt", {}, k), h("dd", {}, v));
    fill(stats, s.seq > 0 && [
      fact(s.runs.length === 1 ? "run" : "runs", whole(s.runs.length)), fact("model calls", whole(s.spent.calls)), fact("entries", whole(s.entries.length)),
      fact("tokens", s.spent.calls ? count((u.input_tokens || 0) + (u.cache_read_tokens || 0) + (u.cache_write_tokens || 0)) + " \u2192 " + count(u.output_tokens || 0) : "\u2013", "that went in, those of the cache among them, and came out"),
      fact("cache hits", percent(rate(u)) || "\u2013", "of the tokens that went in, those read from the provider's cache"),
      fact("cost", s.spent.calls ? money(s.spent.cost) : "\u2013", s.spent.cost === null ? "the price of a model is not known" : "of the model calls of this session"), fact("time", took(active)),
    ]);
    for (const b of ["fork", "compare"]) $(b).disabled = !s.seq;
  });
}

// --- what can be said and done

let acting = "";
function compose() {
  const now = here, { session, info, lost, stopping } = here, run = info && info.here, driven = info && info.driven, waits = info && info.waits && !driven, left = info && !driven && !waits && (info.status === "interrupted" || info.status === "running");
  const at = [session.name, run, driven, waits, left, lost, stopping].join();
  if (at === acting) return;
  acting = at;
  const words = $("words");
  words.placeholder = lost ? "The server does not answer" : !session.name ? "What is to be done?" : driven ? "Say something to the run under way" : waits ? "The run waits for your answer" : left ? "A new prompt closes the run that was left" : "Say something more";
  const b = (id, text, c, t, f, off) => h("button", { type: "button", id, class: c, title: t, disabled: lost || off, onclick: () => trying(async () => { await f(session.name); refresh(); }) }, text);
  const stops = (yes) => { now.stopping = yes; if (here === now) compose(), head(); };
  const stop = async (name) => {
    stops(true);
    tell("The run stops behind this step");
    await api.interrupt(name).catch((err) => { stops(false); throw err; });
  };
  fill($("acts"), left && b("resume", "Resume", "primary", "goes on with the run that was left", api.resume),
    h("button", { type: "submit", class: left ? "" : "primary", id: "send", disabled: lost || waits }, driven ? "Steer" : "Run"),
    run && b("interrupt", stopping ? "Stopping\u2026" : "Interrupt", "", "at its next step; it can be resumed", stop, stopping),
    (run || waits || left) && b("cancel", "Cancel", "danger", "ends the run", api.cancel));
}
$("say").addEventListener("submit", (e) => {
  e.preventDefault();
  const words = $("words"), text = words.value.trim(), { session, info } = here;
  if (!text || words.readOnly || $("send").disabled) return;
  words.readOnly = true;
  trying(async () => {
    if (info && info.driven) await api.steer(session.name, text);
    else {
      const r = await api.start({ prompt: text, ...(session.name ? { session: session.name } : {}) });
      if (r.session !== session.name) go(r.session);
      timeline.list.toEnd();
    }
    words.value = "";
    grow();
    refresh();
    list.look();
  }).finally(() => { words.readOnly = false; });
});
const grow = () => { const w = $("words"); w.style.height = "auto"; w.style.height = Math.min(w.scrollHeight + 2, 200) + "px"; };
$("words").addEventListener("input", grow);
$("words").addEventListener("keydown", (e) => {
  if (e.key === "Enter" && !e.shiftKey && !e.isComposing) e.preventDefault(), $("say").requestSubmit();
  else if (e.key === "Escape") $("timeline").focus();
});

// forkFrom makes a fork: of a prompt at what stands before it, with the prompt to be edited; else behind the step.
async function forkFrom(row) {
  const { session } = here;
  if (!session.seq) return;
  row ||= session.rows[session.rows.length - 1];
  const prompt = row.type === "said" && !row.steering, run = row.run;
  const at = prompt ? Math.max(1, run && run.rows[1] === row ? run.seq - 1 : row.first - 1) : row.entries[row.entries.length - 1].seq;
  const says = prompt ? `The fork has what was before this prompt, up to entry ${at}; then the message is said.` : `The fork has everything up to entry ${at}; then the message is said. Files on disk stay as they are.`;
  const answer = await askFork(at, prompt ? row.text : "", says);
  if (!answer) return;
  await trying(async () => {
    const body = { at };
    if (answer.as) body.as = answer.as;
    const files = prompt && row.message ? row.message.parts.filter((p) => p.type === "file") : [];
    if (answer.run && answer.text.trim()) {
      if (files.length) body.message = { role: "user", parts: [...files, { type: "text", text: answer.text.trim() }] };
      else body.prompt = answer.text.trim();
    }
    const r = await api.fork(session.name, body);
    list.look();
    if (answer.compare) location.hash = `#/compare/${enc(session.name)}/${enc(r.session)}`;
    else go(r.session);
    tell("Forked as " + r.session);
  });
}

// --- side by side

async function compareWith() {
  const { session } = here;
  if (!session.seq) return;
  const of = [];
  if (session.parent) of.push({ label: `its origin, ${line(session.parent, 60)}`, to: { a: session.parent, b: session.name } });
  for (const s of list.all) if (s.parent === session.name) of.push({ label: `its fork, ${line(s.session, 60)}`, to: { b: s.session } });
  const at = timeline.row() && timeline.row().run ? timeline.row().run.index : session.runs.length - 1;
  for (const r of session.runs) if (r.index !== at && of.length < 11) of.push({ label: `run ${at + 1} with run ${r.index + 1}`, to: { b: session.name, ra: Math.min(at, r.index), rb: Math.max(at, r.index) } });
  const to = await askOther(of, list.all.map((s) => s.session).filter((n) => n !== session.name));
  if (!to) return;
  const q = to.ra !== undefined ? `?ra=${to.ra}&rb=${to.rb}` : "";
  location.hash = `#/compare/${enc(to.a || session.name)}/${enc(to.b)}${q}`;
}

async function showCompare(a, b) {
  if (here) here.abort.abort();
  const abort = new AbortController();
  const box = h("section", { id: "both", "aria-label": "Side by side" });
  const mine = (comparing = { box, abort, back: a.name });
  here ||= { session: new Session(""), info: null, abort, live: "" };
  document.body.classList.add("comparing");
  $("main").append(box);
  fill(box, h("p", { class: "dim pad" }, "loading\u2026"));
  document.title = `${a.name} and ${b.name} \u00b7 Pawl`;
  const read = (x) => load(x.name, abort.signal, () => {}).catch((err) => { throw err.status === 404 ? new Error(`There is no session ${x.name}.`) : err; });
  const shown = await trying(async () => {
    const [sa, sb] = a.name === b.name ? await read(a).then((s) => [s, s]) : await Promise.all([read(a), read(b)]);
    if (comparing !== mine) return;
    box.replaceChildren();
    mine.view = new Compare(box, {
      go, leave: () => go(a.name),
      select: (p, wants) => { closeOpen(); open = showPair($("detail"), p); $("detail").scrollTop = 0; if (wants) document.body.classList.add("opened"); },
    });
    const set = () => { mine.view.set({ session: sa, run: a.run }, { session: sb, run: b.run }); mine.view.next(1); };
    set();
    mine.view.scroll.focus({ preventScroll: true });
    const follow = (s, name) => api.follow(name, s.seq, (e) => {
      if (!e.v || comparing !== mine) return;
      s.add(e);
      clearTimeout(mine.timer);
      mine.timer = setTimeout(() => { if (comparing === mine) { const at = mine.view.at; set(); if (at >= 0) mine.view.choose(at); } }, 400);
    }, () => {}, abort.signal).catch(() => {});
    follow(sa, a.name);
    if (sb !== sa) follow(sb, b.name);
    return true;
  });
  if (!shown && comparing === mine) location.replace("#/s/" + enc(a.name));
}

function leaveCompare() {
  if (!comparing) return;
  comparing.abort.abort();
  if (comparing.view) comparing.view.list.close();
  comparing.box.remove();
  comparing = null;
  document.body.classList.remove("comparing");
}

// --- details

function closeOpen() {
  for (const o of open) o.close();
  open = [];
}

function again(row) {
  const box = $("detail"), y = box.scrollTop;
  closeOpen();
  shownRow = row;
  shownVersion = row.version;
  open = show(box, row, { go, fork: forkFrom, compare: () => compareWith(), raw, onraw: (seq, on) => { on ? raw.add(seq) : raw.delete(seq); } });
  box.scrollTop = y;
  highlight();
}

function detail(row, wants) {
  const other = row !== shownRow;
  if (other || row.version !== shownVersion) {
    again(row);
    if (other) $("detail").scrollTop = 0;
  }
  if (wants) document.body.classList.add("opened");
}

function closeDetail() {
  closeOpen();
  shownRow = null;
  document.body.classList.remove("opened");
  fill($("detail"), h("p", { class: "dim pad hintline" }, "A step that is chosen is shown here. ", h("kbd", {}, "j"), " ", h("kbd", {}, "k"), " go through them, ", h("kbd", {}, "?"), " lists all keys."));
}
$("detail").addEventListener("shut", () => { document.body.classList.remove("opened"); (comparing && comparing.view ? comparing.view.scroll : $("timeline")).focus(); });

// --- search

let sought = null, seeking = 0, seekWait;
const escape = (t) => t.replace(/[.*+?^${}()|[\]\\]/g, "\\$&");
const rowHas = (row, re) => row.entries.some((e) => holds(e, re)) || has([row.said, row.output], re);

async function search(text) {
  const turn = ++seeking;
  sought = null;
  timeline.hits = new Set();
  timeline.list.soon();
  highlight();
  if (!text) return void fill(found, "");
  const re = new RegExp(escape(text), "i"), mine = { find: re, all: new RegExp(escape(text), "gi"), rows: [], at: -1 };
  sought = mine;
  let began = performance.now();
  for (const row of here.session.rows) {
    if (rowHas(row, re)) mine.rows.push(row.index), timeline.hits.add(row.index);
    if (performance.now() - began > 12) {
      await pause();
      if (turn !== seeking) return;
      began = performance.now();
    }
  }
  mine.done = true;
  timeline.list.soon();
  const from = Math.max(0, timeline.selected);
  mine.at = mine.rows.findIndex((i) => i >= from);
  if (mine.at < 0) mine.at = 0;
  if (mine.rows.length) timeline.choose(mine.rows[mine.at], { middle: true });
  counted();
  highlight();
}

function mark(row) {
  if (timeline.hits.has(row.index)) return;
  timeline.hits.add(row.index);
  sought.rows.push(row.index);
  sought.rows.sort((a, b) => a - b);
  counted();
}

const counted = () => fill(found, sought ? (sought.rows.length ? `${whole(sought.at + 1)} of ${whole(sought.rows.length)}` : "nothing") : "");

function step(way) {
  if (!sought || !sought.rows.length) return false;
  sought.at = (sought.at + way + sought.rows.length) % sought.rows.length;
  timeline.choose(sought.rows[sought.at], { middle: true });
  counted();
  return true;
}
find.addEventListener("input", () => { clearTimeout(seekWait); seekWait = setTimeout(() => search(find.value.trim()), 150); });
find.addEventListener("keydown", (e) => {
  if (e.key === "Enter") {
    clearTimeout(seekWait);
    if (!sought && find.value.trim() || sought && sought.find.source !== new RegExp(escape(find.value.trim()), "i").source) search(find.value.trim());
    else step(e.shiftKey ? -1 : 1);
  } else if (e.key === "Escape") find.value = "", search(""), $("timeline").focus();
  else return;
  e.preventDefault();
  e.stopPropagation();
});

// highlight marks what is searched for, where it is in sight: no element is made for that.
let highlighting = 0;
function highlight() {
  if (!globalThis.Highlight || highlighting) return;
  highlighting = requestAnimationFrame(() => {
    highlighting = 0;
    CSS.highlights.delete("found");
    if (!sought) return;
    const ranges = [];
    for (const root of [$("timeline"), $("detail")]) {
      const walk = document.createTreeWalker(root, NodeFilter.SHOW_TEXT);
      for (let n; (n = walk.nextNode()) && ranges.length < 500;) {
        for (const m of n.data.slice(0, 20000).matchAll(sought.all)) {
          if (ranges.length >= 500) break;
          const r = new StaticRange({ startContainer: n, startOffset: m.index, endContainer: n, endOffset: m.index + m[0].length });
          ranges.push(r);
        }
      }
    }
    if (ranges.length) CSS.highlights.set("found", new Highlight(...ranges));
  });
}

// --- keys

let gone = 0; // when g was pressed
const typing = (e) => /^(INPUT|TEXTAREA|SELECT)$/.test(e.target.tagName);

document.addEventListener("keydown", (e) => {
  if (e.defaultPrevented || e.ctrlKey || e.metaKey || e.altKey || document.querySelector("dialog[open]")) return;
  if (typing(e)) {
    if (e.key === "Escape") e.target.blur(), $("timeline").focus();
    return;
  }
  const v = comparing && comparing.view;
  const move = (to) => (v ? v.choose(to) : timeline.choose(to));
  const at = v ? v.at : timeline.selected, end = (v ? v.seen.length : timeline.rows.length) - 1;
  const scrolls = e.target.closest && e.target.closest("#detail, .pieces, .dls");
  const row = timeline.row();
  const act = {
    j: () => move(at + 1), k: () => move(Math.max(0, at - 1)),
    ArrowDown: () => (scrolls ? false : move(at + 1)), ArrowUp: () => (scrolls ? false : move(Math.max(0, at - 1))),
    PageDown: () => (scrolls ? false : move(at + 12)), PageUp: () => (scrolls ? false : move(Math.max(0, at - 12))),
    Home: () => (scrolls ? false : move(0)), End: () => (scrolls ? false : last()),
    G: () => last(),
    g: () => {
      if (Date.now() - gone < 800) move(0), gone = 0;
      else gone = Date.now();
    },
    "[": () => run(-1), "]": () => run(1),
    Enter: () => {
      if (e.target.closest("button, summary, a")) return false;
      if (at < 0) move(0);
      document.body.classList.add("opened");
      $("detail").focus();
    },
    Escape: () => {
      if (document.body.classList.contains("opened") || e.target.closest("#detail")) $("detail").dispatchEvent(new CustomEvent("shut"));
      else if (document.body.classList.contains("menu")) document.body.classList.remove("menu");
      else if (v) v.leave();
    },
    o: () => { if (row && (row.below || row.link)) go(row.below || row.link); },
    u: () => up(),
    "/": () => { if (!v) find.focus(), find.select(); },
    s: () => { document.body.classList.add("menu"); $("filter").focus(); $("filter").select(); },
    n: () => (v ? v.next(1) : step(1) || (location.hash = "#/new", $("words").focus())), N: () => (v ? v.next(-1) : step(-1)),
    a: () => waiting.press("approve"), A: () => waiting.press("session"), L: () => waiting.press("like"), e: () => waiting.press("edit"), r: () => waiting.press("reject"),
    i: () => { if (!v) $("words").focus(); },
    f: () => { if (!v) forkFrom(row); }, c: () => { if (!v) compareWith(); }, d: () => v && v.toggle(),
    x: () => rawOf(row), t: () => nextTheme(), "?": () => { help(); },
  }[e.key];
  if (e.key !== "g") gone = 0;
  if (act && act() !== false) e.preventDefault();

  function last() {
    if (v) return v.choose(end);
    timeline.choose(end);
    timeline.list.toEnd();
  }
  function run(way) {
    if (v || !here.session.runs.length) return;
    const heads = here.session.rows.filter((r) => r.type === "run").map((r) => r.index);
    const to = way > 0 ? heads.find((i) => i > at) : heads.findLast((i) => i < at);
    if (to !== undefined) timeline.choose(to);
  }
  function up() {
    const first = here.session.entries[0], d = first && first.data;
    if (d && d.task_of) go(d.task_of);
    else if (here.session.parent) go(here.session.parent);
  }
  function rawOf(r) {
    if (v || !r) return;
    const d = $("detail").querySelectorAll(".raws details");
    for (const x of d) x.open = !x.open;
    document.body.classList.add("opened");
    if (d[0]) d[0].scrollIntoView({ block: "nearest" });
  }
});

$("theme").addEventListener("click", nextTheme);
$("help").addEventListener("click", () => help());
$("new").addEventListener("click", () => { location.hash = "#/new"; $("words").focus(); });
$("skip").addEventListener("click", (e) => { e.preventDefault(); $("timeline").focus(); });
$("timeline").addEventListener("focus", () => { if (timeline.selected < 0 && timeline.rows.length) timeline.choose(timeline.list.stuck ? timeline.rows.length - 1 : timeline.list.heights.at($("timeline").scrollTop + 4), { quiet: true }); });
setInterval(() => {
  if (document.hidden || comparing || !here) return;
  timeline.tick();
  if (here.session.run && here.session.run.status === "running") head();
}, 1000);

closeDetail();
list.look();
route();
