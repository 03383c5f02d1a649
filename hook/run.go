package hook

import (
	"context"
	"errors"
	"fmt"

	"github.com/pawl-dev/pawl/errdefs"
	"github.com/pawl-dev/pawl/tool"
)

// maxRewrites bounds how often hooks may rewrite one call's input before it is denied: two hooks that undo each other's work would
// go on for ever.
const maxRewrites = 5

// Judge asks every hook and merges: deny beats ask beats allow; nobody's opinion allows. check validates input that a hook rewrote and gives
// its canonical form; nil takes it as it is. After a rewrite every hook is asked again about the new input, and only what is
// said of the last one counts, but a denial stands at once, and so does ToolUse.EndRun, which denies. What hooks want the model to know is joined in Context. A hook must
// not keep the ToolUse that it is given.
func Judge(ctx context.Context, hooks []Middleware, use *ToolUse, check func(input string) (string, error)) Decision {
	if len(hooks) == 0 {
		return Decision{}
	}
	rewritten, seen := "", ToolUse{}
	use.By = nil
	for range maxRewrites + 1 {
		d := round(ctx, hooks, use, &seen)
		if d.Verdict < Deny && d.Input != "" && check != nil {
			input, err := check(d.Input)
			if err != nil {
				return Denied(fmt.Sprintf("a hook rewrote the input to one that is not valid: %v", err))
			}
			d.Input = input
		}
		if d.Verdict >= Deny || d.Input == "" || d.Input == use.Call.Input {
			d.Input, d.By = rewritten, nil
			return d
		}
		use.Call.Input, use.By, rewritten = d.Input, d.By, d.Input
	}
	return Denied(fmt.Sprintf("hooks rewrote the input %d times without agreeing", maxRewrites))
}

// round asks every hook once. The last rewrite of the round is taken up. seen is what the hooks see.
func round(ctx context.Context, hooks []Middleware, use, seen *ToolUse) (all Decision) {
	session := true // all who ask heed an approval for the session
	for _, h := range hooks {
		if h.PreToolUse == nil {
			continue
		}
		d := judge(ctx, h, use, seen)
		if seen.ends != "" {
			use.ends = seen.ends
			d = Decision{Verdict: Deny, Reason: seen.ends, Context: d.Context}
		}
		if d.Verdict > all.Verdict {
			all.Verdict, all.Reason = d.Verdict, d.Reason
		}
		if d.Input != "" && d.Input != all.Input { // of those that say the same, it is the first one's
			all.Input, all.By = d.Input, d.By
		}
		session = session && (d.Verdict != Ask || d.Session)
		all.Context = lines(all.Context, d.Context)
	}
	all.Session = session && all.Verdict == Ask
	return all
}

// lines joins texts that are there.
func lines(a, b string) string {
	if a == "" || b == "" {
		return a + b
	}
	return a + "\n" + b
}

func judge(ctx context.Context, h Middleware, use, seen *ToolUse) (d Decision) {
	defer func() {
		if p := recover(); p != nil {
			d = Denied(fmt.Sprintf("hook %s panicked: %v", h.Name, p))
		}
	}()
	*seen = *use // a hook can't change the call behind the others' backs: rewriting goes through Decision.Input
	d, err := h.PreToolUse(ctx, seen)
	switch {
	case err != nil:
		return Denied(fmt.Sprintf("hook %s: %v", h.Name, err))
	case d.Verdict < Continue || d.Verdict > Deny:
		return Denied(fmt.Sprintf("hook %s gave verdict %d, which is none", h.Name, int(d.Verdict)))
	}
	return d
}

// Prepare runs the PreGeneration hooks in order and stops at the first error or panic, which aborts the run.
func Prepare(ctx context.Context, hooks []Middleware, g *Generation) error {
	for _, h := range hooks {
		if h.PreGeneration == nil {
			continue
		}
		if err := guard(ctx, h.Name, h.PreGeneration, g); err != nil {
			return errdefs.Aborted.Errorf("hook %s: %w", h.Name, err)
		}
	}
	return nil
}

// After runs the PostToolUse hooks in order. A hook that fails or panics withholds the result: the model is told only that it was withheld, and by
// which hook. The error joins what failed, for the journal. A hook must not keep the ToolUse that it is given.
func After(ctx context.Context, hooks []Middleware, use *ToolUse) (err error) {
	if len(hooks) == 0 {
		return nil
	}
	seen := new(ToolUse)
	for _, h := range hooks {
		if h.PostToolUse == nil {
			continue
		}
		*seen = *use // a hook may change the result, or put another in its place: both count
		untrusted := use.Result.Untrusted
		e := guard(ctx, h.Name, h.PostToolUse, seen)
		if e == nil && seen.Result == nil {
			e = errdefs.Validation.Errorf("it left no result")
		}
		if e != nil {
			err = errors.Join(err, fmt.Errorf("hook %s: %w", h.Name, e))
			seen.Result = &tool.Result{Content: "The result was withheld by " + h.Name + ".", IsError: true}
		}
		*use.Result, use.ends = *seen.Result, seen.ends
		use.Result.Untrusted = use.Result.Untrusted || untrusted // whoever puts another result in its place made it of this one
	}
	return err
}

// Finish runs the PostGeneration hooks in order, until one says Again; it gives that text, and the errors of those that failed or
// panicked: the reply stays all the same.
func Finish(ctx context.Context, hooks []Middleware, g *Generation) (again string, errs []error) {
	for _, h := range hooks {
		if h.PostGeneration == nil {
			continue
		}
		if err := guard(ctx, h.Name, h.PostGeneration, g); err != nil {
			errs = append(errs, fmt.Errorf("hook %s: %w", h.Name, err))
		}
		if g.again != "" {
			break
		}
	}
	return g.again, errs
}

// Gates keeps the tool points of hooks: what a child run inherits from its parent.
func Gates(hooks []Middleware) []Middleware {
	out := make([]Middleware, 0, len(hooks))
	for _, h := range hooks {
		if h.PreToolUse != nil || h.PostToolUse != nil || h.Below != nil {
			out = append(out, Middleware{Name: h.Name, PreToolUse: h.PreToolUse, PostToolUse: h.PostToolUse, Below: h.Below})
		}
	}
	return out
}

// Below is what hooks put around a run below the one that they are of: of what each gives, PreGeneration and PostGeneration.
func Below(hooks []Middleware, above Where, agent string) (out []Middleware) {
	for _, h := range hooks {
		if h.Below == nil {
			continue
		}
		if m := h.Below(above, agent); m.PreGeneration != nil || m.PostGeneration != nil {
			out = append(out, Middleware{Name: m.Name, PreGeneration: m.PreGeneration, PostGeneration: m.PostGeneration})
		}
	}
	return out
}

// guard calls a function of a hook; its panic is an error.
func guard[T any](ctx context.Context, name string, f func(context.Context, T) error, arg T) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = errdefs.Internal.Errorf("%s panicked: %v", name, p)
		}
	}()
	return f(ctx, arg)
}
