package star_test

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"

	"go.starlark.net/starlark"

	"github.com/pawl-dev/pawl/errdefs"
	"github.com/pawl-dev/pawl/internal/star"
	"github.com/pawl-dev/pawl/message"
)

func values(t testing.TB, all map[string]any) map[string]starlark.Value {
	t.Helper()
	out := map[string]starlark.Value{}
	for k, v := range all {
		var err error
		if out[k], err = star.To(v); err != nil {
			t.Fatal(err)
		}
	}
	return out
}

var board = map[string]any{
	"n": 3, "big": 1 << 40, "name": "Ann", "tags": []string{"b", "a"}, "d": map[string]any{"x": 1, "y": []any{1, 2}},
	"last": message.User("please stop"),
}

func TestAnExpressionIsWhatStarlarkSays(t *testing.T) {
	for source, want := range map[string]string{
		`n + 1`:                                `4`,
		`n - 1, n * 2, n / 2, n // 2, n % 2`:   `(2, 6, 1.5, 1, 1)`,
		`-n, +n, ~n, not n`:                    `(-3, 3, -4, False)`,
		`n << 2, n >> 1, n | 4, n & 1, n ^ 1`:  `(12, 1, 7, 1, 2)`,
		`big * big`:                            `1208925819614629174706176`,
		`"x" * n, n * "y", [1] * n, n * (1,)`:  `("xxx", "yyy", [1, 1, 1], (1, 1, 1))`,
		`"a" + name, [1] + tags, (1,) + (2,)`:  `("aAnn", [1, "b", "a"], (1, 2))`,
		`n > 2 and name == "Ann"`:              `True`,
		`n == 3.0, n != 3, n < 4, n <= 2`:      `(True, False, True, False)`,
		`"a" in tags, "x" in d, "nn" in name`:  `(True, True, True)`,
		`"z" not in tags`:                      `True`,
		`[t.upper() for t in tags if t > "a"]`: `["B"]`,
		`{t: n for t in tags}`:                 `{"b": 3, "a": 3}`,
		`sorted(tags), sorted([1, 3, 2], reverse = True), sorted(tags, key = lambda t: t == "b")`: `(["a", "b"], [3, 2, 1], ["a", "b"])`,
		`min(3, 1, 2), max([1, 3, 2]), max(tags, key = len)`:                                      `(1, 3, "b")`,
		`name[0], name[-1], tags[1], d["y"][0]`:                                                   `("A", "n", "a", 1)`,
		`name[1:], name[:1], name[::-1], name[::2], tags[1:]`:                                     `("nn", "A", "nnA", "An", ["a"])`,
		`[1,2,3,4][-3:-1], [1,2,3,4][3:0:-2], [1,2][5:], "abc"[2:0]`:                              `([2, 3], [4, 2], [], "")`,
		`"%s is %d, %r" % (name, n, tags)`:                                                        `"Ann is 3, [\"b\", \"a\"]"`,
		`"%(x)s %(x)s" % {"x": n}`:                                                                `"3 3"`,
		`"{} {x} {0}".format(name, x = n)`:                                                        `error`,
		`"{0} {x} {0}".format(name, x = n)`:                                                       `"Ann 3 Ann"`,
		`", ".join(tags), "a b".split(), "a,b".split(",")`:                                        `("b, a", ["a", "b"], ["a", "b"])`,
		`name.replace("n", "m").lower().strip("a")`:                                               `"mm"`,
		`d.get("z", 0), d.get("x"), d.keys(), d.items()`:                                          `(0, 1, ["x", "y"], [("x", 1), ("y", [1, 2])])`,
		`getattr("abc", "upper")(), getattr(n, "no", 7)`:                                          `("ABC", 7)`,
		`last.text.endswith("stop"), last.role, last.calls`:                                       `(True, "user", [])`,
		`json.decode('{"b": 1, "a": [1.5]}')`:                                                     `{"a": [1.5], "b": 1}`,
		`json.encode({"b": 1, "a": [True, None]})`:                                                `"{\"a\":[true,null],\"b\":1}"`,
		`struct(a = n).a, struct(b = 1, a = 2)`:                                                   `(3, struct(a = 2, b = 1))`,
		`set([1, 2]) | set([2, 3]), set([1, 2]) & set([2])`:                                       `(set([1, 2, 3]), set([2]))`,
		`{"a": 1} | {"b": 2}, dict(a = 1), dict([(1, 2)])`:                                        `({"a": 1, "b": 2}, {"a": 1}, {1: 2})`,
		`(lambda *a, **k: (a, k))(*[1, 2], **{"x": n})`:                                           `((1, 2), {"x": 3})`,
		`list(range(3)), tuple("ab".elems()), zip([1], [2])`:                                      `([0, 1, 2], ("a", "b"), [(1, 2)])`,
		`any([0, 1]), all([]), bool(tags), len(d), str(d)`:                                        `(True, True, True, 2, "{\"x\": 1, \"y\": [1, 2]}")`,
		`1 if n > 5 else 2`:                                                                       `2`,
		`int("12"), int("ff", 16), float("1.5"), hash("a")`:                                       `(12, 255, 1.5, 97)`,
	} {
		e, err := star.Compile("cond", source, "n", "big", "name", "tags", "d", "last")
		if err != nil {
			t.Errorf("%s: %v", source, err)
			continue
		}
		v, err := e.Eval(values(t, board))
		switch {
		case want == "error":
			if !errdefs.Validation.Is(err) {
				t.Errorf("%s: %v, %v", source, v, err)
			}
		case err != nil:
			t.Errorf("%s: %v", source, err)
		case v.String() != want:
			t.Errorf("%s: %v, want %s", source, v, want)
		}
	}
}

func TestABodyIsWhatStarlarkSays(t *testing.T) {
	for source, want := range map[string]string{
		"x = n\nx += 1\nx *= 2\nx -= 1\nx //= 2\nreturn x":                                     `3`,
		"l = []\nm = l\nl += [1]\nl += (2, 3)\nreturn m":                                       `[1, 2, 3]`,
		"l = [1]\nl += l\nreturn l":                                                            `[1, 1]`,
		"d = {}\ne = d\nd |= {'a': 1}\nreturn e":                                               `{"a": 1}`,
		"d = {'a': [1]}\nd['a'] += [2]\nd['b'] = 1\nd['b'] += 1\nreturn d":                     `{"a": [1, 2], "b": 2}`,
		"l = [1, 2]\nl[-1] *= 5\nl[0] |= 2\nreturn l":                                          `[3, 10]`,
		"i = [0]\ndef f():\n  i[0] += 1\n  return i[0]\nl = [0] * 5\nl[f()] += 1\nreturn l, i": `([0, 1, 0, 0, 0], [1])`,
		"a, (b, c) = 1, (2, 3)\n(a) += c\nreturn a, b":                                         `(4, 2)`,
		"s = 0\nfor i in range(10):\n  if i == 5: break\n  s += i\nreturn s":                   `10`,
		"i = 0\nwhile i < n: i += 1\nreturn i":                                                 `3`,
		"def f(a, b = n + 1, *c, **d): return a + b\nreturn f(1), f(1, b = 1)":                 `(5, 2)`,
		"pass": `None`,
	} {
		e, err := star.CompileBody("body", source, "n")
		if err != nil {
			t.Errorf("%s: %v", source, err)
			continue
		}
		if v, err := e.Eval(values(t, board)); err != nil || v.String() != want {
			t.Errorf("%s: %v, %v, want %s", source, v, err, want)
		}
	}
}

func TestEveryProblemOfASourceHasItsPlace(t *testing.T) {
	for source, want := range map[string][]string{
		"n + x + y":            {"cond:1:5: undefined: x", "cond:1:9: undefined: y"},
		"n +":                  {"cond:1:4: got end of file, want primary expression"},
		"print(n)":             {"cond:1:1: undefined: print"},
		"[print for n in [1]]": {"cond:1:2: undefined: print"},
		"@none":                {"cond:1:1: unexpected input character '@'"},
	} {
		_, err := star.Compile("cond", source, "n")
		var all *star.Error
		if !errors.As(err, &all) || !errdefs.Validation.Is(err) {
			t.Errorf("%s: %v", source, err)
			continue
		}
		var got []string
		for _, p := range all.Problems {
			got = append(got, p.Place+": "+p.Reason)
		}
		if !slices.Equal(got, want) {
			t.Errorf("%s: %q, want %q", source, got, want)
		}
	}
	for source, want := range map[string]string{
		"load('x', 'y')":             "cond:1:1: there is no load",
		"n.x = 1":                    "cond:1:2: fields can't be set",
		"n.x += 1":                   "cond:1:2: fields can't be set",
		"":                           "cond:1:1: it is empty",
		"for x in n:\n break\nbreak": "cond:3:1: break not in a loop",
	} {
		if _, err := star.CompileBody("cond", source, "n"); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", source, err, want)
		}
	}
}

func TestAnErrorHasItsPlaceAndItsClass(t *testing.T) {
	for source, want := range map[string]string{
		`n + name`:      "cond:1:3: unknown binary op: int + string",
		`d["z"]`:        `cond:1:2: key "z" not in dict`,
		`tags.nope()`:   "cond:1:5: list has no .nope field or method",
		`fail("no", n)`: "cond:1:5: fail: no 3",
		`tags[7]`:       "cond:1:5: list index 7 out of range",
		`{[]: 1}`:       "unhashable",
	} {
		e, err := star.Compile("cond", source, "n", "name", "d", "tags")
		if err != nil {
			t.Fatal(err)
		}
		if _, err := e.Eval(values(t, board)); !errdefs.Validation.Is(err) || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", source, err, want)
		}
	}
	e, _ := star.Compile("cond", "n > limit", "n", "limit")
	if _, err := e.Eval(values(t, board)); !errdefs.Validation.Is(err) || !strings.Contains(err.Error(), "cond: limit is not set") {
		t.Error(err)
	}
	if got := e.Names(); !slices.Equal(got, []string{"limit", "n"}) {
		t.Error(got)
	}
	e, _ = star.Compile("cond", "n", "n", "other")
	if _, err := e.Bool(values(t, board)); !errdefs.Validation.Is(err) || !strings.Contains(err.Error(), "cond: the condition is a int") {
		t.Error("1 is no bool:", err)
	}
	e, _ = star.Compile("cond", `"x" * 5000 + 1`)
	if _, err := e.Eval(nil); err == nil || len(err.Error()) > 2100 {
		t.Error(err)
	}
	e, _ = star.Compile("cond", `int("x" * 5000)`)
	if _, err := e.Eval(nil); err == nil || len(err.Error()) > 2100 {
		t.Error("errors are short:", len(err.Error()))
	}
}

func TestAnExpressionServesManyGoroutines(t *testing.T) {
	e, err := star.Compile("cond", `n + len(tags) > 4 and "a" in tags and sorted(tags)[0] == "a"`, "n", "tags")
	if err != nil {
		t.Fatal(err)
	}
	vs := values(t, board)
	if err := star.Freeze(slices.Collect(maps.Values(vs))...); err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for range 50 {
				if ok, err := e.Bool(vs); err != nil || !ok {
					t.Error(ok, err)
				}
			}
		})
	}
	wg.Wait()
}

func TestAnEvaluationEndsWithItsContext(t *testing.T) {
	e, err := star.CompileBody("body", "while True: pass")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := e.Call(ctx, star.NewMeter(star.Limits{Steps: 1 << 40, Bytes: 1 << 20}), nil); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}
