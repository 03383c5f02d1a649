package anthropic

import (
	"strings"

	"github.com/pawl-dev/pawl/internal/wire"
	"github.com/pawl-dev/pawl/message"
)

// cited reads the sources of a text for readers. The API gives each text that rests on something a block of its own, so a source is for all of the text; where
// in a document it stands is told by the text's Extra alone.
func cited(list []byte) (out []message.Citation) {
	for e := wire.Array(list); e.Next(); {
		var c message.Citation
		for m := wire.Object(e.Value); m.Next(); {
			switch string(m.Key) {
			case "url":
				c.URL = wire.String(m.Value)
			case "source": // of a search result that the caller gave: an address, or any other name
				if s := wire.String(m.Value); strings.Contains(s, "://") {
					c.URL = s
				} else if c.Title == "" {
					c.Title = s
				}
			case "title", "document_title":
				if s := wire.String(m.Value); s != "" {
					c.Title = s
				}
			case "cited_text":
				c.Quote = wire.String(m.Value)
			}
		}
		if c != (message.Citation{}) {
			out = append(out, c)
		}
	}
	return out
}
