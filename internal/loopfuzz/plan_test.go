package loopfuzz

import (
	"encoding/json"
	"fmt"
	"slices"

	"pgregory.net/rapid"

	"github.com/pawl-dev/pawl/engine"
)

// plan is a session's life: all that is left to chance. What is popped from a list and is not there any more is the harmless first choice.
type plan struct {
	Prompts   []string // what is said first in each run, and whether a run that waits is left behind: "", "leave"
	Turns     []turn   // of the model, a call each, whoever asks; then it says "end"
	Lives     [][]fault
	Seeds     []string // of the seeder, an attempt each; nil: there is none: "", "fresh", "more"
	Prepare   []string // of the PreGeneration hook, a run each: "", "inject", "panic", "error"
	Replies   []string // of the person at the host
	Answers   []string // of people elsewhere, to what waits
	Decisions []string // of the decider
	Commits   []string // of the committer
	Revise    int
	Unknown   engine.Unknown
	Listening bool
}

// turn is a reply of the model, or its failure.
type turn struct {
	Kind  string
	Calls []call
}

// call is a call that the model makes. What comes of it is said by its input, so that it holds wherever the call is run.
type call struct {
	ID, Tool, Raw string
	Input         spec
}

// spec is the input of the tools.
type spec struct {
	Do   string `json:"do,omitempty"`   // what the tool does
	Hook string `json:"hook,omitempty"` // what the hook says of it
	Post string `json:"post,omitempty"` // what the hook does with its result
	N    int    `json:"n,omitempty"`
}

func (s spec) String() string {
	b, _ := json.Marshal(s)
	return string(b)
}

// fault is something that happens as a life appends to the journal for the n-th time, or a while later, when tools and models may be at work.
type fault struct {
	At    int
	Do    string
	Later bool
}

// The choices, the plainest first: that is where rapid shrinks to. What leads on comes more often than what ends a run, or a call, at once.
var (
	kinds = append(often(24, "say", "call", "call", "call", "call", "call", "call", "call"),
		"again", "again", "cut", "blank", "badcall", "pause", "refuse", "filter", "window", "slow", "panic",
		"rate_limit", "not_available", "context_overflow", "unauthorized", "timeout", "internal", "plain")
	names   = append(often(21, "look", "put", "pay", "solo", "sign", "pay", "look"), "hidden", "nosuch", "LOOK")
	does    = []string{"ok", "ok", "ok", "slow", "slow", "error", "panic", "exit", "unknown", "deaf", "final", "background", "background", "ask", "ask", "park"}
	judging = append(often(24, ""), "allow", "deny", "ask", "ask", "rewrite", "badrewrite", "panic", "error", "end", "context")
	after   = append(often(16, ""), "rewrite", "panic", "error", "end")
	raws    = append(often(40, ""), `{"do":"ok"`, `{"do":5}`, `{"other":1}`, `[]`, `null`)
	ids     = []string{"a", "b", "c", "a/b", "a-2", "a_2"}
	faults  = []string{"kill", "kill", "late", "late", "fail", "cancel", "interrupt", "steer"}
	replies = []string{"nobody", "yes", "no", "edit", "worse", "ending", "elsewhere", "panic", "error"}
	answers = []string{"yes", "no", "edit", "worse", "ending", "twice", "none"}
)

// often is n of the choices, in turn.
func often(n int, of ...string) (out []string) {
	for i := range n {
		out = append(out, of[i%len(of)])
	}
	return out
}

func draw() *rapid.Generator[plan] {
	return rapid.Custom(func(t *rapid.T) (p plan) {
		of := rapid.SampledFrom[[]string]
		p.Prompts = rapid.SliceOfN(of([]string{"", "", "leave"}), 1, 3).Draw(t, "prompts")
		p.Turns = rapid.SliceOfN(rapid.Custom(drawTurn), 0, 12).Draw(t, "turns")
		p.Lives = rapid.SliceOfN(rapid.SliceOfN(rapid.Custom(func(t *rapid.T) fault {
			return fault{rapid.IntRange(1, 20).Draw(t, "at"), of(faults).Draw(t, "fault"), rapid.Bool().Draw(t, "later")}
		}), 0, 4), 0, 6).Draw(t, "lives")
		p.Prepare = rapid.SliceOfN(of(append(often(9, ""), "inject", "inject", "panic", "error")), 0, 2).Draw(t, "prepare")
		if rapid.IntRange(0, 3).Draw(t, "seeder") == 3 {
			p.Seeds = rapid.SliceOfN(of([]string{"", "fresh", "more"}), 1, 3).Draw(t, "seeds")
		}
		p.Replies = rapid.SliceOfN(of(replies), 0, 5).Draw(t, "replies")
		p.Answers = rapid.SliceOfN(of(answers), 0, 5).Draw(t, "answers")
		p.Decisions = rapid.SliceOfN(of(append(often(6, ""), "revise", "revise", "discard", "accept", "error", "panic")), 0, 4).Draw(t, "decisions")
		p.Commits = rapid.SliceOfN(of(append(often(6, ""), "error", "panic")), 0, 3).Draw(t, "commits")
		p.Revise = rapid.IntRange(0, 3).Draw(t, "revise")
		p.Unknown = rapid.SampledFrom([]engine.Unknown{"", engine.UnknownReport, engine.UnknownAsk, engine.UnknownAsk, engine.UnknownAsk, engine.UnknownRetry}).Draw(t, "unknown")
		p.Listening = rapid.Bool().Draw(t, "listening")
		return p
	})
}

func drawTurn(t *rapid.T) (out turn) {
	of := func(label string, s []string) string { return rapid.SampledFrom(s).Draw(t, label) }
	if out.Kind = of("kind", kinds); out.Kind != "call" && out.Kind != "cut" && out.Kind != "window" {
		return out
	}
	least := 0
	if out.Kind == "call" {
		least = 1
	}
	out.Calls = rapid.SliceOfN(rapid.Custom(func(t *rapid.T) call {
		of := func(label string, s []string) string { return rapid.SampledFrom(s).Draw(t, label) }
		return call{of("id", ids), of("tool", names), of("raw", raws), spec{of("do", does), of("hook", judging), of("post", after), rapid.IntRange(0, 3).Draw(t, "n")}}
	}), least, 4).Draw(t, "calls")
	return out
}

// pop takes the first of a list.
func pop[T any](list *[]T) (first T) {
	if len(*list) > 0 {
		first, *list = (*list)[0], (*list)[1:]
	}
	return first
}

func (p plan) String() string {
	b, err := json.MarshalIndent(p, "", " ")
	if err != nil {
		return fmt.Sprintf("%+v", struct{ plan }{p})
	}
	return string(b)
}

// uses reports whether a tool may do that in the plan.
func (p plan) uses(do string) bool {
	for _, t := range p.Turns {
		for _, c := range t.Calls {
			if c.Input.Do == do {
				return true
			}
		}
	}
	return false
}

// steers reports whether somebody, or a call in the background, may say something to a run.
func (p plan) steers() bool {
	return p.uses("background") || slices.ContainsFunc(p.Lives, func(fs []fault) bool {
		return slices.ContainsFunc(fs, func(f fault) bool { return f.Do == "steer" })
	})
}
