// Texts of any length, and differences of texts. Of a long one the beginning is shown, and all of it, when somebody wants it, in pieces of which only those in sight exist.

import { h, size, whole } from "./dom.js";
import { lines, tally } from "./diff.js";
import { List } from "./virtual.js";

const piece = 3000;

// pieces cuts a text behind lines where it can.
function pieces(text) {
  const all = [];
  for (let from = 0; from < text.length;) {
    let to = Math.min(text.length, from + piece);
    if (to < text.length) {
      const n = text.slice(from, to).lastIndexOf("\n"); // of the piece alone: a line may be all that there is
      if (n >= piece / 4) to = from + n + 1;
      else if (text.charCodeAt(to - 1) >= 0xd800 && text.charCodeAt(to - 1) < 0xdc00) to--;
    }
    all.push([from, to]);
    from = to;
  }
  return all;
}

function linesOf(text) {
  let n = 1;
  for (let i = text.indexOf("\n"); i >= 0; i = text.indexOf("\n", i + 1)) n++;
  return n;
}

const colours = /\u001b\[[0-9;]*m/g; // of terminals: the raw entry has them

// long shows a text. open are what has to be closed when it goes.
export function long(text, open, { kind = "mono", first = 6000, height } = {}) {
  if (text.includes("\u001b")) text = text.replace(colours, "");
  const pre = (t) => h("pre", { class: "text " + kind, dir: kind === "mono" ? "ltr" : "auto" }, t);
  const cut = text.length > first * 1.3 ? text.slice(0, first) : text;
  if (cut === text) return pre(text);
  const box = h("div", { class: "long" });
  const bar = h("div", { class: "cut" });
  const all = h("button", { type: "button" }, "Show all");
  bar.append(h("span", {}, `cut: ${size(text.length)}, ${whole(linesOf(text))} lines`), all);
  all.addEventListener("click", () => {
    const list = h("div", { class: "scroll pieces", tabindex: "0", "aria-label": "the whole text" });
    box.replaceChildren(list, h("div", { class: "cut" }, h("span", {}, `all: ${size(text.length)}`)));
    const parts = pieces(text);
    const v = new List(list, {
      most: 12, guess: (i) => 20 + (parts[i][1] - parts[i][0]) / 5,
      make: (i) => {
        const t = text.slice(...parts[i]);
        return pre(i < parts.length - 1 && t.endsWith("\n") ? t.slice(0, -1) : t);
      },
    });
    v.count = parts.length;
    open.push(v);
    list.focus();
  });
  box.append(pre(cut), bar);
  return box;
}

// changes shows two texts as they differ.
export function changes(before, after, open, { name = "", around = 3 } = {}) {
  const all = lines(before, after, around), { more, less } = tally(all);
  const head = h("div", { class: "file" }, h("span", { class: "path" }, name), h("span", { class: "plus" }, "+" + more), h("span", { class: "minus" }, "\u2212" + less));
  const one = (l) => {
    if (l.sign === "@") return h("div", { class: "dl skip" }, h("span", {}, `${whole(l.skipped)} lines as they were`));
    const text = l.text.length > 2000 ? l.text.slice(0, 2000) + "\u2026" : l.text;
    return h("div", { class: "dl " + (l.sign === "+" ? "add" : l.sign === "-" ? "del" : "") },
      h("span", { class: "no", "aria-hidden": "true" }, l.a || ""), h("span", { class: "no", "aria-hidden": "true" }, l.b || ""),
      h("span", { class: "sign" }, l.sign === "-" ? "\u2212" : l.sign === "+" ? "+" : " "), h("code", {}, text || " "));
  };
  const box = h("div", { class: "diff" }, head);
  if (all.length <= 30) {
    box.append(h("div", { class: "dls" }, all.map(one)));
    return box;
  }
  const list = h("div", { class: "scroll dls", tabindex: "0", "aria-label": "difference" });
  const v = new List(list, { most: 40, guess: () => 18, make: (i) => one(all[i]) });
  v.count = all.length;
  open.push(v);
  box.append(list);
  return box;
}
