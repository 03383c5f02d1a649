// Differences of two lists, by the algorithm of Myers, with a bound: beyond it what is in the middle counts as another.

// script gives pairs [i, j] of what is the same in both, in order.
export function script(a, b, same = (x, y) => x === y, most = 1500) {
  let head = 0, n = a.length, m = b.length;
  while (head < n && head < m && same(a[head], b[head])) head++;
  while (n > head && m > head && same(a[n - 1], b[m - 1])) n--, m--;
  const pairs = [];
  for (let i = 0; i < head; i++) pairs.push([i, i]);
  for (const p of middle(a, b, head, n, m, same, most)) pairs.push(p);
  for (let i = n, j = m; i < a.length; i++, j++) pairs.push([i, j]);
  return pairs;
}

function middle(a, b, off, aEnd, bEnd, same, most) {
  const n = aEnd - off, m = bEnd - off, max = Math.min(n + m, most);
  if (!n || !m) return [];
  const v = new Int32Array(2 * max + 3), mid = max + 1, trace = [];
  let found = -1;
  outer: for (let d = 0; d <= max; d++) {
    trace.push(v.slice(mid - d - 1, mid + d + 2));
    for (let k = -d; k <= d; k += 2) {
      let x = k === -d || (k !== d && v[mid + k - 1] < v[mid + k + 1]) ? v[mid + k + 1] : v[mid + k - 1] + 1;
      let y = x - k;
      while (x < n && y < m && same(a[off + x], b[off + y])) x++, y++;
      v[mid + k] = x;
      if (x >= n && y >= m) {
        found = d;
        break outer;
      }
    }
  }
  if (found < 0) return [];
  const pairs = [];
  let x = n, y = m;
  for (let d = found; d >= 0; d--) {
    const t = trace[d], at = (k) => t[k + d + 1], k = x - y;
    const from = k === -d || (k !== d && at(k - 1) < at(k + 1)) ? k + 1 : k - 1;
    const px = d === 0 ? 0 : at(from), py = d === 0 ? 0 : px - from;
    while (x > px && y > py && x > 0 && y > 0) {
      x--, y--;
      pairs.push([off + x, off + y]);
    }
    x = px, y = py;
  }
  return pairs.reverse();
}

// lines gives the lines of two texts as they differ: {sign: " ", "-" or "+", a, b: the numbers of the lines, text}. What is the same is left out beyond so many lines around: {sign: "@", skipped}.
export function lines(before, after, around = 3) {
  const cut = (t) => (t === "" ? [] : t.replace(/\n$/, "").split("\n"));
  const a = cut(before), b = cut(after), out = [];
  let i = 0, j = 0;
  for (const [x, y] of [...script(a, b), [a.length, b.length]]) {
    while (i < x) out.push({ sign: "-", a: i + 1, text: a[i++] });
    while (j < y) out.push({ sign: "+", b: j + 1, text: b[j++] });
    if (x < a.length && y < b.length) out.push({ sign: " ", a: ++i, b: ++j, text: a[x] });
  }
  const near = new Uint8Array(out.length);
  out.forEach((l, n) => { if (l.sign !== " ") near.fill(1, Math.max(0, n - around), n + around + 1); });
  const shown = [];
  for (let n = 0; n < out.length; n++) {
    if (near[n]) {
      shown.push(out[n]);
      continue;
    }
    let to = n;
    while (to < out.length && !near[to]) to++;
    shown.push({ sign: "@", skipped: to - n });
    n = to - 1;
  }
  return shown;
}

export function tally(diff) {
  let more = 0, less = 0;
  for (const l of diff) l.sign === "+" ? more++ : l.sign === "-" && less++;
  return { more, less };
}
