package chat

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/pawl-dev/pawl/errdefs"
	"github.com/pawl-dev/pawl/message"
	"github.com/pawl-dev/pawl/serve/internal/web"
)

// Request is what a client asks for.
type Request struct {
	Model        string
	User         string          // whose run it is
	Session      string          // that metadata names; "": none
	Stream       bool            // the answer comes in chunks
	IncludeUsage bool            // the last of which says what it took
	System       string          // what system and developer messages say
	History      message.History // what stands before Message
	Message      message.Message // the newest, the user's
}

// ParamError is an error of a request that one of its parameters is the cause of. Its class is errdefs.Validation, or what Err has.
type ParamError struct {
	Param, Code string
	Err         error
}

// Error is the cause.
func (e *ParamError) Error() string { return e.Err.Error() }

// Unwrap gives it.
func (e *ParamError) Unwrap() error { return e.Err }

// at says of an error which parameter it is of. One that says so itself stays.
func at(name string, err error) error {
	if p, ok := errors.AsType[*ParamError](err); ok {
		return p
	}
	code := "invalid_value"
	switch {
	case errors.As(err, new(kindError)):
		code = "invalid_type"
	case errors.As(err, new(unsupportedError)):
		code = "unsupported_parameter"
	}
	return &ParamError{name, code, errdefs.Validation.Errorf("serve: %s: %w", name, err)}
}

// param reads a parameter's value into a request.
type param struct {
	read   func(*Request, json.RawMessage) error
	effect bool // it changes something
}

// params are those that are known. What an agent samples with is its own, as its model is: clients that send such settings with each request get their answers all the same.
var params = map[string]param{
	"model":          {text(func(r *Request) *string { return &r.Model }), true},
	"messages":       {(*Request).messages, true},
	"stream":         {flag(func(r *Request) *bool { return &r.Stream }), true},
	"stream_options": {streamOptions, true},
	"user":           {text(func(r *Request) *string { return &r.User }), true},
	"metadata":       {metadata, true},

	"temperature": {number, false}, "top_p": {number, false}, "top_k": {number, false}, "min_p": {number, false}, "seed": {number, false},
	"frequency_penalty": {number, false}, "presence_penalty": {number, false}, "repetition_penalty": {number, false},
	"max_tokens": {number, false}, "max_completion_tokens": {number, false},
	"reasoning_effort": {word, false}, "verbosity": {word, false}, "service_tier": {word, false}, "prompt_cache_key": {word, false}, "prompt_cache_retention": {word, false}, "safety_identifier": {word, false},
	"store": {flag(func(*Request) *bool { return new(bool) }), false}, "parallel_tool_calls": {flag(func(*Request) *bool { return new(bool) }), false},

	"n": {only("one answer is given", `1`), false}, "tools": {only("the agent has its own tools, and calls them itself", `[]`), false}, "functions": {only("the agent has its own tools, and calls them itself", `[]`), false},
	"tool_choice": {only("the agent has its own tools, and calls them itself", `"auto"`, `"none"`), false}, "function_call": {only("the agent has its own tools, and calls them itself", `"auto"`, `"none"`), false},
	"response_format": {only("the answer is text", `{"type":"text"}`), false}, "modalities": {only("the answer is text", `["text"]`), false}, "audio": {only("the answer is text"), false},
	"logprobs": {only("they are not known", `false`), false}, "top_logprobs": {only("they are not known", `0`), false}, "logit_bias": {only("it can't be set", `{}`), false},
	"stop": {only("it can't be set", `[]`, `""`), false}, "prediction": {only("it can't be used"), false}, "web_search_options": {only("the agent searches with its own tools"), false},
}

// Parse reads a request. A parameter that is not known, or asks for what can't be had, is a ParamError.
func Parse(b []byte) (r Request, err error) {
	members, err := object(b)
	if err != nil {
		return r, errdefs.Validation.Errorf("serve: the request can't be read: %w", err)
	}
	for _, name := range slices.Sorted(maps.Keys(members)) {
		p, known := params[name]
		if !known {
			return r, &ParamError{name, "unknown_parameter", errdefs.Validation.Errorf("serve: %s: there is no such parameter", name)}
		}
		if v := members[name]; string(v) != "null" {
			if err := p.read(&r, v); err != nil {
				return r, at(name, err)
			}
		}
	}
	if r.Model == "" {
		return r, &ParamError{"model", "missing_required_parameter", errdefs.Validation.Errorf("serve: model: name the agent: see /v1/models")}
	}
	if r.Message.IsZero() {
		return r, &ParamError{"messages", "missing_required_parameter", errdefs.Validation.Errorf("serve: messages: there is none")}
	}
	return r, nil
}

// object reads the members of a JSON object. Names stand for themselves, and once.
func object(b []byte) (map[string]json.RawMessage, error) {
	d := json.NewDecoder(bytes.NewReader(b))
	if t, err := d.Token(); err != nil {
		return nil, err
	} else if t != json.Delim('{') {
		return nil, errdefs.Validation.Errorf("it is no JSON object")
	}
	members := map[string]json.RawMessage{}
	for d.More() {
		t, err := d.Token()
		if err != nil {
			return nil, err
		}
		name, _ := t.(string)
		if _, twice := members[name]; twice {
			return nil, errdefs.Validation.Errorf("%q is there twice", name)
		}
		var v json.RawMessage
		if err := d.Decode(&v); err != nil {
			return nil, err
		}
		members[name] = v
	}
	if _, err := d.Token(); err != nil {
		return nil, err
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return nil, errdefs.Validation.Errorf("something stands behind the object")
	}
	return members, nil
}

func nameOf(v json.RawMessage) string {
	for name, p := range map[byte]string{'"': "a text", '{': "an object", '[': "a list", 't': "true", 'f': "false"} {
		if len(v) > 0 && v[0] == name {
			return p
		}
	}
	return "a number"
}

// The readers are told no names: errors get theirs from where they are called.
func text(of func(*Request) *string) func(*Request, json.RawMessage) error {
	return func(r *Request, v json.RawMessage) error {
		if json.Unmarshal(v, of(r)) != nil {
			return kind(v, "a text")
		}
		return nil
	}
}

func flag(of func(*Request) *bool) func(*Request, json.RawMessage) error {
	return func(r *Request, v json.RawMessage) error {
		if json.Unmarshal(v, of(r)) != nil {
			return kind(v, "true or false")
		}
		return nil
	}
}

func number(_ *Request, v json.RawMessage) error {
	if json.Unmarshal(v, new(float64)) != nil {
		return kind(v, "a number")
	}
	return nil
}

func word(_ *Request, v json.RawMessage) error {
	if json.Unmarshal(v, new(string)) != nil {
		return kind(v, "a text")
	}
	return nil
}

// kindError is a value of a wrong type.
type kindError struct{ got, want string }

func (e kindError) Error() string { return "it is " + e.got + ": want " + e.want }

func kind(v json.RawMessage, want string) error { return kindError{nameOf(v), want} }

// only takes null and some values; why is told for another one.
func only(why string, values ...string) func(*Request, json.RawMessage) error {
	return func(_ *Request, v json.RawMessage) error {
		var b bytes.Buffer
		if json.Compact(&b, v) == nil && slices.Contains(values, b.String()) {
			return nil
		}
		want := "leave it out"
		if len(values) > 0 {
			want = "leave it out, or say " + strings.Join(values, " or ")
		}
		return unsupportedError{why + ": " + want}
	}
}

type unsupportedError struct{ why string }

func (e unsupportedError) Error() string { return e.why }

func streamOptions(r *Request, v json.RawMessage) error {
	var o struct {
		Usage       bool `json:"include_usage"`
		Obfuscation bool `json:"include_obfuscation"` // chunks are of the size that they are
	}
	if err := web.Decode(v, &o); err != nil {
		return err
	}
	r.IncludeUsage = o.Usage
	return nil
}

func metadata(r *Request, v json.RawMessage) error {
	var members map[string]json.RawMessage
	if json.Unmarshal(v, &members) != nil {
		return kind(v, "an object of texts")
	}
	for name, v := range members {
		var text string
		if json.Unmarshal(v, &text) != nil {
			return kindError{fmt.Sprintf("an object in which %.80q is %s", name, nameOf(v)), "texts in it"}
		}
		if name == "session" {
			r.Session = text
		}
	}
	return nil
}
