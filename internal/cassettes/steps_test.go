package cassettes_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pawl-dev/pawl/internal/cassettes"
	"github.com/pawl-dev/pawl/message"
)

// told is what a recorded reply of Anthropic's tells of tools that the API ran itself, and of sources.
type told struct{ Inputs, Pages, Quotes []string }

// TestRecordedStepsAreTold reads what Anthropic did with tools of its own apart from the provider, and wants the same from it.
func TestRecordedStepsAreTold(t *testing.T) {
	var all told
	for _, c := range cassettes.All(t) {
		for _, x := range c.Exchanges {
			if x.API() != "anthropic" || outcome(t, x) != "reply" {
				continue
			}
			want, got := tellsOf(replyOf(t, x).Content), told{}
			s := cassettes.Serve(t, []cassettes.Exchange{x})
			r, _, err := ask(t.Context(), open(t, x, s), x.Streamed(), message.NewHistory(hi))
			if err != nil {
				t.Fatal(err)
			}
			for part := range r.Message.Parts() {
				switch part := part.(type) {
				case message.ProviderCall:
					if part.Call == "" || part.Name == "" {
						t.Errorf("%s: a step without its call: %+v", c.Name, part)
					}
					if part.Input != "" {
						got.Inputs = append(got.Inputs, canonical(parsed(part.Input)))
					}
					for _, p := range part.Sources {
						got.Pages = append(got.Pages, p.URL+" "+p.Title)
					}
				case message.Text:
					for _, p := range part.Citations {
						got.Quotes = append(got.Quotes, p.URL+" "+p.Title+" "+p.Quote)
					}
				}
			}
			if d := cmp.Diff(want, got); d != "" {
				t.Errorf("%s (-recorded +told):\n%s", c.Name, d)
			}
			all.Inputs, all.Pages, all.Quotes = append(all.Inputs, got.Inputs...), append(all.Pages, got.Pages...), append(all.Quotes, got.Quotes...)
		}
	}
	if len(all.Inputs) == 0 || len(all.Pages) == 0 || len(all.Quotes) == 0 {
		t.Errorf("the recordings have %d calls, %d pages, %d quotes: one of them proves nothing", len(all.Inputs), len(all.Pages), len(all.Quotes))
	}
}

func parsed(s string) (v any) {
	_ = json.Unmarshal([]byte(s), &v)
	return v
}

func tellsOf(content []any) (out told) {
	for _, b := range content {
		b := member(b)
		switch kind := text(b["type"]); {
		case kind == "server_tool_use", kind == "mcp_tool_use":
			out.Inputs = append(out.Inputs, canonical(b["input"]))
		case strings.HasSuffix(kind, "_tool_result"):
			for _, p := range list(b["content"]) {
				if p := member(p); p["url"] != nil {
					out.Pages = append(out.Pages, text(p["url"])+" "+text(p["title"]))
				}
			}
		}
		for _, q := range list(b["citations"]) {
			q := member(q)
			out.Quotes = append(out.Quotes, text(q["url"])+" "+text(q["title"])+" "+text(q["cited_text"]))
		}
	}
	return out
}
