// The list of sessions, which is looked at again as long as the page is in sight.

import * as api from "./api.js";
import { ago, h, pressed, whole } from "./dom.js";
import { stands } from "./fold.js";
import { List } from "./virtual.js";

const every = 2500, step = 50; // the server reads a few entries of each that it has not told of yet

export class Sessions {
  constructor(box, { filter, status, sum, open, looked, failed }) {
    Object.assign(this, { box, filter, status, sum, open, looked, failed, all: [], more: false, at: -1, current: "" });
    this.list = new List(box, {
      most: 40, guess: () => 45, make: (i) => this.row(i), after: () => { if (this.more && box.scrollTop + box.clientHeight > box.scrollHeight - 400) this.further(); },
      version: (i) => JSON.stringify([this.all[i], this.all[i].session === this.current, i === this.at, ago(Date.parse(this.all[i].updated))]),
    });
    pressed(box, (i) => this.open(this.all[i].session));
    box.addEventListener("keydown", (e) => {
      if (e.ctrlKey || e.metaKey || e.altKey) return;
      const to = { j: this.at + 1, ArrowDown: this.at + 1, k: this.at - 1, ArrowUp: this.at - 1, G: this.all.length - 1, End: this.all.length - 1, Home: 0 }[e.key];
      if (to !== undefined) this.move(to);
      else if (e.key === "Enter" && this.all[this.at]) this.open(this.all[this.at].session, true);
      else return;
      e.preventDefault();
      e.stopPropagation();
    });
    box.addEventListener("focus", () => { if (this.at < 0) this.move(Math.max(0, this.all.findIndex((s) => s.session === this.current))); });
    let wait;
    filter.addEventListener("input", () => { clearTimeout(wait); wait = setTimeout(() => this.again(), 120); });
    filter.addEventListener("keydown", (e) => {
      if (e.key === "Enter" && this.all.length) this.open(this.all[0].session, true);
      else if (e.key === "ArrowDown") box.focus();
      else if (e.key === "Escape") filter.value = "", this.again(), box.focus();
      else return;
      e.preventDefault();
      e.stopPropagation();
    });
    status.addEventListener("change", () => this.again());
    document.addEventListener("visibilitychange", () => { if (!document.hidden) this.look(); });
  }

  move(to) {
    if (!this.all.length) return;
    this.at = Math.max(0, Math.min(to, this.all.length - 1));
    this.box.setAttribute("aria-activedescendant", "session-" + this.at);
    this.list.show(this.at);
    this.list.soon();
  }

  row(i) {
    const s = this.all[i], at = s.session === this.current;
    const tone = s.driven ? "running" : s.status === "running" ? "interrupted" : s.status || "none", name = s.session.length > 200 ? s.session.slice(0, 200) + "\u2026" : s.session;
    return h("div", { class: `item${at ? " current" : ""}${i === this.at ? " active" : ""}`, id: "session-" + i, role: "option", "aria-selected": at ? "true" : "false", "data-i": i, "aria-posinset": i + 1, "aria-setsize": this.more ? -1 : this.all.length, title: s.session },
      h("span", { class: "dot s-" + tone, "aria-hidden": "true" }),
      h("span", { class: "name" }, s.title || name),
      h("span", { class: "sub" }, [stands(s) || "empty", s.parent && "fork", s.title && name, s.agent].filter(Boolean).join(" \u00b7 ")),
      h("span", { class: "when" }, `${whole(s.seq)} \u00b7 ${ago(Date.parse(s.updated))}`));
  }

  query(more) { return { q: this.filter.value.trim(), status: this.status.value, limit: step, ...more }; }

  // again begins anew, with what is filtered for now.
  async again() {
    this.at = -1;
    this.asked = (this.asked || 0) + 1;
    await this.look(true);
    this.box.scrollTop = 0;
  }

  // look has the newest sessions looked at; those further down stay as they were seen.
  async look(anew = false) {
    clearTimeout(this.timer);
    const asked = this.asked;
    try {
      const { sessions, more } = await api.sessions(this.query());
      if (asked !== this.asked) return;
      if (anew || !more) this.all = sessions, this.more = more;
      else {
        const seen = new Set(sessions.map((s) => s.session));
        this.all = [...sessions, ...this.all.filter((s) => !seen.has(s.session))];
        if (this.all.length <= sessions.length) this.more = more;
      }
      this.changed();
      this.looked(sessions);
      this.failed(null);
    } catch (err) {
      this.failed(err);
    } finally {
      clearTimeout(this.timer);
      if (!document.hidden) this.timer = setTimeout(() => this.look(), every);
    }
  }

  async further() {
    if (this.busy || !this.more) return;
    this.busy = true;
    const asked = this.asked;
    try {
      const { sessions, more } = await api.sessions(this.query({ after: this.all[this.all.length - 1].session }));
      if (asked !== this.asked) return;
      const seen = new Set(this.all.map((s) => s.session));
      this.all = [...this.all, ...sessions.filter((s) => !seen.has(s.session))];
      this.more = more;
      this.changed();
    } catch (err) {
      if (err.class === "not_found") await this.look(true); // the last one was deleted
      else this.failed(err);
    } finally {
      this.busy = false;
    }
  }

  changed() {
    if (this.list.count > this.all.length) this.list.count = 0;
    this.list.count = this.all.length;
    this.list.soon();
    this.sum.textContent = whole(this.all.length) + (this.more ? "+" : "") + (this.all.length === 1 ? " session" : " sessions");
  }

  set now(name) {
    this.current = name;
    this.list.soon();
  }
}
