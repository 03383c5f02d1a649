// What waits for a person, answered where it is.

import { chip, escaped, fill, h, line, parsed, pretty, spaced, took } from "./dom.js";
import { change } from "./timeline.js";
import { changes, long } from "./text.js";

// choices of a question, answered by their numbers, are lines such as "  2. blue", or "(yes or no)" at its end.
export function choices(prompt) {
  const all = [];
  if (/\([^()]*\byes or no\b[^()]*\)\s*$/.test(prompt || "")) return [{ n: "1", label: "yes", text: "yes" }, { n: "2", label: "no", text: "no" }];
  for (const l of (prompt || "").split("\n")) {
    const m = /^\s{1,4}(\d{1,2})\. (.+)$/.exec(l);
    if (m && +m[1] === all.length + 1) all.push({ n: m[1], label: m[2].split(" \u2013 ")[0], text: m[1] });
  }
  return all.length > 1 ? all.slice(0, 20) : [];
}

// Waiting shows the questions of a session. send(body) answers one, and fails with what kept it from that.
export class Waiting {
  constructor(box, send) {
    Object.assign(this, { box, send, cards: new Map(), open: [] });
  }

  set(pending) {
    const ids = pending.map((p) => p.id + "\0" + p.at).join("\0\0");
    if (ids === this.ids) return;
    this.ids = ids;
    for (const o of this.open) o.close();
    this.open = [];
    this.all = pending;
    this.box.hidden = !pending.length;
    const shown = pending.slice(0, 3);
    fill(this.box, shown.map((p, i) => this.card(p, i)), pending.length > shown.length && h("p", { class: "dim more" }, `and ${pending.length - shown.length} more, one after the other`));
  }

  get first() { return this.box.querySelector(".card"); }

  press(name) {
    const b = this.first && this.first.querySelector(`[data-act="${name}"]`);
    if (b) b.click();
    return !!b;
  }

  card(p, i) {
    const call = p.call, problem = h("p", { class: "problem", role: "alert" });
    const more = h("div", { class: "extra" });
    const card = h("article", { class: "card", "aria-label": call ? "Approval of " + call.name : "A question" });
    const send = async (body) => {
      if (!body) return;
      card.toggleAttribute("inert", true);
      problem.textContent = "";
      try {
        await this.send({ id: p.id, ...body });
      } catch (err) {
        card.toggleAttribute("inert", false);
        fill(problem, err.message);
      }
    };
    const button = (act, text, f, props) => h("button", { type: "button", "data-act": act, onclick: f, ...props }, text);
    const hint = (k) => (i === 0 ? h("kbd", { "aria-hidden": "true" }, k) : null);
    const field = (name, value, label, rows = 1) => h("textarea", { name, rows, "aria-label": label, placeholder: label, spellcheck: "false" }, value);
    const ask = (element, text, act, body) => {
      const form = h("form", { class: "ask", onsubmit: (e) => { e.preventDefault(); send(body(element.value)); } }, element, h("button", { type: "submit", class: "primary", "data-act": act }, text), button("back", "Back", () => more.replaceChildren()));
      element.addEventListener("keydown", (e) => {
        if (e.key === "Enter" && (e.ctrlKey || e.metaKey || element.rows === 1 && !e.shiftKey)) e.preventDefault(), form.requestSubmit();
      });
      form.addEventListener("keydown", (e) => { if (e.key === "Escape") e.stopPropagation(), more.replaceChildren(), card.querySelector("button").focus(); });
      more.replaceChildren(form);
      element.focus();
    };
    const edit = (json) => ask(field("input", json, "Input (JSON)", Math.min(12, json.split("\n").length + 1)), "Approve as edited", "send-edit", (input) => (parsed(input) ? { approved: true, input: spaced(input, "") } : void fill(problem, "That is no JSON object.")));
    const reject = () => ask(field("why", "", "Why not? (the model is told)"), call ? "Reject" : "Decline", "send-reject", (text) => ({ approved: false, text }));

    const until = p.ttl_ms ? Date.parse(p.at) + p.ttl_ms : 0;
    const head = h("header", {}, chip(call ? (p.unknown ? "run again?" : "approve?") : p.confirm ? "yes or no" : "question", "wait"), call && h("code", {}, call.name), p.id.includes("/") && h("span", { class: "dim" }, "asked by a subagent"), until > 0 && h("span", { class: "dim" }, "until " + new Date(until).toLocaleTimeString() + " (" + took(until - Date.now()) + ")"));
    card.append(head);
    if (p.prompt) card.append(h("div", { class: "prompt" }, long(p.prompt, this.open, { kind: "prose", first: 2000 })));
    if (p.unknown) card.append(h("p", { class: "prose warn" }, "It had begun before, and nobody knows whether it took effect. Approving runs it again."));
    if (call) {
      const c = change({ name: call.name, input: call.input }), v = parsed(call.input);
      card.append(h("div", { class: "input" }, c ? changes(c.before, c.after, this.open, { name: c.path }) : long(v && typeof v.command === "string" && Object.keys(v).length === 1 ? v.command : pretty(call.input), this.open, { first: 3000 })));
      card.append(h("div", { class: "acts" },
        button("approve", ["Approve ", hint("a")], () => send({ approved: true }), { class: "primary" }),
        !p.once && !p.unknown && button("session", ["This very call for the session ", hint("A")], () => send({ approved: true, session: true })),
        p.rule && button("like", ["For the session: ", h("code", {}, line(p.rule, 100)), " ", hint("L")], () => send({ approved: true, session: true, rule: p.rule }), { title: p.rule }),
        button("edit", ["Edit ", hint("e")], () => edit(escaped(pretty(call.input)))),
        button("reject", ["Reject ", hint("r")], reject)));
    } else if (p.confirm) {
      card.append(h("div", { class: "acts" }, button("approve", ["Yes ", hint("a")], () => send({ approved: true }), { class: "primary" }), button("reject", ["No ", hint("r")], () => send({ approved: false }))));
    } else {
      const words = field("answer", "", "Your answer"), several = /any of them/.test(p.prompt || ""), among = choices(p.prompt);
      const form = h("form", { class: "ask", onsubmit: (e) => { e.preventDefault(); send({ approved: true, text: words.value }); } }, words, h("button", { type: "submit", class: "primary", "data-act": "send-answer" }, "Answer"), button("reject", ["Decline ", hint("r")], reject));
      words.addEventListener("keydown", (e) => { if (e.key === "Enter" && !e.shiftKey) e.preventDefault(), form.requestSubmit(); });
      if (among.length) {
        card.append(h("div", { class: "choices", role: "group", "aria-label": "Choices" }, among.map((c) => h("button", {
          type: "button", "data-choice": c.n, onclick: (e) => {
            if (!several) return send({ approved: true, text: c.text });
            e.currentTarget.classList.toggle("on");
            words.value = [...card.querySelectorAll(".choices .on")].map((b) => among[+b.dataset.choice - 1].text).join(", ");
          },
        }, `${c.n}. ${line(c.label, 80)}`))));
      }
      card.append(form);
    }
    card.append(more, problem);
    return card;
  }
}
