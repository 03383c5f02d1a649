package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/pawl-dev/pawl/errdefs"
	"github.com/pawl-dev/pawl/journal"
	"github.com/pawl-dev/pawl/message"
	"github.com/pawl-dev/pawl/model"
)

func sessionsCommand(s streams) *cobra.Command {
	var c common
	var asJSON bool
	cmd := &cobra.Command{
		Use:     "sessions",
		Short:   "List, show and delete sessions",
		Example: "  pawl sessions list\n  pawl sessions show ID",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return usage("sessions what? list, show ID or delete ID")
		},
	}
	// with opens the journal around a subcommand.
	with := func(f func(ctx context.Context, store journal.Store, args []string) error) func(*cobra.Command, []string) error {
		return func(cmd *cobra.Command, args []string) error {
			store, close, err := c.openStore()
			if err != nil {
				return err
			}
			err = f(cmd.Context(), store, args)
			if e := close(); err == nil {
				err = e
			}
			var exit *exitError
			if err != nil && !errors.As(err, &exit) {
				err = &exitError{exitFailed, err}
			}
			return err
		}
	}
	list := &cobra.Command{
		Use: "list", Short: "One line a session, the newest first", Example: "  pawl sessions list --json", Args: cobra.NoArgs,
		RunE: with(func(ctx context.Context, store journal.Store, _ []string) error {
			return listSessions(ctx, s.out, s.err, store, asJSON)
		}),
	}
	list.Flags().BoolVar(&asJSON, "json", false, "one JSON object a line")
	show := &cobra.Command{
		Use: "show ID", Short: "The transcript, with entry numbers", Example: "  pawl sessions show run-abc", Args: oneID,
		RunE: with(func(ctx context.Context, store journal.Store, args []string) error {
			return showSession(ctx, s.out, store, args[0])
		}),
	}
	del := &cobra.Command{
		Use: "delete ID", Short: "Remove a session for good", Example: "  pawl sessions delete run-abc", Args: oneID,
		RunE: with(func(ctx context.Context, store journal.Store, args []string) error {
			err := store.Delete(ctx, args[0])
			if errdefs.NotFound.Is(err) {
				return noSession(args[0])
			}
			return err
		}),
	}
	for _, sub := range []*cobra.Command{list, show, del} {
		c.addJournal(sub)
		cmd.AddCommand(sub)
	}
	return cmd
}

func oneID(_ *cobra.Command, args []string) error {
	if len(args) != 1 {
		return usage("want one session ID, got %d arguments: see pawl sessions list", len(args))
	}
	return nil
}

func noSession(id string) error {
	return usage("there is no session %q: see pawl sessions list", id)
}

// sessionLine is one line of sessions list --json.
type sessionLine struct {
	Session  string      `json:"session"`
	Status   string      `json:"status"`
	Created  time.Time   `json:"created"`
	Updated  time.Time   `json:"updated"`
	Messages int         `json:"messages"`
	Usage    model.Usage `json:"usage"`
	Cost     *float64    `json:"cost_usd"`
}

func listSessions(ctx context.Context, w, errs io.Writer, store journal.Store, asJSON bool) error {
	enc := json.NewEncoder(w)
	tab := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	if !asJSON {
		fmt.Fprintln(tab, "SESSION\tSTATUS\tUPDATED\tMESSAGES\tTOKENS\tCOST")
	}
	for info, err := range store.Sessions(ctx, journal.Query{}) {
		if err != nil {
			return err
		}
		var st journal.State
		if log, err := journal.Open(ctx, store, info.Session); err == nil {
			st = log.State()
		} else if ctx.Err() != nil {
			return ctx.Err()
		} else { // one that can't be read does not hide the others
			fmt.Fprintf(errs, "pawl: session %s can't be read: %s\n", clean(info.Session), clean(err.Error()))
			info.Status = "unreadable"
		}
		if asJSON {
			l := sessionLine{info.Session, info.Status, info.Created, info.Updated, st.Messages.Len(), st.Spent.Usage, dollars(st.Spent.Cost())}
			if err := enc.Encode(l); err != nil {
				return err
			}
			continue
		}
		fmt.Fprintf(tab, "%s\t%s\t%s\t%d\t%d\t%s\n", clean(info.Session), info.Status, info.Updated.Local().Format("2006-01-02 15:04"), st.Messages.Len(), st.Spent.Usage.Total(), money(st.Spent.Cost()))
	}
	return tab.Flush()
}

// showSession prints what was said and done, each with the number of its entry.
func showSession(ctx context.Context, w io.Writer, store journal.Store, id string) error {
	log, err := journal.Open(ctx, store, id)
	if err != nil {
		return err
	}
	st := log.State()
	if st.Seq == 0 {
		return noSession(id)
	}
	fmt.Fprintf(w, "session %s · %s · %d tokens · cost %s\n", clean(id), status(st), st.Spent.Usage.Total(), money(st.Spent.Cost()))
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

func status(st journal.State) string {
	if st.Run != "" && st.Status == "" {
		return "running"
	}
	return st.Status
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
		return fmt.Sprintf("tool %s · %s", clean(d.Name), d.Outcome), d.Content
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
		if d.Approved {
			return "approved " + clean(d.ID), d.Text
		}
		return "rejected " + clean(d.ID), d.Text
	case journal.ModelFailed:
		return "model failed", d.Error
	case journal.Parked:
		return "interrupted · " + clean(d.Cause), d.Detail
	case journal.RunFinished:
		return "run " + d.Status, d.Error
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
