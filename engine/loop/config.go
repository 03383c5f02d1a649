package loop

import (
	"cmp"
	"encoding/json"
	"fmt"
	"log/slog"
	"reflect"

	"github.com/pawl-dev/pawl/engine"
	"github.com/pawl-dev/pawl/errdefs"
	"github.com/pawl-dev/pawl/hook"
	"github.com/pawl-dev/pawl/internal/schema"
	"github.com/pawl-dev/pawl/model"
	"github.com/pawl-dev/pawl/model/catalog"
	"github.com/pawl-dev/pawl/tool"
)

// Config makes a loop. Only Model is required.
type Config struct {
	Model      model.Model        // required
	Middleware []model.Middleware // around Model; the first is the outermost
	Settings   model.Settings     // of every model call
	Output     json.RawMessage    // JSON Schema of the answer, which is JSON then; nil: free text. One that does not fit is sent back, twice at most, and then the run fails (errdefs.Validation). A model without a native mode for it answers by a tool: model.OutputByTool
	Tools      []tool.Tool        // offered in this order; those that are deferred once they were searched for, with SearchName
	Hooks      []hook.Middleware  // of this engine; the agent's and the run's come before them
	Compact    Compact            // off, unless it is Enabled
	Limits     Limits
	Prices     *catalog.Catalog // nil: catalog.Default()
	Logger     *slog.Logger     // nil: nothing is logged
	Channel    string           // the board's channel to talk on, and the scope of its effects; "" is engine.MainChannel, and no scope
}

// For gives the same for another model: how much to think, and with which tools of the provider's, is said of one model, and another one may know
// nothing of it.
func (c Config) For(m model.Model) Config {
	c.Model = m
	c.Settings.Reasoning, c.Settings.ProviderTools = model.ReasoningDefault, nil
	return c
}

// Limits end a run with errdefs.BudgetExceeded. They are looked at before each call, so that no call is cut off; what a call takes is known when
// it is over, and the last one may go over a limit of tokens. 0 is the default given here, negative none.
// Tokens and money of a whole tree of runs are limited by engine.Budget, the time of a run by agent.WithTimeout.
type Limits struct {
	Steps     int // model calls: 100
	ToolCalls int // none
	Tokens    int // of input, output and cache together: none
	Repeats   int // the same calls with the same results in a row, before the model is told; once more ends the run with errdefs.NoProgress: 3
}

// ErrMaxSteps is found by errors.Is in the error of a run that reached Limits.Steps.
var ErrMaxSteps = errdefs.BudgetExceeded.Errorf("the limit of model calls is reached")

// Engine is the loop. It is immutable and serves many runs at once.
type Engine struct {
	cfg    Config
	model  model.Model
	caps   model.Capabilities
	price  *catalog.Model // nil: not known
	tools  tool.Set
	defers bool // some of them are deferred, and SearchName is the last of them
	log    *slog.Logger
}

// New makes a loop. It fails on a missing model, on two tools of one name, on an output schema that is none, and on a setting that the model can't honour.
func New(cfg Config) (*Engine, error) {
	if cfg.Model == nil {
		return nil, errdefs.Validation.Errorf("loop: a model is needed")
	}
	l := &Engine{cfg: cfg, log: cfg.Logger}
	if len(cfg.Output) > 0 {
		if _, err := schema.Compile(cfg.Output); err != nil {
			return nil, errdefs.Validation.Errorf("loop: the output schema: %w", err)
		}
		cfg.Model = model.OutputByTool(cfg.Model)
	}
	l.model = model.Wrap(cfg.Model, cfg.Middleware...)
	all := l.withSearch(cfg.Tools)
	tools, err := tool.NewSet(all...)
	if err != nil {
		return nil, err
	}
	l.tools, l.defers = tools, len(all) > len(cfg.Tools)
	if _, _, taken := tools.Lookup(model.OutputTool); taken && len(cfg.Output) > 0 {
		return nil, errdefs.Conflict.Errorf("loop: a tool is called %s, which is how models answer by a schema: give it another name", model.OutputTool)
	}
	if l.log == nil {
		l.log = slog.New(slog.DiscardHandler)
	}
	if l.cfg.Limits.Steps == 0 {
		l.cfg.Limits.Steps = 100
	}
	if l.cfg.Limits.Repeats == 0 {
		l.cfg.Limits.Repeats = 3
	}
	if l.cfg.Channel == "" {
		l.cfg.Channel = engine.MainChannel
	}
	var described bool
	l.caps, described = model.CapabilitiesOf(l.model)
	if _, none := cfg.Model.(noModel); !none && (!described || l.caps.Name == "") { // a resume would look for one of that name
		l.caps.Name = fmt.Sprintf("%T", cfg.Model)
	}
	if described {
		if err := l.caps.Admit(model.Request{Settings: cfg.Settings, Output: cfg.Output, Tools: tools.Models(nil)}); err != nil {
			return nil, err
		}
	}
	if err := l.cfg.Compact.check(); err != nil {
		return nil, err
	}
	prices := cfg.Prices
	if prices == nil {
		prices = catalog.Default()
	}
	l.cfg.Prices = prices
	if m, ok := prices.Lookup(l.caps.Name); ok {
		l.price = &m
		l.cfg.Compact.Window = cmp.Or(l.cfg.Compact.Window, m.Window)
	}
	l.cfg.Compact.Window = cmp.Or(l.cfg.Compact.Window, unknownWindow)
	return l, nil
}

// Capabilities says that a loop resumes and needs nothing from Dependencies.
func (l *Engine) Capabilities() engine.Capabilities {
	return engine.Capabilities{Name: "loop", Model: l.caps.Name, Resume: true, Needs: []reflect.Type{}}
}

// Priced reports whether what the model costs is known, so that a budget in money can be kept.
func (l *Engine) Priced() bool { return l.price != nil && l.price.Price != nil }
