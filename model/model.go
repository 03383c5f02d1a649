package model

import (
	"context"
	"encoding/json"
	"time"

	"github.com/pawl-dev/pawl/message"
)

// Model is a language model. Implementations are safe for concurrent use and hold no conversation.
type Model interface {
	// Complete gives the whole reply. Failures of the provider are an [*Error] with a class of errdefs.
	Complete(ctx context.Context, req Request) (*Response, error)
	// CompleteStream calls cb with each piece, on the caller's goroutine, and last with Final and the whole Response. An error
	// from cb ends the stream and is returned as it is. A stream that ends without its terminal event is an error. A model that
	// can't stream calls cb once, with Final.
	CompleteStream(ctx context.Context, req Request, cb StreamHandler) error
}

// StreamHandler receives a stream. It is called by one goroutine at a time.
type StreamHandler func(StreamResult) error

// StreamResult is one piece of a stream, passed by value: a delta costs no allocation beyond its text. Strings may be kept.
type StreamResult struct {
	Text      string // more text
	Reasoning string // more reasoning
	Input     string // more of the input of a tool call, as the model writes it: JSON, once all of it is there. A provider that doesn't send it in pieces gives it in one, or not at all
	Tool      string // with Input: the tool's name
	Call      int    // with Input: which of the reply's calls it is, from 0
	Final     bool
	Response  *Response // with Final: the whole reply, all that was streamed included
	// Void says that the request is made again, and why. It comes alone, from wrappers only, before they wait. All that came before counts no
	// more. Words are behind it only when whoever made the wrapper allowed that words are taken back.
	Void error
	// Held says that the request is not sent yet, since a limit on this side holds it back. It comes alone, from wrappers only, once that takes more than a second; the
	// next piece, if only an empty one, says that it is sent.
	Held bool
	Wait time.Duration // with Void: how long they wait; 0: they don't, or can't tell. With Held: how long still, as things stand; 0: nobody knows
}

// Request is one call. It holds references only; building it costs the same at any length of history.
type Request struct {
	System   string // the system prompt; "" for none
	Messages message.History
	Tools    []Tool // in a stable order, because it is part of the cached prefix; read-only
	Settings
	Output json.RawMessage // JSON Schema of the reply; nil: free text
	// CacheKey names the conversation for a provider's prompt cache; "" says nothing. Requests with the same key share their beginning: each begins, in tools, system prompt
	// and messages, with the one before it, or is the beginning of that. It is made of names, never of what is said. A test's models hold requests to it (scripted.Model), and
	// providers that route by such a key are given its hash.
	CacheKey string
}

// Tool is what a model is told of a tool.
type Tool struct {
	Name        string          `json:"name"` // 1 to 64 of a-z, A-Z, 0-9, _ and -
	Description string          `json:"description,omitempty"`
	Schema      json.RawMessage `json:"schema"` // JSON Schema of the input, an object
}

// Response is a whole reply.
type Response struct {
	Message message.Message
	Usage   Usage
	Stop    StopReason
	Reason  string // the provider's own words for a refusal or a block; "" mostly
	Model   string // the name that answered, as the provider gives it
	By      string // the name of who answered, as in [Capabilities], where a wrapper chose among several models; "" from a provider
	ID      string // the provider's id of the reply, for support; "" if it has none
	Rate    Rate   // what the provider says of the key's limits; of this moment, so that it is in no journal and no cassette
}

// StopReason says why a reply ended. A reason that a provider invents later is kept in its own words.
type StopReason string

// The stop reasons.
const (
	StopEnd      StopReason = "end_turn"
	StopTools    StopReason = "tool_use"
	StopLength   StopReason = "max_tokens" // the output limit cut it off: the last call may be half written
	StopSequence StopReason = "stop_sequence"
	StopPause    StopReason = "pause_turn" // the provider wants the reply sent back, to go on with its own tools
	StopRefusal  StopReason = "refusal"
	StopFilter   StopReason = "content_filter"
	StopWindow   StopReason = "context_window" // the context window is full
	StopBadCall  StopReason = "malformed_call" // the provider could not parse the model's call, and dropped it
)

// Usage counts tokens. The four kinds don't overlap: Input has no cached tokens. Reasoning is a part of Output.
type Usage struct {
	Input      int `json:"input_tokens"`
	Output     int `json:"output_tokens"`
	CacheRead  int `json:"cache_read_tokens"`
	CacheWrite int `json:"cache_write_tokens"`
	Reasoning  int `json:"reasoning_tokens"`
}

// Add gives the sum.
func (u Usage) Add(v Usage) Usage {
	return Usage{u.Input + v.Input, u.Output + v.Output, u.CacheRead + v.CacheRead, u.CacheWrite + v.CacheWrite, u.Reasoning + v.Reasoning}
}

// Total is all tokens that went in and out, cached or not.
func (u Usage) Total() int { return u.Input + u.CacheRead + u.CacheWrite + u.Output }

// Context is what the conversation takes of the model's window after this call.
func (u Usage) Context() int { return u.Total() }
