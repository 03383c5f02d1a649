package hook

import (
	"context"
	"maps"
	"sync"
	"time"

	"github.com/pawl-dev/pawl/errdefs"
)

// Funcs is a Middleware under the names of the four stages around an agent and its tools. They are the four points: BeforeAgent is PreGeneration, BeforeTool is
// PreToolUse with no verdict but an error, which denies, AfterTool is PostToolUse, AfterAgent is PostGeneration. nil ones are not called.
type Funcs struct {
	Name        string
	BeforeAgent func(context.Context, *Generation) error
	BeforeTool  func(context.Context, *ToolUse) error
	AfterTool   func(context.Context, *ToolUse) error
	AfterAgent  func(context.Context, *Generation) error
}

// Middleware has the functions at their points.
func (f Funcs) Middleware() Middleware {
	m := Middleware{Name: f.Name, PreGeneration: f.BeforeAgent, PostToolUse: f.AfterTool, PostGeneration: f.AfterAgent}
	if f.BeforeTool != nil {
		m.PreToolUse = func(ctx context.Context, u *ToolUse) (Decision, error) { return Decision{}, f.BeforeTool(ctx, u) }
	}
	return m
}

// Timeout gives each call of m's functions d to return. One that takes longer has failed with errdefs.Timeout, whatever it says, as if it had returned that error: it denies, or
// withholds the result. The function is told by its context, and waited for: it runs where it is called, so that nothing of it is left behind, and one that ignores its context holds
// the run up for as long as it takes. With d of 0 or less every call fails.
func Timeout(d time.Duration, m Middleware) Middleware {
	return m.around(func(ctx context.Context, _ moment, f func(context.Context) error) error {
		inner, cancel := context.WithTimeout(ctx, d)
		defer cancel()
		err := f(inner)
		if inner.Err() != nil && ctx.Err() == nil {
			return errdefs.Timeout.Errorf("it was not done after %v: make it faster, or give it a longer timeout", d)
		}
		return err
	})
}

// Once has each of m's functions called once in a session: at the first event that it gets through without an error or a panic. Then it is not called any more in this process; after a
// resume in another one it may be. A call that is judged again, since a hook changed its input, is the same event. Without a session it counts for the run, and without that it
// is always called. It keeps a few words for each session, until [Middleware].Forget drops them.
func Once(m Middleware) Middleware {
	var mu sync.Mutex
	done := map[moment]string{} // with the call
	m.Forget = forgetting(m.Forget, func(of func(string) bool) {
		mu.Lock()
		defer mu.Unlock()
		maps.DeleteFunc(done, func(at moment, _ string) bool { return at.session != "" && of(at.session) })
	})
	return m.around(func(ctx context.Context, at moment, f func(context.Context) error) error {
		call := at.call
		if at.call = ""; at.session != "" {
			at.run = ""
		}
		mu.Lock()
		last, ran := done[at]
		mu.Unlock()
		if ran && (call == "" || call != last) {
			return nil
		}
		err := f(ctx)
		if err == nil && at.session+at.run != "" {
			mu.Lock()
			done[at] = call
			mu.Unlock()
		}
		return err
	})
}

// forgetting forgets twice.
func forgetting(a, b func(of func(session string) bool)) func(of func(session string) bool) {
	if a == nil {
		return b
	}
	return func(of func(session string) bool) { a(of); b(of) }
}

// moment is when a function is called: at which point, in whose run, about which call.
type moment struct {
	point              int
	session, run, call string
}

// around puts wrap around m's functions.
func (m Middleware) around(wrap func(context.Context, moment, func(context.Context) error) error) Middleware {
	out := Middleware{Name: m.Name, Forget: m.Forget}
	generation := func(point int, f func(context.Context, *Generation) error) func(context.Context, *Generation) error {
		if f == nil {
			return nil
		}
		return func(ctx context.Context, g *Generation) error {
			return wrap(ctx, moment{point, g.Session, g.Run, ""}, func(ctx context.Context) error { return f(ctx, g) })
		}
	}
	out.PreGeneration, out.PostGeneration = generation(1, m.PreGeneration), generation(4, m.PostGeneration)
	if m.PreToolUse != nil {
		out.PreToolUse = func(ctx context.Context, u *ToolUse) (d Decision, err error) {
			err = wrap(ctx, moment{2, u.Session, u.Run, u.Call.ID}, func(ctx context.Context) error {
				d, err = m.PreToolUse(ctx, u)
				return err
			})
			return d, err
		}
	}
	if m.PostToolUse != nil {
		out.PostToolUse = func(ctx context.Context, u *ToolUse) error {
			return wrap(ctx, moment{3, u.Session, u.Run, u.Call.ID}, func(ctx context.Context) error { return m.PostToolUse(ctx, u) })
		}
	}
	if m.Below != nil {
		out.Below = func(above Where, agent string) Middleware { return m.Below(above, agent).around(wrap) }
	}
	return out
}
