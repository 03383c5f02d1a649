package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"net/url"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/pawl-dev/pawl"
	"github.com/pawl-dev/pawl/agent"
	"github.com/pawl-dev/pawl/errdefs"
	"github.com/pawl-dev/pawl/event"
	"github.com/pawl-dev/pawl/internal/cli/otlp"
	"github.com/pawl-dev/pawl/internal/near"
	"github.com/pawl-dev/pawl/journal"
	"github.com/pawl-dev/pawl/model"
	"github.com/pawl-dev/pawl/pack"
	"github.com/pawl-dev/pawl/pack/guard"
)

// packRun is what pack run is told.
type packRun struct {
	program            Program
	model, baseURL     string
	vars, tools, allow []string
	workflow           bool
}

func packRunCommand(s streams, p Program) *cobra.Command {
	r := packRun{program: p}
	cmd := &cobra.Command{
		Use:   "run [flags] FILE PROMPT TEXT",
		Short: "Say something by a prompt of a pack, or by its workflow",
		Long: `Says TEXT, or standard input when it is -, to a model by a prompt of a pack; with --workflow, and no PROMPT, by the pack's workflow from its beginning, through
all the states that it comes to in one turn. Nothing is kept. Standard output has the answer alone, as the prompt's
validators let it through: at a terminal as it comes, elsewhere at the end. Standard error says what tools are called and what comes of it, what validators only
note, and at the end how it came out and what it took.

Without --model it is the default model of the first of OPENAI_API_KEY, ANTHROPIC_API_KEY, GEMINI_API_KEY and GOOGLE_API_KEY that is set. The value of --var is read by
the type that the pack declares: a string as it is, any other as JSON (7, 0.5, true, '["a"]', '{"a": 1}'). Each tool of the prompt, and of those that it can hand over
to, needs a --tool: an address that its calls are posted to, with arguments as {name} in it.

The exit code is 1 when the turn failed or a validator blocked the answer, whose message is printed then, 2 when nothing could begin, and 4 when a limit was reached.`,
		Example: `  pawl pack run --var name=Ada --tool lookup_order=https://shop.example/orders/{order_id} support.pack.json chat "Where is order 7?"
  pawl pack run --workflow refunds.pack.json "Order 7 came broken."`,
		Args: func(_ *cobra.Command, args []string) error {
			switch {
			case r.workflow && len(args) != 2:
				return usage("with --workflow, want a file and a text, got %d arguments", len(args))
			case !r.workflow && len(args) != 3:
				return usage("want a file, a prompt of it and a text, got %d arguments", len(args))
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			prompt := ""
			if !r.workflow {
				prompt = args[1]
			}
			code, err := r.run(cmd.Context(), s, args[0], prompt, args[len(args)-1])
			if code == exitCompleted && err == nil {
				return nil
			}
			return &exitError{code, err}
		},
	}
	f := cmd.Flags()
	f.BoolVar(&r.workflow, "workflow", false, "go by the pack's workflow")
	f.StringVar(&r.model, "model", "", "`NAME` of the model: PROVIDER/NAME, or a name that says whose it is (claude…, gemini…, gpt…)")
	f.StringVar(&r.baseURL, "base-url", "", "`URL` of the model's API, with --model")
	f.StringArrayVar(&r.vars, "var", nil, "set a variable: `NAME=VALUE`, a string as it is, any other as JSON (repeat)")
	f.StringArrayVar(&r.tools, "tool", nil, "answer a tool by HTTP: `NAME=URL` (repeat)")
	f.StringArrayVar(&r.allow, "allow", nil, "`HOST` or address that tools may reach besides their own, such as localhost (repeat)")
	return cmd
}

// run takes the turn. What is found before it is wrong use.
func (r packRun) run(ctx context.Context, s streams, file, prompt, text string) (code int, err error) {
	ctx = otlp.Caller(ctx)
	tracer, err := r.program.traces.Tracer()
	if err != nil {
		return exitUsage, err
	}
	host := &lineHost{}
	store := journal.Memory()
	conv, err := r.open(file, prompt, pawl.WithHost(host), pawl.WithJournal(store), pawl.WithRunOptions(agent.WithTracer(tracer)))
	if err != nil {
		return exitUsage, unwrapped(err)
	}
	defer func() { _ = conv.Close() }() // nothing runs any more
	m, err := request(ctx, s, text, nil)
	if err != nil {
		return exitUsage, unwrapped(err)
	}
	words := s.err
	if terminal(s.out) {
		words = s.out
	}
	live := newLive(s)
	defer live.end()
	p := newProgress(live.out, live.screen.writer(words), coloured(s.err))
	p.holdAnswer = !terminal(s.out)
	live.shows(p.line)
	host.show = func(e event.Event) {
		e.ParentRun = "" // an agent that took over goes on with the turn, and is nobody's subagent
		live.event(e, func() {
			if _, ok := e.Data.(journal.RunStarted); ok {
				p.say(p.answer) // of who handed over: it was not the turn's
				p.answer = ""
				p.endText()
			}
			p.event(e)
		})
	}
	resp, err := conv.Send(ctx, m.Text())
	live.end()
	if resp == nil {
		if code = codeOf(nil, err); code == exitFailed && errdefs.Validation.Is(err) {
			code = exitUsage
		}
		return code, err
	}
	if e := r.show(ctx, s, p, store, resp, err); e != nil {
		return exitFailed, errors.Join(err, e)
	}
	return codeOf(resp.Result, err), err
}

// unwrapped is the error of wrong use that another one may be already.
func unwrapped(err error) error {
	var exit *exitError
	if errors.As(err, &exit) {
		return exit.err
	}
	return err
}

// show says how the turn came out, and gives the answer, unless it was shown as it came. The error is that of standard output.
func (r packRun) show(ctx context.Context, s streams, p *progress, store journal.Store, resp *pawl.Response, failed error) error {
	var blocked *guard.Violation
	answered := resp.Status == agent.StatusCompleted || errors.As(failed, &blocked)
	if !answered {
		p.say(p.held.String())
	}
	p.endText()
	for _, v := range resp.Violations {
		if !v.Guard.FailOnViolation {
			p.line("33", "noted: %s: %s", clean(v.Guard.Type), clean(v.Reason))
		}
	}
	spent := journal.Spent{Steps: resp.Steps, Usage: resp.Usage}
	cost := resp.Cost
	if log, err := journal.Open(context.WithoutCancel(ctx), store, resp.ContextID); err == nil { // with what agents took that handed over
		spent = log.State().Spent
		cost = spent.Cost()
	}
	fmt.Fprintf(p.w, "%s · %s · %d tokens · cost %s\n", resp.Status, counted(spent.Steps, "step"), spent.Usage.Total(), money(cost))
	if text := strings.TrimSuffix(resp.Text(), "\n"); p.holdAnswer && answered && text != "" {
		_, err := fmt.Fprintln(s.out, printable(text))
		return err
	}
	return nil
}

// open opens the conversation, once all that the command line says is found right.
func (r packRun) open(file, prompt string, opts ...pawl.Option) (*pawl.Conversation, error) {
	vars, err := pairs("--var", "NAME=VALUE", r.vars)
	if err != nil {
		return nil, err
	}
	tools, err := pairs("--tool", "NAME=URL", r.tools)
	if err != nil {
		return nil, err
	}
	p, err := pack.Load(file)
	if err != nil {
		return nil, err
	}
	all, err := r.prompts(p, prompt)
	if err != nil {
		return nil, err
	}
	values, err := variables(all, vars)
	if err != nil {
		return nil, err
	}
	if err := answerable(p, all, tools); err != nil {
		return nil, err
	}
	at, err := r.endpoint()
	if err != nil {
		return nil, err
	}
	opts = append(opts, pawl.WithVars(values))
	if r.model != "" {
		opts = append(opts, pawl.WithModelName(r.model, at...))
	}
	open := func() (*pawl.Conversation, error) { return pawl.Open(file, prompt, opts...) }
	if r.workflow {
		open = func() (*pawl.Conversation, error) { return pawl.OpenWorkflow(file, opts...) }
	}
	conv, err := open()
	if err != nil {
		return nil, err
	}
	for _, name := range slices.Sorted(maps.Keys(tools)) {
		if err := conv.OnToolHTTP(name, pawl.HTTPTool{URL: tools[name], Allow: r.allow}); err != nil {
			if cause := errors.Unwrap(err); cause != nil {
				err = cause
			}
			return nil, usage("--tool %s: %w", name, err)
		}
	}
	if missing, err := pawl.Key(conv.Model()); err == nil && len(missing) > 0 && r.baseURL == "" {
		return nil, usage("model %s: no key was found in %s: set it, or play a script with --model scripted/FILE", conv.Model(), strings.Join(missing, " or "))
	}
	return conv, nil
}

// prompts are those that the turn may come to.
func (r packRun) prompts(p *pack.Pack, name string) (all []*pack.Prompt, err error) {
	if !r.workflow {
		first, err := p.Prompt(name)
		if err != nil {
			return nil, err
		}
		return reachable(p, first), nil
	}
	w := p.Workflow
	if w == nil {
		return nil, usage("the pack has no workflow: name one of its prompts: %s", strings.Join(slices.Sorted(maps.Keys(p.Prompts)), ", "))
	}
	all = append(all, p.Prompts[w.States[w.Entry].PromptTask])
	for _, state := range w.Ahead(w.Entry) {
		if next := p.Prompts[w.States[state].PromptTask]; !slices.Contains(all, next) {
			all = append(all, next)
		}
	}
	return all, nil
}

// endpoint is where the model is, when that is said; without --model there has to be a key that says which one.
func (r packRun) endpoint() ([]model.Option, error) {
	switch {
	case r.model == "" && r.baseURL != "":
		return nil, usage("--base-url goes with --model")
	case r.model == "":
		keys := []string{"OPENAI_API_KEY", "ANTHROPIC_API_KEY", "GEMINI_API_KEY", "GOOGLE_API_KEY"} // as the command's help has them
		if !slices.ContainsFunc(keys, func(name string) bool { return os.Getenv(name) != "" }) {
			return nil, usage("nothing says which model to talk to: give --model PROVIDER/NAME, or set one of %s", strings.Join(keys, ", "))
		}
		return nil, nil
	case r.baseURL == "":
		return nil, nil
	}
	if u, err := url.Parse(r.baseURL); err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
		return nil, usage("--base-url: want a URL such as https://host/path") // it is not repeated: it may have a password
	}
	return []model.Option{model.WithBaseURL(r.baseURL)}, nil
}

// pairs reads what a flag was given: names, each once, and what stands behind them.
func pairs(flag, form string, given []string) (map[string]string, error) {
	all := map[string]string{}
	for _, text := range given {
		name, value, ok := strings.Cut(text, "=")
		if !ok || name == "" {
			return nil, usage("%s %q: want %s", flag, text, form)
		}
		if _, twice := all[name]; twice {
			return nil, usage("%s %s is there twice: leave one", flag, name)
		}
		all[name] = value
	}
	return all, nil
}

// reachable are a prompt and those that a turn of it may be handed over to.
func reachable(p *pack.Pack, first *pack.Prompt) []*pack.Prompt {
	all := []*pack.Prompt{first}
	for i := 0; i < len(all); i++ {
		for _, id := range p.AgentsOf(all[i]) {
			if next := p.Prompts[id]; next != nil && !slices.Contains(all, next) {
				all = append(all, next)
			}
		}
	}
	return all
}

// variables reads values by the types that prompts declare, the first one first.
func variables(prompts []*pack.Prompt, given map[string]string) (map[string]any, error) {
	var known []string
	declared := map[string]pack.Variable{}
	for _, p := range prompts {
		for _, name := range p.VariableNames() {
			if !slices.Contains(known, name) {
				known = append(known, name)
			}
		}
		for _, v := range p.Variables {
			if _, ok := declared[v.Name]; !ok {
				declared[v.Name] = v
			}
		}
	}
	values := map[string]any{}
	for _, name := range slices.Sorted(maps.Keys(given)) {
		if !slices.Contains(known, name) {
			return nil, usage("--var %s: prompt %s has no such variable: %s", name, prompts[0].ID, instead(name, known))
		}
		v, err := valueOf(declared[name].Type, given[name])
		if err != nil {
			return nil, usage("--var %s: %w", name, err)
		}
		values[name] = v
	}
	for _, p := range prompts {
		for _, v := range p.Variables {
			if _, ok := values[v.Name]; v.Required && !ok {
				return nil, usage("prompt %s: %s is required and has no value: give --var %s=VALUE (%s)", p.ID, v.Name, v.Name, v.Type)
			}
		}
	}
	return values, nil
}

// instead is what there is in place of a name that is not there.
func instead(name string, known []string) string {
	if len(known) == 0 {
		return "it has none"
	}
	if found := near.Names(name, known); len(found) > 0 {
		return "did you mean " + found[0] + "? It has " + strings.Join(known, ", ")
	}
	return "it has " + strings.Join(known, ", ")
}

// valueOf reads the text of a flag as a value of a type of variables: of one that is not known, as a string. The error does not repeat it: it may be a secret.
func valueOf(kind, text string) (any, error) {
	want := map[string]string{
		"integer": "an integer, such as 7", "number": "a number, such as 0.5", "boolean": "a boolean, true or false",
		"array": `an array in JSON, such as '["a", "b"]'`, "object": `an object in JSON, such as '{"a": 1}'`,
	}[kind]
	if want == "" {
		return text, nil
	}
	fits := false
	var v any
	if err := json.Unmarshal([]byte(text), &v); err == nil {
		switch v := v.(type) {
		case float64:
			fits = kind == "number" || kind == "integer" && v == math.Trunc(v)
		case bool:
			fits = kind == "boolean"
		case []any:
			fits = kind == "array"
		case map[string]any:
			fits = kind == "object"
		}
	}
	if !fits {
		return nil, errdefs.Validation.Errorf("the pack says %s: want %s", kind, want)
	}
	return json.RawMessage(strings.TrimSpace(text)), nil // as it is written: a large number keeps its digits
}

// answerable finds tools that nobody answers, and answers that no tool asks for.
func answerable(p *pack.Pack, prompts []*pack.Prompt, given map[string]string) error {
	var known, missing []string
	for _, pr := range prompts {
		for _, t := range p.ToolsOf(pr) {
			if slices.Contains(known, t.Name) {
				continue
			}
			known = append(known, t.Name)
			if _, ok := given[t.Name]; !ok {
				missing = append(missing, "--tool "+t.Name+"=URL")
			}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(given)) {
		if !slices.Contains(known, name) {
			return usage("--tool %s: prompt %s has no such tool: %s", name, prompts[0].ID, instead(name, known))
		}
	}
	if len(missing) > 0 {
		return usage("nobody answers these tools: give %s", strings.Join(missing, " ")) // a workflow's may be of any of its prompts
	}
	return nil
}
