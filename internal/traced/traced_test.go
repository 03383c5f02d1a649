package traced_test

import (
	"context"
	"maps"
	"strings"
	"testing"

	"github.com/pawl-dev/pawl/internal/traced"
)

const parent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"

// headers is what Inject gives for a context.
func headers(ctx context.Context) map[string]string {
	out := map[string]string{}
	traced.Inject(ctx, func(name, value string) { out[name] = value })
	return out
}

func taken(parent, state string) context.Context {
	return traced.Extract(context.Background(), func(name string) string { return map[string]string{"traceparent": parent, "tracestate": state}[name] })
}

func TestWhatComesInGoesOutWhereNobodyTraces(t *testing.T) {
	if got := headers(context.Background()); len(got) > 0 {
		t.Errorf("in no trace there is %v", got)
	}
	if got, want := headers(taken(parent, "a=1,b=2")), map[string]string{"traceparent": parent, "tracestate": "a=1,b=2"}; !maps.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
	if p, s := traced.Remote(taken(" "+parent+" ", "")); p != parent || s != "" {
		t.Errorf("%q, %q", p, s)
	}
	traced.Note(taken(parent, ""), "a", "b") // nobody: nothing happens
}

func TestWhatIsNoTraceIsAsNone(t *testing.T) {
	for _, bad := range []string{
		"", "x", parent[:54], parent + "-", parent + "-more", "ff" + parent[2:], "0g" + parent[2:], strings.ToUpper(parent), strings.ReplaceAll(parent, "-", "_"),
		"00-00000000000000000000000000000000-b7ad6b7169203331-01", "00-0af7651916cd43dd8448eb211c80319c-0000000000000000-01", "00-0af7651916cd43dd8448eb211c80319c-b7ad6b716920333\n-01",
	} {
		if got := headers(taken(bad, "a=1")); len(got) > 0 {
			t.Errorf("%q: %v", bad, got)
		}
	}
	if got := headers(taken("01"+parent[2:]+"-more", "")); got["traceparent"] == "" {
		t.Error("a later version may have more")
	}
	for _, state := range []string{strings.Repeat("a", 513), "a=\r\nb", "a=é"} {
		if got := headers(taken(parent, state)); got["traceparent"] != parent || got["tracestate"] != "" {
			t.Errorf("%q: %v", state, got)
		}
	}
}

// span is somebody who traces.
type span struct{ noted map[string]string }

func (span) Inject(_ context.Context, set func(name, value string)) { set("traceparent", "own") }
func (s span) Note(_ context.Context, name, value string)           { s.noted[name] = value }

func TestWhoTracesSaysWhereItIs(t *testing.T) {
	s := span{map[string]string{}}
	ctx := traced.With(taken(parent, "a=1"), s)
	if got := headers(ctx); !maps.Equal(got, map[string]string{"traceparent": "own"}) {
		t.Error(got)
	}
	traced.Note(ctx, "a", "b")
	traced.Note(ctx, "empty", "")
	if !maps.Equal(s.noted, map[string]string{"a": "b"}) {
		t.Error(s.noted)
	}
}

func FuzzExtract(f *testing.F) {
	f.Add(parent, "a=1")
	f.Add("00-", "\x00")
	f.Fuzz(func(t *testing.T, p, s string) {
		got := headers(taken(p, s))
		if p := got["traceparent"]; p != "" && (len(p) < 55 || strings.ContainsAny(p[:55], "\r\n ")) || strings.ContainsAny(got["tracestate"], "\r\n\x00") {
			t.Errorf("%q", got)
		}
	})
}
