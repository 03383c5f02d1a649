package star_test

import (
	"runtime"
	"strings"
	"testing"

	"github.com/pawl-dev/pawl/errdefs"
	"github.com/pawl-dev/pawl/internal/star"
)

// TestNothingMakesOrTakesMoreThanTheLimits: each of these takes gigabytes, hours or the whole stack in the interpreter as it is.
func TestNothingMakesOrTakesMoreThanTheLimits(t *testing.T) {
	for name, source := range map[string]string{
		"a loop":                           `while True: pass`,
		"a string repeated":                `return "x" * 1000000000`,
		"a string repeated from the left":  `return 1000000000 * "x"`,
		"a list repeated":                  `return [0] * 1000000000`,
		"a string repeated in place":       "x = 'x'\nx *= 1000000000",
		"an item repeated in place":        "x = ['x']\nx[0] *= 1000000000",
		"a string doubled":                 "x = 'x'\nwhile True: x += x",
		"a list doubled":                   "x = [0]\nwhile True: x += x",
		"a list extended by itself":        "x = [0]\nwhile True: x.extend(list(x))",
		"a tuple doubled":                  "x = (0,)\nwhile True: x = x + x",
		"lists kept":                       "x = [0] * 100000\nl = []\nwhile True: l.append(x[:])",
		"strings kept":                     "x = 'x' * 100000\nl = []\nwhile True: l.append(x + 'y')",
		"upper kept":                       "x = 'x' * 100000\nl = []\nwhile True: l.append(x.upper())",
		"dicts kept":                       "l = []\nwhile True: l.append({})",
		"a dict that grows":                "d = {}\ni = 0\nwhile True:\n  i += 1\n  d[i] = {}",
		"a list of a range":                `return list(range(1000000000000))`,
		"a tuple of a range":               `return tuple(range(1000000000000))`,
		"a set of a range":                 `return set(range(1000000000000))`,
		"a sorted range":                   `return sorted(range(1000000000000))`,
		"a range enumerated":               `return enumerate(range(1000000000000))`,
		"a range zipped":                   `return zip(range(1000000000000), range(1000000000000))`,
		"a range reversed":                 `return reversed(range(1000000000000))`,
		"all of a range":                   `return all(range(1, 1000000000000))`,
		"the largest of a range":           `return max(range(1000000000000))`,
		"a range as arguments":             "def f(*a): return a\nreturn f(*range(1000000000000))",
		"a list extended by a range":       "x = []\nx.extend(range(1000000000000))",
		"a list that a range is added to":  "x = []\nx += range(1000000000000)",
		"a set updated by a range":         "x = set()\nx.update(range(1000000000000))",
		"a range joined":                   `return "x".join(range(1000000000000))`,
		"a long text joined":               "x = 'x' * 1000000\nreturn ''.join([x] * 100000)",
		"a long text joined by a long one": "x = 'x' * 1000000\nreturn x.join(['a'] * 100000)",
		"replaced":                         "x = 'x' * 1000000\nreturn x.replace('x', x)",
		"nothing replaced":                 "x = 'x' * 1000000\nreturn x.replace('', x)",
		"formatted":                        "x = 'x' * 1000000\nreturn ('{0}' * 10000).format(x)",
		"formatted by name":                "x = 'x' * 1000000\nreturn ('{a}' * 10000).format(a = x)",
		"interpolated by name":             "x = 'x' * 1000000\nreturn ('%(a)s' * 10000) % {'a': x}",
		"interpolated":                     "x = 'x' * 1000000\nreturn ('%s' * 1000) % tuple([x] * 1000)",
		"through getattr":                  "x = 'x' * 1000000\nreturn getattr(x, 'replace')('x', x)",
		"through a method kept":            "x = 'x' * 1000000\nf = x.replace\nreturn f('x', x)",
		"split":                            "x = 'x ' * 4000000\nl = []\nwhile True: l.append(x.split())",
		"a nest printed":                   "x = [1]\nfor i in range(60): x = [x, x]\nreturn str(x)",
		"a nest interpolated":              "x = [1]\nfor i in range(60): x = [x, x]\nreturn '%r' % [x]",
		"a nest formatted":                 "x = [1]\nfor i in range(60): x = [x, x]\nreturn '{}'.format(x)",
		"a nest as JSON":                   "x = [1]\nfor i in range(60): x = [x, x]\nreturn json.encode(x)",
		"a nest as an error":               "x = [1]\nfor i in range(60): x = [x, x]\nfail(x)",
		"nests compared":                   "x = [1] * 1000\ny = [1] * 1000\nfor i in range(8):\n  x = [x] * 1000\n  y = [y] * 1000\nreturn x == y",
		"a nest sought":                    "x = [1] * 1000\nfor i in range(8): x = [x] * 1000\nreturn [1] in x",
		"a nest sought by index":           "x = [1] * 1000\ny = [2] * 1000\nfor i in range(8):\n  x = [x] * 1000\n  y = [y] * 1000\nreturn [x].index(y)",
		"nests sorted":                     "x = [1] * 1000\nfor i in range(8): x = [x] * 1000\nreturn sorted([1, 2], key = lambda i: x)",
		"a nest of tuples hashed":          "x = (1,)\nfor i in range(60): x = (x, x)\nreturn hash(x)",
		"a nest of tuples as a key":        "x = (1,)\nfor i in range(60): x = (x, x)\nd = {}\nd[x] = 1",
		"as a key in a display":            "x = (1,)\nfor i in range(60): x = (x, x)\nreturn {x: 1}",
		"as a key in a comprehension":      "x = (1,)\nfor i in range(60): x = (x, x)\nreturn {x: 1 for i in [1]}",
		"as a key sought":                  "x = (1,)\nfor i in range(60): x = (x, x)\nreturn x in {}",
		"as a key got":                     "x = (1,)\nfor i in range(60): x = (x, x)\nreturn {}.get(x)",
		"as a key that is augmented":       "x = (1,)\nfor i in range(60): x = (x, x)\nd = {}\nd[x] += 1",
		"in a set":                         "x = (1,)\nfor i in range(60): x = (x, x)\nreturn set([x])",
		"arguments that double":            "def f(*a): return a\nx = (1,)\nfor i in range(60): x = f(x, x)\nreturn {x: 1}",
		"a deep nest printed":              "x = []\nfor i in range(50000): x = [x]\nreturn str(x)",
		"a deep nest as JSON":              "x = []\nfor i in range(50000): x = [x]\nreturn json.encode(x)",
		"a deep tuple hashed":              "x = ()\nfor i in range(50000): x = (x,)\nreturn hash(x)",
		"a deep struct printed":            "x = None\nfor i in range(50000): x = struct(a = x)\nreturn str(x)",
		"brackets read":                    `return json.decode("[" * 1000000)`,
		"objects read":                     "x = '[' + '{},' * 1000000 + '1]'\nl = []\nwhile True: l.append(json.decode(x))",
		"a long number read":               `return int("9" * 10000000)`,
		"a number squared":                 "x = 3\nwhile True: x *= x",
		"a number shifted":                 "x = 3\nwhile True: x <<= 500",
		"shifted at once":                  `return 1 << 1000000000`,
		"a number doubled":                 "x = 1 << 500\nwhile True: x += x",
		"recursion":                        "def f(): return f()\nreturn f()",
		"recursion by way of a list":       "l = []\ndef f(): return l[0]()\nl.append(f)\nreturn f()",
		"dicts merged":                     "d = {i: i for i in range(1000)}\nl = []\nwhile True: l.append(d | {})",
		"items listed":                     "d = {i: i for i in range(1000)}\nl = []\nwhile True: l.append(d.items())",
		"letters kept":                     "x = 'x' * 100000\nl = []\nwhile True: l.append(list(x.codepoints()))",
		"bytes kept":                       "x = bytes('x' * 100000)\nl = []\nwhile True: l.append(list(x.elems()))",
		"split at spaces of any kind":      "x = '\\u00a0a' * 300000\nl = []\nwhile True: l.append(x.split())",
		"numbers kept":                     "x = 1 << 500\nx = x * x\nl = []\nwhile True: l.append(-x)",
		"arguments by name kept":           "def f(**k): return k\nx = {'k%d' % i: i for i in range(1000)}\nl = []\nwhile True: l.append(f(**x))",
		"arguments kept":                   "def f(*a): return a\nx = [0] * 10000\nl = []\nwhile True: l.append(f(*x))",
		"structs kept":                     "x = {'k%d' % i: i for i in range(1000)}\nl = []\nwhile True: l.append(struct(**x))",
		"sorting by a bomb":                `return sorted([3, 2, 1], key = lambda i: "x" * 1000000000)`,
	} {
		t.Run(name, func(t *testing.T) {
			e, err := star.CompileBody("bomb", source)
			if err != nil {
				t.Fatal(err)
			}
			m := star.NewMeter(star.Limits{Steps: 500_000, Bytes: 16 << 20})
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			v, err := e.Call(t.Context(), m, nil)
			runtime.ReadMemStats(&after)
			if err == nil {
				t.Fatalf("it gave a %s", v.Type())
			}
			if !errdefs.BudgetExceeded.Is(err) && !errdefs.Validation.Is(err) || !strings.HasPrefix(err.Error(), "bomb:") {
				t.Error(err)
			}
			if took := after.TotalAlloc - before.TotalAlloc; took > 256<<20 {
				t.Errorf("it took %d MiB", took>>20)
			}
		})
	}
}

// A sort compares more often than it has values, and that counts.
func TestASortCountsItsComparisons(t *testing.T) {
	e, err := star.CompileBody("sort", "return len(sorted(range(100000), reverse = True))")
	if err != nil {
		t.Fatal(err)
	}
	m := star.NewMeter(star.Limits{Steps: 10_000_000, Bytes: 256 << 20})
	if _, err := e.Call(t.Context(), m, nil); err != nil {
		t.Fatal(err)
	}
	if n := m.Used().Steps; n < 100_000 || n > 1_000_000 {
		t.Errorf("it counted %d steps", n)
	}
	if _, err := e.Call(t.Context(), star.NewMeter(star.Limits{Steps: 100_000, Bytes: 256 << 20}), nil); !errdefs.BudgetExceeded.Is(err) {
		t.Error(err)
	}
}
