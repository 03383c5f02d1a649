// Package shell makes hooks of commands, in the protocol of Claude Code's: JSON on their standard input, an exit code and JSON as their answer. [Decode] reads them from a
// settings file, [New] gets them ready, [Hooks.Middleware] puts them at the points of a run.
//
// They are told of the [EventType]s: the points around tools, the stop of the model, and the beginning and end of sessions and subagents, which whoever runs those fires.
package shell

import (
	"context"
	"crypto/rand"
	"fmt"
	"maps"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/pawl-dev/pawl/errdefs"
	"github.com/pawl-dev/pawl/hook"
	"github.com/pawl-dev/pawl/internal/process"
)

// How long a hook may take.
const (
	shellTimeout      = 600 * time.Second
	sessionEndTimeout = 1500 * time.Millisecond // nobody waits long for a program that ends
	sessionEndMost    = time.Minute
)

// How many run at a time.
const (
	atOnce       = 8  // of those for one event
	inBackground = 16 // Async ones of a Hooks; the next one waits, and with it the run
)

// Hook is a command that is run at an event. See [Hooks] for what it reads and what its output and its exit code mean.
type Hook struct {
	Event         EventType
	Name          string            // in reasons and notices: the beginning of Command
	Command       string            // for /bin/sh -c; with Args a program, looked up in this process's PATH when it has no slash
	Args          []string          // not nil: Command is run with these and without a shell, with ${CLAUDE_PROJECT_DIR} and ${PAWL_PROJECT_DIR} in them replaced
	Selector      Selector          // for which events of the type
	If            string            // a permission rule that the call has to match too, read by Options.If; of tool events only
	Timeout       time.Duration     // 10 minutes; of SessionEnd 1.5 s, and a minute at most
	Env           map[string]string // beside Options.Env
	Async         bool              // run in the background: it decides nothing
	Once          bool              // at its first event in a session only
	StatusMessage string            // told as a NoticeStatus while it runs
	// Claude has it told the names of built-in tools as Claude Code has them (Bash, not bash), and its matcher compared with these too.
	Claude bool
	Place  string // where it was written, for errors: "line 12"
}

// Options is what all hooks of a [Hooks] share.
type Options struct {
	Dir  string   // the project directory, in which they run; required
	Env  []string // their environment: this process's, without OTEL_ variables
	Name string   // of the Middleware: "shell hooks"
	// Command makes a hook's process, with its environment, or Env when it has none: (*fence.Fence).Command puts it in a fence. Default: outside of any, as hooks are the user's own programs.
	Command func(ctx context.Context, name string, args ...string) (*exec.Cmd, error)
	// If reads a permission rule; what it gives reports whether a call matches. A hook with a rule is an error without it.
	If func(rule string) (func(tool, input string) bool, error)
	// Notify is told what hooks have to say to people. Its calls don't overlap; some come after the run, from hooks in the background. It must not call Close.
	Notify func(context.Context, Notice)
}

// Notice is something for people about a hook.
type Notice struct {
	hook.Where
	Event EventType
	Hook  string
	Kind  NoticeKind
	Text  string
}

// NoticeKind says what a Notice is.
type NoticeKind string

// The kinds.
const (
	NoticeStatus  NoticeKind = "status"  // it begins: its StatusMessage
	NoticeOutput  NoticeKind = "output"  // what it wrote, unless it said suppressOutput
	NoticeMessage NoticeKind = "message" // its systemMessage
	NoticeWarning NoticeKind = "warning" // something is wrong with it
)

// String is a line for a person.
func (n Notice) String() string { return fmt.Sprintf("%s hook %s: %s", n.Event, n.Hook, n.Text) }

// Hooks runs shell hooks. Safe for concurrent use.
//
// A hook runs in the project directory, in a session of its own without a terminal, with CLAUDE_PROJECT_DIR and PAWL_PROJECT_DIR set to that directory. It reads one JSON object:
// session_id, cwd, hook_event_name, of tool events inside a task agent_id and agent_type (whose call it is), and the members of the event's [Payload]. It need not read it. Those of one event run at the same time, and all are waited for; identical ones
// (differing in nothing but name, status message, and which events they are for) run once. What they answer is taken in the order in which they were given: the strictest verdict, the last new input.
//
// Exit code 0 is an answer, 2 a refusal with the standard error as its reason (what is on the standard output does not count then), any other one a warning that decides nothing. An
// answer is a JSON object on the standard output; other output is ignored, but that of SessionStart is told to the model. In it
//
//   - decision: approve or allow, block or deny, ask; reason. The same in hookSpecificOutput as permissionDecision (allow, deny, ask; defer is ask) and permissionDecisionReason.
//     PreToolUse: the verdict. PostToolUse: block has the model told the reason, behind the result. Stop, SubagentStop: block sends the model back to work with the reason.
//   - continue: false, stopReason: ends the run, and a call that has not begun is refused. In Stop and SubagentStop: nothing sends the model back.
//   - hookSpecificOutput.updatedInput: PreToolUse: the call's new input. It is validated, and every hook is asked about it, but for the one that made it.
//   - hookSpecificOutput.updatedToolOutput: PostToolUse: what the model is told instead of the result.
//   - hookSpecificOutput.additionalContext: told to the model: of tool events behind the call's result, of Stop and SessionStart at the beginning of the session's next run.
//   - systemMessage: told to people, as a Notice. suppressOutput: the output is not.
//
// Each of these texts, and a refusal's standard error, is cut off after 10,000 characters, and says so. A member that is not of its type, a decision that is none of these words, an
// hookEventName of another event, and output that begins with { and is not JSON, or goes on after 1 MiB, are no answer.
//
// A hook that gives no answer, that can't be started, that is killed (by exit codes of 129 to 159 a shell says that of its command) or not done in time fails closed: PreToolUse denies,
// PostToolUse withholds the result, any other one is a warning. So it is of PreToolUse when a shell doesn't find its program (exit codes 126 and 127). At its timeout, and when the run is cancelled, all that it started is killed with it: see package internal/process.
// Processes that it leaves behind are stopped too when they hold its output, else by Close.
//
// A Once hook runs once in a session of this process: after a resume in another one it may run again. An event without a session counts for its run. One that gave no
// answer has not run.
type Hooks struct {
	opts    Options
	env     []string
	mark    string // of all processes
	hooks   map[EventType][]*handler
	slots   chan struct{} // of hooks in the background
	ctx     context.Context
	cancel  context.CancelFunc
	telling sync.Mutex // one Notify at a time

	mu      sync.Mutex
	closed  bool
	running sync.WaitGroup
	began   int // hooks
	once    map[onceKey]string
	pending map[string]string // by session: what the model has to be told at its next run
}

// handler is a hook that is ready to run.
type handler struct {
	Hook
	matcher
	name  string
	limit time.Duration
	same  int                           // the number of the first hook that is identical
	rule  func(tool, input string) bool // of If; nil: all
}

// New makes a Hooks; the hooks are as given when it returns. It fails with errdefs.Validation, and the hook's number or place, on one that could never run as it says. The caller calls Close.
func New(o Options, hooks ...Hook) (*Hooks, error) {
	dir, err := filepath.Abs(o.Dir)
	if info, e := os.Stat(dir); o.Dir == "" || err != nil || e != nil || !info.IsDir() {
		return nil, errdefs.Validation.Errorf("hook: Options.Dir %q is no directory: give the project's", o.Dir)
	}
	if o.Env == nil {
		o.Env = os.Environ()
	}
	if o.Name == "" {
		o.Name = "shell hooks"
	}
	o.Dir = dir
	s := &Hooks{
		opts: o, mark: "hooks-" + rand.Text(), hooks: map[EventType][]*handler{}, slots: make(chan struct{}, inBackground),
		once: map[onceKey]string{}, pending: map[string]string{},
	}
	for _, v := range o.Env {
		if !strings.HasPrefix(v, "OTEL_") { // a hook's spans are not ours
			s.env = append(s.env, v)
		}
	}
	var all []*handler
	for i, h := range hooks {
		ready, err := s.ready(h)
		if err != nil {
			place := fmt.Sprintf("hook %d", i+1)
			if h.Place != "" {
				place = h.Place
			}
			return nil, fmt.Errorf("hook: %s (%s %s): %w", place, h.Event, h.title(), err)
		}
		ready.same = len(all)
		if k := slices.IndexFunc(all, ready.identical); k >= 0 {
			ready.same = k
		}
		all = append(all, ready)
		s.hooks[h.Event] = append(s.hooks[h.Event], ready)
	}
	s.ctx, s.cancel = context.WithCancel(context.Background())
	return s, nil
}

func (s *Hooks) ready(h Hook) (*handler, error) {
	wrong := errdefs.Validation.Errorf
	m, err := h.Selector.compile()
	switch {
	case err != nil:
		return nil, err
	case !slices.Contains(events, h.Event):
		return nil, wrong("there is no event %q: it is one of %v", h.Event, events)
	case strings.TrimSpace(h.Command) == "" || strings.ContainsRune(h.Command+strings.Join(h.Args, ""), 0):
		return nil, wrong("the command is empty or has a NUL character: give one that can run")
	case h.Timeout < 0:
		return nil, wrong("the timeout is %v: give a time, or leave it out for %v", h.Timeout, shellTimeout)
	case h.Event == SessionEnd && h.Timeout > sessionEndMost:
		return nil, wrong("the timeout is %v: SessionEnd has %v at most", h.Timeout, sessionEndMost)
	case !h.Event.matches() && !h.Selector.all():
		return nil, wrong("it has the matcher %q, and there is nothing to match in %s: leave it out", h.Selector.Tool, h.Event)
	case h.If != "" && !h.Event.tool():
		return nil, wrong("it has a permission rule (%s), and there is no call in %s: leave it out", h.If, h.Event)
	case h.If != "" && s.opts.If == nil:
		return nil, errdefs.NotAvailable.Errorf("nobody here reads permission rules (%s): set Options.If, or leave the rule out and look at the input in the hook", h.If)
	}
	for name, value := range h.Env {
		if name == "" || strings.ContainsAny(name, "=\x00") || strings.ContainsRune(value, 0) {
			return nil, wrong("%q=%q can't be a variable: correct it", name, value)
		}
	}
	ready := &handler{Hook: h, matcher: m, name: h.title(), limit: h.Timeout}
	if ready.limit == 0 {
		if ready.limit = shellTimeout; h.Event == SessionEnd {
			ready.limit = sessionEndTimeout
		}
	}
	if h.If != "" {
		if ready.rule, err = s.opts.If(h.If); err != nil {
			return nil, wrong("the permission rule %s: %w", h.If, err)
		}
		if ready.rule == nil {
			return nil, errdefs.Internal.Errorf("Options.If made nothing of the permission rule %s", h.If)
		}
	}
	return ready, nil
}

// title is what it is called.
func (h Hook) title() string {
	if h.Name != "" {
		return h.Name
	}
	name := []rune(strings.Join(strings.Fields(h.Command), " "))
	if len(name) > 60 {
		return string(name[:60]) + "…"
	}
	return string(name)
}

// identical reports whether running both at one event would be doing the same twice.
func (h *handler) identical(o *handler) bool {
	return h.Event == o.Event && h.Command == o.Command && slices.Equal(h.Args, o.Args) && (h.Args == nil) == (o.Args == nil) && h.limit == o.limit &&
		h.Async == o.Async && h.Once == o.Once && h.Claude == o.Claude && maps.Equal(h.Env, o.Env)
}

// Close waits for the hooks in the background; when ctx ends before them they are killed. Then it stops what hooks left behind. Nothing runs any more after it: tool calls that
// would be judged are refused.
func (s *Hooks) Close(ctx context.Context) error {
	s.mu.Lock()
	s.closed = true
	began := s.began
	s.mu.Unlock()
	done := make(chan struct{})
	go func() { s.running.Wait(); close(done) }()
	var err error
	select {
	case <-done:
	case <-ctx.Done():
		err = ctx.Err()
		s.cancel()
		<-done
	}
	s.cancel()
	if began > 0 {
		process.StopMarked(s.mark)
	}
	return err
}

var errClosed = errdefs.NotAvailable.Errorf("hook: the shell hooks are closed: nothing can be judged any more")

// begin notes that a hook runs, unless the Hooks is closed.
func (s *Hooks) begin() (number int, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return 0, errClosed
	}
	s.running.Add(1)
	s.began++
	return s.began, nil
}

// seconds makes a timeout of a number of seconds.
func seconds(n float64) (time.Duration, error) {
	if !(n > 0) || n > math.MaxInt64/float64(time.Second)/2 {
		return 0, errdefs.Validation.Errorf("the timeout is %v: give a number of seconds, more than 0", n)
	}
	return max(1, time.Duration(n*float64(time.Second))), nil
}
