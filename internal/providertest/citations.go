package providertest

import (
	"testing"

	"github.com/pawl-dev/pawl/message"
	"github.com/pawl-dev/pawl/model"
)

const citedText = "Grüße 👋! Pawl holds."

// wantCitations checks that the one source is told, and which bytes of the text it is for.
func wantCitations(t *testing.T, p Provider, got *model.Response) {
	t.Helper()
	n := 0
	for text := range message.Of[message.Text](got.Message) {
		for _, c := range text.Citations {
			n++
			end := c.End
			if c.Start == 0 && c.End == 0 {
				end = len(text.Text)
			}
			if c.Start < 0 || c.Start > end || end > len(text.Text) {
				t.Fatalf("bytes %d to %d of %q", c.Start, c.End, text.Text)
			}
			equal(t, "the text that it is for", "Pawl holds.", text.Text[c.Start:end])
			want := message.Citation{URL: "https://example.com/pawl", Title: "Pawl", Quote: "A pawl holds.", Start: c.Start, End: c.End}
			if p.lacks("quote") {
				want.Quote = ""
			}
			equal(t, "citation", want, c)
		}
	}
	equal(t, "citations", 1, n)
}
