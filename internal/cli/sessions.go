package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/pawl-dev/pawl/errdefs"
	"github.com/pawl-dev/pawl/journal"
	"github.com/pawl-dev/pawl/model"
)

func sessionsCommand(s streams) *cobra.Command {
	var c common
	cmd := &cobra.Command{
		Use:     "sessions",
		Short:   "List, show, copy, fork, delete and prune sessions",
		Example: "  pawl sessions list\n  pawl sessions show ID",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return usage("sessions what? list, show ID, export ID, import FILE, fork ID, delete ID or prune")
		},
	}
	for _, sub := range []*cobra.Command{
		listCommand(s, &c), showCommand(s, &c), exportCommand(s, &c), importCommand(s, &c), forkCommand(s, &c), deleteCommand(&c), pruneCommand(s, &c),
	} {
		c.addJournal(sub)
		cmd.AddCommand(sub)
	}
	return cmd
}

// withStore makes what a subcommand does of a function that needs the journal, which open opens.
func withStore(open func(context.Context) (journal.Store, func() error, error), f func(ctx context.Context, store journal.Store, args []string) error) func(*cobra.Command, []string) error {
	return func(cmd *cobra.Command, args []string) error {
		store, close, err := open(cmd.Context())
		if err != nil {
			return err
		}
		err = f(cmd.Context(), store, args)
		if e := close(); err == nil {
			err = e
		}
		var exit *exitError
		switch {
		case err == nil || errors.As(err, &exit):
			return err
		case errdefs.Canceled(err):
			return &exitError{exitCanceled, err}
		}
		return &exitError{exitFailed, err}
	}
}

func listCommand(s streams, c *common) *cobra.Command {
	var asJSON, all bool
	var dir string
	cmd := &cobra.Command{
		Use: "list", Short: "One line a session, the newest first", Example: "  pawl sessions list --json\n  pawl sessions list --dir .", Args: cobra.NoArgs,
		RunE: withStore(c.openStore, func(ctx context.Context, store journal.Store, _ []string) error {
			q := journal.Query{}
			if dir != "" { // one that is gone may have had sessions
				var err error
				if q.Dir, err = filepath.Abs(dir); err != nil {
					return err
				}
			}
			return listSessions(ctx, s.out, s.err, store, q, asJSON, all)
		}),
	}
	cmd.Flags().BoolVar(&all, "all", false, "those of subagents' tasks too")
	cmd.Flags().StringVar(&dir, "dir", "", "those of one project alone: whose last run was in this `directory`")
	cmd.Flags().BoolVar(&asJSON, "json", false, "one JSON object a line")
	return cmd
}

func showCommand(s streams, c *common) *cobra.Command {
	var at int64
	var page string
	var system bool
	cmd := &cobra.Command{
		Use: "show ID", Short: "The transcript, with entry numbers, or a page of HTML", Args: oneID,
		Long: `Prints what was said and done in a session, each entry with its number.

With --html FILE it writes one page instead: runs and the tasks below them, steps, tool calls with what they changed and who let them run, tokens, cost and time. The page needs no
network, no script and no other file. It holds all that was said and read; a new file is readable for you alone, and one that is there is replaced, as a whole or not at all. FILE - is
standard output.`,
		Example: "  pawl sessions show run-abc\n  pawl sessions show run-abc --system\n  pawl sessions show run-abc --at 12\n  pawl sessions show run-abc --html run-abc.html",
	}
	cmd.Flags().StringVar(&page, "html", "", "write a page to `FILE`, or to standard output for -")
	cmd.Flags().BoolVar(&system, "system", false, "show the system prompts, too: what each run's model was told beside the transcript, with the project's rules, skills and memory")
	cmd.Flags().Int64Var(&at, "at", 0, "as it was when the entry of this number, `SEQ`, was the last; default: now")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if cmd.Flags().Changed("at") && at < 1 {
			return usage("--at %d: want the number of an entry, 1 or more: see pawl sessions show %s", at, args[0])
		}
		if cmd.Flags().Changed("html") && page == "" {
			return usage("--html: want the name of a file, or - for standard output")
		}
		if system && page != "" {
			return usage("--system: the page of --html has the system prompts in any case")
		}
		return withStore(c.openStore, func(ctx context.Context, store journal.Store, args []string) error {
			if !cmd.Flags().Changed("html") {
				return showSession(ctx, s.out, store, args[0], at, system)
			}
			return sessionPage(ctx, s.out, store, args[0], at, page)
		})(cmd, args)
	}
	return cmd
}

func deleteCommand(c *common) *cobra.Command {
	return &cobra.Command{
		Use: "delete ID", Short: "Remove a session, and those of its subagents' tasks, for good", Example: "  pawl sessions delete run-abc", Args: oneID,
		RunE: withStore(c.openStore, func(ctx context.Context, store journal.Store, args []string) error {
			below, err := journal.Tasks(ctx, store, args[0])
			if err != nil {
				return err
			}
			for _, id := range append(below, args[0]) { // what is above goes last: by it the rest is found
				if alive(ctx, store, id) {
					return usage("session %s is being driven: end its run first", id)
				}
				err = store.Delete(ctx, id)
				if errdefs.NotFound.Is(err) && id == args[0] {
					return noSession(id)
				}
				if err != nil && !errdefs.NotFound.Is(err) {
					return err
				}
			}
			return nil
		}),
	}
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

// alive reports whether a live driver has the session: nobody else can give its lease up.
func alive(ctx context.Context, store journal.Store, session string) bool {
	return errdefs.Conflict.Is(store.Lease(ctx, session, "pawl sessions", time.Time{}))
}

// sessionLine is one line of sessions list --json.
type sessionLine struct {
	Session  string      `json:"session"`
	Dir      string      `json:"dir"` // of its last run; "": it had none
	Status   string      `json:"status"`
	Created  time.Time   `json:"created"`
	Updated  time.Time   `json:"updated"`
	Messages int         `json:"messages"`
	Usage    model.Usage `json:"usage"`
	Cost     *float64    `json:"cost_usd"`
}

func listSessions(ctx context.Context, w, errs io.Writer, store journal.Store, q journal.Query, asJSON, all bool) error {
	enc := json.NewEncoder(w)
	tab := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	if !asJSON {
		fmt.Fprintln(tab, "SESSION\tSTATUS\tUPDATED\tMESSAGES\tTOKENS\tCOST")
	}
	for info, err := range store.Sessions(ctx, q) {
		if err != nil {
			return err
		}
		if info.Status == "running" && !alive(ctx, store, info.Session) {
			info.Status = "unfinished" // its process is gone: pawl resume goes on
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
		if info.Status == "" {
			info.Status = "forked"
		}
		if st.ParentRun != "" && !all {
			continue
		}
		if asJSON {
			l := sessionLine{info.Session, info.Dir, info.Status, info.Created, info.Updated, st.Messages.Len(), st.Spent.Usage, dollars(st.Spent.Cost())}
			if err := enc.Encode(l); err != nil {
				return err
			}
			continue
		}
		fmt.Fprintf(tab, "%s\t%s\t%s\t%d\t%d\t%s\n", clean(info.Session), clean(info.Status), info.Updated.Local().Format("2006-01-02 15:04"), st.Messages.Len(), st.Spent.Usage.Total(), money(st.Spent.Cost()))
	}
	return tab.Flush()
}
