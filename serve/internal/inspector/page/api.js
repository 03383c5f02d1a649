// What the page asks the server for. A token, if the server wants one, is kept for as long as the tab.

const key = "pawl-token";
let token = sessionStorage.getItem(key) || "";
let asking = null, declined = false;
let ask = async () => "";

// asker is who is asked for a token; it gives "" to give up.
export const asker = (f) => { ask = f; };

function headers(more) {
  return token ? { ...more, Authorization: "Bearer " + token } : { ...more };
}

// renew asks for a token once for all who have been refused.
async function renew(used) {
  if (token !== used) return true; // somebody else was faster
  if (declined) return false;
  if (!asking) asking = ask(used !== "").finally(() => { asking = null; });
  const t = await asking;
  if (!t) {
    declined = true; // until the page is loaded again
    return false;
  }
  token = t;
  sessionStorage.setItem(key, t);
  return true;
}

export class Refused extends Error {
  constructor(status, problem) {
    super(problem.message || "the server answered " + status);
    this.status = status;
    this.class = problem.class;
  }
}

async function request(method, path, { body, signal, head } = {}) {
  for (;;) {
    const used = token;
    let r;
    try {
      r = await fetch(path, {
        method, signal, cache: "no-store",
        headers: headers({ ...(body === undefined ? {} : { "Content-Type": "application/json" }), ...head }),
        body: body === undefined || typeof body === "string" ? body : JSON.stringify(body),
      });
    } catch (err) {
      if (err.name === "AbortError") throw err;
      throw new Error("The server does not answer. The page goes on by itself when it does.", { cause: err });
    }
    if (r.status === 401 && (await renew(used))) continue;
    if (!r.ok) {
      let p = {};
      try {
        p = (await r.json()).error || {};
      } catch { /* it has no words */ }
      throw new Refused(r.status, p);
    }
    return r;
  }
}

const at = (session) => "/v1/sessions/" + encodeURIComponent(session);
const query = (o) => {
  const q = new URLSearchParams(Object.entries(o).filter(([, v]) => v !== undefined && v !== ""));
  return q.size ? "?" + q : "";
};

export const get = async (path, o) => (await request("GET", path, o)).json();
const post = async (path, body = {}) => {
  const r = await request("POST", path, { body });
  return r.status === 204 ? null : r.json();
};

export const sessions = (q, o) => get("/v1/sessions" + query(q), o);
export const session = (name, o) => get(at(name) + "?messages=false", o);
export const page = (name, after, limit, o) => get(at(name) + "/entries" + query({ after, limit }), o);
export const start = (body) => post("/v1/runs", body);
export const steer = (name, prompt) => post(at(name) + "/steer", { prompt });
export const cancel = (name) => post(at(name) + "/cancel");
export const interrupt = (name, reason) => post(at(name) + "/interrupt", reason ? { reason } : {});
export const resume = (name) => post(at(name) + "/resume");
// answer gives one; its input, if there is one, is a text of JSON, and goes as it is.
export const answer = (name, { input, ...body }) => post(at(name) + "/answers", input === undefined ? body : JSON.stringify(body).slice(0, -1) + `,"input":${input}}`);
export const fork = (name, body) => post(at(name) + "/fork", body);

// follow reads a session's events from a place on, and goes on where it was when it is cut off, until signal says that it is enough. tell gets each event; state gets "live", or "lost" with the seconds until the next try.
export async function follow(name, from, tell, state, signal) {
  let last = String(from), tries = 0;
  while (!signal.aborted) {
    const quiet = new AbortController(); // a stream that does not even say that it is there is gone
    let timer;
    const alive = () => {
      clearTimeout(timer);
      timer = setTimeout(() => quiet.abort(), 45000);
    };
    try {
      alive();
      const r = await request("GET", at(name) + "/events", {
        signal: AbortSignal.any([signal, quiet.signal]),
        head: { Accept: "text/event-stream", "Last-Event-ID": last },
      });
      if (r.status === 204) return;
      state("live");
      for await (const e of events(r.body, alive)) {
        tries = 0;
        if (e.name === "error") throw new Refused(0, JSON.parse(e.data));
        tell(JSON.parse(e.data));
        if (e.id) last = e.id;
      }
    } catch (err) {
      if (signal.aborted) return;
      if (err instanceof Refused && err.status >= 400 && err.status < 500 && err.status !== 429) throw err;
    } finally {
      clearTimeout(timer);
      quiet.abort();
    }
    const wait = Math.min(15000, 250 * 2 ** tries++) * (0.75 + Math.random() / 2);
    state("lost", wait);
    await new Promise((done) => {
      const t = setTimeout(done, wait);
      signal.addEventListener("abort", () => { clearTimeout(t); done(); }, { once: true });
    });
  }
}

// events are the events of a stream (text/event-stream).
export async function* events(body, alive = () => {}) {
  const reader = body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "", id, name = "", data = [];
  try {
    for (;;) {
      const { value, done } = await reader.read();
      if (done) return;
      alive();
      rest += value;
      let from = 0;
      for (;;) {
        const n = rest.indexOf("\n", from);
        if (n < 0) break;
        const l = rest.slice(from, n > from && rest[n - 1] === "\r" ? n - 1 : n);
        from = n + 1;
        if (l === "") {
          if (data.length) yield { id, name, data: data.join("\n") };
          id = undefined, name = "", data = [];
          continue;
        }
        const c = l.indexOf(":");
        if (c === 0) continue;
        const field = c < 0 ? l : l.slice(0, c);
        const text = c < 0 ? "" : l.slice(l[c + 1] === " " ? c + 2 : c + 1);
        if (field === "data") data.push(text);
        else if (field === "id") id = text;
        else if (field === "event") name = text;
      }
      rest = rest.slice(from);
    }
  } finally {
    reader.cancel().catch(() => {});
  }
}
