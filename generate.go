package pawl

import (
	"context"
	"fmt"
	"iter"
	"strings"

	"github.com/pawl-dev/pawl/agent"
	"github.com/pawl-dev/pawl/engine"
	"github.com/pawl-dev/pawl/engine/loop"
	"github.com/pawl-dev/pawl/errdefs"
	"github.com/pawl-dev/pawl/hook"
	"github.com/pawl-dev/pawl/internal/exact"
	"github.com/pawl-dev/pawl/internal/overheard"
	"github.com/pawl-dev/pawl/internal/wire"
	"github.com/pawl-dev/pawl/journal"
	"github.com/pawl-dev/pawl/message"
	"github.com/pawl-dev/pawl/model"
	"github.com/pawl-dev/pawl/tool"
)

// Generate asks a model for a T: a struct, a slice, a string, whatever encoding/json reads. The model is held to the type's JSON Schema (tool.SchemaOf) by its provider's own mode, or else by a tool; the answer is checked, by the schema and by whether T
// reads it, and sent back twice at most with what is wrong of it. The tag jsonschema describes a field; a field is required unless it is a pointer or tagged omitempty. A prompt costs one model call, and one more for each time that it is sent back.
//
// The zero T comes with any error: Validation where no answer fitted, or T has no schema; Truncated where the answer was cut off at the output limit and what the model went on with, in three more calls at most, did not complete it; Refused where the model refused; what the model failed with; what the options' budget or timeout says.
// Nothing is kept, unless an option says where (agent.WithJournal). Calls may run at the same time, with one model too.
func Generate[T any](ctx context.Context, m model.Model, prompt string, opts ...agent.RunOption) (T, error) {
	return generate[T](ctx, m, nil, prompt, opts)
}

// GenerateStream is [Generate] that gives what there is of the value while the model writes it. Each value is one that T reads of the JSON so far: a text that is being written is there as far as it goes; a list, an object and its members are there once
// they have begun, and what has not begun has its zero value; a number or boolean is there once it is whole. The last value is the answer, checked, and the same that Generate gives. The last pair has the error, if there is one, with the zero T; there is
// no further pair then.
//
//	for v, err := range pawl.GenerateStream[T](ctx, m, prompt) {
//
// From one value to the next nothing goes back, unless the answer does: when it is sent back because it does not fit, and when a wrapper of the model begins a request anew (model.StreamResult.Void), the next value begins with nothing. Values before the last one
// are not checked, and a required field may be missing. An answer that is no JSON, in a code fence for instance, has no values before it has been sent back; nor are there any while T does not read what there is, as with half a time in a time.Time.
// A model that answers by a tool needs a provider that streams the input of calls, as ours do, but for Gemini, which has a mode of its own.
//
// It runs in the ranging goroutine, and ending the loop cancels it. Each value is the caller's own. The text is scanned once; a value costs as much as decoding what there is, so values come when something has changed and the text has grown by 1/64 since the one
// before: all of them together cost less than decoding the answer 70 times, however long it is.
func GenerateStream[T any](ctx context.Context, m model.Model, prompt string, opts ...agent.RunOption) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		ctx, cancel := context.WithCancel(ctx)
		defer cancel()
		w := writing[T]{yield: yield, open: true, stop: cancel}
		v, err := generate[T](ctx, m, []model.Middleware{overheard.Streams(w.begin, w.hear)}, prompt, opts)
		if w.broken != nil {
			panic(w.broken)
		}
		if w.open {
			yield(v, err)
		}
	}
}

func generate[T any](ctx context.Context, m model.Model, around []model.Middleware, prompt string, opts []agent.RunOption) (T, error) {
	var zero T
	schema, err := tool.SchemaOf[T]()
	if err != nil {
		return zero, err
	}
	// What the schema can't say, such as what a time is, or the largest int, is asked of T.
	reads := hook.Middleware{Name: "reads", PostGeneration: func(_ context.Context, g *hook.Generation) error {
		if _, err := read[T]([]byte(engine.Answer(g.Output))); err != nil {
			g.Again(loop.Misfit(err.Error()))
		}
		return nil
	}}
	eng, err := loop.New(loop.Config{Model: m, Output: schema, Middleware: around, Hooks: []hook.Middleware{reads}})
	if err != nil {
		return zero, err
	}
	opts = append([]agent.RunOption{agent.WithJournal(journal.Memory())}, opts...)
	res, err := agent.Run(ctx, agent.Agent{ID: "generate"}, eng, agent.Request{Message: message.User(prompt)}, opts...)
	if err == nil {
		err = res.Err
	}
	if err != nil {
		return zero, err
	}
	out, err := read[T]([]byte(res.Text()))
	if err != nil {
		return zero, errdefs.Validation.Errorf("pawl: generate: the answer does not fit %T: %w", zero, err)
	}
	return out, nil
}

// read makes a T of JSON.
func read[T any](text []byte) (T, error) {
	out := new(T)
	err := exact.Unmarshal(text, out)
	if plain := exact.Integers(text, err); plain != nil {
		out = new(T)
		err = exact.Unmarshal(plain, out)
	}
	return *out, err
}

// readPart is read for what a type of the caller's own may not be made for: half a value.
func readPart[T any](text []byte) (out T, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("%T panics over it: %v", out, p)
		}
	}()
	return read[T](text)
}

// writing is a value that is being written.
type writing[T any] struct {
	yield  func(T, error) bool
	stop   func()
	open   bool // the loop goes on
	broken any  // a panic of its body, which passes through the run unseen and goes on from here

	json wire.Partial
	keep int  // bytes that stood there before this reply
	more bool // there is something that was not given
	next int  // bytes from which on the next value is given
	room []byte
}

// hear takes a piece of what the model says.
func (w *writing[T]) hear(s model.StreamResult) {
	if s.Void != nil {
		w.back()
	}
	w.take(s.Text)
}

// begin begins with what the reply goes on from: nothing, unless the one before was cut off.
func (w *writing[T]) begin(req model.Request) {
	const reply = "x"
	before := strings.TrimSuffix(engine.Answer(append(req.Messages.Messages(), message.Assistant(reply))), reply)
	w.keep = 0
	w.back()
	w.json.Write(before)
	w.keep = len(before)
}

func (w *writing[T]) back() {
	w.json.Back(w.keep)
	w.more, w.next = false, 0
}

// take takes a piece, and gives the loop a value if it is time.
func (w *writing[T]) take(text string) {
	if text == "" || !w.open {
		return
	}
	if w.more = w.json.Write(text) || w.more; !w.more || w.json.Len() < w.next {
		return
	}
	w.room = w.json.Append(w.room[:0])
	w.more, w.next = false, w.json.Len()+w.json.Len()/64
	v, err := readPart[T](w.room)
	if err != nil {
		return
	}
	defer func() {
		if p := recover(); p != nil {
			w.broken, w.open = p, false
		}
		if !w.open {
			w.stop()
		}
	}()
	w.open = w.yield(v, nil)
}
