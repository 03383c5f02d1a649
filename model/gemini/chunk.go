package gemini

import "github.com/pawl-dev/pawl/internal/wire"

// chunk is what a GenerateContentResponse has for us, in place.
type chunk struct {
	feedback, failure, usage, model, id []byte
	candidate
}

// candidate is the one that was asked for.
type candidate struct {
	index, finish, note         []byte
	grounding, fetched, recited []byte
	parts                       []wirePart
}

// wirePart is a part as it lies on the wire: raw values, nil when absent.
type wirePart struct {
	all                []byte // the part itself
	text, signature    []byte
	call, inline, file []byte
	thought            bool
	rest               bool // has members that are none of these
	unknown            bool // and at least one of them is not known to go with others
}

// read reads a chunk in one pass. It takes the room that the chunk before took.
func (c *chunk) read(data []byte) error {
	*c = chunk{candidate: candidate{parts: c.parts[:0]}}
	r := wire.Read(data)
	for key := range r.Object {
		switch string(key) {
		case "candidates":
			found := false
			for range r.Array {
				if found { // we ask for one; a gateway's default may be more
					continue
				}
				c.candidate = candidate{parts: c.parts[:0]}
				c.candidate.read(data, &r)
				found = wire.Int(c.index) == 0
			}
			if !found {
				c.candidate = candidate{parts: c.parts[:0]}
			}
		case "promptFeedback":
			c.feedback = r.Value()
		case "usageMetadata":
			c.usage = r.Value()
		case "modelVersion":
			c.model = r.Value()
		case "responseId":
			c.id = r.Value()
		case "error":
			c.failure = r.Value()
		}
	}
	return r.Err()
}

func (c *candidate) read(data []byte, r *wire.Reader) {
	for key := range r.Object {
		switch string(key) {
		case "index":
			c.index = r.Value()
		case "content":
			for key := range r.Object {
				if string(key) == "parts" {
					c.parts = c.parts[:0]
					for range r.Array {
						c.parts = append(c.parts, readPart(data, r))
					}
				}
			}
		case "finishReason":
			c.finish = r.Value()
		case "finishMessage":
			c.note = r.Value()
		case "groundingMetadata":
			c.grounding = r.Value()
		case "urlContextMetadata":
			c.fetched = r.Value()
		case "citationMetadata":
			c.recited = r.Value()
		}
	}
}

func readPart(data []byte, r *wire.Reader) (p wirePart) {
	from := r.Offset()
	for key := range r.Object {
		switch string(key) {
		case "text":
			p.text = r.Value()
		case "thought":
			p.thought = wire.Bool(r.Value())
		case "thoughtSignature":
			p.signature = r.Value()
		case "functionCall":
			p.call = r.Value()
		case "inlineData":
			p.inline = r.Value()
		case "fileData":
			p.file = r.Value()
		case "partMetadata":
			p.rest = true
		default:
			p.rest, p.unknown = true, true
		}
	}
	if r.Offset() == from { // it is no object
		r.Value()
	}
	p.all = data[from:r.Offset()]
	return p
}
