package shell

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"maps"
	"os/exec"
	"slices"
	"strings"
	"sync"

	"github.com/pawl-dev/pawl/hook"
	"github.com/pawl-dev/pawl/internal/process"
)

// firing is one event on its way to the hooks.
type firing struct {
	hook.Where
	event   EventType
	call    string     // of tool events
	forms   [2]Payload // as it is, and as hooks written for Claude Code know it
	encoded [2][]byte  // of forms, when somebody needs it
}

func fired(e EventType, w hook.Where, p Payload) *firing {
	f := &firing{Where: w, event: e, forms: [2]Payload{p, p}}
	switch p := p.(type) {
	case ToolUsePayload:
		f.call = p.ID
		p.Name = claudeName(p.Name)
		f.forms[1] = p
	case ToolResultPayload:
		f.call = p.ID
		p.Name = claudeName(p.Name)
		f.forms[1] = p
	}
	return f
}

// claudeNames are the built-in tools as Claude Code calls them.
var claudeNames = map[string]string{
	"bash": "Bash", "bash_output": "BashOutput", "bash_kill": "KillShell", "web_fetch": "WebFetch", "read": "Read", "write": "Write", "edit": "Edit", "glob": "Glob", "grep": "Grep", "skill": "Skill", "task": "Task", "ask_user": "AskUserQuestion",
}

func claudeName(tool string) string {
	if name, ok := claudeNames[tool]; ok {
		return name
	}
	return tool
}

// payload is the event's own part of what h reads.
func (f *firing) payload(h *handler) (b []byte, err error) {
	i := 0
	if h.Claude {
		i = 1
	}
	if f.encoded[i] == nil {
		f.encoded[i], err = encode(f.forms[i])
	}
	return f.encoded[i], err
}

// stdin is what h reads.
func (f *firing) stdin(h *handler, dir string) ([]byte, error) {
	own, err := f.payload(h)
	if err != nil {
		return nil, err
	}
	agent, of := "", ""
	if _, own := f.forms[0].(SubagentPayload); f.Parent != "" && !own { // whose the event is: SubagentStart has said the same
		agent, of = f.Session, f.Agent
	}
	b, err := encode(struct {
		Session string    `json:"session_id"`
		Dir     string    `json:"cwd"`
		Event   EventType `json:"hook_event_name"`
		Agent   string    `json:"agent_id,omitempty"`
		Type    string    `json:"agent_type,omitempty"`
	}{f.Session, dir, f.event, agent, of})
	if err != nil {
		return nil, err
	}
	if len(own) > len("{}") {
		b = append(append(b[:len(b)-1], ','), own[1:]...)
	}
	return append(b, '\n'), nil
}

// meant reports whether an event is for h.
func (h *handler) meant(f *firing) (bool, error) {
	if !h.matches(f.forms[0].key()) && (!h.Claude || !h.matches(f.forms[1].key())) {
		return false, nil
	}
	if h.payload != nil {
		if b, err := f.payload(h); err != nil || !h.payload.Match(b) {
			return false, err
		}
	}
	if h.rule == nil {
		return true, nil
	}
	switch p := f.forms[0].(type) {
	case ToolUsePayload:
		return h.rule(p.Name, string(p.Input)), nil
	case ToolResultPayload:
		return h.rule(p.Name, string(p.Input)), nil
	}
	return true, nil
}

// onceKey says that a hook has run in a session, or, without one, in a run.
type onceKey struct {
	session, run string
	hook         int
}

func (f *firing) onceKey(h *handler) (k onceKey, ok bool) {
	k = onceKey{session: f.Session, hook: h.same}
	if k.session == "" {
		k.run = f.Run
	}
	return k, h.Once && k.session+k.run != ""
}

// first reports whether a hook may run, if it runs only once. A call that is judged again is the same event.
func (s *Hooks) first(f *firing, h *handler) bool {
	k, once := f.onceKey(h)
	if !once {
		return true
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if call, ran := s.once[k]; ran && (call == "" || call != f.call) {
		return false
	}
	s.once[k] = f.call
	return true
}

// unsaid forgets that a hook ran, since it gave no answer.
func (s *Hooks) unsaid(f *firing, h *handler) {
	if k, once := f.onceKey(h); once {
		s.mu.Lock()
		delete(s.once, k)
		s.mu.Unlock()
	}
}

// fire runs the hooks that an event is for and gives the answers of those that are waited for, in order. known is an answer that a hook gave before.
// The error is that of ctx, or says that nothing can be asked.
func (s *Hooks) fire(ctx context.Context, f *firing, known *answer) ([]answer, error) {
	var answers []answer
	var waited []int // indexes in answers of those to be asked
	seen := map[int]bool{}
	for _, h := range s.hooks[f.event] {
		if seen[h.same] {
			continue
		}
		if known != nil && known.by.same == h.same {
			seen[h.same] = true
			answers = append(answers, *known)
			continue
		}
		yes, err := h.meant(f)
		if err != nil {
			return nil, fmt.Errorf("hook: %s %s: %w", f.event, h.name, err)
		}
		if !yes {
			continue
		}
		if err := ctx.Err(); err != nil { // looked at late: what no hook is for goes its way, cancelled or not
			return nil, err
		}
		if seen[h.same] = true; !s.first(f, h) {
			continue
		}
		if h.Async {
			if err := s.behind(ctx, f, h); err != nil {
				return nil, err
			}
			continue
		}
		waited = append(waited, len(answers))
		answers = append(answers, answer{by: h})
	}
	if len(waited) == 0 {
		return answers, nil
	}
	if err := s.together(ctx, f, answers, waited); err != nil {
		return nil, err
	}
	return answers, ctx.Err()
}

// together asks hooks at the same time. One is asked right here.
func (s *Hooks) together(ctx context.Context, f *firing, answers []answer, waited []int) error {
	one := func(i, number int) {
		defer s.running.Done()
		answers[i] = s.ask(ctx, f, answers[i].by, number)
	}
	var wg sync.WaitGroup
	defer wg.Wait()
	free := make(chan struct{}, atOnce)
	for _, i := range waited {
		h := answers[i].by
		if _, err := f.stdin(h, s.opts.Dir); err != nil { // encoded here: the hooks share it
			return fmt.Errorf("hook: %s %s: %w", f.event, h.name, err)
		}
		number, err := s.begin()
		if err != nil {
			return err
		}
		if len(waited) == 1 {
			one(i, number)
			return nil
		}
		free <- struct{}{}
		wg.Go(func() {
			defer func() { <-free }()
			one(i, number)
		})
	}
	return nil
}

// behind starts a hook in the background, and waits only when too many are there already.
func (s *Hooks) behind(ctx context.Context, f *firing, h *handler) error {
	if _, err := f.stdin(h, s.opts.Dir); err != nil {
		return fmt.Errorf("hook: %s %s: %w", f.event, h.name, err)
	}
	number, err := s.begin()
	if err != nil {
		return err
	}
	select {
	case s.slots <- struct{}{}:
	case <-ctx.Done():
		s.running.Done()
		return ctx.Err()
	}
	go func() { // it outlives the run; Close waits for it
		defer s.running.Done()
		defer func() { <-s.slots }()
		s.ask(s.ctx, f, h, number)
	}()
	return nil
}

// ask runs a hook to its end.
func (s *Hooks) ask(ctx context.Context, f *firing, h *handler, number int) answer {
	tell := func(kind NoticeKind, text string) {
		if text != "" {
			s.tell(ctx, Notice{f.Where, f.event, h.name, kind, text})
		}
	}
	tell(NoticeStatus, h.StatusMessage)
	r := s.run(ctx, f, h, number)
	if r.Canceled {
		s.unsaid(f, h)
		if h.Async {
			tell(NoticeWarning, "it was still running when the hooks were closed, and was killed")
		}
		return answer{by: h, err: cmp.Or(ctx.Err(), errClosed)}
	}
	a := h.answer(r, tell)
	if a.err != nil || r.Code != 0 && r.Code != 2 {
		s.unsaid(f, h)
	}
	return a
}

// tell tells people. A Notify that panics is none of the hook's business.
func (s *Hooks) tell(ctx context.Context, n Notice) {
	if s.opts.Notify == nil {
		return
	}
	s.telling.Lock()
	defer s.telling.Unlock()
	defer func() { _ = recover() }()
	s.opts.Notify(ctx, n)
}

// run is the process.
func (s *Hooks) run(ctx context.Context, f *firing, h *handler, number int) (r ran) {
	in, err := f.stdin(h, s.opts.Dir)
	if err != nil {
		r.err = err
		return r
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(s.ctx, cancel)() //nolint:contextcheck // Close ends what runs

	name, args := "/bin/sh", []string{"-c", h.Command}
	if h.Args != nil {
		here := strings.NewReplacer("${CLAUDE_PROJECT_DIR}", s.opts.Dir, "${PAWL_PROJECT_DIR}", s.opts.Dir).Replace
		name, args = here(h.Command), make([]string, len(h.Args))
		for i, a := range h.Args {
			args[i] = here(a)
		}
	}
	cmd, err := s.command(ctx, name, args...)
	if err != nil {
		r.err = err
		return r
	}
	cmd.Dir = s.opts.Dir
	for _, name := range slices.Sorted(maps.Keys(h.Env)) {
		cmd.Env = append(cmd.Env, name+"="+h.Env[name])
	}
	cmd.Env = append(cmd.Env, "CLAUDE_PROJECT_DIR="+s.opts.Dir, "PAWL_PROJECT_DIR="+s.opts.Dir)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = bytes.NewReader(in), &r.stdout, &r.stderr
	r.End, r.err = process.Run(ctx, cmd, fmt.Sprintf("%s.%d.", s.mark, number), h.limit)
	return r
}

// command makes a hook's process. In a fence the environment is what that lets pass.
func (s *Hooks) command(ctx context.Context, name string, args ...string) (*exec.Cmd, error) {
	if s.opts.Command == nil {
		cmd := exec.Command(name, args...) //nolint:gosec // running commands is what it is for
		cmd.Env = slices.Clone(s.env)
		return cmd, nil
	}
	cmd, err := s.opts.Command(ctx, name, args...)
	if err == nil && cmd.Env == nil { // what is added to it must not be all that there is
		cmd.Env = slices.Clone(s.env)
	}
	return cmd, err
}
