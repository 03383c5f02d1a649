// Elements are made here and nowhere else. What is put into them is text, always: the page's policy (trusted types) refuses anything else.

// h makes an element: h("p", {class: "x", onclick: f}, "text", child). A property that is undefined, null or false is left out.
export function h(tag, props, ...children) {
  const e = document.createElement(tag);
  for (const [k, v] of Object.entries(props || {})) {
    if (v === undefined || v === null || v === false) continue;
    if (k.startsWith("on")) e.addEventListener(k.slice(2), v);
    else if (k === "class") e.className = v;
    else if (k === "value") e.value = v;
    else if (k === "style") for (const [name, to] of Object.entries(v)) e.style.setProperty(name, to);
    else e.setAttribute(k, v === true ? "" : v);
  }
  add(e, children);
  return e;
}

function add(e, children) {
  for (const c of children) {
    if (c === undefined || c === null || c === false || c === "") continue;
    if (Array.isArray(c)) add(e, c);
    else e.append(c instanceof Node ? c : plain(String(c)));
  }
}

export function fill(e, ...children) {
  e.replaceChildren();
  add(e, children);
  return e;
}

// Characters that show nothing, or have others shown elsewhere than where they stand, are made visible: control characters, and those that turn the direction of writing.
const invisible = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u061c\u200b\u200e\u200f\u2028\u2029\u202a-\u202e\u2060\u2066-\u2069\ufeff\ufff9-\ufffb]|[\ud800-\udbff](?![\udc00-\udfff])|(?<![\ud800-\udbff])[\udc00-\udfff]/g;

export function plain(text) {
  return text.replaceAll("\r\n", "\n").replace(invisible, (c) => {
    const n = c.charCodeAt(0);
    if (n < 0x20) return String.fromCharCode(0x2400 + n);
    if (n === 0x7f) return "\u2421";
    return `\u27e8U+${n.toString(16).toUpperCase().padStart(4, "0")}\u27e9`;
  });
}

// line is a text as one line, cut.
export function line(text, most = 300) {
  if (!text) return "";
  const cut = text.length > most * 2 ? text.slice(0, most * 2) : text;
  const one = cut.replace(/\s+/g, " ").trim();
  return one.length > most || cut !== text ? one.slice(0, most) + "\u2026" : one;
}

const grouped = new Intl.NumberFormat("en-US");
export const whole = (n) => grouped.format(n);

// count is a number of tokens: 950, 12.3k, 4.56M.
export function count(n) {
  if (n === undefined || n === null) return "";
  if (n < 10000) return whole(n);
  if (n < 1e6) return (n / 1e3).toFixed(n < 1e5 ? 1 : 0) + "k";
  return (n / 1e6).toFixed(2) + "M";
}

// took is a span of milliseconds.
export function took(ms) {
  if (ms === undefined || ms === null || Number.isNaN(ms)) return "";
  if (ms < 1000) return Math.max(0, Math.round(ms)) + " ms";
  if (ms < 10000) return (ms / 1000).toFixed(2) + " s";
  if (ms < 60000) return (ms / 1000).toFixed(1) + " s";
  const s = Math.round(ms / 1000);
  if (s < 3600) return `${Math.floor(s / 60)}m ${String(s % 60).padStart(2, "0")}s`;
  if (s < 86400) return `${Math.floor(s / 3600)}h ${String(Math.floor(s / 60) % 60).padStart(2, "0")}m`;
  return `${Math.floor(s / 86400)}d ${Math.floor(s / 3600) % 24}h`;
}

// money is millionths of a dollar. What is not known is said to be so: it is not zero.
export function money(micros) {
  if (micros === null || micros === undefined) return "?";
  const usd = micros / 1e6;
  if (usd === 0) return "$0";
  return "$" + (usd < 0.01 ? usd.toFixed(5) : usd < 1 ? usd.toFixed(4) : usd.toFixed(2));
}

export function size(bytes) {
  if (bytes < 1024) return bytes + " B";
  if (bytes < 1 << 20) return (bytes / 1024).toFixed(1) + " KB";
  return (bytes / (1 << 20)).toFixed(1) + " MB";
}

export const percent = (x) => (x === null ? "" : Math.round(x * 100) + "%");

// rate is how much of what went in came out of the provider's cache; null when nothing went in.
export function rate(u) {
  const all = (u.input_tokens || 0) + (u.cache_read_tokens || 0) + (u.cache_write_tokens || 0);
  return all > 0 ? (u.cache_read_tokens || 0) / all : null;
}

export function ago(time, now = Date.now()) {
  const s = (now - time) / 1000;
  if (s < 5) return "now";
  if (s < 60) return Math.floor(s) + "s";
  if (s < 3600) return Math.floor(s / 60) + "m";
  if (s < 86400) return Math.floor(s / 3600) + "h";
  if (s < 86400 * 30) return Math.floor(s / 86400) + "d";
  return new Date(time).toISOString().slice(0, 10);
}

const pad = (n, w = 2) => String(n).padStart(w, "0");
export function clock(time) {
  const d = new Date(time);
  return `${pad(d.getHours())}:${pad(d.getMinutes())}:${pad(d.getSeconds())}.${pad(d.getMilliseconds(), 3)}`;
}
export function day(time) {
  const d = new Date(time);
  return `${d.getFullYear()}-${pad(d.getMonth() + 1)}-${pad(d.getDate())} ${clock(time)}`;
}

// status says a word of a status in the words of the page, and which colour it has.
export function tone(status) {
  switch (status) {
    case "completed": case "ok": case "allow": case "approved": return "good";
    case "running": return "live";
    case "interrupted": case "its process died": case "waits for you": case "asked": case "ask": case "waiting": case "unknown": return "wait";
    case "failed": case "error": case "deny": case "denied": case "invalid": case "rejected": case "aborted": case "budget_exceeded": return "bad";
  }
  return "dim";
}

export const chip = (text, t = tone(text)) => h("span", { class: "chip " + t }, text);

const tokens = /"[^"\\]*(?:\\.[^"\\]*)*"|[^\s"{}[\],:]+|[{}[\],:]/g;

// spaced is a text of JSON with its members on lines of their own, or, by "", as short as it can be. Its numbers stay as they are written: those of a script have 53 bits. It fails on what is no JSON.
export function spaced(text, by) {
  JSON.parse(text);
  let out = "", deep = 0, last = "";
  const next = () => (by ? "\n" + by.repeat(deep) : "");
  for (const [t] of text.matchAll(tokens)) {
    if (t === "}" || t === "]") deep--, out += (last === "{" || last === "[" ? "" : next()) + t;
    else {
      if (last === "{" || last === "[") out += next();
      if (t === "{" || t === "[") deep++, out += t;
      else if (t === ",") out += t + next();
      else if (t === ":") out += by ? ": " : t;
      else out += t[0] === '"' ? JSON.stringify(JSON.parse(t)) : t;
    }
    last = t;
  }
  return out;
}

// escaped is JSON whose invisible characters are written as it escapes them: who edits it sees them, and what he leaves alone stays.
export const escaped = (json) => json.replace(invisible, (c) => "\\u" + c.charCodeAt(0).toString(16).padStart(4, "0"));

// pretty is JSON with its members on lines of their own, if it is JSON.
export function pretty(value) {
  if (typeof value !== "string") return JSON.stringify(value, null, 2);
  const t = value.trim();
  if (t.length > 1 << 20 || (t[0] !== "{" && t[0] !== "[")) return value;
  try {
    return spaced(t, "  ");
  } catch {
    return value;
  }
}

export const parsed = (text) => {
  if (text && typeof text === "object") return text;
  try {
    const v = JSON.parse(text);
    return v && typeof v === "object" && !Array.isArray(v) ? v : null;
  } catch {
    return null;
  }
};

// pause gives the browser a turn, so that no work of ours is a long one.
export const pause = () => new Promise((done) => {
  const c = new MessageChannel();
  c.port1.onmessage = done;
  c.port2.postMessage(0);
});

// pressed calls f with the number of a list's row that is clicked. A row may be made anew between the button's way down and its way up, so that the browser knows of no click: where the pointer is counts.
export function pressed(box, f) {
  let down = null;
  const at = (element) => {
    const row = element && element.closest("[data-i]");
    if (row && box.contains(row)) f(+row.dataset.i);
  };
  box.addEventListener("pointerdown", (e) => { down = e.button === 0 ? e : null; });
  box.addEventListener("pointercancel", () => { down = null; });
  box.addEventListener("pointerup", (e) => {
    if (down && Math.hypot(e.clientX - down.clientX, e.clientY - down.clientY) < 6 && !String(getSelection())) at(document.elementFromPoint(e.clientX, e.clientY));
    down = null;
  });
  box.addEventListener("click", (e) => { if (e.detail === 0) at(e.target); }); // by a program, such as a reader of the page
}
