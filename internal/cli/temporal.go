package cli

import (
	"cmp"
	"context"
	"fmt"
	"net"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/pawl-dev/pawl"
	"github.com/pawl-dev/pawl/engine"
	"github.com/pawl-dev/pawl/engine/loop"
	"github.com/pawl-dev/pawl/errdefs"
	"github.com/pawl-dev/pawl/hook/permission"
	"github.com/pawl-dev/pawl/model"
)

// Temporal is what a program needs to have runs done by worker processes, and to be one of them. See package temporal, which is in a module of its own: this one does not know it.
type Temporal interface {
	// Settle fills in what a Service leaves open, from the environment and the configuration of Temporal's own tools. What can't be understood there is an error.
	Settle(at Service) (Service, error)
	// Dial connects to a service, of which everything is settled. It tries once. The error is of errdefs.NotAvailable when another try may help; what is only less than it could be goes to note.
	Dial(ctx context.Context, at Service, note func(string)) (Connection, error)
}

// Connection is a connection to a service.
type Connection interface {
	// Engine has the work of inner done by the workers of the service's queue.
	Engine(inner engine.Engine) engine.Engine
	// Waits says why nothing would be done now, such as that no worker is at the queue; "" when somebody is there, or nobody knows.
	Waits(ctx context.Context) string
	// Work does what runs of the parts' agent ask for, until ctx ends. It calls ready once it does.
	Work(ctx context.Context, w Work, ready func()) error
	Close()
}

// Service is a Temporal service, as the command line says where it is.
type Service struct {
	Address   string // HOST:PORT
	Namespace string
	Queue     string // the task queue where the workers are
	Database  string // of the journal, in PostgreSQL: what models and tools say while they are at it can be seen by way of it. "": there is none
}

const (
	// scheme begins --engine temporal://HOST:PORT.
	scheme = "temporal://"
	// atTemporal begins the name that an engine has on record when its work is done by workers.
	atTemporal = "temporal:"
)

// local reports whether the service is on this machine.
func (s Service) local() bool {
	host, _, err := net.SplitHostPort(s.Address)
	if err != nil {
		host = s.Address
	}
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}

// flag is --engine for an engine whose work is done there.
func (s Service) flag(how string) string {
	if how == "loop" {
		how = ""
	}
	var more []string
	for _, q := range []struct{ name, value string }{{"engine", how}, {"namespace", s.Namespace}, {"queue", s.Queue}} {
		if q.value != "" {
			more = append(more, q.name+"="+strings.ReplaceAll(url.QueryEscape(q.value), "%2F", "/"))
		}
	}
	text := scheme + s.Address
	if len(more) > 0 {
		text += "?" + strings.Join(more, "&")
	}
	return text
}

// engineValue is --engine: what goes the run's path, and where its work is done.
type engineValue struct{ c *common }

func (c *common) addEngine(cmd *cobra.Command, says string) {
	c.engine = "loop"
	cmd.Flags().Var(engineValue{c}, "engine", says+": `"+engineFlag()+"`")
}

func (v engineValue) Type() string { return "string" }

func (v engineValue) String() string {
	if v.c == nil { // cobra asks what the zero value is
		return ""
	}
	if v.c.at != nil {
		return v.c.at.flag(v.c.engine)
	}
	return v.c.engine
}

func (v engineValue) Set(text string) error {
	v.c.engine, v.c.at = text, nil
	if !strings.HasPrefix(text, scheme) {
		return nil
	}
	at, how, err := serviceOf(text)
	v.c.engine, v.c.at = how, &at
	return err
}

// serviceOf reads temporal://HOST:PORT?engine=HOW&namespace=NAME&queue=NAME.
func serviceOf(text string) (at Service, how string, err error) {
	u, err := url.Parse(text)
	if err != nil {
		return at, "", fmt.Errorf("it is no URL: %w", err)
	}
	q, err := url.ParseQuery(u.RawQuery)
	switch {
	case err != nil:
		return at, "", fmt.Errorf("what stands behind ? can't be read: %w", err)
	case u.User != nil:
		return at, "", fmt.Errorf("it has a user: Temporal takes keys from its own environment, such as TEMPORAL_API_KEY")
	case strings.Trim(u.Path, "/") != "" || u.Fragment != "":
		return at, "", fmt.Errorf("want %sHOST:PORT, and behind ? at most engine, namespace and queue", scheme)
	}
	for name, values := range q {
		if !slices.Contains([]string{"engine", "namespace", "queue"}, name) {
			return at, "", fmt.Errorf("%s is not known: want engine, namespace or queue behind the ?", name)
		}
		if len(values) > 1 || values[0] == "" {
			return at, "", fmt.Errorf("want one %s, with a value", name)
		}
	}
	how = cmp.Or(q.Get("engine"), "loop")
	if strings.HasPrefix(how, scheme) {
		return at, "", fmt.Errorf("the engine behind the ? is one that workers have: %s", strings.TrimSuffix(engineFlag(), " or "+scheme+"HOST:PORT"))
	}
	at = Service{Namespace: q.Get("namespace"), Queue: q.Get("queue")}
	if u.Host != "" {
		at.Address, err = addressOf(u.Host)
	}
	return at, how, err
}

// defaultPort is Temporal's.
const defaultPort = "7233"

// addressOf is HOST:PORT of a HOST with or without it.
func addressOf(text string) (string, error) {
	text = strings.TrimSuffix(strings.TrimPrefix(text, scheme), "/")
	host, port, err := net.SplitHostPort(text)
	if err != nil {
		host, port, err = net.SplitHostPort(text + ":" + defaultPort)
	}
	if n, notPort := strconv.ParseUint(port, 10, 16); err != nil || notPort != nil || n == 0 || host == "" || strings.ContainsAny(host, "/?# ") {
		return "", fmt.Errorf("%q is no address: want HOST:PORT", text)
	}
	return net.JoinHostPort(host, port), nil
}

// mayAsk refuses flags that say what workers do, whose own flags say it: given here they would have no effect.
func (c *common) mayAsk() error {
	if c.at == nil {
		return nil
	}
	for _, f := range []struct {
		name  string
		given bool
	}{
		{"--model", c.model != ""},
		{"--base-url", c.baseURL != ""},
		{"--reasoning", c.reasoning != ""},
		{"--provider-tool", len(c.providerTools) > 0},
		{"--mcp", len(c.mcp) > 0},
		{"--allow", len(c.policy.allow) > 0},
		{"--permission-mode " + c.policy.mode, c.policy.mode == string(permission.ModeAcceptEdits) || c.policy.mode == string(permission.ModeBypass)},
		{"--taint off", c.policy.taint == string(permission.TaintOff)},
		{"--no-sandbox", c.policy.noSandbox},
		{"--max-steps", c.maxSteps != maxSteps},
		{"--budget-usd", c.budgetUSD != 0},
		{"--budget-tokens", c.budgetTokens != 0},
	} {
		if f.given {
			return usage("%s: with --engine %s… the workers say that: give it to pawl worker", f.name, scheme)
		}
	}
	return nil
}

// theirs stands for the model that workers have, by its name, if that is known here.
func (c *common) theirs(name string) (model.Model, error) {
	if name == "" {
		return loop.NoModel(), nil
	}
	m, err := pawl.OpenModel(name)
	return m, wrongUse(err)
}

// atTemporal has the work of the options' engine done by workers, if --engine says so. leave is never nil.
func (c *common) atTemporal(ctx context.Context, s streams, o *pawl.Options) (leave func(), err error) {
	leave = func() {}
	if c.at == nil {
		return leave, nil
	}
	at, err := c.settled(*c.at)
	if err != nil {
		return leave, err
	}
	conn, err := c.program.Temporal.Dial(ctx, at, func(text string) { c.note(s, "%s", text) })
	if err != nil {
		return leave, c.undialled(err)
	}
	if why := conn.Waits(ctx); why != "" {
		c.note(s, "the run waits: %s", why)
	}
	here := o.Engine
	o.Engine = func(cfg loop.Config) (engine.Engine, error) {
		cfg.Limits = loop.Limits{Steps: -1, ToolCalls: -1, Tokens: -1} // those of the workers hold
		if here == nil {
			inner, err := loop.New(cfg)
			if err != nil {
				return nil, err
			}
			return conn.Engine(inner), nil
		}
		inner, err := here(cfg)
		if err != nil {
			return nil, err
		}
		return conn.Engine(inner), nil
	}
	return conn.Close, nil
}

// settled is a service whose workers and callers have one journal.
func (c *common) settled(at Service) (Service, error) {
	at, err := c.program.Temporal.Settle(at)
	if err != nil {
		return at, wrongUse(err)
	}
	postgres := strings.HasPrefix(c.journal, "postgres:") || strings.HasPrefix(c.journal, "postgresql:")
	switch {
	case postgres:
		at.Database = c.journal
	case c.journal == "memory":
		return at, usage("--journal memory: workers and those who begin runs are processes that have one journal: give each --journal postgres://…, or on one machine the same sqlite:PATH")
	case !at.local():
		return at, usage("--journal %s: a file is one machine's, and the service at %s is on another one, so its workers may be, too: give workers and those who begin runs the same --journal postgres://…", cmp.Or(c.journal, "sqlite:"+pawl.DefaultJournal()), at.Address)
	}
	return at, nil
}

// undialled is an error of a service that can't be reached: wrong use, unless another try may help.
func (c *common) undialled(err error) error {
	if errdefs.NotAvailable.Is(err) || errdefs.Timeout.Is(err) {
		return &exitError{exitFailed, err}
	}
	return wrongUse(err)
}
