package openai

import (
	"unicode/utf8"

	"github.com/pawl-dev/pawl/internal/wire"
	"github.com/pawl-dev/pawl/message"
)

// citations reads the annotations of a text, which may come in several lists. In Chat Completions an annotation has what it says in a member named
// like its type, in Responses beside it.
func citations(text string, lists ...[]byte) (found []message.Citation) {
	var at characters
	for _, list := range lists {
		for e := wire.Array(list); e.Next(); {
			if at.text == "" {
				at.text = text
			}
			data := e.Value
			if inner := wire.Get(data, "url_citation"); inner != nil {
				data = inner
			}
			if c := citation(data, &at); c != (message.Citation{}) {
				found = append(found, c)
			}
		}
	}
	return found
}

// citation reads an annotation: url_citation, file_citation, container_file_citation, file_path, and what comes later. One that says where it belongs
// only by a single index is for the whole text.
func citation(data []byte, at *characters) message.Citation {
	var c message.Citation
	var id string
	start, end := int64(0), int64(0)
	for o := wire.Object(data); o.Next(); {
		switch string(o.Key) {
		case "url":
			c.URL = wire.String(o.Value)
		case "title", "filename":
			c.Title = wire.String(o.Value)
		case "content": // OpenRouter
			c.Quote = wire.String(o.Value)
		case "file_id":
			id = wire.String(o.Value)
		case "start_index":
			start = wire.Int(o.Value)
		case "end_index":
			end = wire.Int(o.Value)
		}
	}
	if c.Title == "" && c.URL == "" {
		c.Title = id
	}
	if c != (message.Citation{}) && max(start, 0) < end {
		if c.Start, c.End = at.byte(start), at.byte(end); c.Start == c.End {
			c.Start, c.End = 0, 0 // behind the text
		}
	}
	return c
}

// characters finds the bytes of a text's characters, which the protocols count: Unicode code points, as Python does. It remembers where every 256th begins, so
// that many annotations of a long text take no longer than they have to.
type characters struct {
	text  string
	every []int // the byte where character 256×i begins
}

// byte gives where character n begins, the end of the text if it has no such.
func (c *characters) byte(n int64) int {
	if n <= 0 || c.text == "" {
		return 0
	}
	if n >= int64(len(c.text)) {
		return len(c.text)
	}
	if c.every == nil {
		i := 0
		for at := range c.text {
			if i%256 == 0 {
				c.every = append(c.every, at)
			}
			i++
		}
	}
	if n/256 >= int64(len(c.every)) {
		return len(c.text)
	}
	at := c.every[n/256]
	for range n % 256 {
		if at == len(c.text) {
			break
		}
		_, size := utf8.DecodeRuneInString(c.text[at:])
		at += size
	}
	return at
}
