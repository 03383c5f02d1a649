package loop

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"runtime/debug"
	"strconv"
	"strings"
	"time"

	"github.com/pawl-dev/pawl/engine"
	"github.com/pawl-dev/pawl/errdefs"
	"github.com/pawl-dev/pawl/event"
	"github.com/pawl-dev/pawl/hook"
	"github.com/pawl-dev/pawl/journal"
	"github.com/pawl-dev/pawl/message"
	"github.com/pawl-dev/pawl/model"
	"github.com/pawl-dev/pawl/tool"
)

// grace is how long a tool may take to return after its context was cancelled. Then the run goes on without it.
const grace = 5 * time.Second

// judge says whether a call may run: the tool is known and admitted, its input valid, the hooks content.
func (l *Engine) judge(ctx context.Context, run *engine.Run, e *engine.Judge) journal.ToolJudged {
	c := e.Call
	refuse := func(verdict string, err error) journal.ToolJudged {
		return journal.ToolJudged{Call: c.ID, Verdict: verdict, Reason: err.Error()}
	}
	def, err := l.gate(run, c.Name)
	if _, _, known := l.tools.Lookup(c.Name); err != nil && known {
		return refuse(hook.Deny.String(), err)
	} else if err != nil {
		return refuse("invalid", err)
	}
	check := func(input string) (string, error) {
		return l.tools.Check(message.ToolCall{ID: c.ID, Name: c.Name, Input: input})
	}
	input, err := check(c.Input)
	if err != nil && def.Deferred { // the model may never have seen what it wants
		err = errdefs.Validation.Errorf("%w\nIts input is: %s", err, def.Schema)
	}
	if err != nil {
		return refuse("invalid", err)
	}
	use := &hook.ToolUse{Where: run.Where(), Tool: def, Call: c, Granted: run.Granted(), Untrusted: run.Untrusted()}
	use.Call.Name, use.Call.Input = def.Name, input // models write Bash for bash: a hook must not miss it
	d := hook.Decision{}
	if hooks := l.hooks(run); len(hooks) > 0 {
		seen(use, e.Turn)
		run.Values.Do(func(values map[string]any) {
			use.Values = values
			d = hook.Judge(ctx, hooks, use, check)
		})
	}
	if def.RequiresApproval && d.Verdict < hook.Ask {
		d.Verdict, d.Reason = hook.Ask, "the tool "+def.Name+" requires approval"
	}
	if d.Verdict < hook.Deny { // nobody is asked about what the tool would refuse
		if err := l.tools.Vet(ctx, use.Call); err != nil {
			d = hook.Denied(err.Error())
		}
	}
	out := journal.ToolJudged{Call: c.ID, Verdict: hook.Allow.String(), Reason: d.Reason}
	if d.Verdict > hook.Allow {
		out.Verdict = d.Verdict.String()
	}
	if d.Verdict == hook.Deny {
		out.Reason = cmp.Or(d.Reason, "a hook refused this call")
	}
	out.Once = d.Verdict == hook.Ask && (!d.Session || def.RequiresApproval)
	if use.Call.Input != c.Input {
		out.Input = use.Call.Input
	}
	if out.Context, out.Ends = d.Context, use.Ends(); d.Verdict == hook.Deny { // then the reason is all that the model is told
		out.Reason, out.Context = told(out.Reason, out.Context), ""
	}
	return out
}

// gate finds a tool that the agent may use.
func (l *Engine) gate(run *engine.Run, name string) (tool.Definition, error) {
	allowed := l.admitted(run)
	_, def, ok := l.tools.Lookup(name)
	if !ok || allowed != nil && !allowed(def.Name) {
		return def, l.tools.Unknown(name, allowed)
	}
	return def, nil
}

// useTool runs one call to its outcome. A tool's failure, panic or cancel is an outcome too, not an error.
func (l *Engine) useTool(ctx context.Context, run *engine.Run, host engine.Host, key journal.Key, effect engine.Effect) (journal.Data, error) {
	e := effect.(engine.UseTool)
	var out journal.ToolFinished
	if err := l.outcome(ctx, run, host, key, &e, false, &out); err != nil {
		return nil, err // the tool parks (a subagent waits for a person): it has no outcome yet, and goes on with the same Key
	}
	return out, nil
}

// outcome is what a call comes to; its part in the background goes the same way. The error is an InterruptedError of a tool that may be repeated.
func (l *Engine) outcome(ctx context.Context, run *engine.Run, host engine.Host, key journal.Key, e *engine.UseTool, background bool, out *journal.ToolFinished) error {
	out.Call, out.Name = e.Call.ID, e.Call.Name
	def, err := l.gate(run, e.Call.Name) // looked at again: a gate holds where the tool runs, not only where it is shown
	if err == nil {                      // a person may have edited the input
		e.Call.Input, err = l.tools.Check(message.ToolCall{ID: e.Call.ID, Name: e.Call.Name, Input: e.Call.Input})
	}
	if err != nil {
		out.Content, out.IsError, out.Outcome = err.Error(), true, journal.OutcomeDenied
		if e.Again > 0 { // what it did before stays unknown
			out.Content = journal.Unknown(message.ToolCall{}).Content + " It was not run again: " + err.Error()
			out.Outcome = journal.OutcomeUnknown
		}
		return nil
	}
	if err := ctx.Err(); err != nil { // since its start was put on record
		return l.unbegun(ctx, e, out, err)
	}
	began := time.Now()
	e.Call.Name, key.Op, key.ID = def.Name, "tool", e.Call.ID // run again, it is the same call to whom it acts on, and to listeners
	res, err := l.attend(ctx, run, host, key, cmp.Or(e.Repeats, key), e.Call, background)
	if res.Background && err == nil && !res.IsError && !background {
		call := e.Call                               // not the effect's own, which would be on the heap for every call
		if out.Background = &call; key.Scope != "" { // there is nobody to hear it in there
			out.Background, res.Content, res.IsError = nil, "The call can't go on in the background here: make it in the foreground.", true
		}
	}
	out.Millis = time.Since(began).Milliseconds()
	switch {
	case err == nil:
	case errors.Is(err, errLate):
		l.leftBehind(ctx, run, e, out)
		return nil
	case errors.As(err, new(engine.InterruptedError)) && e.Annotations.Repeatable():
		return err
	case e.Annotations.Repeatable() && (unwritten(run) != nil || errors.Is(context.Cause(ctx), engine.ErrLeft)):
		return err // what failed may be the journal, in the tool's hands: when the run is resumed it runs again
	default:
		res.Content, res.IsError = failure(res.Content, err), true
		if c := errdefs.Of(err); c != nil {
			out.Class = c.Error()
		}
	}
	out.Outcome = journal.OutcomeOK
	if res.IsError {
		if out.Outcome = journal.OutcomeError; ctx.Err() != nil {
			out.Outcome = journal.OutcomeCanceled
		}
	}
	if errors.Is(err, tool.ErrUnknown) {
		out.Outcome = journal.OutcomeUnknown
	}
	if l.hooked(run) {
		res = l.afterTool(ctx, run, e, &def, res, began, out)
	}
	res = l.presentable(res)
	if e.Edited {
		res.Content = fmt.Sprintf("[a person changed the input of this call to %s]\n", e.Call.Input) + res.Content
	}
	res.Content = told(res.Content, e.Context)
	out.Content, out.Files, out.IsError = strings.ToValidUTF8(res.Content, "\uFFFD"), res.Files, res.IsError
	out.Final, out.Untrusted = res.Final && !res.IsError, res.Untrusted
	return nil
}

// unbegun is what a call comes to whose run was cancelled before the tool began.
func (l *Engine) unbegun(ctx context.Context, e *engine.UseTool, out *journal.ToolFinished, err error) error {
	switch {
	case e.Annotations.Repeatable() && errors.Is(context.Cause(ctx), engine.ErrLeft):
		return err // it runs when the run is resumed
	case e.Again > 0: // what it did before stays unknown
		out.Content, out.Outcome = journal.Unknown(message.ToolCall{}).Content+" It was not run again.", journal.OutcomeUnknown
	default:
		out.Content, out.Outcome = journal.NotRun(message.ToolCall{}).Content, journal.OutcomeCanceled
	}
	out.IsError = true
	return nil
}

// leftBehind is what a call comes to whose tool did not stop in time.
func (l *Engine) leftBehind(ctx context.Context, run *engine.Run, e *engine.UseTool, out *journal.ToolFinished) {
	out.Warning = fmt.Sprintf("the tool %s ignored its cancelled context for %v; whether it took effect is not known, and what it still does is dropped", e.Call.Name, grace)
	l.log.WarnContext(ctx, out.Warning, "run", run.ID, "call", e.Call.ID)
	out.Content, out.IsError, out.Outcome = "The call was cancelled and did not stop. Whether it took effect is unknown: check before you repeat it.", true, journal.OutcomeUnknown
}

// afterTool has the hooks look at what a tool gave, which they may change.
func (l *Engine) afterTool(ctx context.Context, run *engine.Run, e *engine.UseTool, def *tool.Definition, res tool.Result, began time.Time, out *journal.ToolFinished) tool.Result {
	use := &hook.ToolUse{Where: run.Where(), Tool: *def, Call: message.ToolCall{ID: e.Call.ID, Name: e.Call.Name, Input: e.Call.Input}, Result: &res, Took: time.Since(began), Untrusted: run.Untrusted()}
	seen(use, e.Turn)
	run.Values.Do(func(values map[string]any) {
		use.Values = values
		if err := hook.After(ctx, l.hooks(run), use); err != nil {
			out.Warning, out.Outcome = err.Error(), journal.OutcomeError
		}
		out.Ends = use.Ends()
	})
	return res
}

// seen is what hooks see of the conversation that a call is in.
func seen(use *hook.ToolUse, t *engine.Turn) {
	if t != nil {
		use.System, use.Messages, use.Response = t.System, t.Messages, responseOf(t)
	}
}

// unwritten is the error of a journal that failed.
func unwritten(run *engine.Run) error {
	if run.Log == nil {
		return nil
	}
	return run.Log.Failed()
}

// presentable leaves out files that the model can't take, and says so: one of them would make every later request an error.
func (l *Engine) presentable(res tool.Result) tool.Result {
	can, described := model.CapabilitiesOf(l.model)
	var files []message.File
	for _, f := range res.Files {
		if strings.Contains(f.MIME, "/") && (!described || can.Takes(f.MIME)) {
			files = append(files, f)
			continue
		}
		res.Content += fmt.Sprintf("\n[a file of type %q is left out: this model does not take it]", f.MIME)
	}
	res.Files = files
	return res
}

// failure is what the model is told of an error: what the tool said before it, then why.
func failure(content string, err error) string {
	if content == "" {
		return err.Error()
	}
	return content + "\n" + err.Error()
}

// told is a text with what hooks want the model to know behind it.
func told(text, context string) string {
	if text == "" || context == "" {
		return text + context
	}
	return text + "\n" + context
}

// errLate: the tool did not stop in time.
var errLate = errdefs.Timeout.Errorf("loop: the tool did not stop")

// errGone is of a tool that called runtime.Goexit.
var errGone = errdefs.Internal.Errorf("the tool ended its goroutine without a result")

type ended struct {
	res tool.Result
	err error
}

// attend runs the tool beside itself, so that it can be left behind, and publishes its output from here, the run's own goroutine. same is the key of the call that counts to whom the tool acts on.
func (l *Engine) attend(ctx context.Context, run *engine.Run, host engine.Host, key, same journal.Key, c journal.Called, background bool) (tool.Result, error) {
	a := l.begin(ctx, run, host, key, same, &c, background)
	defer close(a.left)
	stop := ctx.Done()
	var late <-chan time.Time
	var to *engine.Deltas // most tools show nothing
	for {
		select {
		case n := <-a.news:
			switch {
			case n.ended:
				return a.end.res, a.end.err
			case n.event != nil:
				engine.Publish(ctx, host, *n.event)
			default:
				if to == nil {
					d := engine.DeltasOf(run, host, key, 0)
					to = &d
				}
				to.Emit(ctx, event.ToolOutput, n.stream, n.text)
			}
		case <-stop:
			timer := time.NewTimer(grace)
			defer timer.Stop()
			stop, late = nil, timer.C
		case <-late:
			return tool.Result{}, errLate
		}
	}
}

// begin has the tool run in a goroutine of its own.
func (l *Engine) begin(ctx context.Context, run *engine.Run, host engine.Host, key, same journal.Key, c *journal.Called, background bool) *attendance {
	a := &attendance{news: make(chan news), left: make(chan struct{}), host: engine.Relay{Host: host}, end: ended{err: errGone}}
	call := tool.Call{ID: c.ID, Name: c.Name, Key: idempotency(run, same), Background: background, Session: run.Session}
	if engine.Listening(host) {
		a.stdout, a.stderr = writer{a, "stdout"}, writer{a, "stderr"}
		call.Output, call.Errors = &a.stdout, &a.stderr
	}
	a.host.To = a
	go l.execute(l.inside(ctx, run, &a.host, key, &call), a, run.ID, c.Name, c.Input)
	return a
}

// execute runs a tool, and says what came of it to whoever attends.
func (l *Engine) execute(ctx context.Context, a *attendance, run, name, input string) {
	defer func() {
		if p := recover(); p != nil {
			l.log.ErrorContext(ctx, "a tool panicked", "tool", name, "run", run, "panic", p, "stack", string(debug.Stack()))
			a.end = ended{err: errdefs.Internal.Errorf("the tool panicked: %v", p)}
		}
		a.tell(news{ended: true})
	}()
	t, _, _ := l.tools.Lookup(name)
	res, err := t.Execute(ctx, json.RawMessage(input))
	a.end = ended{res, err}
}

// attendance is what a tool and who attends to it have in common.
type attendance struct {
	news           chan news
	left           chan struct{} // closed when nobody attends any more: late news go nowhere
	host           engine.Relay  // the tool's
	stdout, stderr writer
	end            ended // read once it was told
}

// news is one thing that a tool has to say: output, an event of what is below it, or that it has ended.
type news struct {
	stream, text string
	event        *event.Event
	ended        bool
}

// tell waits until who attends has taken the news, or has left.
func (a *attendance) tell(n news) {
	select {
	case a.news <- n:
	case <-a.left:
	}
}

// Publish is for what is below the tool.
func (a *attendance) Publish(_ context.Context, e event.Event) error {
	a.tell(news{event: &e})
	return nil
}

// inside is the context of a tool: its call, what it needs to go on below the run, and what binds it there.
func (l *Engine) inside(ctx context.Context, run *engine.Run, host engine.Host, key journal.Key, call *tool.Call) context.Context {
	bounds := run.Bounds
	bounds.Hooks = l.hooks(run)
	return engine.WithInside(ctx, &engine.Inside{Run: *run, Host: host, Key: key, Performer: l}, &bounds, call)
}

// idempotency is the key that a tool gets for its call: the same however often, and wherever, the call is run.
func idempotency(run *engine.Run, key journal.Key) string {
	colon, slash := "", ""
	if key.Scope != "" {
		colon = ":"
	}
	if key.ID != "" {
		slash = "/"
	}
	return run.ID + "." + strconv.Itoa(run.Attempt) + "/" + key.Scope + colon + key.Op + slash + key.ID // as key.String has it, in one piece
}

// behind starts what goes on of calls in the background, unless it runs already.
func (l *Engine) behind(run *engine.Run, host engine.Host) {
	if run.Log == nil || run.Background == nil {
		return
	}
	for _, c := range run.Log.Background() {
		l.start(*run, host, c)
	}
}

// GoOn implements [engine.Continuer].
func (l *Engine) GoOn(run engine.Run, host engine.Host) { l.behind(&run, host) }

// start is apart from behind because its function has the run, a copy that stays, on the heap.
func (l *Engine) start(run engine.Run, host engine.Host, c journal.Called) {
	run.Background.Start(c.ID, func(ctx context.Context) error { return l.goOn(ctx, &run, host, c) })
}

// goOn runs the part of a call that is in the background to its end, and puts what came of it on record for the model to hear.
func (l *Engine) goOn(ctx context.Context, run *engine.Run, host engine.Host, c journal.Called) error {
	var e engine.UseTool
	l.use(&e, run, nil, c, "") // the model was told what hooks had to say
	behind := engine.Relay{Host: host, To: late{run.Background}}
	var out journal.ToolFinished
	err := l.outcome(ctx, run, behind, e.Key(), &e, true, &out)
	if err == nil {
		err = ctx.Err() // it goes on when the run is resumed
	}
	if err != nil {
		return err
	}
	if out.Ends != "" { // what it would end has gone on meanwhile
		out.Content = told(out.Content, "A hook wants the run to end: "+out.Ends)
	}
	parts := []message.Part{engine.Tell{Text: out.Content, Why: engine.WhyResult}.Message().Part(0)}
	for _, f := range out.Files {
		parts = append(parts, f)
	}
	return run.Log.Report(context.WithoutCancel(ctx), run.ID, c.ID, out.Untrusted, message.New(message.RoleUser, parts...)) // one that says nothing is not heard
}

// late is who hears of what goes on in the background.
type late struct{ to *engine.Background }

// Publish leaves out deltas: they would come late, and be many.
func (l late) Publish(_ context.Context, e event.Event) error {
	if e.Data != nil || e.Delta == event.Warning {
		l.to.Publish(e)
	}
	return nil
}

// writer brings a tool's output to the goroutine that attends to it.
type writer struct {
	to     *attendance
	stream string
}

func (w *writer) Write(p []byte) (int, error) {
	w.to.tell(news{stream: w.stream, text: string(p)})
	return len(p), nil
}
