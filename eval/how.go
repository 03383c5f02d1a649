package eval

import (
	"context"
	"crypto/rand"
	"errors"
	"slices"
	"strings"

	"github.com/pawl-dev/pawl"
	"github.com/pawl-dev/pawl/agent"
	"github.com/pawl-dev/pawl/engine"
	"github.com/pawl-dev/pawl/errdefs"
	"github.com/pawl-dev/pawl/journal"
	"github.com/pawl-dev/pawl/message"
	"github.com/pawl-dev/pawl/pack/guard"
)

// Agent runs cases by an agent and an engine, each in a session of its own in store; nil: in memory, until it is scored. A store that stays lets you look at what failed: [Sample].Session names the session. Case.Vars are the run's inputs. The agent and the
// engine are used by several runs at once; the options are those of every turn.
func Agent(store journal.Store, ag agent.Agent, eng engine.Engine, opts ...agent.RunOption) How {
	return func(ctx context.Context, c Case) (Sample, error) {
		store, session := place(store)
		return turns(ctx, store, session, c, func(m message.Message) (bool, error) {
			res, err := agent.Run(ctx, ag, eng, agent.Request{ContextID: session, Message: m, Inputs: c.Vars}, append(slices.Clip(opts), agent.WithJournal(store))...)
			return res != nil && res.Status == agent.StatusCompleted, err
		})
	}
}

// Runtime runs cases by a Runtime, in sessions of its journal. They share its directory: where a case changes files, make a Runtime in a fresh directory for each sample, in a How of your own that calls this one:
//
//	func(ctx context.Context, c eval.Case) (eval.Sample, error) {
//		rt, err := pawl.New(ctx, …a copy of the project…)
//		if err != nil { … }
//		defer rt.Close()
//		return eval.Runtime(rt)(ctx, c)
//	}
func Runtime(rt *pawl.Runtime, opts ...agent.RunOption) How {
	return func(ctx context.Context, c Case) (s Sample, err error) {
		_, session := place(nil)
		defer func() { err = errors.Join(err, ended(rt.EndSession(context.WithoutCancel(ctx), session))) }()
		return turns(ctx, rt.Journal(), session, c, func(m message.Message) (bool, error) {
			res, err := rt.Run(ctx, pawl.Request{Request: agent.Request{ContextID: session, Message: m, Inputs: c.Vars}}, opts...)
			if res != nil && errors.Is(err, res.Err) { // that is how the run ended, which is on record
				err = nil
			}
			return res != nil && res.Status == agent.StatusCompleted, err
		})
	}
}

// ended takes a session that was never begun for one that has ended.
func ended(err error) error {
	if errdefs.NotFound.Is(err) {
		return nil
	}
	return err
}

// Conversation runs cases by a pack's conversation, which open opens anew for each sample: with opts, which are its journal (store, as in [Agent]), session and variables, and what the pack needs: a model, handlers of tools. It is closed here.
//
//	eval.Conversation(nil, func(c eval.Case, opts ...pawl.Option) (*pawl.Conversation, error) {
//		conv, err := pawl.Open("support.pack.json", "chat", append(opts, pawl.WithModel(m))...)
//		if err == nil {
//			conv.OnTool("lookup_order", lookup)
//		}
//		return conv, err
//	})
//
// What a validator refuses to take from a user is a turn with status aborted, whose answer is the validator's message.
func Conversation(store journal.Store, open func(c Case, opts ...pawl.Option) (*pawl.Conversation, error)) How {
	return func(ctx context.Context, c Case) (s Sample, err error) {
		store, session := place(store)
		conv, err := open(c, pawl.WithJournal(store), pawl.WithSession(session), pawl.WithVars(c.Vars))
		if err != nil {
			return Sample{}, err
		}
		defer func() { err = errors.Join(err, conv.Close()) }()
		var refused *Turn
		s, err = turns(ctx, store, session, c, func(m message.Message) (bool, error) {
			var files []message.File
			for f := range message.Of[message.File](m) {
				files = append(files, f)
			}
			resp, err := conv.Send(ctx, m.Text(), files...)
			if resp != nil {
				return resp.Status == agent.StatusCompleted, nil
			}
			var v *guard.Violation
			if errors.As(err, &v) && v.Err == nil { // nothing is on record of it
				none := int64(0)
				refused = &Turn{Prompt: m, Answer: v.Message(), Messages: []message.Message{m}, Status: agent.StatusAborted, Err: v, Cost: &none}
				return false, nil
			}
			return false, err
		})
		if err == nil && refused != nil {
			s.Turns = append(s.Turns, *refused)
			s = s.whole()
		}
		return s, err
	}
}

// place is where a sample's session is, and a name for it that nobody has.
func place(store journal.Store) (journal.Store, string) {
	if store == nil {
		store = journal.Memory()
	}
	return store, "eval-" + strings.ToLower(rand.Text())
}

// turns says what a case has to say, until a turn does not complete, and reads what is on record of it.
func turns(ctx context.Context, store journal.Store, session string, c Case, say func(m message.Message) (completed bool, err error)) (Sample, error) {
	for _, m := range c.turns() {
		completed, err := say(m)
		if err != nil {
			return Sample{Session: session}, err
		}
		if !completed {
			break
		}
	}
	ctx = context.WithoutCancel(ctx)
	said, err := read(ctx, store, session)
	s := Sample{Turns: said, Session: session}
	return s.whole(), err
}
