package main

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/pawl-dev/pawl/journal"
	"github.com/pawl-dev/pawl/message"
	"github.com/pawl-dev/pawl/tool"
)

// showSession prints what was said and done, each with the number of its entry: up to entry at, or all when that is 0.
func showSession(ctx context.Context, w io.Writer, store journal.Store, id string, at int64) error {
	st, err := stateAt(ctx, store, id, at)
	if err != nil {
		return err
	}
	var how string
	if at > 0 {
		how = fmt.Sprintf("%s at entry %d", status(st, true), at)
	} else {
		how = status(st, alive(ctx, store, id))
	}
	fmt.Fprintf(w, "session %s · %s · %d tokens · cost %s\n", clean(id), clean(how), st.Spent.Usage.Total(), money(st.Spent.Cost()))
	names := map[string]string{}
	var begun []journal.Called // calls that began and have no end on record
	lost := func() {
		for _, c := range begun {
			fmt.Fprintf(w, "\n   tool %s · unknown: it began, and its end is not on record\n", clean(c.Name))
		}
		begun = nil
	}
	for e, err := range store.Read(ctx, id, 0) {
		if err != nil {
			return err
		}
		if at > 0 && e.Seq > at {
			break
		}
		for c := range calls(e.Data) {
			names[c.ID] = c.Name
		}
		switch d := e.Data.(type) {
		case journal.ToolStarted:
			begun = append(begun, d.Call)
		case journal.ToolFinished:
			begun = slices.DeleteFunc(begun, func(c journal.Called) bool { return c.ID == d.Call })
		case journal.RunStarted:
			lost()
		}
		head, body := describe(e.Data, names)
		if head == "" {
			continue
		}
		if _, err := fmt.Fprintf(w, "\n#%d %s\n%s", e.Seq, head, indent(body)); err != nil {
			return err
		}
	}
	lost()
	return nil
}

// stateAt folds a session up to entry at, or all of it when that is 0.
func stateAt(ctx context.Context, store journal.Store, id string, at int64) (journal.State, error) {
	if at > 0 {
		if err := mustBe(ctx, store, id); err != nil {
			return journal.State{}, err
		}
		st, err := journal.StateAt(ctx, store, id, at)
		return st, badInput(err)
	}
	log, err := journal.Open(ctx, store, id)
	if err != nil {
		return journal.State{}, err
	}
	if log.Seq() == 0 {
		return journal.State{}, noSession(id)
	}
	return log.State(), nil
}

func status(st journal.State, alive bool) string {
	switch {
	case st.Run == "" && st.Status == "":
		return "forked"
	case st.Run == "" || st.Status != "":
		return st.Status
	case alive:
		return "running"
	}
	return "unfinished"
}

func calls(d journal.Data) func(func(message.ToolCall) bool) {
	if m, ok := d.(journal.ModelFinished); ok {
		return message.Of[message.ToolCall](m.Message)
	}
	return func(func(message.ToolCall) bool) {}
}

// describe is an entry in words; "" for what a reader of the transcript need not see.
func describe(d journal.Data, names map[string]string) (head, body string) {
	switch d := d.(type) {
	case journal.Said:
		if d.By != "" {
			return "user (" + clean(d.By) + ")", words(d.Message)
		}
		return "user", words(d.Message)
	case journal.ModelFinished:
		head = "assistant"
		if d.Partial {
			head += " (cut off by a cancel)"
		}
		return head, words(d.Message)
	case journal.ToolFinished:
		return fmt.Sprintf("tool %s · %s", clean(d.Name), clean(string(d.Outcome))), d.Content
	case journal.ToolJudged:
		if d.Verdict == "deny" {
			return fmt.Sprintf("tool %s · denied", clean(names[d.Call])), d.Reason
		}
		if d.Refused() {
			return fmt.Sprintf("tool %s · error", clean(names[d.Call])), d.Reason
		}
	case journal.Asked:
		return "asked " + clean(d.ID), d.Prompt
	case journal.Answered:
		switch {
		case d.By == journal.ByDeadline:
			return "not answered in time " + clean(d.ID), d.Text
		case d.By == journal.ByNobody:
			return "refused, as nobody is asked " + clean(d.ID), d.Text
		case d.Approved && d.Text != "":
			return "answered " + clean(d.ID), d.Text
		case d.Approved && d.Session:
			return "approved " + clean(d.ID) + ", for the session: " + clean(forSession(d.Rule)), d.Text
		case d.Approved:
			return "approved " + clean(d.ID), d.Text
		}
		return "rejected " + clean(d.ID), d.Text
	case journal.Compacted:
		if d.Error != "" {
			return "not compacted", d.Error
		}
		return fmt.Sprintf("compacted · %d tokens to some %d, the last %d messages stay", d.TokensBefore, d.TokensAfter, d.Preserved), words(d.Edit.Head[0])
	case journal.CommandStarted:
		return "background command " + clean(d.ID) + " · started", d.Command
	case journal.CommandEnded:
		head = "background command " + clean(d.ID) + " · " + clean(d.Reason)
		switch {
		case d.Signal != "":
			head += " by " + clean(d.Signal)
		case d.Reason == string(tool.CommandExited):
			head += fmt.Sprintf(" with code %d", d.Code)
		}
		return head, ""
	case journal.ModelFailed:
		return "model failed", d.Error
	case journal.Parked:
		return "interrupted · " + clean(d.Cause), d.Detail
	case journal.RunFinished:
		return "run " + clean(d.Status), d.Error
	}
	return "", ""
}

// words are a message's parts in plain text.
func words(m message.Message) string {
	var b strings.Builder
	for p := range m.Parts() {
		switch p := p.(type) {
		case message.Text:
			fmt.Fprintln(&b, p.Text)
		case message.Reasoning:
			if p.Text != "" {
				fmt.Fprintf(&b, "(thinking) %s\n", p.Text)
			}
		case message.File:
			fmt.Fprintf(&b, "[file %s %s, %d bytes]\n", p.MIME, p.Name, len(p.Data))
		case message.ToolCall:
			fmt.Fprintf(&b, "→ %s %s\n", p.Name, p.Input)
		case message.Opaque:
			fmt.Fprintf(&b, "[%s] %s\n", p.Provider, clip(p.JSON, 200))
		}
	}
	return b.String()
}

func indent(text string) string {
	text = strings.TrimRight(printable(text), "\n")
	if text == "" {
		return ""
	}
	return "   " + strings.ReplaceAll(text, "\n", "\n   ") + "\n"
}
