package cli

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/pawl-dev/pawl"
	"github.com/pawl-dev/pawl/agent"
	"github.com/pawl-dev/pawl/agent/askuser"
	"github.com/pawl-dev/pawl/errdefs"
	"github.com/pawl-dev/pawl/hook"
	"github.com/pawl-dev/pawl/hook/permission"
	"github.com/pawl-dev/pawl/message"
	"github.com/pawl-dev/pawl/model"
	"github.com/pawl-dev/pawl/project"
	"github.com/pawl-dev/pawl/sandbox"
	"github.com/pawl-dev/pawl/sandbox/fence"
	"github.com/pawl-dev/pawl/tool"
	"github.com/pawl-dev/pawl/tool/builtin"
)

func permissionsCommand(s streams) *cobra.Command {
	cmd := &cobra.Command{
		Use:     "permissions",
		Short:   "Say what may be done, and why",
		Example: "  pawl permissions check bash 'git push --force'",
		Args:    cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			return usage("permissions what? check TOOL INPUT")
		},
	}
	cmd.AddCommand(permissionsCheckCommand(s))
	return cmd
}

// policy are the flags that say what may be done.
type policy struct {
	mode, taint      string
	allow, deny, ask []string
	noSandbox        bool
}

func (p *policy) add(cmd *cobra.Command) {
	f := cmd.Flags()
	f.StringVar(&p.mode, "permission-mode", "", "what happens to calls that no rule is about: `MODE` is default (unless the settings say otherwise), plan, acceptEdits, bypassPermissions or dontAsk")
	f.StringArrayVar(&p.allow, "allow", nil, "a `RULE` that lets calls run, such as \"Bash(go test:*)\" or \"Edit(src/**)\" (repeat)")
	f.StringArrayVar(&p.deny, "deny", nil, "a `RULE` that refuses calls, such as \"Read(.env)\"; nothing lifts it (repeat)")
	f.StringArrayVar(&p.ask, "ask", nil, "a `RULE` that has a person asked, such as \"Bash(git push:*)\" (repeat)")
	f.StringVar(&p.taint, "taint", "", "what happens to calls that may send data out once the conversation has read what strangers wrote: `WHAT` is off (unless the settings say otherwise), ask or deny")
	f.BoolVar(&p.noSandbox, "no-sandbox", false, "commands run without a sandbox")
}

// flags are the flags that were given, as they are typed.
func (p *policy) flags() (words []string) {
	if p.mode != "" && p.mode != string(permission.ModeDefault) {
		words = append(words, "--permission-mode", p.mode)
	}
	if p.taint != "" {
		words = append(words, "--taint", p.taint)
	}
	for _, of := range []struct {
		name  string
		rules []string
	}{{"--allow", p.allow}, {"--deny", p.deny}, {"--ask", p.ask}} {
		for _, rule := range of.rules {
			words = append(words, of.name, rule)
		}
	}
	if p.noSandbox {
		words = append(words, "--no-sandbox")
	}
	return words
}

// permissions are the flags as package hook/permission has them, for a project.
func (p *policy) permissions(dir string) (permission.Config, error) {
	mode, err := permission.ParseMode(p.mode)
	if err != nil {
		return permission.Config{}, usage("--permission-mode: %v", err)
	}
	if p.taint != "" && !slices.Contains(permission.Taints(), permission.Taint(p.taint)) {
		return permission.Config{}, usage("--taint %q: want off, ask or deny", p.taint)
	}
	if p.mode == "" {
		mode = "" // that of the settings
	}
	out := permission.Config{Mode: mode, Taint: permission.Taint(p.taint), Dir: dir, Fence: !p.noSandbox && fence.Probe().Writes.Holds}
	for v, list := range map[hook.Verdict][]string{hook.Allow: p.allow, hook.Ask: p.ask, hook.Deny: p.deny} {
		for i, text := range list {
			place := "--" + v.String()
			if len(list) > 1 {
				place = fmt.Sprintf("%s number %d", place, i+1)
			}
			out.Rules = append(out.Rules, permission.Rule{Verdict: v, Text: text, Place: place})
		}
	}
	return out, nil
}

func permissionsCheckCommand(s streams) *cobra.Command {
	var p policy
	var dir string
	var asJSON, trusted bool
	cmd := &cobra.Command{
		Use:   "check TOOL INPUT",
		Short: "What the policy would do with a tool call, and why",
		Long: `Prints allow, ask or deny, and the reason, for one tool call; nothing is run. INPUT is the call's input
as JSON, or for bash the command itself. With - for INPUT, bash commands come from standard input, one a
line, and each gets a line. What counts is what would count in a run there: the project's settings and the user's, as far as they are approved,
the rules and the mode that the flags say, and the safety check. Shell hooks are not asked. A tool that a run would not have is wrong use (exit 2);
those of MCP servers are known by their names only, mcp__SERVER__TOOL.`,
		Example: "  pawl permissions check bash 'git push --force'\n" +
			"  pawl permissions check --deny 'Read(.env)' read '{\"file_path\": \".env\"}'\n" +
			"  pawl permissions check --json bash - <commands.txt",
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) != 2 {
				return usage("want a tool and its input, got %d arguments: put the input in quotes", len(args))
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			root, err := projectRoot(dir)
			if err != nil {
				return err
			}
			c, warning, err := newChecker(cmd.Context(), root, p, trusted)
			if err != nil {
				return err
			}
			defer func() { err = errors.Join(err, c.close()) }()
			warnOf(s, c.problems)
			if warning != "" {
				fmt.Fprintln(s.err, "pawl:", printable(warning))
			}
			print := func(a answered, err error) error {
				if err == nil {
					err = a.print(s.out, asJSON)
				}
				return err
			}
			switch {
			case args[1] != "-":
				return print(c.check(cmd.Context(), args[0], args[1]))
			case !strings.EqualFold(args[0], "bash"):
				return usage("only the commands of bash are read from standard input: give %s its input as JSON", clean(args[0]))
			}
			return eachLine(cmd.Context(), s.in, func(line string) error { return print(c.command(cmd.Context(), args[0], line)) })
		},
	}
	p.add(cmd)
	cmd.Flags().StringVar(&dir, "dir", "", "the project's `directory`; default: the nearest directory upward with .agents, .git or go.mod, else the current one")
	cmd.Flags().BoolVar(&trusted, "trust", false, "let all settings of the project count, approved or not: see pawl trust")
	cmd.Flags().BoolVar(&asJSON, "json", false, "one JSON object a line: tool, input, verdict, reason, rule, place, mode")
	return cmd
}

// checker judges calls as a run in a project would.
type checker struct {
	tools tool.Set
	names tool.Set // the same with the tool that gives subagents tasks, of which only the name is known, when there are any
	hooks []hook.Middleware
	last  permission.Judgment
	mode  permission.Mode
	close func() error

	problems []project.Problem // of the project
}

// newChecker reads the project. warning says what of it does not count.
func newChecker(ctx context.Context, root string, flags policy, trusted bool) (c *checker, warning string, err error) {
	o := pawl.Options{ProjectRoot: root}
	if o.Permissions, err = flags.permissions(root); err != nil {
		return nil, "", err
	}
	if flags.noSandbox {
		o.Sandbox = &sandbox.Policy{Off: true}
	}
	var opts []project.Option
	if trusted {
		opts = append(opts, project.WithTrusted())
	}
	in, err := project.Load(ctx, root, opts...)
	if err != nil {
		return nil, "", wrongUse(err)
	}
	p, warning, err := pawl.Permissions(o, in)
	if err != nil {
		return nil, "", wrongUse(err)
	}
	c = &checker{mode: p.Mode, problems: in.Problems}
	p.Audit = func(_ context.Context, j permission.Judgment) { c.last = j }
	permissions, err := permission.New(p)
	if err != nil {
		return nil, "", wrongUse(err)
	}
	c.hooks = []hook.Middleware{permissions}
	w, err := builtin.Open(root, builtin.WithDirectories(p.Writable...), builtin.WithOutside())
	if err != nil {
		return nil, "", wrongUse(err)
	}
	c.close = w.Close
	tools := append(w.Tools(), w.WebFetch(), askuser.New(nil))
	if skill, ok := in.SkillTool(); ok {
		tools = append(tools, skill)
	}
	if c.tools, err = tool.NewSet(tools...); err == nil && slices.ContainsFunc(in.Subagents, func(s project.Subagent) bool { return s.Broken == "" }) {
		tools = append(tools, tool.Func(agent.TaskName, "", func(context.Context, struct{}) (string, error) { return "", nil }))
	}
	if err == nil {
		c.names, err = tool.NewSet(tools...)
	}
	return c, warning, err
}

// answered is what a check says.
type answered struct {
	Tool    string          `json:"tool"`
	Input   json.RawMessage `json:"input"`
	Verdict string          `json:"verdict"`
	Reason  string          `json:"reason"`
	Rule    string          `json:"rule,omitempty"`
	Place   string          `json:"place,omitempty"`
	Mode    permission.Mode `json:"mode"`
}

func (c *checker) check(ctx context.Context, name, input string) (answered, error) {
	if _, _, ok := c.names.Lookup(name); !ok && !mcpTool(name) {
		return answered{}, usage("%v (those of MCP servers are mcp__SERVER__TOOL)", c.names.Unknown(clean(name), nil))
	}
	var object map[string]json.RawMessage
	if err := json.Unmarshal([]byte(input), &object); err != nil || object == nil {
		if !strings.EqualFold(name, "bash") {
			return answered{}, usage("%s: the input has to be a JSON object, such as '{\"file_path\": \"go.mod\"}'", clean(name))
		}
		return c.command(ctx, name, input)
	}
	return c.judge(ctx, name, input)
}

// command judges a bash command. One that the tool itself would refuse is denied: it has a line, too.
func (c *checker) command(ctx context.Context, name, command string) (answered, error) {
	input, err := json.Marshal(map[string]string{"command": command})
	if err != nil {
		return answered{}, err
	}
	if strings.TrimSpace(command) == "" || strings.ContainsRune(command, 0) {
		return answered{Tool: strings.ToLower(name), Input: input, Verdict: hook.Deny.String(), Reason: "the command is empty or has a NUL character", Mode: c.mode}, nil
	}
	return c.judge(ctx, name, string(input))
}

func (c *checker) judge(ctx context.Context, name, input string) (answered, error) {
	call := message.ToolCall{ID: "check", Name: name, Input: input}
	def := tool.Definition{Tool: model.Tool{Name: name}} // a tool that says nothing of itself
	var check func(string) (string, error)
	if _, known, ok := c.tools.Lookup(name); ok {
		def, call.Name = known, known.Name
		check = func(input string) (string, error) {
			return c.tools.Check(message.ToolCall{Name: def.Name, Input: input})
		}
		var err error
		if call.Input, err = check(input); err != nil {
			return answered{}, wrongUse(err)
		}
	}
	c.last = permission.Judgment{}
	use := &hook.ToolUse{Tool: def, Call: call}
	d := hook.Judge(ctx, c.hooks, use, check)
	if _, _, ours := c.tools.Lookup(name); ours && d.Verdict < hook.Deny {
		if err := c.tools.Vet(ctx, use.Call); err != nil {
			d = hook.Denied(err.Error())
		}
	}
	a := answered{Tool: call.Name, Input: json.RawMessage(use.Call.Input), Verdict: d.Verdict.String(), Reason: d.Reason, Mode: c.mode}
	if c.last.Verdict == d.Verdict && c.last.Reason == d.Reason {
		a.Rule, a.Place = c.last.Rule, c.last.Place
	}
	return a, nil
}

// mcpTool reports whether a tool may be one of an MCP server's: mcp__SERVER__TOOL.
func mcpTool(name string) bool {
	server, tool, ok := strings.Cut(strings.TrimPrefix(name, "mcp__"), "__")
	return ok && strings.HasPrefix(name, "mcp__") && server != "" && tool != ""
}

// print writes the answer on one line.
func (a answered) print(out io.Writer, asJSON bool) error {
	if asJSON {
		b, err := json.Marshal(a)
		if err != nil {
			return errdefs.Internal.Errorf("permissions: %w", err)
		}
		_, err = fmt.Fprintf(out, "%s\n", b)
		return err
	}
	_, err := fmt.Fprintf(out, "%s %s\n", a.Verdict, strings.Join(strings.Fields(printable(a.Reason)), " "))
	return err
}

// eachLine calls f with each line of in as it comes, unless ctx ends first.
func eachLine(ctx context.Context, in io.Reader, f func(line string) error) error {
	lines, failed, done := make(chan string), make(chan error, 1), make(chan struct{})
	defer close(done)
	go func() { // after a cancel a read goes on to the end of the process: there is no way to stop it
		defer close(lines)
		r := bufio.NewScanner(in)
		r.Buffer(nil, maxPrompt)
		for r.Scan() {
			select {
			case lines <- r.Text():
			case <-done:
				return
			}
		}
		if err := r.Err(); errors.Is(err, bufio.ErrTooLong) {
			failed <- usage("standard input: a line is over the limit of %d MiB", maxPrompt>>20)
		} else if err != nil {
			failed <- usage("standard input: %v", reason(err))
		}
	}()
	for {
		select {
		case line, more := <-lines:
			if !more {
				select {
				case err := <-failed:
					return err
				default:
					return nil
				}
			}
			if err := f(line); err != nil {
				return err
			}
		case <-ctx.Done():
			return &exitError{exitCanceled, ctx.Err()}
		}
	}
}
