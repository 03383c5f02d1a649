package cli

import (
	"context"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/pawl-dev/pawl"
	"github.com/pawl-dev/pawl/agent"
	"github.com/pawl-dev/pawl/engine"
	"github.com/pawl-dev/pawl/errdefs"
	"github.com/pawl-dev/pawl/journal"
	"github.com/pawl-dev/pawl/journal/trace"
	"github.com/pawl-dev/pawl/message"
	"github.com/pawl-dev/pawl/tool"
)

// showSession prints what was said and done, each with the number of its entry: up to entry at, or all when that is 0. With system it prints the system prompts, too.
func showSession(ctx context.Context, w io.Writer, store journal.Store, id string, at int64, system bool) error {
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
			fmt.Fprintf(w, "\n   tool %s · unknown · %s: it began, and its end is not on record\n", clean(c.Name), clean(c.ID))
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
		if d, ok := e.Data.(journal.Prepared); ok && system && d.System != "" {
			if _, err := fmt.Fprintf(w, "\n#%d system prompt\n%s", e.Seq, indent(d.System)); err != nil {
				return err
			}
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
	if at > 0 {
		return nil
	}
	all, err := agent.Pending(ctx, store, id) // those of tasks, too, by the names that they are answered by here
	if err != nil || len(all) == 0 {
		return err
	}
	fmt.Fprintf(w, "\nwaiting for a person:\n")
	for _, p := range all {
		what := "a question"
		if p.Call != nil {
			what = summary(p.Call.Name, p.Call.Input)
		}
		if _, err := fmt.Fprintf(w, "   %s: %s\n", clean(p.ID), what); err != nil {
			return err
		}
	}
	return nil
}

// sessionPage writes the page of a session to a file, or to out for "-": up to entry at, or all when that is 0.
func sessionPage(ctx context.Context, out io.Writer, store journal.Store, id string, at int64, file string) error {
	if err := mustBe(ctx, store, id); err != nil {
		return err
	}
	write := func(w io.Writer) error {
		err := trace.HTML(ctx, w, store, id, at)
		if errdefs.NotFound.Is(err) {
			return badInput(err)
		}
		return err
	}
	if file == "-" {
		return write(out)
	}
	return replaceFile(file, write)
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
		if head = string(d.Message.Role()); d.By != "" {
			head += " (" + clean(d.By) + ")"
		}
		return head, words(d.Message)
	case journal.ModelFinished:
		head = "assistant"
		if d.Partial {
			head += " (cut off by a cancel)"
		}
		return head, words(d.Message)
	case journal.ToolFinished:
		return called(d.Name, string(d.Outcome), d.Call), d.Content + notes("warning", d.Warning, "a hook ended the run", d.Ends)
	case journal.ToolJudged:
		hooks := notes("a hook ended the run", d.Ends)
		switch {
		case d.Verdict == "deny":
			return called(names[d.Call], "denied", d.Call), d.Reason + hooks
		case d.Refused():
			return called(names[d.Call], "error", d.Call), d.Reason + hooks
		}
		if d.Context+hooks != "" {
			return called(names[d.Call], "changed by a hook", d.Call), notes("input", d.Input, "context for the model", d.Context) + hooks
		} else if d.Input != "" { // a hook's, or the names that the tool has for what the model said
			return called(names[d.Call], "as it was judged", d.Call), notes("input", d.Input)
		}
	case journal.Board:
		return changed("changed", d)
	case journal.Visited:
		what := "node " + clean(d.Node)
		if d.Cached {
			what += " · from its cache"
		}
		return changed(what, d.Board)
	case journal.Failed:
		return "failed, and the run went on", d.Error
	case journal.Prepared:
		if d.Edit.Head != nil || d.Edit.Tail != nil {
			var b strings.Builder
			for _, m := range slices.Concat(d.Edit.Head, d.Edit.Tail) {
				b.WriteString(words(m))
			}
			if skills := pawl.ActivatedSkills(d); len(skills) > 0 {
				return "activated by the prompt: skill " + clean(strings.Join(skills, ", ")), b.String()
			}
			return "put into the transcript by hooks", b.String()
		}
	case journal.Stopped:
		text := notes("it went on, as a hook said", d.Again)
		for _, e := range d.Errors {
			text += notes("a hook failed", e)
		}
		if text != "" {
			return "model stopped", text
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
		case d.Approved:
			head = "approved " + clean(d.ID)
			if d.Input != "" {
				head += ", with another input"
			}
			if d.Session {
				head += ", for the session: " + clean(forSession(d.Rule))
			}
			return head, d.Input
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

// changed is a change of a board: what came into the transcript, in short, as models' replies have entries of their own, and the names of vars; "" for nothing.
func changed(what string, d journal.Board) (head, body string) {
	var lines []string
	for _, m := range slices.Concat(d.Append[engine.MainChannel], d.Edit[engine.MainChannel].Tail) {
		lines = append(lines, string(m.Role())+": "+clip(clean(words(m)), 160))
	}
	if len(d.Set)+len(d.Delete) > 0 {
		lines = append(lines, "vars: "+clean(strings.Join(slices.Concat(slices.Sorted(maps.Keys(d.Set)), d.Delete), ", ")))
	}
	if len(lines) == 0 {
		return "", ""
	}
	return what, strings.Join(lines, "\n")
}

// called is a call's line: the tool, what became of it, and its id, which pawl approve and pawl reject take.
func called(name, what, id string) string {
	return fmt.Sprintf("tool %s · %s · %s", clean(name), clean(what), clean(id))
}

// notes are those of named texts that are there, each on lines of its own.
func notes(named ...string) string {
	var b strings.Builder
	for i := 0; i+1 < len(named); i += 2 {
		if named[i+1] != "" {
			fmt.Fprintf(&b, "\n(%s) %s", named[i], named[i+1])
		}
	}
	return b.String()
}

// words are a message's parts in plain text.
func words(m message.Message) string {
	var b strings.Builder
	for p := range m.Parts() {
		switch p := p.(type) {
		case message.Text:
			fmt.Fprintln(&b, p.Text)
			for _, c := range p.Citations {
				fmt.Fprintf(&b, "[source] %s\n", source(c))
			}
		case message.Reasoning:
			if p.Text != "" {
				fmt.Fprintf(&b, "(thinking) %s\n", p.Text)
			}
		case message.File:
			fmt.Fprintf(&b, "[file %s %s, %d bytes]\n", p.MIME, p.Name, len(p.Data))
		case message.ToolCall:
			fmt.Fprintf(&b, "→ %s %s %s\n", p.ID, p.Name, p.Input)
		case message.ProviderCall:
			fmt.Fprintf(&b, "[%s] %s %s %s\n", p.Provider, p.Name, clip(p.Input, 200), clip(p.Output, 200))
			for _, c := range p.Sources {
				fmt.Fprintf(&b, "[source] %s\n", source(c))
			}
		case message.Opaque:
			fmt.Fprintf(&b, "[%s] %s\n", p.Provider, clip(p.JSON, 200))
		}
	}
	return b.String()
}

// source is a citation in a line.
func source(c message.Citation) string {
	switch {
	case c.Title == "":
		return c.URL
	case c.URL == "":
		return c.Title
	}
	return c.Title + " " + c.URL
}

func indent(text string) string {
	text = strings.Trim(printable(text), "\n")
	if text == "" {
		return ""
	}
	return "   " + strings.ReplaceAll(text, "\n", "\n   ") + "\n"
}
