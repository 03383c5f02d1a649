// Dialogs: made when they are opened, gone when they are closed.

import { h } from "./dom.js";

// dialog shows a form; build(close) gives its content. It resolves with what close was called with, or null.
export function dialog(title, build, { class: c = "" } = {}) {
  return new Promise((resolve) => {
    let result = null;
    const before = document.activeElement;
    const d = h("dialog", { class: c, "aria-label": title });
    const close = (v) => {
      result = v ?? null;
      d.close();
    };
    d.append(h("header", {}, h("h2", {}, title), h("button", { type: "button", class: "close", "aria-label": "Close", onclick: () => close() }, "\u2715")), ...build(close));
    d.addEventListener("close", () => {
      d.remove();
      if (before && before.isConnected) before.focus();
      resolve(result);
    });
    d.addEventListener("click", (e) => { if (e.target === d) close(); });
    document.body.append(d);
    d.showModal();
    const first = d.querySelector("[autofocus], input, textarea, select");
    if (first) first.focus();
  });
}

export const askToken = (again) => dialog("A token is needed", (close) => {
  const field = h("input", { type: "password", name: "token", "aria-label": "Token", autocomplete: "off", required: true, autofocus: true });
  return [h("form", { onsubmit: (e) => { e.preventDefault(); close(field.value.trim()); } },
    h("p", { class: again ? "problem" : "dim" }, again ? "That token is not one of this server's." : "This server asks for one. It is kept for as long as this tab is open."), field,
    h("div", { class: "acts" }, h("button", { type: "submit", class: "primary" }, "Go on")))];
});

// askFork asks what a fork is to begin with. It resolves with {text, as, compare, run}.
export const askFork = (at, text, says) => dialog("Fork from entry " + at, (close) => {
  const words = h("textarea", { name: "message", rows: 6, "aria-label": "Message", autofocus: true, value: text });
  const as = h("input", { name: "as", "aria-label": "Name of the fork", placeholder: "named after this session", autocomplete: "off", spellcheck: "false" });
  const compare = h("input", { type: "checkbox", name: "compare" });
  const form = h("form", { onsubmit: (e) => { e.preventDefault(); close({ text: words.value, as: as.value.trim(), compare: compare.checked, run: true }); } },
    h("p", { class: "dim" }, says), h("label", {}, "Message", words, h("span", { class: "dim" }, "Enter is a new line; Ctrl+Enter forks and runs it")), h("label", {}, "Name", as),
    h("label", { class: "check" }, compare, "show both side by side"),
    h("div", { class: "acts" }, h("button", { type: "submit", class: "primary", "data-act": "fork-run" }, "Fork and run"), h("button", { type: "button", "data-act": "fork-only", onclick: () => close({ text: "", as: as.value.trim(), compare: compare.checked }) }, "Fork only")));
  words.addEventListener("keydown", (e) => { if (e.key === "Enter" && (e.ctrlKey || e.metaKey)) e.preventDefault(), form.requestSubmit(); });
  return [form];
}, { class: "wide" });

// askOther asks what to compare with. candidates: [{label, to}].
export const askOther = (candidates, names) => dialog("Compare with", (close) => {
  const field = h("input", { name: "other", list: "names", "aria-label": "Another session", placeholder: "another session", autocomplete: "off", spellcheck: "false", autofocus: true });
  const problem = h("p", { class: "problem", role: "alert" });
  return [h("div", { class: "pick" }, candidates.slice(0, 12).map((c, i) => h("button", { type: "button", "data-pick": i, onclick: () => close(c.to) }, c.label))),
    h("form", { onsubmit: (e) => { e.preventDefault(); if (field.value.trim()) close({ b: field.value.trim() }); else problem.textContent = "Which one? Give the name of a session."; } }, field, problem, h("datalist", { id: "names" }, names.slice(0, 50).map((n) => h("option", { value: n }))), h("div", { class: "acts" }, h("button", { type: "submit", class: "primary" }, "Compare")))];
});

export const keys = [
  ["j k \u2193 \u2191", "next, previous step (or session, or difference)"], ["gg G", "first, last step; at the last one the page stays with what comes"], ["[ ]", "previous, next run"], ["Enter", "details of the step; Esc closes them"], ["o", "open the subagent's session, or the fork's origin"], ["u", "back to the session above"],
  ["/", "search in this session; Enter, n and N go on"], ["s", "filter the sessions"], ["a A L", "approve; this very call for the session; what is like it"], ["e", "approve with another input"], ["r", "reject, with a reason"], ["i", "say something: a prompt, or steering"], ["f", "fork from the step"], ["c", "compare with another run or session"], ["d", "of a comparison: differences only"], ["x", "raw JSON of the step"], ["n", "new session, where nothing is searched for"], ["t", "dark, light, or as the system is"], ["?", "this list"],
];

export const help = () => dialog("Keys", () => [h("dl", { class: "keys" }, keys.map(([k, v]) => h("div", {}, h("dt", {}, k.split(" ").map((x) => h("kbd", {}, x))), h("dd", {}, v))))]);
