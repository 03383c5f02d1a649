package resilience_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/pawl-dev/pawl/errdefs"
	"github.com/pawl-dev/pawl/message"
	"github.com/pawl-dev/pawl/model"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var hi = model.Request{Messages: message.NewHistory(message.User("Hi"))}

// turn is how one call of a fake goes: its words, a gap before each, and then an error or the reply.
type turn struct {
	words string
	gap   time.Duration // before each word, and before the end
	err   error
	usage model.Usage
	hangs bool // in place of the end
	cut   bool // the stream ends without its last piece
}

func fails(err error) turn   { return turn{err: err} }
func says(words string) turn { return turn{words: words} }

// fake plays its turns, the last one again and again, and notes its calls.
type fake struct {
	can   model.Capabilities
	turns []turn

	mu       sync.Mutex
	at       []time.Duration // since it was made
	attempts []int
	made     time.Time
}

func plays(turns ...turn) *fake {
	all := model.Capabilities{Name: "p/a", Provider: "p", Tools: true, Images: true, Documents: true, Audio: true, Schema: true, TopK: true, Seed: true, Stop: true, MaxTokens: true, Penalties: true}
	return &fake{can: all, turns: turns, made: time.Now()}
}

func (f *fake) named(name string) *fake { f.can.Name = name; return f }

func (f *fake) Capabilities() model.Capabilities { return f.can }

func (f *fake) calls() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return len(f.at)
}

func (f *fake) begin(ctx context.Context) turn {
	f.mu.Lock()
	defer f.mu.Unlock()
	n := len(f.at)
	f.at, f.attempts = append(f.at, time.Since(f.made)), append(f.attempts, model.Attempt(ctx))
	return f.turns[min(n, len(f.turns)-1)]
}

func (f *fake) Complete(ctx context.Context, req model.Request) (resp *model.Response, err error) {
	err = f.CompleteStream(ctx, req, func(s model.StreamResult) error {
		resp = s.Response
		return nil
	})
	if err != nil {
		return nil, err
	}
	return resp, nil
}

func (f *fake) CompleteStream(ctx context.Context, _ model.Request, cb model.StreamHandler) error {
	t := f.begin(ctx)
	for _, w := range strings.SplitAfter(t.words, " ") {
		if err := sleep(ctx, t.gap); err != nil {
			return err
		}
		if w == "" {
			break
		}
		if err := cb(model.StreamResult{Text: w}); err != nil {
			return err
		}
	}
	switch {
	case t.hangs:
		<-ctx.Done()
		return ctx.Err()
	case t.err != nil || t.cut:
		return t.err
	}
	if err := sleep(ctx, t.gap); err != nil {
		return err
	}
	return cb(model.StreamResult{Final: true, Response: &model.Response{Message: message.Assistant(t.words), Stop: model.StopEnd, Model: "as-the-provider-says", Usage: t.usage}})
}

func sleep(ctx context.Context, d time.Duration) error {
	if d == 0 {
		return nil
	}
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// seen is what a handler that heeds Void has in the end.
type seen struct {
	text  string
	voids []string
	waits []time.Duration
	taken int // words that were taken back
	final *model.Response
}

func stream(ctx context.Context, m model.Model, req model.Request) (s seen, err error) {
	err = m.CompleteStream(ctx, req, s.take)
	return s, err
}

func (s *seen) take(r model.StreamResult) error {
	if r.Void != nil {
		s.taken += len(s.text)
		s.voids, s.text = append(s.voids, r.Void.Error()), ""
		if r.Wait != 0 {
			s.waits = append(s.waits, r.Wait)
		}
		if r.Text != "" || r.Reasoning != "" || r.Final {
			return errors.New("a Void comes alone")
		}
	}
	s.text += r.Text
	if r.Final {
		s.final = r.Response
	}
	return nil
}

// refused is a provider's error.
func refused(class *errdefs.Class, after time.Duration) error {
	return &model.Error{Provider: "p", Kind: class, Status: class.HTTPStatus(), Message: "no", RetryAfter: after}
}

func middle() float64 { return 0.5 }

func none() float64 { return 0 }

type asking func(context.Context, model.Model) (*model.Response, error)

// both asks for a whole reply, and for a stream.
func both(t *testing.T, f func(t *testing.T, ask asking)) {
	t.Run("whole", func(t *testing.T) {
		f(t, func(ctx context.Context, m model.Model) (*model.Response, error) { return m.Complete(ctx, hi) })
	})
	t.Run("stream", func(t *testing.T) {
		f(t, func(ctx context.Context, m model.Model) (*model.Response, error) {
			s, err := stream(ctx, m, hi)
			return s.final, err
		})
	})
}
