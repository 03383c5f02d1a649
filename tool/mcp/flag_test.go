//go:build unix

package mcp

import (
	"errors"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pawl-dev/pawl/errdefs"
)

func TestVariablesAreReplacedWhereverTheyStand(t *testing.T) {
	t.Parallel()
	look := func(name string) (string, bool) {
		v, ok := map[string]string{"A": "value", "EMPTY": "", "NESTED": "${A}"}[name]
		return v, ok
	}
	in := Server{
		Name: "z", Command: "${A}/run", Args: []string{"${A}${A}", "$A $5 ${} ${1}", "${NESTED}", "${EMPTY}"}, Env: map[string]string{"${A}": "${EMPTY:-none}-${NONE:-x}${NONE:-}"}, Dir: "/${A}",
		Variables: true, Place: "p",
	}
	got, err := in.Expand(look)
	want := Server{Name: "z", Command: "value/run", Args: []string{"valuevalue", "$A $5 ${} ${1}", "${A}", ""}, Env: map[string]string{"${A}": "none-x"}, Dir: "/value", Place: "p"}
	if diff := cmp.Diff(want, got); diff != "" || err != nil {
		t.Error(diff, err)
	}
	if in.Args[0] != "${A}${A}" || in.Env["${A}"] != "${EMPTY:-none}-${NONE:-x}${NONE:-}" {
		t.Error("the caller's is changed:", in)
	}
	web, err := Server{
		Name: "a", URL: "https://example.com/${A}", Headers: map[string]string{"Authorization": "Bearer ${A}"}, OAuth: OAuth{ClientID: "${A}", ClientSecret: "${A}"}, Variables: true,
	}.Expand(look)
	if diff := cmp.Diff(Server{Name: "a", URL: "https://example.com/value", Headers: map[string]string{"Authorization": "Bearer value"}, OAuth: OAuth{ClientID: "value", ClientSecret: "value"}}, web); diff != "" || err != nil {
		t.Error(diff, err)
	}
	plain := Server{Name: "a", Command: "${A}"}
	if got, err := plain.Expand(look); err != nil || got.Command != "${A}" {
		t.Error("not marked, so not looked at:", got, err)
	}
	_, err = Server{Name: "a", URL: "${NO_1}", Headers: map[string]string{"B": "${NO_2}", "A": "${A}"}, Variables: true, Place: "s.json:3:5"}.Expand(look)
	if !errors.Is(err, errdefs.Validation) || err.Error() != "s.json:3:5: url: ${NO_1} is not set: set it, or write ${NO_1:-default}\nheaders.B: ${NO_2} is not set: set it, or write ${NO_2:-default}" {
		t.Error(err)
	}
	if _, err = (Server{Name: "a", URL: "${A}", Variables: true}).Expand(look); !errors.Is(err, errdefs.Validation) || !strings.Contains(err.Error(), "begins with http") {
		t.Error("what comes of it is checked:", err)
	}
}

func TestAServerWithAVariableThatIsNotSetIsAWarningOrAnError(t *testing.T) {
	t.Parallel()
	s := Server{Name: "s", Command: "${PAWL_TEST_UNSET}", Variables: true, Place: "s.json:3:5"}
	c := connect(t, s)
	if w := c.Warnings(); len(w) != 1 || !strings.Contains(w[0], "mcp: server s: s.json:3:5: command: ${PAWL_TEST_UNSET} is not set") {
		t.Error(w)
	}
	s.Required = true
	if _, err := Connect(t.Context(), []Server{s}, Options{}); !errors.Is(err, errdefs.Validation) {
		t.Error(err)
	}
	all := stdioServer("all")
	all.Command, all.Variables = "${PROGRAM}", true
	c, err := Connect(t.Context(), []Server{all}, Options{Lookup: func(string) (string, bool) { return os.Args[0], true }})
	if err != nil {
		t.Fatal(err)
	}
	defer closeClient(t, c)
	if find(t, c, "echo") == nil {
		t.Error(c.Warnings())
	}
}

func TestAServerIsReadFromAFlag(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]Server{
		"web=https://example.com/mcp?a=b":      {Name: "web", URL: "https://example.com/mcp?a=b"},
		`fs=npx -y server "my dir" 'b c' d\ e`: {Name: "fs", Command: "npx", Args: []string{"-y", "server", "my dir", "b c", "d e"}},
		"x=/bin/server":                        {Name: "x", Command: "/bin/server", Args: []string{}},
	} {
		if got, err := ParseServer(in); err != nil {
			t.Error(in, err)
		} else if diff := cmp.Diff(want, got); diff != "" {
			t.Error(in, diff)
		}
	}
	for _, in := range []string{"", "a", "a=", "a= ", "=x", "a b=x", `a="x`, "a=$(rm x)"} {
		if _, err := ParseServer(in); !errors.Is(err, errdefs.Validation) {
			t.Error(in, err)
		}
	}
}

func FuzzAServerOfAFlagNeverPanics(f *testing.F) {
	f.Add(`a=b "c ${A:-b}`)
	f.Fuzz(func(_ *testing.T, flag string) {
		if s, err := ParseServer(flag); err == nil {
			s.Variables = true
			_, _ = s.Expand(func(string) (string, bool) { return "${A}", true })
		}
	})
}
