package openai

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"strconv"

	"github.com/pawl-dev/pawl/internal/boxed"
	"github.com/pawl-dev/pawl/internal/httpapi"
	"github.com/pawl-dev/pawl/internal/wire"
	"github.com/pawl-dev/pawl/message"
	"github.com/pawl-dev/pawl/model"
)

// head is the part of a body before its messages, with what it was made of. Steps of one run share it.
type head struct {
	stream   bool
	system   string
	tools    *model.Tool // identity of the slice; kept alive by this
	count    int
	settings model.Settings
	output   json.RawMessage
	bytes    []byte
}

// body is a request's body: the head, the messages' own bytes and the end. But for a new head and messages that were never sent
// before, it costs one slice of pieces.
func (c *client) body(
	req *model.Request, stream bool,
	begin func(dst []byte, req *model.Request, stream bool) []byte,
	format any, encode func(message.Message) []byte,
) httpapi.Body {
	h := c.last.Load()
	if h == nil || !h.fits(req, stream) {
		h = newHead(req, stream)
		own := *req // which is on the heap, and req need not be
		h.bytes = begin(nil, &own, stream)
		c.last.Store(h)
	}
	return c.join(h.bytes, req, format, encode)
}

// join puts a body together of a head and the messages' own bytes.
func (c *client) join(head []byte, req *model.Request, format any, encode func(message.Message) []byte) httpapi.Body {
	n := req.Messages.Len()
	body := req.Messages.Encoded(append(httpapi.Room(n), head), 0, n, format, encode)
	if head[len(head)-1] == '[' && len(body) > 1 {
		body[1] = body[1][1:] // the comma
	}
	return append(body, c.end(req.CacheKey))
}

var end = []byte("]}")

// tail is the end of bodies with a cache key.
type tail struct {
	key   string
	bytes []byte
}

// end is what stands behind the messages. A cache key goes as its hash: the API takes 64 characters, and the names in it are nobody's business. It is made once for the steps of a run.
func (c *client) end(key string) []byte {
	if key == "" || !c.routes {
		return end
	}
	t := c.tail.Load()
	if t == nil || t.key != key {
		sum := sha256.Sum256([]byte(key))
		t = &tail{key, append(hex.AppendEncode([]byte(`],"prompt_cache_key":"`), sum[:]), `"}`...)}
		c.tail.Store(t)
	}
	return t.bytes
}

func newHead(req *model.Request, stream bool) *head {
	return &head{
		stream: stream, system: req.System, tools: first(req.Tools), count: len(req.Tools), settings: req.Clone(), output: bytes.Clone(req.Output),
	}
}

func (h *head) fits(req *model.Request, stream bool) bool {
	return h.stream == stream && h.tools == first(req.Tools) && h.count == len(req.Tools) && h.system == req.System &&
		h.settings.Equal(req.Settings) && bytes.Equal(h.output, req.Output)
}

func first(tools []model.Tool) *model.Tool {
	if len(tools) == 0 {
		return nil
	}
	return &tools[0]
}

// appendSampling appends the settings that have the same names in both protocols.
func appendSampling(dst []byte, s *model.Settings) []byte {
	if s.Temperature != nil {
		dst = strconv.AppendFloat(append(dst, `,"temperature":`...), *s.Temperature, 'g', -1, 64)
	}
	if s.TopP != nil {
		dst = strconv.AppendFloat(append(dst, `,"top_p":`...), *s.TopP, 'g', -1, 64)
	}
	return dst
}

// appendFunction appends the members that tell of a tool, which both protocols share.
func appendFunction(dst []byte, t model.Tool) []byte {
	dst = wire.AppendString(append(dst, `"name":`...), t.Name)
	if t.Description != "" {
		dst = wire.AppendString(append(dst, `,"description":`...), t.Description)
	}
	dst = append(dst, `,"parameters":`...)
	with, ok := wire.AppendCompact(dst, t.Schema)
	if !ok {
		return append(dst, `{"type":"object","properties":{}}`...) // a tool without input
	}
	return with
}

// appendSchema appends the members that ask for a reply that follows a JSON Schema. It is strict where the schema allows that:
// the provider refuses to be strict with any other.
func appendSchema(dst []byte, schema json.RawMessage) []byte {
	schema, _ = boxed.Schema(schema)
	dst = strconv.AppendBool(append(dst, `"name":"output","strict":`...), strictSchema(schema))
	dst, _ = wire.AppendCompact(append(dst, `,"schema":`...), schema)
	return dst
}

// appendArray appends an array as a further member of an object; nothing for an empty one.
func appendArray[T any](dst []byte, name string, list []T, element func(dst []byte, v T) []byte) []byte {
	if len(list) == 0 {
		return dst
	}
	dst = append(wire.AppendString(append(dst, ','), name), ":["...)
	for i, v := range list {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = element(dst, v)
	}
	return append(dst, ']')
}
