package cli

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/pawl-dev/pawl"
	"github.com/pawl-dev/pawl/errdefs"
	"github.com/pawl-dev/pawl/project"
)

func trustCommand(s streams) *cobra.Command {
	var revoke, list bool
	cmd := &cobra.Command{
		Use:   "trust [DIR]",
		Short: "Show what a project's files would run or allow, and approve it",
		Long: `Settings that come with a project may have been written by anybody. What they forbid counts at once; hooks, MCP servers, variables, allow rules
and all else that lets something happen wait until a person has approved it. The approval is of that content: a change of it is asked about again.
What the files forbade when Pawl last worked here counts until its removal is approved, too.
At a terminal the approval is asked for; elsewhere the command itself is it.`,
		Example: "  pawl trust --list\n  pawl trust ../project",
		Args:    cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			dir := ""
			if len(args) == 1 {
				dir = args[0]
			}
			root, err := projectAt("trust "+dir, dir)
			if err != nil {
				return err
			}
			p, err := project.Load(cmd.Context(), root)
			if err != nil {
				return &exitError{exitUsage, err}
			}
			if revoke {
				if err := project.Revoke(p); err != nil {
					return err
				}
				_, err = fmt.Fprintf(s.out, "Nothing of %s is approved any more.\n", printable(p.Root))
				return err
			}
			warnOf(s, slices.DeleteFunc(slices.Clone(p.Problems), func(problem project.Problem) bool { // what is asked about is no news
				return slices.ContainsFunc(p.Untrusted(), func(v project.Value) bool { return v.State == project.StateChanged && v.Place == problem.Place })
			}))
			return trust(cmd.Context(), s, p, list)
		},
	}
	cmd.Flags().BoolVar(&revoke, "revoke", false, "forget what was approved")
	cmd.Flags().BoolVar(&list, "list", false, "only show it")
	return cmd
}

// trust shows what waits, and approves it.
func trust(ctx context.Context, s streams, p *project.Project, list bool) error {
	all := p.Untrusted()
	if len(all) == 0 {
		_, err := fmt.Fprintf(s.out, "Nothing in %s waits for approval.\n", printable(p.Root))
		return err
	}
	if _, err := fmt.Fprintf(s.out, "The files of %s want:\n%s", escaped(p.Root), wishes(p)); err != nil || list {
		return err
	}
	if terminal(s.in) {
		if _, err := fmt.Fprint(s.err, "Approve all of it? [y/N] "); err != nil {
			return err
		}
		answer, _ := bufio.NewReader(s.in).ReadString('\n')
		if a := strings.ToLower(strings.TrimSpace(answer)); ctx.Err() != nil || a != "y" && a != "yes" {
			return &exitError{exitWaiting, errors.New("not approved")}
		}
	}
	if err := project.Approve(p); err != nil {
		return err
	}
	_, err := fmt.Fprintln(s.out, "Approved.")
	return err
}

// warnOf names what was read of a project and has no effect.
func warnOf(s streams, problems []project.Problem) {
	for _, problem := range problems {
		fmt.Fprintln(s.err, "warning:", clean(problem.String()))
	}
}

// wishes are a line for each thing that an approval would be of, and for each that was approved before and is gone.
func wishes(p *project.Project) string {
	var b strings.Builder
	compared := false
	for _, v := range append(p.Untrusted(), p.Withdrawn()...) {
		mark := ""
		switch {
		case v.State == project.StateChanged: // of a file that a person can look at
			fmt.Fprintf(&b, "  %s: its text, which was changed while tools could write it with nobody asked\n", escaped(v.Place.String()))
			continue
		case v.State == project.StateRemoved:
			mark = "no longer "
		case v.Since != project.ChangeNone:
			mark, compared = string(v.Since)+": ", true
		}
		fmt.Fprintf(&b, "  %s: %s%s %s\n", escaped(v.Place.String()), mark, escaped(v.Key), escaped(v.Text)) // what could not be seen would be approved unseen
	}
	if compared {
		b.WriteString("(new, changed and gone: since what was approved last)\n")
	}
	return b.String()
}

// project reads the project's settings for a run: what waits for approval has to be approved first.
func (c *common) project(ctx context.Context, o *pawl.Options) error {
	o.Trusted = c.trust
	var opts []project.Option
	if c.trust {
		opts = append(opts, project.WithTrusted())
	}
	p, err := project.Load(ctx, o.ProjectRoot, opts...)
	if err != nil {
		return &exitError{exitUsage, err}
	}
	c.settingsModel, c.settingsRetries = p.Settings.Model, p.Settings.Retries
	waits := func(v project.Value) bool { return v.State == project.StateWaiting } // what was removed binds, so nothing has to be asked
	if all := p.Untrusted(); slices.ContainsFunc(all, waits) {
		return &exitError{exitWaiting, errdefs.PolicyDenied.Errorf("the project's files want what nobody has approved:\n%sapprove it with %s, or once with --trust", wishes(p), c.trustLine(p.Root))}
	}
	return nil
}

func (c *common) trustLine(root string) string { return "pawl trust " + quoted(root) }
