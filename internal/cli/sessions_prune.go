package cli

import (
	"context"
	"fmt"
	"regexp"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/pawl-dev/pawl/journal"
)

func pruneCommand(s streams, c *common) *cobra.Command {
	var olderThan string
	var r journal.Retention
	cmd := &cobra.Command{
		Use: "prune", Short: "Remove old sessions for good",
		Long: `Removes sessions for good: those whose last entry is older than --older-than, and of these all but the newest --keep. It prints their IDs, the oldest
first. A session that is being driven is left alone, and one whose run can still be finished too, unless --unfinished is given. What a fork
shares with a removed session stays with the fork.`,
		Example: "  pawl sessions prune --older-than 30d\n  pawl sessions prune --older-than 2w --keep 20 --dry-run",
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) > 0 {
				return usage("prune takes no arguments, got %q: to remove one session, pawl sessions delete ID", args[0])
			}
			return nil
		},
	}
	f := cmd.Flags()
	f.StringVar(&olderThan, "older-than", "", "remove sessions whose last entry is older than this `time`, such as 30d, 2w or 12h")
	f.IntVar(&r.Keep, "keep", 0, "keep the newest `N` sessions in any case")
	f.BoolVar(&r.Unfinished, "unfinished", false, "remove sessions too whose run is unfinished")
	f.BoolVar(&r.DryRun, "dry-run", false, "print what would be removed, and remove nothing")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		older, kept := cmd.Flags().Changed("older-than"), cmd.Flags().Changed("keep")
		switch {
		case !older && !kept:
			return usage("which sessions? Give --older-than 30d, --keep 100, or both")
		case kept && r.Keep < 1:
			return usage("--keep %d: want 1 or more", r.Keep)
		case older:
			age, err := parseAge(olderThan)
			if err != nil {
				return err
			}
			r.Before = time.Now().Add(-age)
		}
		return withStore(c.openStore, func(ctx context.Context, store journal.Store, _ []string) error {
			return pruneSessions(ctx, s, store, r)
		})(cmd, args)
	}
	return cmd
}

func pruneSessions(ctx context.Context, s streams, store journal.Store, r journal.Retention) error {
	deleted, failed := journal.Prune(ctx, store, r)
	for _, id := range deleted { // after an error too: these are gone
		if _, err := fmt.Fprintln(s.out, printable(id)); err != nil && failed == nil {
			failed = err
		}
	}
	what, done := "sessions", "removed"
	if len(deleted) == 1 {
		what = "session"
	}
	if r.DryRun {
		done = "would be removed"
	}
	fmt.Fprintf(s.err, "%d %s %s\n", len(deleted), what, done)
	return failed
}

// weeksAndDays are what Go's durations don't have; the rest is theirs.
var weeksAndDays = regexp.MustCompile(`^(?:(\d{1,4})w)?(?:(\d{1,5})d)?(.*)$`)

// parseAge reads a time such as 30d, 2w, 1w12h or 90m.
func parseAge(text string) (age time.Duration, err error) {
	const day = 24 * time.Hour
	m := weeksAndDays.FindStringSubmatch(text)
	if m != nil {
		weeks, _ := strconv.Atoi("0" + m[1])
		days, _ := strconv.Atoi("0" + m[2])
		var rest time.Duration
		if m[3] != "" {
			rest, err = time.ParseDuration(m[3])
		}
		if age = time.Duration(7*weeks+days) * day; age >= 0 && rest >= 0 { // what is too long to count is below zero
			age += rest
		} else {
			age = 0
		}
	}
	if m == nil || err != nil || age <= 0 {
		return 0, usage("--older-than %q: want a time such as 30d, 2w, 1w12h or 90m", text)
	}
	return age, nil
}
