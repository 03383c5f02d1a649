package cli

import (
	"context"
	"fmt"
	"io"
	"strings"
	"unicode"

	"github.com/spf13/cobra"

	"github.com/pawl-dev/pawl/errdefs"
	"github.com/pawl-dev/pawl/journal"
)

func exportCommand(s streams, c *common) *cobra.Command {
	return &cobra.Command{
		Use: "export ID [FILE]", Short: "Write a session as JSON lines, one journal entry each",
		Long: `Writes a session to a file, or to standard output: JSON lines, one journal entry each, always with the same bytes. The file stands alone
(a fork's has the entries that it shares too), and pawl sessions import reads it.

It holds all that was said and read, as plain text: prompts, files, outputs of commands. A new file is readable for you alone. Long outputs of tools,
which the journal keeps beside itself, are not part of it.`,
		Example: "  pawl sessions export run-abc > run-abc.jsonl\n  pawl sessions export run-abc run-abc.jsonl",
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) < 1 || len(args) > 2 {
				return usage("want a session ID and perhaps a file, got %d arguments: see pawl sessions list", len(args))
			}
			return nil
		},
		RunE: withStore(c.openStore, func(ctx context.Context, store journal.Store, args []string) error {
			if err := mustBe(ctx, store, args[0]); err != nil {
				return err
			}
			write := func(w io.Writer) error { return journal.Export(ctx, store, args[0], w) }
			if len(args) == 1 || args[1] == "-" {
				return write(s.out)
			}
			return replaceFile(args[1], write)
		}),
	}
}

func importCommand(s streams, c *common) *cobra.Command {
	var as string
	cmd := &cobra.Command{
		Use: "import FILE", Short: "Make a session of an exported file",
		Long: `Makes a session of what pawl sessions export wrote, and prints its ID. FILE - is standard input. All lines are checked before anything is
written, and a session that is there is not written over. An unfinished run is unfinished here too, and can be resumed: that runs the calls that are in the file, with the
verdicts that are in it, in the directory that it names unless --dir names another. Resume only what you trust. Sessions of subagents' tasks are not part of a file.`,
		Example: "  pawl sessions import run-abc.jsonl\n  pawl sessions import --as copy - < run-abc.jsonl",
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) != 1 {
				return usage("want one file, or - for standard input, got %d arguments", len(args))
			}
			return nil
		},
	}
	cmd.Flags().StringVar(&as, "as", "", "the `NAME` of the new session; default: the name in the file")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if c.journal == "memory" {
			return usage("--journal memory: what is imported would be gone at once; name a file with sqlite:PATH")
		}
		if err := checkName(cmd, as); err != nil {
			return err
		}
		in, done, err := openInput(cmd.Context(), s, args[0])
		if err != nil {
			return err
		}
		defer done()
		return withStore(c.store, func(ctx context.Context, store journal.Store, args []string) error {
			name, err := journal.Import(ctx, store, in, as)
			if err != nil {
				return badInput(err)
			}
			log, err := journal.Open(ctx, store, name)
			if err != nil {
				return err
			}
			next := "go on with: " + c.line("run", "--session", name, "…")
			if log.State().Run != "" {
				next = "its run is unfinished; " + c.goOn(name, log.State())
			}
			fmt.Fprintln(s.err, next)
			_, err = fmt.Fprintln(s.out, printable(name))
			return err
		})(cmd, args)
	}
	return cmd
}

func forkCommand(s streams, c *common) *cobra.Command {
	var as string
	var at int64
	cmd := &cobra.Command{
		Use: "fork ID", Short: "A new session that shares the beginning of another one",
		Long: `Makes a session that has the entries of another one up to a number, as pawl sessions show gives them, and prints its ID. From there the two go their own
ways, and either can be deleted. Files on disk are not rewound: what was written after the entry is listed on standard error.`,
		Example: "  pawl sessions fork run-abc --at 12\n  pawl run --session \"$(pawl sessions fork run-abc --at 12 --as other)\" \"Try it another way.\"",
		Args:    oneID,
	}
	cmd.Flags().Int64Var(&at, "at", 0, "the number `SEQ` of the last entry that it shares; default: the session's last")
	cmd.Flags().StringVar(&as, "as", "", "the `NAME` of the new session; default: the other's with -fork at the end")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if cmd.Flags().Changed("at") && at < 1 {
			return usage("--at %d: want the number of an entry, 1 or more: see pawl sessions show %s", at, args[0])
		}
		if err := checkName(cmd, as); err != nil {
			return err
		}
		return withStore(c.openStore, func(ctx context.Context, store journal.Store, args []string) error {
			return c.forkSession(ctx, s, store, args[0], at, as)
		})(cmd, args)
	}
	return cmd
}

func (c common) forkSession(ctx context.Context, s streams, store journal.Store, id string, at int64, as string) error {
	if err := mustBe(ctx, store, id); err != nil {
		return err
	}
	name, err := journal.Fork(ctx, store, id, at, as)
	if errdefs.Conflict.Is(err) {
		err = fmt.Errorf("%w (--as NAME)", err)
	}
	if err != nil {
		return badInput(err)
	}
	fmt.Fprintln(s.err, "Files on disk are not rewound.")
	if at > 0 {
		written, err := journal.WrittenAfter(ctx, store, id, at)
		if err != nil {
			return err
		}
		tellWritten(s.err, at, written)
	}
	fmt.Fprintln(s.err, "go on with: "+c.line("run", "--session", name, "…"))
	_, err = fmt.Fprintln(s.out, printable(name))
	return err
}

// tellWritten says what a fork finds on disk although its transcript doesn't know of it.
func tellWritten(w io.Writer, at int64, written journal.Written) {
	if len(written.Files) > 0 {
		fmt.Fprintf(w, "Written after entry %d:\n", at)
		for _, file := range written.Files {
			fmt.Fprintf(w, "  %s\n", clean(file))
		}
	}
	too, other := "", ""
	if len(written.Files) > 0 {
		too, other = " too", "other "
	}
	switch n := written.Commands; {
	case n == 1:
		fmt.Fprintf(w, "A command (bash) ran after it%s, and may have written %sfiles.\n", too, other)
	case n > 1:
		fmt.Fprintf(w, "%d commands (bash) ran after it%s, and may have written %sfiles.\n", n, too, other)
	}
}

// mustBe refuses a session that isn't there.
func mustBe(ctx context.Context, store journal.Store, id string) error {
	for _, err := range store.Read(ctx, id, 0) {
		return err // of the first entry: nil when there is one
	}
	return noSession(id)
}

// badInput makes an error that the input is to blame for one of wrong use.
func badInput(err error) error {
	switch errdefs.Of(err) {
	case errdefs.Validation, errdefs.NotFound, errdefs.Conflict:
		return wrongUse(err)
	}
	return err
}

// checkName looks at the name that --as gives a session.
func checkName(cmd *cobra.Command, as string) error {
	switch {
	case cmd.Flags().Changed("as") && as == "":
		return usage("--as: the name is empty: leave it out, or give one")
	case strings.ContainsFunc(as, unicode.IsControl):
		return usage("--as %q: no control characters, please", as)
	}
	return nil
}
