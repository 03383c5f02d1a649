package cassette

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/pawl-dev/pawl/errdefs"
	"github.com/pawl-dev/pawl/internal/wire"
	"github.com/pawl-dev/pawl/model"
)

// exchange is a model call in a file.
type exchange struct {
	Exchange int          `json:"exchange"`
	Call     string       `json:"call"` // complete or stream
	Request  requestDoc   `json:"request"`
	Stream   []piece      `json:"stream,omitempty"`
	Stopped  bool         `json:"stopped,omitempty"` // the handler ended it with the last piece
	Response *responseDoc `json:"response,omitempty"`
	Error    *errorDoc    `json:"error,omitempty"`
}

// requestDoc says a request as what is new since an earlier one. What is absent is as it was there, or not there at all.
type requestDoc struct {
	After    *prefix           `json:"after,omitempty"`
	System   *json.RawMessage  `json:"system,omitempty"`
	Tools    *json.RawMessage  `json:"tools,omitempty"`
	Messages []json.RawMessage `json:"messages"`
	Settings json.RawMessage   `json:"settings,omitempty"`
	Output   json.RawMessage   `json:"output,omitempty"`
}

// prefix is what a request has in common with an earlier one.
type prefix struct {
	Exchange int    `json:"exchange"`
	Messages int    `json:"messages"` // how many, from the first on
	SHA256   string `json:"sha256"`   // of system, tools and these messages, as they are in this request
}

// piece is a part of a stream.
type piece struct {
	Text      string `json:"text,omitempty"`
	Reasoning string `json:"reasoning,omitempty"`
	Input     string `json:"input,omitempty"`
	Tool      string `json:"tool,omitempty"` // whose input it is
	Call      int    `json:"call,omitempty"`
	// Void is why the request was made again: what came before counts no more.
	Void *errorDoc `json:"void,omitempty"`
}

type responseDoc struct {
	Message json.RawMessage  `json:"message"`
	Usage   model.Usage      `json:"usage"`
	Stop    model.StopReason `json:"stop"`
	Reason  string           `json:"reason,omitempty"`
	Model   string           `json:"model,omitempty"`
	ID      string           `json:"id,omitempty"`
	By      string           `json:"by,omitempty"`
}

// errorDoc is an error. One of a provider has its name.
type errorDoc struct {
	Context    string  `json:"context,omitempty"` // canceled or deadline: the caller's context ended
	Provider   *string `json:"provider,omitempty"`
	Class      string  `json:"class,omitempty"`
	Status     int     `json:"status,omitempty"`
	Code       string  `json:"code,omitempty"`
	Message    string  `json:"message,omitempty"`
	RequestID  string  `json:"request_id,omitempty"`
	RetryAfter string  `json:"retry_after,omitempty"` // as time.Duration writes it
	Cause      string  `json:"cause,omitempty"`
}

type settingsDoc struct {
	MaxTokens        int              `json:"max_tokens,omitempty"`
	Temperature      *float64         `json:"temperature,omitempty"`
	TopP             *float64         `json:"top_p,omitempty"`
	TopK             *int             `json:"top_k,omitempty"`
	Seed             *int64           `json:"seed,omitempty"`
	Stop             []string         `json:"stop,omitempty"`
	ToolChoice       model.ToolChoice `json:"tool_choice,omitempty"`
	FrequencyPenalty *float64         `json:"frequency_penalty,omitempty"`
	PresencePenalty  *float64         `json:"presence_penalty,omitempty"`

	Reasoning     model.ReasoningLevel `json:"reasoning,omitempty"`
	ProviderTools []model.ProviderTool `json:"provider_tools,omitempty"`
}

// asked is a request whose secrets are gone, in the form in which it is compared. Its parts are compact JSON.
type asked struct {
	call                            string
	system, tools, settings, output json.RawMessage // nil: none
	messages                        []json.RawMessage
}

func newAsked(call string, req model.Request, s *scrubber) (*asked, error) {
	a := &asked{call: call}
	if req.System != "" {
		a.system = s.json(wire.AppendString(nil, req.System))
	}
	if len(req.Tools) > 0 {
		b, err := json.Marshal(req.Tools)
		if err != nil {
			return nil, errdefs.Validation.Errorf("cassette: the schema of a tool is not JSON: %w", err)
		}
		a.tools = s.json(b)
	}
	if set := mustSettings(req.Settings); string(set) != "{}" {
		a.settings = s.with(keysOfTools(wire.Get(set, "provider_tools"))).json(set)
	}
	if len(req.Output) > 0 {
		b, ok := wire.AppendCompact(nil, req.Output)
		if !ok {
			return nil, errdefs.Validation.Errorf("cassette: the schema of the output is not JSON")
		}
		a.output = s.json(b)
	}
	a.messages = make([]json.RawMessage, req.Messages.Len())
	for i, m := range req.Messages.All() {
		if a.messages[i] = []byte("null"); !m.IsZero() {
			a.messages[i] = m.Encoded(s, s.message) // each once: a conversation has all that was said in every request
		}
	}
	return a, nil
}

func mustSettings(s model.Settings) []byte {
	return mustJSON(settingsDoc{s.MaxTokens, s.Temperature, s.TopP, s.TopK, s.Seed, s.Stop, s.ToolChoice, s.FrequencyPenalty, s.PresencePenalty, s.Reasoning, s.ProviderTools})
}

// sum is the fingerprint of system, tools and the first n messages.
func (a *asked) sum(n int) string {
	h := sha256.New()
	for _, part := range append([]json.RawMessage{a.system, a.tools}, a.messages[:n]...) {
		fmt.Fprintf(h, "%d ", len(part))
		h.Write(part)
	}
	return hex.EncodeToString(h.Sum(nil))
}

// common is how many messages two requests begin with together.
func (a *asked) common(b *asked) (n int) {
	for n < min(len(a.messages), len(b.messages)) && string(a.messages[n]) == string(b.messages[n]) {
		n++
	}
	return n
}

// after writes a as what is new since one of the earlier requests: the one that it goes on from furthest, of several the last.
func (a *asked) after(earlier []*recorded) requestDoc {
	doc := requestDoc{Messages: a.messages, Settings: a.settings, Output: a.output}
	var from *recorded
	most := 0
	for _, e := range slices.Backward(earlier) {
		if len(e.asked.messages) <= most { // it can't be: mostly the last one is all that this one begins with
			continue
		}
		if n := a.common(e.asked); n > most {
			from, most = e, n
		}
	}
	base := &asked{}
	if from != nil {
		base = from.asked
		doc.After = &prefix{from.n, most, a.sum(most)}
		doc.Messages = a.messages[most:]
	}
	doc.System, doc.Tools = changed(base.system, a.system), changed(base.tools, a.tools)
	return doc
}

// changed gives what is written of a value that was another one before.
func changed(was, is json.RawMessage) *json.RawMessage {
	if string(was) == string(is) {
		return nil
	}
	if is == nil {
		is = json.RawMessage(`""`)
	}
	return &is
}

// recorded is an exchange of a file that is read, or the part of one that is written that later ones refer to.
type recorded struct {
	n     int
	asked *asked
	x     *exchange
	reply *model.Response
	err   error
}

// readExchange undoes what the recorder did.
func readExchange(d document, earlier map[int]*recorded) (*recorded, error) {
	x := &exchange{}
	if err := decode(d.raw, x); err != nil {
		return nil, err
	}
	if x.Call != callComplete && x.Call != callStream {
		return nil, fmt.Errorf("call: %q: want %s or %s", x.Call, callComplete, callStream)
	}
	a := &asked{call: x.Call, settings: x.Request.Settings, output: x.Request.Output}
	if p := x.Request.After; p != nil {
		from := earlier[p.Exchange]
		if from == nil || p.Messages < 0 || p.Messages > len(from.asked.messages) {
			return nil, fmt.Errorf("after: there are no %d messages of an exchange %d before this one", p.Messages, p.Exchange)
		}
		a.system, a.tools = from.asked.system, from.asked.tools
		a.messages = append(a.messages, from.asked.messages[:p.Messages]...)
	}
	replace(&a.system, x.Request.System)
	replace(&a.tools, x.Request.Tools)
	a.messages = append(a.messages, x.Request.Messages...)
	if p := x.Request.After; p != nil && p.SHA256 != a.sum(p.Messages) {
		return nil, fmt.Errorf("after: exchange %d was changed: what this request begins with was recorded as another text: record the file anew", p.Exchange)
	}
	r := &recorded{n: d.number, asked: a, x: x}
	for _, p := range x.Stream {
		if p.Void != nil {
			if _, err := p.Void.restore(); err != nil {
				return nil, fmt.Errorf("stream: void: %w", err)
			}
		}
	}
	if x.Error != nil {
		var err error
		if r.err, err = x.Error.restore(); err != nil {
			return nil, err
		}
	}
	if x.Response != nil {
		r.reply = &model.Response{Usage: x.Response.Usage, Stop: x.Response.Stop, Reason: x.Response.Reason, Model: x.Response.Model, ID: x.Response.ID, By: x.Response.By}
		if err := json.Unmarshal(x.Response.Message, &r.reply.Message); err != nil {
			return nil, fmt.Errorf("response: %w", err)
		}
	}
	switch {
	case r.err != nil && r.reply != nil:
		return nil, errors.New("it has a response and an error")
	case r.err == nil && r.reply == nil && !x.Stopped:
		return nil, errors.New("it has neither a response nor an error")
	}
	return r, nil
}

func replace(into *json.RawMessage, with *json.RawMessage) {
	if with != nil {
		*into = *with
		if string(*with) == `""` {
			*into = nil
		}
	}
}

func (r *recorded) number() int { return r.n }

func (r *recorded) compare(other any) (d difference, same int) {
	b := other.(*asked)
	a := r.asked
	same = a.common(b)
	for _, v := range []struct {
		name string
		a, b json.RawMessage
	}{{"call", quoted(a.call), quoted(b.call)}, {"system", a.system, b.system}, {"tools", a.tools, b.tools}} {
		if d := compare(v.name, v.a, v.b); !d.none() {
			return d, same
		}
	}
	for i := same; i < max(len(a.messages), len(b.messages)); i++ {
		var x, y json.RawMessage
		if i < len(a.messages) {
			x = a.messages[i]
		}
		if i < len(b.messages) {
			y = b.messages[i]
		}
		if d := compare("messages["+strconv.Itoa(i)+"]", x, y); !d.none() {
			return d, same
		}
	}
	if d := compare("settings", a.settings, b.settings); !d.none() {
		return d, same
	}
	return compare("output", a.output, b.output), same
}

func quoted(s string) json.RawMessage { return wire.AppendString(nil, s) }

// newResponseDoc is a reply without its secrets.
func newResponseDoc(r *model.Response, s *scrubber) *responseDoc {
	if r == nil {
		return nil
	}
	return &responseDoc{s.message(r.Message), r.Usage, r.Stop, s.text(r.Reason), s.text(r.Model), s.text(r.ID), s.text(r.By)}
}

// newErrorDoc is an error without its secrets. ended is what the caller's context says; it counts most, the rest is only how it came out.
func newErrorDoc(ended, err error, s *scrubber) *errorDoc {
	var e *model.Error
	switch {
	case errors.Is(ended, context.DeadlineExceeded):
		return &errorDoc{Context: "deadline"}
	case ended != nil:
		return &errorDoc{Context: "canceled"}
	case !errors.As(err, &e):
		doc := &errorDoc{Message: s.text(err.Error())}
		if c := errdefs.Of(err); c != nil {
			doc.Class = c.Error()
		}
		return doc
	}
	provider := s.text(e.Provider)
	doc := &errorDoc{Provider: &provider, Status: e.Status, Code: s.text(e.Code), Message: s.text(e.Message), RequestID: s.text(e.RequestID)}
	if e.Kind != nil {
		doc.Class = e.Kind.Error()
	}
	if e.RetryAfter != 0 {
		doc.RetryAfter = e.RetryAfter.String()
	}
	if e.Err != nil {
		doc.Cause = s.text(e.Err.Error())
	}
	return doc
}

// restore gives the error that was recorded.
func (d *errorDoc) restore() (is, wrong error) {
	switch d.Context {
	case "canceled":
		return context.Canceled, nil
	case "deadline":
		return context.DeadlineExceeded, nil
	case "":
	default:
		return nil, fmt.Errorf("error: context: %q: want canceled or deadline", d.Context)
	}
	class := errdefs.Named(d.Class)
	if class == nil && d.Class != "" {
		return nil, fmt.Errorf("error: there is no class %q", d.Class)
	}
	if d.Provider == nil && class == nil {
		return errors.New(d.Message), nil
	}
	if d.Provider == nil {
		return class.Errorf("%s", d.Message), nil
	}
	e := &model.Error{Provider: *d.Provider, Kind: class, Status: d.Status, Code: d.Code, Message: d.Message, RequestID: d.RequestID}
	if d.RetryAfter != "" {
		var err error
		if e.RetryAfter, err = time.ParseDuration(d.RetryAfter); err != nil {
			return nil, fmt.Errorf("error: retry_after: %w", err)
		}
	}
	if d.Cause != "" {
		e.Err = errors.New(d.Cause)
	}
	return e, nil
}
