package loop

import (
	"context"
	"errors"

	"github.com/pawl-dev/pawl/engine"
	"github.com/pawl-dev/pawl/errdefs"
	"github.com/pawl-dev/pawl/journal"
	"github.com/pawl-dev/pawl/message"
)

// Execute is the loop. It fails with errdefs.NotAvailable, before anything is done, when the caller takes none of the media types that it can answer in.
// On a channel other than the main one it talks in a scope of that name: what is said there is not the session's transcript.
func (l *Engine) Execute(ctx context.Context, run engine.Run, host engine.Host, board *engine.Board) (*engine.Board, error) {
	if err := l.answers(&run); err != nil {
		return board, err
	}
	do := engine.StepsOf(run, host, l)
	if l.cfg.Channel == engine.MainChannel {
		return board, l.converse(ctx, do, &run, board)
	}
	return board, l.aside(ctx, do, run, board)
}

// aside talks in a scope of its own.
func (l *Engine) aside(ctx context.Context, do engine.Steps, run engine.Run, board *engine.Board) error {
	return do.Branch(ctx, engine.Branch{Scope: l.cfg.Channel, Run: func(ctx context.Context, do engine.Steps) error {
		return l.converse(ctx, do, &run, board)
	}})
}

// Converse is Execute on given steps: how another engine runs a loop in a scope of its own.
func (l *Engine) Converse(ctx context.Context, do engine.Steps, run engine.Run, board *engine.Board) error {
	return l.converse(ctx, do, &run, board)
}

// converse talks on steps whose outcomes may wait for what is done next, and leaves none of them waiting.
func (l *Engine) converse(ctx context.Context, do engine.Steps, run *engine.Run, board *engine.Board) (err error) {
	do = engine.Ahead(do)
	defer func() {
		if lost := engine.Settle(ctx, do); lost != nil {
			err = errors.Join(err, lost)
		}
	}()
	return l.turns(ctx, do, run, board)
}

func (l *Engine) turns(ctx context.Context, do engine.Steps, run *engine.Run, board *engine.Board) error {
	talk := board.Channel(l.cfg.Channel)
	defer func() { board.SetChannel(l.cfg.Channel, talk) }()
	say := func(ms ...message.Message) { talk = talk.Append(ms...) }

	used, system, err := l.prepared(ctx, do, run, &talk)
	if err != nil {
		return err
	}
	from, turn := talk.Len(), engine.Turn{System: system}
	reply := &turn.Reply
	for step := 1; ; step++ {
		if talk, from, err = used.ready(ctx, do, step, talk, from); err != nil {
			return err
		}
		*reply, err = engine.Do[journal.ModelFinished](ctx, do, engine.Generate{Step: step, Model: l.caps.Name, System: system, Messages: talk})
		calls := reply.Message.ToolCalls()
		say(reply.Heard...)
		if !reply.Message.Blank() {
			say(reply.Message)
		}
		if err != nil {
			say(unanswered(reply, calls)...)
			return err
		}
		l.show(run, &turn, talk)
		next, tell, err := used.after(reply, calls, talk)
		switch next {
		case failed:
			say(unanswered(reply, calls)...)
			return err
		case again: // cut off, paused, or empty
			say(unanswered(reply, calls)...)
			if err := l.tell(ctx, do, step, tell, say); err != nil {
				return err
			}
		case useTools:
			results, final, err := l.useTools(ctx, do, run, &turn, calls)
			if !errdefs.Interrupted.Is(err) { // a parked run will answer its calls when it is resumed
				say(answered(run, results))
			}
			if err != nil {
				return err
			}
			if final {
				next = stopped
			} else if tell, err = used.repeated(calls, results); err != nil {
				return err
			} else if err := l.tell(ctx, do, step, tell, say); err != nil {
				return err
			}
		}
		if next == stopped {
			turn.Messages = talk
			if on, err := used.stop(ctx, do, step, &turn, from, say); err != nil || !on {
				return err
			}
		}
	}
}

// prepared lets hooks change what the run begins with, and begins to count what it uses.
func (l *Engine) prepared(ctx context.Context, do engine.Steps, run *engine.Run, talk *message.History) (used *tally, system string, err error) {
	ready, err := engine.Do[journal.Prepared](ctx, do, engine.Prepare{System: run.System, Messages: *talk})
	if err != nil {
		return nil, "", err
	}
	*talk = talk.Edit(ready.Edit)
	return &tally{limits: l.cfg.Limits, output: ready.Output, room: roomFor(ready, *talk)}, ready.System, nil
}

// stop lets hooks look at what is done; on when they, or a person, have something to say to the model.
func (t *tally) stop(ctx context.Context, do engine.Steps, step int, turn *engine.Turn, from int, say func(...message.Message)) (on bool, err error) {
	e := engine.Stop{Step: step, Turn: turn, From: from, Sent: t.sent, Last: t.sent >= maxAgain}
	end, err := engine.Do[journal.Stopped](ctx, do, e)
	if err != nil || end.Again == "" {
		return end.Steered, err
	}
	t.sent++
	say(message.User(end.Again))
	if why, ok := misfitOf(end.Again); ok {
		if err := t.back(why); err != nil {
			return false, err
		}
	}
	return true, nil
}

// tell says a word of the loop's own to the model; "" is none.
func (l *Engine) tell(ctx context.Context, do engine.Steps, step int, text string, say func(...message.Message)) error {
	if text == "" {
		return nil
	}
	said, err := engine.Do[journal.Said](ctx, do, engine.Tell{Step: step, Text: text, Why: why(text)})
	if err == nil {
		say(said.Message)
	}
	return err
}

// answered is the message of results, which the record is to have, too.
func answered(run *engine.Run, results []message.ToolResult) message.Message {
	m := message.Results(results...)
	run.Log.Expect(m)
	return m
}

// unanswered gives calls that will not run a result that says so; nothing when there are no calls.
func unanswered(reply *journal.ModelFinished, calls []message.ToolCall) []message.Message {
	if len(calls) == 0 {
		return nil
	}
	result := journal.NotRun
	if reply.Cut() {
		result = journal.CutOff
	}
	results := make([]message.ToolResult, len(calls))
	for i, c := range calls {
		results[i] = result(c)
	}
	return []message.Message{message.Results(results...)}
}
