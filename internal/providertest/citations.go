package providertest

import (
	"testing"

	"github.com/pawl-dev/pawl/message"
	"github.com/pawl-dev/pawl/model"
)

// wantCitation looks for the one citation, and for what it is for.
func wantCitation(t *testing.T, _ Provider, got *model.Response) {
	t.Helper()
	var n int
	for text := range message.Of[message.Text](got.Message) {
		for _, c := range text.Citations {
			n++
			equal(t, "URL", "https://go.dev/dl/", c.URL)
			equal(t, "title", "Downloads — Go", c.Title)
			if c.Start == 0 && c.End == 0 {
				c.End = len(text.Text)
			}
			equal(t, "what it is for", "Go 1.26 is out.", text.Text[c.Start:c.End])
		}
	}
	equal(t, "citations", 1, n)
}
