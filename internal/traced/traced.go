// Package traced passes on to which trace work belongs, in the words of the W3C's Trace Context and without any tracing library: who sends something to somebody else asks [Inject] what to put with it, who takes
// something in tells [Extract]. In between stands whoever traces, if anybody does; if nobody does, what came in is what goes out.
package traced

import (
	"context"
	"strings"
)

// The names of the headers. In an environment they are in capitals.
const (
	Parent = "traceparent"
	State  = "tracestate"
)

// longestState is how long a tracestate may be, in bytes; a longer one is left out, as the specification lets one do.
const longestState = 512

// Span is the span that a context lies in, of whoever traces.
type Span interface {
	Inject(ctx context.Context, set func(name, value string))
	Note(ctx context.Context, name, value string)
}

type (
	spanKey   struct{}
	remoteKey struct{}
	remote    struct{ parent, state string }
)

// With gives a context in which s traces.
func With(ctx context.Context, s Span) context.Context { return context.WithValue(ctx, spanKey{}, s) }

// Inject calls set with the headers that say where ctx lies: traceparent, and tracestate if there is one. In no trace it calls nothing.
func Inject(ctx context.Context, set func(name, value string)) {
	if s, ok := ctx.Value(spanKey{}).(Span); ok {
		s.Inject(ctx, set)
		return
	}
	if r, ok := ctx.Value(remoteKey{}).(remote); ok {
		set(Parent, r.parent)
		if r.state != "" {
			set(State, r.state)
		}
	}
}

// Note puts an attribute on the span that ctx lies in, if somebody traces.
func Note(ctx context.Context, name, value string) {
	if s, ok := ctx.Value(spanKey{}).(Span); ok && value != "" {
		s.Note(ctx, name, value)
	}
}

// Extract gives a context that lies where the headers say which came with what is taken in; get gives the value of one, or "". Headers that make no sense are as none.
func Extract(ctx context.Context, get func(name string) string) context.Context {
	r := remote{strings.TrimSpace(get(Parent)), strings.TrimSpace(get(State))}
	if !valid(r.parent) {
		return ctx
	}
	if len(r.state) > longestState || strings.ContainsFunc(r.state, func(c rune) bool { return c < ' ' || c > '~' }) {
		r.state = ""
	}
	return context.WithValue(ctx, remoteKey{}, r)
}

// Remote is what Extract took in.
func Remote(ctx context.Context) (parent, state string) {
	r, _ := ctx.Value(remoteKey{}).(remote)
	return r.parent, r.state
}

// valid reports whether a text is a traceparent: version, trace, span and flags, in hexadecimal digits. A version of later may have more behind it.
func valid(text string) bool {
	if len(text) < 55 || text[2] != '-' || text[35] != '-' || text[52] != '-' {
		return false
	}
	version, id, span, flags := text[:2], text[3:35], text[36:52], text[53:55]
	if len(text) > 55 && (version == "00" || text[55] != '-') || version == "ff" {
		return false
	}
	return hex(version) && hex(id) && hex(span) && hex(flags) && strings.Trim(id, "0") != "" && strings.Trim(span, "0") != ""
}

func hex(s string) bool {
	return !strings.ContainsFunc(s, func(c rune) bool { return !strings.ContainsRune("0123456789abcdef", c) })
}
