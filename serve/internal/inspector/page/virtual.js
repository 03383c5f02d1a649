// List shows a part of a long list: the rows that are to be seen, and few more. Rows have heights of their own, which are guessed until they are seen; what is above stays where it is when a guess was wrong.

import { h } from "./dom.js";

// Heights are the rows' heights, and how far each is from the top: a Fenwick tree, so that both changing one and finding one by its place take the logarithm of their number.
class Heights {
  constructor() { this.clear(); }

  clear() {
    this.n = 0;
    this.each = [];
    this.tree = [0];
  }

  push(height) {
    this.each.push(height);
    const i = ++this.n;
    let sum = height;
    for (let j = i - 1, end = i - (i & -i); j > end; j -= j & -j) sum += this.tree[j];
    this.tree.push(sum);
  }

  set(i, height) {
    const d = height - this.each[i];
    if (d === 0) return;
    this.each[i] = height;
    for (let j = i + 1; j <= this.n; j += j & -j) this.tree[j] += d;
  }

  // top is where row i begins.
  top(i) {
    let sum = 0;
    for (let j = i; j > 0; j -= j & -j) sum += this.tree[j];
    return sum;
  }

  // at is the row at a place.
  at(y) {
    let i = 0, bit = 1;
    while (bit * 2 <= this.n) bit *= 2;
    for (; bit; bit >>= 1) {
      if (i + bit <= this.n && this.tree[i + bit] <= y) {
        i += bit;
        y -= this.tree[i];
      }
    }
    return Math.min(i, this.n - 1);
  }
}

export class List {
  // box scrolls. make(i) makes the element of row i; version(i) changes when the row is to be made anew; guess(i) is about how high it is, at least low(i). after, if there is one, is called when rows have come.
  constructor(box, { make, version = () => 0, guess = () => 30, most = 90, after = () => {} }) {
    Object.assign(this, { box, make, version, guess, most, after });
    this.heights = new Heights();
    this.shown = new Map(); // row → {element, version}
    this.stuck = false; // to the end
    this.inner = h("div", { class: "inner", role: "presentation" });
    box.append(this.inner);
    this.follows = false; // whether who scrolls to the end stays there
    box.addEventListener("scroll", () => {
      if (this.follows && this.atEnd()) this.stuck = true;
      this.soon();
    }, { passive: true });
    box.addEventListener("wheel", (e) => { if (e.deltaY < 0) this.stuck = false; }, { passive: true });
    for (const how of ["pointerdown", "touchmove"]) box.addEventListener(how, () => { this.stuck = false; }, { passive: true });
    this.width = 0;
    this.watch = new ResizeObserver(() => {
      if (box.clientWidth !== this.width) {
        this.width = box.clientWidth;
        this.remeasure = true;
      }
      this.soon();
    });
    this.watch.observe(box);
  }

  close() {
    this.watch.disconnect();
    cancelAnimationFrame(this.frame);
    this.inner.remove();
  }

  // count says how many rows there are. Fewer than before: it is another list.
  set count(n) {
    if (n < this.heights.n) this.heights.clear();
    while (this.heights.n < n) this.heights.push(this.guess(this.heights.n));
    this.soon();
  }

  get count() { return this.heights.n; }

  soon() {
    if (!this.frame) this.frame = requestAnimationFrame(() => { this.frame = 0; this.draw(); });
  }

  // fresh has all rows made anew.
  fresh() {
    for (const { element } of this.shown.values()) element.remove();
    this.shown.clear();
    this.soon();
  }

  atEnd() { return this.box.scrollTop + this.box.clientHeight >= this.heights.top(this.heights.n) - 40; }

  toEnd() {
    this.stuck = true;
    this.soon();
  }

  // show scrolls so that row i is to be seen: as little as needed, or into the middle.
  show(i, middle = false) {
    if (i < 0 || i >= this.heights.n) return;
    this.stuck = false;
    this.want = { i, middle };
    this.draw();
  }

  draw() {
    cancelAnimationFrame(this.frame);
    this.frame = 0;
    const { box, heights } = this, n = heights.n;
    const view = box.clientHeight;
    if (this.remeasure) { // at another width rows have other heights
      this.remeasure = false;
      const first = n ? heights.at(box.scrollTop) : 0, off = n ? box.scrollTop - heights.top(first) : 0;
      heights.clear();
      for (let i = 0; i < n; i++) heights.push(this.guess(i));
      this.inner.style.height = heights.top(n) + "px";
      if (n) box.scrollTop = heights.top(first) + off;
      this.shown.forEach((s) => { s.measured = false; });
    }
    this.inner.style.height = heights.top(n) + "px";
    if (!n || !view) {
      for (const { element } of this.shown.values()) element.remove();
      this.shown.clear();
      return;
    }
    for (let round = 0; round < 4; round++) {
      if (this.want) {
        const { i, middle } = this.want, top = heights.top(i), bottom = top + heights.each[i];
        if (middle) box.scrollTop = top - (view - heights.each[i]) / 2;
        else if (top < box.scrollTop + 4) box.scrollTop = top - 4;
        else if (bottom > box.scrollTop + view - 4) box.scrollTop = Math.min(top - 4, bottom - view + 4);
      } else if (this.stuck) box.scrollTop = heights.top(n);
      const y = box.scrollTop;
      const anchor = heights.at(y), off = y - heights.top(anchor);
      let from = Math.max(0, anchor - 4), to = from;
      for (let h = heights.top(from); to < n && to - from < this.most && h < y + view + 120; to++) h += heights.each[to];
      if (!this.place(from, to)) break;
      this.inner.style.height = heights.top(n) + "px";
      if (!this.want && !this.stuck) {
        const now = heights.top(anchor) + off;
        if (Math.abs(now - box.scrollTop) > 0.5) box.scrollTop = now;
      }
    }
    this.want = null;
    for (const [i, s] of this.shown) s.element.style.transform = `translateY(${heights.top(i)}px)`;
    this.after(this.shown);
  }

  // place has the elements of rows from, …, to-1 in the list, and no others. It reports whether one has another height than was thought.
  place(from, to) {
    for (const [i, s] of this.shown) {
      if (i < from || i >= to) {
        s.element.remove();
        this.shown.delete(i);
      }
    }
    const fresh = [];
    for (let i = to - 1; i >= from; i--) { // from the end, so that each finds the one that it stands before: readers of the page go by this order
      const v = this.version(i);
      let s = this.shown.get(i);
      if (s && s.version === v && s.measured) continue;
      if (!s || s.version !== v) {
        const element = this.make(i);
        element.classList.add("virtual");
        if (s) s.element.replaceWith(element);
        else this.inner.insertBefore(element, this.shown.get(i + 1)?.element || null);
        s = { element, version: v };
        this.shown.set(i, s);
      }
      fresh.push([i, s]);
    }
    let changed = false;
    for (const [i, s] of fresh) { // after all of them are there: the browser lays them out once
      const height = s.element.getBoundingClientRect().height;
      s.measured = true;
      if (Math.abs(height - this.heights.each[i]) > 0.01) {
        this.heights.set(i, height);
        changed = true;
      }
    }
    return changed;
  }
}
