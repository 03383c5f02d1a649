package cli

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/pawl-dev/pawl/internal/secret"

	"github.com/spf13/cobra"

	"github.com/pawl-dev/pawl"
	"github.com/pawl-dev/pawl/engine"
	"github.com/pawl-dev/pawl/engine/loop"
	"github.com/pawl-dev/pawl/errdefs"
	"github.com/pawl-dev/pawl/hook/permission"
	"github.com/pawl-dev/pawl/internal/steady"
	"github.com/pawl-dev/pawl/journal"
	"github.com/pawl-dev/pawl/journal/postgres"
	"github.com/pawl-dev/pawl/journal/sqlite"
	"github.com/pawl-dev/pawl/model"
	"github.com/pawl-dev/pawl/sandbox"
)

// maxPrompt is the largest prompt and system prompt, in bytes.
const maxPrompt = 4 << 20

// common are the flags that commands which run an agent share.
type common struct {
	program                                                                  Program
	model, baseURL, dir, session, journal, engine, system, output, reasoning string
	at                                                                       *Service           // where the engine's work is done; nil: here
	unknown                                                                  string             // resume only
	settingsModel                                                            string             // that the project's settings name
	settingsRetries                                                          int                // of calls of models that the program opens
	asked                                                                    string             // what --engine has to be, in a line to go on with, when it is not known in full
	began                                                                    journal.RunStarted // resume only: what is on record of the run
	json, wait, trust                                                        bool
	person                                                                   bool // somebody is there to answer questions
	begins                                                                   bool // the command begins a run: its model and directory go on record
	maxSteps                                                                 int
	budgetUSD                                                                float64
	budgetTokens                                                             int64
	timeout                                                                  time.Duration
	policy                                                                   policy
	mcp, providerTools                                                       []string
}

func (c *common) add(cmd *cobra.Command) {
	f := cmd.Flags()
	f.StringVar(&c.session, "session", "", "the `ID` of a session to continue, or the name of a new one")
	f.BoolVar(&c.json, "json", false, "write events, one JSON object a line")
	f.BoolVar(&c.wait, "wait", false, "wait while another process drives the session")
	c.addKept(cmd)
}

// maxSteps is the default of --max-steps.
const maxSteps = 100

// addKept adds the flags that whoever goes on with a run gives again: see common.kept.
func (c *common) addKept(cmd *cobra.Command) {
	f := cmd.Flags()
	f.StringVar(&c.model, "model", "", "the model, as `PROVIDER/NAME`; without it that of the settings, else one of the first provider whose key is in the environment")
	f.StringVar(&c.baseURL, "base-url", "", "a `URL` of another server that speaks the provider's protocol, such as http://127.0.0.1:8000/v1; not for a subagent with a model of its own")
	f.StringVar(&c.dir, "dir", "", "the project's `directory`; default: the nearest directory upward with .agents, .git or go.mod, else the current one")
	c.addEngine(cmd, "how the agent runs")
	f.StringVar(&c.system, "system-prompt", "", "the `TEXT` of the system prompt, or @FILE")
	f.StringVar(&c.reasoning, "reasoning", "", "how much the model thinks: `LEVEL` is none, minimal, low, medium, high or max")
	f.StringArrayVar(&c.providerTools, "provider-tool", nil, "a tool that the provider runs itself, unasked, by its `NAME`, such as web_search (repeat)")
	f.StringVar(&c.output, "output-schema", "", "the answer is JSON of the JSON Schema in `FILE`")
	f.IntVar(&c.maxSteps, "max-steps", maxSteps, "end the run before model call `N`+1")
	f.Float64Var(&c.budgetUSD, "budget-usd", 0, "end the run before the next model call once `X` dollars are spent")
	f.Int64Var(&c.budgetTokens, "budget-tokens", 0, "end the run before the next model call once `N` tokens are used")
	f.DurationVar(&c.timeout, "timeout", 0, "end the run after this `time`, such as 10m")
	f.StringArrayVar(&c.mcp, "mcp", nil, "offer the tools of an MCP server, as `NAME=COMMAND|URL` (repeat)")
	f.BoolVar(&c.trust, "trust", false, "let all settings of the project count, approved or not: see pawl trust")
	c.addJournal(cmd)
	c.policy.add(cmd)
}

func (c *common) addJournal(cmd *cobra.Command) {
	cmd.Flags().StringVar(&c.journal, "journal", "", "`where` sessions are kept: sqlite:PATH, postgres://… or memory; default: sqlite in the user's state directory")
}

// store opens the journal. close is never nil.
func (c *common) store(ctx context.Context) (store journal.Store, close func() error, err error) {
	none := func() error { return nil }
	switch kind, path, _ := strings.Cut(c.journal, ":"); {
	case c.journal == "":
		if path = pawl.DefaultJournal(); path == "" {
			return nil, none, usage("no place for the journal: neither XDG_STATE_HOME nor HOME is set; set one, or give --journal sqlite:PATH")
		}
		fallthrough
	case kind == "sqlite" && path != "":
		s, err := sqlite.Open(path)       //nolint:contextcheck // a local file: opening it does not wait
		if errdefs.NotAvailable.Is(err) { // in a sandbox, say
			err = fmt.Errorf("%w: name a place that can be written (--journal sqlite:PATH), or keep nothing (--journal memory)", err)
		}
		if err != nil {
			return nil, none, &exitError{exitUsage, err}
		}
		return s, s.Close, nil
	case kind == "postgres", kind == "postgresql":
		s, err := postgres.Open(ctx, c.journal)
		if err != nil {
			return nil, none, wrongUse(err)
		}
		return s, s.Close, nil
	case c.journal == "memory":
		return journal.Memory(), none, nil
	}
	given := "--journal"
	if kind, _, ok := strings.Cut(c.journal, ":"); ok && strings.Trim(kind, "abcdefghijklmnopqrstuvwxyz") == "" {
		given += " " + kind + ":…" // the rest may be an address with a password
	}
	return nil, none, usage("%s: want sqlite:PATH, postgres://… or memory", given)
}

// openStore opens a journal that has to be there already.
func (c *common) openStore(ctx context.Context) (store journal.Store, close func() error, err error) {
	none := func() error { return nil }
	if c.journal == "memory" {
		return nil, none, usage("--journal memory: a new one is empty; name a file with sqlite:PATH")
	}
	if path, ok := strings.CutPrefix(c.journal, "sqlite:"); ok {
		if _, err := os.Stat(path); err != nil {
			return nil, none, usage("--journal %s: %v", c.journal, reason(err))
		}
	}
	return c.store(ctx)
}

// outputs is where long outputs are kept: beside the journal, so that a session that goes on finds them, and apart for each project.
func (c *common) outputs(project string) string { return c.beside("outputs", project) }

// beside is a directory for what a project has beside its journal; "" where the journal is gone with the process.
func (c *common) beside(what, project string) string {
	path, local := strings.CutPrefix(c.journal, "sqlite:")
	switch {
	case c.journal == "memory":
		return ""
	case !local: // the default, or a server: on this machine in any case
		path = pawl.DefaultJournal()
	}
	return filepath.Join(path+"."+what, fmt.Sprintf("%x", sha256.Sum256([]byte(project)))[:16])
}

// open makes a model of the flags, with an error that helps when no key is there.
func (c *common) open() (model.Model, error) {
	name := cmp.Or(c.model, c.began.Model, c.settingsModel)
	if c.at != nil { // it is called elsewhere: neither here nor by a key of here
		return c.theirs(name)
	}
	if name == "" {
		if name = pawl.DefaultModel(); name == "" && (c.engine != "" && c.engine != "loop" || c.began.Engine == pawl.ToolEngine) {
			return loop.NoModel(), nil // it may do without
		}
		if name == "" {
			var looked []string
			for _, p := range pawl.Providers() {
				if p.Default != "" {
					looked = append(looked, p.Keys...)
				}
			}
			return nil, usage("no model: no key was found in %s.\nSet one of them, name a model with --model PROVIDER/NAME, play a script with --model scripted/FILE, or try: pawl demo", strings.Join(looked, ", "))
		}
	}
	if file, ok := strings.CutPrefix(name, "scripted/"); ok && file != "" { // the journal notes it, and a resume may be somewhere else
		if path, err := filepath.Abs(file); err == nil {
			name = "scripted/" + path
		}
	}
	missing, err := pawl.Key(name)
	if err != nil {
		return nil, &exitError{exitUsage, err}
	}
	if len(missing) > 0 && c.baseURL == "" {
		return nil, usage("model %s: no key was found in %s.\nSet it, play a script with --model scripted/FILE, or try: pawl demo", name, strings.Join(missing, " or "))
	}
	var opts []model.Option
	if c.baseURL != "" {
		if !strings.HasPrefix(c.baseURL, "http://") && !strings.HasPrefix(c.baseURL, "https://") {
			return nil, usage("--base-url %q: want a URL that begins with http:// or https://", secret.Address(c.baseURL))
		}
		opts = append(opts, model.WithBaseURL(c.baseURL))
	}
	m, err := c.steady(pawl.OpenModel(name, opts...))
	if err != nil {
		return nil, &exitError{exitUsage, err}
	}
	return m, nil
}

// steady puts the retries of the settings around a model that was opened by name.
func (c *common) steady(m model.Model, err error) (model.Model, error) {
	if err != nil {
		return nil, err
	}
	return steady.Around(m, c.settingsRetries), nil
}

// options checks the flags, and opens the model.
func (c *common) options(ctx context.Context) (o pawl.Options, err error) {
	if err := c.mayAsk(); err != nil {
		return o, err
	}
	switch {
	case c.maxSteps < 1:
		return o, usage("--max-steps %d: want 1 or more", c.maxSteps)
	case c.budgetUSD < 0 || math.IsNaN(c.budgetUSD) || c.budgetUSD > 1e9:
		return o, usage("--budget-usd %v: want dollars, 0 for no limit", c.budgetUSD)
	case c.budgetTokens < 0:
		return o, usage("--budget-tokens %d: want 0 (no limit) or more", c.budgetTokens)
	case c.timeout < 0:
		return o, usage("--timeout %v: want a time such as 10m, 0 for no limit", c.timeout)
	case strings.ContainsFunc(c.session, func(r rune) bool { return r < ' ' || r == 0x7f }):
		return o, usage("--session %q: no control characters, please", c.session)
	}
	dir := cmp.Or(c.dir, c.began.Dir)
	if o.ProjectRoot, err = projectRoot(dir); err != nil {
		return o, err
	}
	if dir == "" {
		if o.Workdir, err = os.Getwd(); err != nil {
			return o, err
		}
	}
	if err := c.project(ctx, &o); err != nil {
		return o, err
	}
	if o.Permissions, err = c.policy.permissions(o.ProjectRoot); err != nil {
		return o, err
	}
	if _, err := permission.New(o.Permissions); err != nil {
		return o, wrongUse(err)
	}
	if c.policy.noSandbox {
		o.Sandbox = &sandbox.Policy{Off: true}
	}
	if o.System, err = textOrFile("--system-prompt", c.system); err != nil {
		return o, err
	}
	if o.Settings, err = c.settings(); err != nil {
		return o, err
	}
	if o.Output, err = c.schema(); err != nil {
		return o, err
	}
	if o.MCP, err = mcpFlags(c.mcp); err != nil {
		return o, err
	}
	if o.Engine, err = c.maker(false); err != nil {
		return o, err
	}
	if o.Model, err = c.open(); err != nil {
		return o, err
	}
	if o.Tracer, err = c.program.traces.Tracer(); err != nil {
		return o, &exitError{exitUsage, err}
	}
	o.Limits, o.Timeout = loop.Limits{Steps: c.maxSteps}, c.timeout
	if c.budgetUSD > 0 || c.budgetTokens > 0 {
		o.Budget = &engine.Budget{Tokens: c.budgetTokens, CostMicros: int64(math.Ceil(c.budgetUSD * 1e6))}
		if l, err := loop.New(loop.Config{Model: o.Model}); err == nil && c.budgetUSD > 0 && !l.Priced() {
			return o, usage("--budget-usd can't be kept: the price of %s is not known. Use --budget-tokens, or another model", l.Capabilities().Model)
		}
	}
	return o, nil
}

// settings are those of model calls.
func (c *common) settings() (s model.Settings, err error) {
	if s.Reasoning = model.ReasoningLevel(c.reasoning); s.Reasoning != "" && !slices.Contains(model.ReasoningLevels(), s.Reasoning) {
		return s, usage("--reasoning %q: want one of %q", c.reasoning, model.ReasoningLevels())
	}
	for _, name := range c.providerTools {
		s.ProviderTools = append(s.ProviderTools, model.ProviderTool{Name: name})
	}
	return s, nil
}

// schema is that of --output-schema.
func (c *common) schema() (json.RawMessage, error) {
	switch {
	case c.output == "":
		return nil, nil
	case c.engine != "" && c.engine != "loop":
		return nil, usage("--output-schema goes with the loop: nodes and scripts have schemas of their own")
	}
	f, err := os.Open(c.output)
	if err != nil {
		return nil, usage("--output-schema %s: %v", c.output, reason(err))
	}
	defer func() { _ = f.Close() }()
	text, err := readText("--output-schema "+c.output, f)
	if err != nil {
		return nil, err
	}
	if _, err := loop.New(loop.Config{Model: loop.NoModel(), Output: json.RawMessage(text)}); err != nil {
		return nil, usage("--output-schema %s: %w", c.output, err)
	}
	return json.RawMessage(text), nil
}

// projectRoot is dir, as --dir gives it, or the nearest directory upward that looks like a project. What the home directory has in .agents is the user's, and makes no project of all that is below it.
func projectRoot(dir string) (string, error) { return projectAt("--dir "+dir, dir) }

// projectAt is projectRoot of a directory that was given as said.
func projectAt(said, dir string) (string, error) {
	if dir != "" {
		info, err := os.Stat(dir)
		switch {
		case errors.Is(err, os.ErrNotExist):
			return "", usage("%s: there is no such directory", said)
		case err != nil:
			return "", usage("%s: %v", said, reason(err))
		case !info.IsDir():
			return "", usage("%s: it is not a directory", said)
		}
		return filepath.Abs(dir)
	}
	here, err := os.Getwd()
	if err != nil {
		return "", err
	}
	var home os.FileInfo
	if dir, err := os.UserHomeDir(); err == nil {
		home, _ = os.Stat(dir)
	}
	for at := here; ; at = filepath.Dir(at) {
		signs := []string{".agents", ".git", "go.mod"}
		if info, err := os.Stat(at); err == nil && home != nil && os.SameFile(info, home) {
			if at == here {
				return here, nil
			}
			signs = signs[1:]
		}
		for _, sign := range signs {
			if _, err := os.Stat(filepath.Join(at, sign)); err == nil {
				return at, nil
			}
		}
		if at == filepath.Dir(at) {
			return here, nil
		}
	}
}

// textOrFile is the text of a flag, or of the file that it names with @.
func textOrFile(flag, value string) (string, error) {
	path, isFile := strings.CutPrefix(value, "@")
	if !isFile {
		return value, nil
	}
	f, err := os.Open(path) //nolint:gosec // the user names the file
	if err != nil {
		return "", usage("%s @%s: %v", flag, path, reason(err))
	}
	defer func() { _ = f.Close() }()
	return readText(flag+" @"+path, f)
}

// readText reads a prompt whole: UTF-8 text within the limit.
func readText(what string, r io.Reader) (string, error) {
	b, err := io.ReadAll(io.LimitReader(r, maxPrompt+1))
	switch {
	case err != nil:
		return "", usage("%s: %v", what, reason(err))
	case len(b) > maxPrompt:
		return "", usage("%s: it is over the limit of %d MiB", what, maxPrompt>>20)
	case !utf8.Valid(b):
		return "", usage("%s: %s is not UTF-8 text", what, firstBad(b))
	}
	return string(b), nil
}

// firstBad names the line with the first byte that is no UTF-8.
func firstBad(b []byte) string {
	line := 1
	for len(b) > 0 {
		r, n := utf8.DecodeRune(b)
		if r == utf8.RuneError && n == 1 {
			break
		}
		if r == '\n' {
			line++
		}
		b = b[n:]
	}
	return fmt.Sprintf("line %d", line)
}

// reason is the cause of a file error without the path, which the message has already.
func reason(err error) error {
	var p *os.PathError
	if errors.As(err, &p) {
		return p.Err
	}
	return err
}

// wrongUse makes an error that was found before anything started one of wrong use.
func wrongUse(err error) error {
	var exit *exitError
	if err == nil || errors.As(err, &exit) || errdefs.Canceled(err) {
		return err
	}
	return &exitError{exitUsage, err}
}
