package gemini

import (
	"strconv"

	"github.com/pawl-dev/pawl/internal/wire"
	"github.com/pawl-dev/pawl/message"
	"github.com/pawl-dev/pawl/model"
)

// stepOf tells a part that says what the API did with a tool of its own.
func stepOf(o message.Opaque, data []byte) (step message.ProviderCall, ok bool) {
	step.Opaque = o
	for m := wire.Object(data); m.Next(); {
		if m.Value[0] != '{' {
			continue
		}
		switch string(m.Key) {
		case "executableCode":
			step.Name, step.Input = model.CodeExecution, wire.String(wire.Get(m.Value, "code"))
		case "codeExecutionResult":
			step.Name, step.Output = model.CodeExecution, wire.String(wire.Get(m.Value, "output"))
			step.IsError = wire.String(wire.Get(m.Value, "outcome")) != "OUTCOME_OK"
			if step.IsError && step.Output == "" {
				step.Output = wire.String(wire.Get(m.Value, "outcome"))
			}
		case "toolCall":
			step.Name, step.Input = toolOf(m.Value), string(wire.Get(m.Value, "args"))
		case "toolResponse":
			step.Name = toolOf(m.Value) // what it found is told as citations, and is long
		default:
			continue
		}
		step.Call, ok = wire.String(wire.Get(m.Value, "id")), true
	}
	return step, ok
}

// toolOf is the name of a tool of the API's by its toolType.
func toolOf(call []byte) string {
	switch kind := wire.String(wire.Get(call, "toolType")); kind {
	case "GOOGLE_SEARCH_WEB", "GOOGLE_SEARCH_IMAGE":
		return model.WebSearch
	case "URL_CONTEXT":
		return model.WebFetch
	case "GOOGLE_MAPS":
		return "google_maps"
	case "FILE_SEARCH":
		return "file_search"
	default:
		return kind
	}
}

// grounding is what a candidate says of searches and of sources, beside its parts: nothing of it goes back to the API.
type grounding struct {
	queries  []byte // a list of texts
	chunks   []message.Citation
	supports []support
	pages    []message.Citation // that were fetched
	cited    []support          // of texts that are somebody's
}

// support says that a piece of the text rests on some chunks.
type support struct {
	said       string // the piece, where it is told
	start, end int    // in bytes
	chunks     []int
	source     message.Citation // in place of chunks
}

// maxSupports bounds the search for pieces in texts. Replies have some dozens.
const maxSupports = 1000

// ground reads groundingMetadata. In a stream the last one says all.
func (g *grounding) ground(data []byte) {
	for m := wire.Object(data); m.Next(); {
		switch string(m.Key) {
		case "webSearchQueries":
			if m.Value[0] == '[' && string(m.Value) != "[]" {
				g.queries, _ = wire.AppendCompact(nil, m.Value)
			}
		case "groundingChunks":
			g.chunks = nil
			for c := wire.Array(m.Value); c.Next(); {
				g.chunks = append(g.chunks, chunkOf(c.Value))
			}
		case "groundingSupports":
			g.supports = nil
			for s := wire.Array(m.Value); s.Next() && len(g.supports) < maxSupports; {
				segment := wire.Get(s.Value, "segment")
				one := support{said: wire.String(wire.Get(segment, "text")), start: int(wire.Int(wire.Get(segment, "startIndex"))), end: int(wire.Int(wire.Get(segment, "endIndex")))}
				for i := wire.Array(wire.Get(s.Value, "groundingChunkIndices")); i.Next(); {
					if n, err := strconv.Atoi(string(i.Value)); err == nil {
						one.chunks = append(one.chunks, n)
					}
				}
				g.supports = append(g.supports, one)
			}
		}
	}
}

// chunkOf reads a source: a page, a place, or a piece of a file.
func chunkOf(data []byte) (c message.Citation) {
	for m := wire.Object(data); m.Next(); {
		switch string(m.Key) {
		case "web", "maps", "retrievedContext", "image":
			c = message.Citation{URL: wire.String(wire.Get(m.Value, "uri")), Title: wire.String(wire.Get(m.Value, "title"))}
			if string(m.Key) == "retrievedContext" {
				c.Quote = wire.String(wire.Get(m.Value, "text"))
			}
		}
	}
	return c
}

// fetched reads urlContextMetadata.
func (g *grounding) fetched(data []byte) {
	g.pages = nil
	for u := wire.Array(wire.Get(data, "urlMetadata")); u.Next(); {
		if at := wire.String(wire.Get(u.Value, "retrievedUrl")); at != "" {
			g.pages = append(g.pages, message.Citation{URL: at})
		}
	}
}

// recited reads citationMetadata: pieces that are somebody's text.
func (g *grounding) recited(data []byte) {
	list := wire.Get(data, "citationSources")
	if list == nil {
		list = wire.Get(data, "citations")
	}
	g.cited = nil
	for s := wire.Array(list); s.Next() && len(g.cited) < maxSupports; {
		c := message.Citation{URL: wire.String(wire.Get(s.Value, "uri")), Title: wire.String(wire.Get(s.Value, "title"))}
		if c == (message.Citation{}) {
			continue
		}
		g.cited = append(g.cited, support{start: int(wire.Int(wire.Get(s.Value, "startIndex"))), end: int(wire.Int(wire.Get(s.Value, "endIndex"))), source: c})
	}
}
