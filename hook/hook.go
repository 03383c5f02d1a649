package hook

import (
	"cmp"
	"context"
	"time"

	"github.com/pawl-dev/pawl/message"
	"github.com/pawl-dev/pawl/model"
	"github.com/pawl-dev/pawl/tool"
)

// Middleware is a named bundle of functions at four points; nil ones are not called. Bundles run in the order they are given,
// the agent's before the run's before the engine's. The functions of one run are never called at the same time.
type Middleware struct {
	Name string // in reasons and in the journal
	// PreGeneration may change the system prompt and the messages. Its error ends the run before the first model call.
	PreGeneration func(context.Context, *Generation) error
	// PreToolUse judges a call. Its error and its panic deny.
	PreToolUse func(context.Context, *ToolUse) (Decision, error)
	// PostToolUse may change the result. Its error and its panic withhold the result from the model.
	PostToolUse func(context.Context, *ToolUse) error
	// PostGeneration runs each time the model stops, and may send it back with Generation.Again. Its error is journaled; the reply stays.
	PostGeneration func(context.Context, *Generation) error
	// Below makes what stands around a run below, which inherits the tool points as they are: its PreGeneration and its PostGeneration. above is the run that
	// started it, agent the ID of the agent below. What is below that inherits it, too.
	Below func(above Where, agent string) Middleware
	// Forget drops what is kept in memory of the sessions that of says yes to: nobody goes on with them for now. It may be called while runs of other sessions are under way. Whoever runs sessions calls it; a
	// Runtime (package pawl) does.
	Forget func(of func(session string) bool)
}

// Where says whose run it is.
type Where struct {
	Agent   string `json:"agent,omitempty"`
	Session string `json:"session,omitempty"`
	Run     string `json:"run,omitempty"`
	User    string `json:"user,omitempty"`
	Parent  string `json:"parent_run,omitempty"` // the run that this one is a task of; "" when it is nobody's
}

// Generation is a run as hooks see it.
type Generation struct {
	Where
	System   string            // changed by PreGeneration: the system prompt of this run
	Messages message.History   // changed by PreGeneration: the transcript from now on, journaled as a difference
	Request  *model.Request    // in PostGeneration: what the model was asked last; read-only
	Response *model.Response   // in PostGeneration: the last reply
	Output   []message.Message // in PostGeneration: what the run added so far
	Usage    model.Usage       // in PostGeneration: of the run so far
	Values   map[string]any    // for hooks of one run to talk to each other; not journaled, gone when the process is
	Sent     int               // in PostGeneration: how often hooks have sent the model back in this run
	Moved    bool              // set by PreGeneration when it changes on purpose what the conversation began with: see [Compaction]. A provider's cache has to begin anew then; without it tests take the change for a mistake (model.Request.CacheKey)
	again    string
}

// Again sends the model back to work, with text as the user's; the first hook to say so wins, and the ones after it wait for the next
// stop. At most 3 times a run: then the reply stands.
func (g *Generation) Again(text string) {
	if g.again == "" {
		g.again = text
	}
}

// ToolUse is one call as hooks see it.
type ToolUse struct {
	Where
	Tool   tool.Definition
	Call   message.ToolCall // the input is valid by the tool's schema
	Result *tool.Result     // in PostToolUse; may be changed
	Took   time.Duration    // in PostToolUse: how long the tool ran
	// The conversation as the model has it, and its last reply, which has the call and which Messages end with; read-only, and unset for a call that goes on in the background.
	System   string
	Messages message.History
	Response *model.Response
	Values   map[string]any // as in Generation
	// Granted is what people approved for the session when they answered its questions: permission.New heeds it beside Config.Grants.
	Granted []Grant
	// Untrusted is the first call of the conversation whose result had what strangers wrote, as people read it ("web_fetch (call c1)"), or what else brought that; "" for none. See tool.Result.Untrusted.
	Untrusted string
	By        any // Decision.By of the hook whose input the call has now; nil when it is the model's
	ends      string
}

// EndRun ends the run with errdefs.Aborted and this reason; the first hook to say so wins. In PreToolUse the call is denied and those beside it don't run; in PostToolUse
// the result stands, and calls that have not begun don't run.
func (u *ToolUse) EndRun(reason string) {
	if u.ends == "" {
		u.ends = cmp.Or(reason, "a hook ended the run")
	}
}

// Ends is the reason given to EndRun, "" when the run goes on.
func (u *ToolUse) Ends() string { return u.ends }

// Grant is what a person approved for a session: one call with this very input, or all that a rule permits.
type Grant struct {
	Tool  string `json:"tool,omitempty"`
	Input string `json:"input,omitempty"`
	Rule  string `json:"rule,omitempty"` // in place of the two above
}
