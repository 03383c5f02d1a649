package builtin

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/pawl-dev/pawl/errdefs"
	"github.com/pawl-dev/pawl/internal/process"
	"github.com/pawl-dev/pawl/sandbox/fence"
	"github.com/pawl-dev/pawl/tool"
)

// How many commands of a session there are in the background.
const (
	mostRunning    = 8
	mostRemembered = 32 // whose output can be read, those that are over included
)

// recordWithin is how long the journal may take to note an end: Close waits for it.
const recordWithin = 10 * time.Second

// background is the commands that go on behind their calls.
type background struct {
	core    *core
	running sync.WaitGroup
	mu      sync.Mutex
	all     []*command // in the order in which they began
}

// command is one of them.
type command struct {
	tool.Command
	session string
	mark    string // of its processes
	out     *kept
	refused fence.Refused
	began   time.Time
	stop    context.CancelCauseFunc
	over    chan struct{} // closed when it has ended, and its end is on record

	mu  sync.Mutex
	end *tool.CommandEnd
}

// stopped is why a command's context ended.
type stopped tool.CommandReason

func (s stopped) Error() string { return string(s) }

// launch starts a command.
func (b *background) launch(ctx context.Context, w *Workspace, call tool.Call, text, dir string, limit time.Duration) (tool.Result, error) {
	if err := process.Guarded(); err != nil {
		return tool.Result{}, err
	}
	res, err := b.begin(ctx, w, call, "bg-"+shortened(call.ID), text, dir, limit)
	if errdefs.Conflict.Is(err) { // the call ran before, in a process that died
		res, err = b.begin(ctx, w, call, "bg-"+randomID()[:8], text, dir, limit)
	}
	return res, err
}

// shortened is enough of a call's id to tell its command from the others of its session.
func shortened(call string) string {
	const most = 12
	id := strings.Map(func(r rune) rune {
		if r == '_' || r == '-' || r >= '0' && r <= '9' || r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' {
			return r
		}
		return -1
	}, call)
	if id == "" {
		return randomID()[:8]
	}
	return id[max(0, len(id)-most):]
}

func (b *background) begin(ctx context.Context, w *Workspace, call tool.Call, id, text, dir string, limit time.Duration) (tool.Result, error) {
	c := &command{Command: tool.Command{ID: id, Text: text, Dir: dir}, session: call.Session, mark: randomID(), began: time.Now(), over: make(chan struct{})}
	c.out = &kept{root: b.core.out, name: "bash-" + c.mark + ".txt", dir: b.core.outDir}
	life := context.Background()
	if call.Commands != nil {
		life = call.Commands.Lifetime()
	}
	life, c.stop = context.WithCancelCause(life)
	if err := b.enter(c); err != nil {
		c.stop(nil)
		return tool.Result{}, err
	}
	if err := b.start(ctx, life, w, call, c, limit); err != nil {
		b.forget(c)
		return tool.Result{}, err
	}
	return tool.Result{Content: fmt.Sprintf("%s runs in the background. bash_output gives its output, bash_kill ends it. The last %d MB of its output are kept in %s.", c.ID, keptMost>>20, c.out.path())}, nil
}

// enter takes a place for a command.
func (b *background) enter(c *command) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	var running []string
	own := 0
	for _, o := range b.all {
		if o.session == c.session {
			if own++; o.ID == c.ID {
				return errdefs.Conflict.Errorf("there is a command %s already", c.ID)
			}
			if o.ended() == nil {
				running = append(running, fmt.Sprintf("%s (%s)", o.ID, cut(show(o.Text), 60)))
			}
		}
	}
	if len(running) >= mostRunning {
		return errdefs.BudgetExceeded.Errorf("%d commands run in the background, which is the limit: end one with bash_kill: %s", len(running), strings.Join(running, ", "))
	}
	if own >= mostRemembered {
		i := slices.IndexFunc(b.all, func(o *command) bool { return o.session == c.session && o.ended() != nil })
		_ = b.core.out.Remove(b.all[i].out.name)
		b.all = slices.Delete(b.all, i, i+1)
	}
	b.all = append(b.all, c)
	b.running.Add(1)
	return nil
}

// forget is for one that was not started.
func (b *background) forget(c *command) {
	c.stop(nil)
	close(c.over)
	b.mu.Lock()
	defer b.mu.Unlock()
	b.all = slices.DeleteFunc(b.all, func(o *command) bool { return o == c })
	b.running.Done()
}

// start puts the command on record, and starts it.
func (b *background) start(ctx, life context.Context, w *Workspace, call tool.Call, c *command, limit time.Duration) error {
	cmd, cleanUp, err := w.shell(fence.WithRefused(ctx, &c.refused), c.Text, c.mark)
	if err != nil {
		return err
	}
	if err := c.out.open(); err != nil {
		cleanUp()
		return errdefs.NotAvailable.Errorf("keep the output: %w", err)
	}
	drop := func() {
		cleanUp()
		c.out.close()
		_ = b.core.out.Remove(c.out.name)
	}
	if call.Commands != nil {
		if err := call.Commands.Started(ctx, c.Command); err != nil {
			drop()
			return err
		}
	}
	stdout, stderr := &stream{live: io.Discard, to: c.out}, &stream{live: io.Discard, to: c.out}
	cmd.Dir, cmd.Stdout, cmd.Stderr = c.Dir, stdout, stderr
	b.core.started.Store(true)
	p, err := process.Start(cmd, b.core.id+"."+c.mark)
	if err != nil {
		c.record(call.Commands, tool.CommandEnd{Reason: tool.CommandFailed}) //nolint:contextcheck // it has its own time
		drop()
		return errdefs.NotAvailable.Errorf("start the command: %w", err)
	}
	go func() {
		defer b.running.Done()
		defer close(c.over)
		stop := context.AfterFunc(b.core.life, func() { c.stop(stopped(tool.CommandStopped)) }) //nolint:contextcheck // it outlives the call
		defer stop()
		end := p.Wait(life, limit)
		stdout.flush()
		stderr.flush()
		c.out.close()
		cleanUp()
		e := endOf(end, context.Cause(life))
		e.Took = time.Since(c.began)
		c.mu.Lock()
		c.end = &e
		c.mu.Unlock()
		c.record(call.Commands, e) //nolint:contextcheck // it has its own time
		c.stop(nil)
	}()
	return nil
}

// record puts an end on record. Where that fails it stays open there, and whoever drives the session next takes it for lost.
func (c *command) record(to tool.Commands, e tool.CommandEnd) {
	if to == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), recordWithin)
	defer cancel()
	_ = to.Ended(ctx, c.Command, e)
}

func endOf(e process.End, cause error) tool.CommandEnd {
	out := tool.CommandEnd{Reason: tool.CommandExited, Code: e.Code, Signal: e.Signal}
	switch {
	case e.TimedOut:
		out.Reason = tool.CommandTimeout
	case e.Canceled:
		out.Reason = tool.CommandStopped
		var s stopped
		if errors.As(cause, &s) {
			out.Reason = tool.CommandReason(s)
		}
	}
	return out
}

// ended is how it ended; nil while it runs.
func (c *command) ended() *tool.CommandEnd {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.end
}

// find gives a command of the call's session.
func (b *background) find(call tool.Call, id string) (*command, error) {
	for _, c := range b.of(call.Session) {
		if c.ID == id {
			return c, nil
		}
	}
	if call.Commands != nil && slices.ContainsFunc(call.Commands.Open(), func(c tool.Command) bool { return c.ID == id }) {
		return nil, errdefs.NotFound.Errorf("the command %s is out of reach: another process runs it, or has ended and with it the command", id)
	}
	return nil, errdefs.NotFound.Errorf("there is no background command %s in this session; there are: %s", show(id), b.list(call.Session))
}

// of is the commands of a session.
func (b *background) of(session string) (own []*command) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, c := range b.all {
		if c.session == session {
			own = append(own, c)
		}
	}
	return own
}

// list is a line for each command of a session.
func (b *background) list(session string) string {
	var lines strings.Builder
	for _, c := range b.of(session) {
		fmt.Fprintf(&lines, "\n%s: %s: %s", c.ID, c.status(), cut(show(c.Text), 200))
	}
	if lines.Len() == 0 {
		return "none"
	}
	return lines.String()
}

func (c *command) status() string {
	e := c.ended()
	if e == nil {
		return "runs since " + time.Since(c.began).Round(time.Second).String()
	}
	after := " after " + e.Took.Round(100*time.Millisecond).String()
	switch {
	case e.Reason == tool.CommandKilled:
		return "was killed" + after
	case e.Reason == tool.CommandTimeout:
		return "timed out" + after + ", and was killed with everything it started"
	case e.Reason == tool.CommandStopped:
		return "was stopped" + after
	case e.Signal != "":
		return "was killed by the signal " + e.Signal + after
	}
	return fmt.Sprintf("ended with exit code %d%s", e.Code, after)
}

// EndSession stops the commands that a session has in the background, and waits until they have ended. Those of other sessions go on.
func (w *Workspace) EndSession(session string) {
	own := w.background.of(session)
	for _, c := range own {
		c.stop(stopped(tool.CommandStopped))
	}
	for _, c := range own {
		<-c.over
	}
}

// Forget is EndSession for all sessions that of says yes to, and then nothing is known of their commands any more. The files that keep their output stay.
func (w *Workspace) Forget(of func(session string) bool) {
	b := w.background
	b.mu.Lock()
	var own []*command
	for _, c := range b.all {
		if of(c.session) {
			own = append(own, c)
		}
	}
	b.mu.Unlock()
	for _, c := range own {
		c.stop(stopped(tool.CommandStopped))
	}
	for _, c := range own {
		<-c.over
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.all = slices.DeleteFunc(b.all, func(c *command) bool { return slices.Contains(own, c) })
}

// Running are the sessions in which a command runs in the background.
func (w *Workspace) Running() map[string]bool {
	w.background.mu.Lock()
	defer w.background.mu.Unlock()
	all := map[string]bool{}
	for _, c := range w.background.all {
		if c.ended() == nil {
			all[c.session] = true
		}
	}
	return all
}

type outputInput struct {
	ID   string `json:"id"`
	Wait period `json:"wait"`
}

// BashOutput is the tool that gives what a command in the background wrote since it was last asked: {id, wait}. With wait it first waits, for so long, until the command has ended. Without an id it
// lists the session's commands. Of more than 30,000 bytes it gives the first and the last 10,000, and names the file that keeps the last 10 MB.
func (w *Workspace) BashOutput() tool.Tool { return w.tools[6] }

func (w *Workspace) newBashOutput() tool.Tool {
	return tool.Func("bash_output", "Get what a background command of bash has written since you last asked, and whether it still runs. Without an id: list the background commands.",
		guarded(w, "bash_output", w.bashOutput), tool.ReadOnly, tool.WithSchema(json.RawMessage(`{"type":"object","additionalProperties":false,"properties":{
"id":{"type":"string","description":"of the command, as bash gave it"},
"wait":{"anyOf":[{"type":"number"},{"type":"string"}],"description":"wait so long for the command to end, before its output is given: milliseconds, or a string with a unit such as \"90s\"; at most 10 minutes; default not at all"}}}`)),
		tool.WithAliases(map[string]string{"bash_id": "id", "shell_id": "id", "task_id": "id", "timeout": "wait"}))
}

func (w *Workspace) bashOutput(ctx context.Context, in outputInput) (tool.Result, error) {
	call := tool.FromContext(ctx)
	if in.ID == "" {
		return tool.Result{Content: "background commands: " + w.background.list(call.Session)}, nil
	}
	c, err := w.background.find(call, in.ID)
	if err != nil {
		return tool.Result{}, err
	}
	if in.Wait > 0 {
		timer := time.NewTimer(time.Duration(in.Wait))
		defer timer.Stop()
		select {
		case <-c.over:
		case <-timer.C:
		case <-ctx.Done():
			return tool.Result{}, ctx.Err()
		}
	}
	status := c.status() // first: what is read after it is all of one that is over
	text, err := c.out.next()
	if err != nil {
		return tool.Result{}, errdefs.NotAvailable.Errorf("read the output of %s: %w", c.ID, err)
	}
	if text == "" {
		text = "(no new output)"
	}
	return tool.Result{Content: fmt.Sprintf("%s\n[%s %s]", join(text, refusals(&c.refused)), c.ID, status)}, nil
}

type killInput struct {
	ID string `json:"id"`
}

// BashKill is the tool that ends a command in the background, with everything that it started: {id}. It is asked to end with SIGTERM, and killed 1 s later.
func (w *Workspace) BashKill() tool.Tool { return w.tools[7] }

func (w *Workspace) newBashKill() tool.Tool {
	return tool.Func("bash_kill", "End a background command of bash, with everything that it started.",
		guarded(w, "bash_kill", w.bashKill), tool.Idempotent, tool.WithSchema(json.RawMessage(`{"type":"object","additionalProperties":false,"required":["id"],"properties":{
"id":{"type":"string","description":"of the command, as bash gave it"}}}`)),
		tool.WithAliases(map[string]string{"bash_id": "id", "shell_id": "id", "task_id": "id"}))
}

func (w *Workspace) bashKill(ctx context.Context, in killInput) (tool.Result, error) {
	c, err := w.background.find(tool.FromContext(ctx), in.ID)
	if err != nil {
		return tool.Result{}, err
	}
	c.stop(stopped(tool.CommandKilled))
	select {
	case <-c.over:
		return tool.Result{Content: fmt.Sprintf("%s %s", c.ID, c.status())}, nil
	case <-ctx.Done():
		return tool.Result{}, ctx.Err()
	}
}
