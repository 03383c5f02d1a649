package pawl

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"iter"
	"maps"
	"strings"
	"sync"
	"time"

	"github.com/pawl-dev/pawl/agent"
	"github.com/pawl-dev/pawl/engine"
	"github.com/pawl-dev/pawl/engine/loop"
	"github.com/pawl-dev/pawl/errdefs"
	"github.com/pawl-dev/pawl/event"
	"github.com/pawl-dev/pawl/journal"
	"github.com/pawl-dev/pawl/message"
	"github.com/pawl-dev/pawl/model"
	"github.com/pawl-dev/pawl/pack"
	"github.com/pawl-dev/pawl/pack/guard"
)

// Conversation talks by a prompt of a pack. All that was said, done and asked is in its session's journal; the Conversation itself has variables and handlers only. Its methods are safe for
// concurrent use, also from handlers of tools: turns (Send, Stream, Continue, AddMessage, Clear) follow each other in the order of their calls, nothing else waits for them.
//
// A handler must not take a turn of its own conversation, nor close it: it would wait for itself. Where it passes its context on, that is errdefs.Conflict.
type Conversation struct {
	pack   *pack.Pack
	prompt *pack.Prompt           // nil with a workflow
	flow   *flow                  // nil without one
	skills map[string]*packSkills // by the scope of states; "" is all
	opts   conversationOptions
	model  model.Model
	bus    event.Bus
	turn   chan struct{} // holds a token while nobody has the turn
	toldTo int64         // to which entry listeners were told, of a turn that waits for people; guarded by turn

	ctx    context.Context // ends with Close
	cancel context.CancelFunc
	idle   chan struct{} // closed once Close was called and nobody is inside any more

	closing  sync.Once
	closeErr error

	reading sync.Mutex // guards what follows
	log     *journal.Log

	mu       sync.Mutex // guards what follows; never held while anything of the program's own runs
	session  string
	closed   bool
	inside   int
	vars     map[string]any
	handlers map[string]handler
	version  int   // of the handlers
	crew     *crew // what the handlers make; nil: to be made again
}

// Option shapes a [Conversation]. A nil one does nothing.
type Option func(*conversationOptions)

type conversationOptions struct {
	model     model.Model
	name, key string
	endpoint  []model.Option
	store     journal.Store
	session   string
	vars      map[string]any
	loader    *pack.Loader
	run       []agent.RunOption
	compact   loop.Compact
	host      engine.Host
}

// WithModel talks to m, whatever the environment says.
func WithModel(m model.Model) Option { return func(o *conversationOptions) { o.model = m } }

// WithJournal keeps the conversation in s, so that it outlasts the process. Default: in memory, until it is dropped.
func WithJournal(s journal.Store) Option { return func(o *conversationOptions) { o.store = s } }

// WithSession names the conversation in its journal: one of that name is gone on with, or else begun. Default: a new name.
func WithSession(name string) Option { return func(o *conversationOptions) { o.session = name } }

// WithVars sets variables, as [Conversation.SetVars] does.
func WithVars(vars map[string]any) Option {
	return func(o *conversationOptions) { o.vars = maps.Clone(vars) }
}

// WithCompact says how the transcript is kept within the model's window. Default: on, with the defaults of loop.Compact; loop.Compact{} is off. Validators don't judge the summaries.
func WithCompact(c loop.Compact) Option { return func(o *conversationOptions) { o.compact = c } }

// WithLoader reads the pack with l, which may know more types of validators. Default: the one of pack.Load.
func WithLoader(l *pack.Loader) Option { return func(o *conversationOptions) { o.loader = l } }

// WithHost has h asked and interrupted, and told of every event. Default: nobody, so that calls wait for ResolveTool.
func WithHost(h engine.Host) Option { return func(o *conversationOptions) { o.host = h } }

// WithRunOptions gives options to each turn: hooks, a tracer, an attribute, a budget, which is one for all turns. The journal and the host are those of WithJournal and WithHost all the same.
func WithRunOptions(opts ...agent.RunOption) Option {
	return func(o *conversationOptions) { o.run = append(o.run, opts...) }
}

// Open reads a pack file and opens a conversation by one of its prompts. Nothing is called yet, and nothing is written.
//
// It fails with errdefs.NotFound where there is no such file or prompt, with Validation where the pack is wrong (a *pack.Error with all problems) or asks for what the model can't do, and with NotAvailable where nothing says which model to talk to: see [WithModelName].
func Open(path, prompt string, opts ...Option) (*Conversation, error) {
	p, m, o, err := prepare(path, opts, prompt)
	if err != nil {
		return nil, err
	}
	return begin(p, p.Prompts[prompt], m, o)
}

// prepare reads the pack, which has to have some prompts, and finds the model.
func prepare(path string, opts []Option, prompts ...string) (*pack.Pack, model.Model, conversationOptions, error) {
	o := conversationOptions{compact: loop.Compact{Enabled: true}}
	for _, opt := range opts {
		if opt != nil {
			opt(&o)
		}
	}
	load := pack.Load
	if o.loader != nil {
		load = o.loader.Load
	}
	p, err := load(path)
	if err != nil {
		return nil, nil, o, err
	}
	for _, name := range prompts {
		if _, err := p.Prompt(name); err != nil {
			return nil, nil, o, err
		}
	}
	m, err := o.open()
	return p, m, o, err
}

// Resume opens a conversation that is on record under the name session, in the store of [WithJournal]. One that isn't there is errdefs.NotFound. A turn that was under way goes on with [Conversation.Continue].
func Resume(ctx context.Context, session, path, prompt string, opts ...Option) (*Conversation, error) {
	return resume(ctx, session, opts, func(opts ...Option) (*Conversation, error) { return Open(path, prompt, opts...) })
}

func resume(ctx context.Context, session string, opts []Option, open func(...Option) (*Conversation, error)) (*Conversation, error) {
	c, err := open(append(opts[:len(opts):len(opts)], WithSession(session))...)
	if err != nil {
		return nil, err
	}
	st, err := c.state(ctx)
	if err == nil && st.Seq == 0 {
		err = errdefs.NotFound.Errorf("pawl: resume: there is no session %q in this journal: give WithJournal the store that it is in", session)
	}
	if err != nil {
		return nil, errors.Join(err, c.Close())
	}
	return c, nil
}

// begin makes a conversation of its parts: of the pack's workflow, without a prompt.
func begin(p *pack.Pack, pr *pack.Prompt, m model.Model, o conversationOptions) (*Conversation, error) {
	if o.store == nil {
		o.store = journal.Memory()
	}
	if o.session == "" {
		o.session = "s-" + strings.ToLower(rand.Text())
	}
	c := &Conversation{
		pack: p, prompt: pr, opts: o, model: m, session: o.session, turn: make(chan struct{}, 1), idle: make(chan struct{}),
		vars: maps.Clone(o.vars), handlers: map[string]handler{},
	}
	if c.vars == nil {
		c.vars = map[string]any{}
	}
	scopes := []string{""}
	if pr == nil {
		c.flow = &flow{conv: c, def: p.Workflow}
		scopes = c.flow.scopes()
	}
	var err error
	if c.skills, err = loadSkills(p, scopes); err != nil {
		return nil, err
	}
	c.turn <- struct{}{}
	if _, err := c.members(); err != nil { // what the model can't do is known before the first turn
		return nil, err
	}
	c.ctx, c.cancel = context.WithCancel(context.Background())
	return c, nil
}

// SetVar sets a variable of the pack's templates, from the next turn on: the turn under way keeps the prompt that it has. The value belongs to the conversation then. nil is as if it was never set.
func (c *Conversation) SetVar(name string, value any) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.vars[name] = value
}

// SetVars sets several variables at once.
func (c *Conversation) SetVars(vars map[string]any) {
	c.mu.Lock()
	defer c.mu.Unlock()
	maps.Copy(c.vars, vars)
}

// GetVar gives the value that a variable was set to; ok is false when it was not. Defaults of the pack are not values.
func (c *Conversation) GetVar(name string) (value any, ok bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	value, ok = c.vars[name]
	return value, ok && value != nil
}

// Session is the name of the conversation in its journal.
func (c *Conversation) Session() string { return c.session }

// Model is the name of the model that it talks to; "" where that doesn't say.
func (c *Conversation) Model() string { return c.modelName() }

// Response is what came of a turn.
type Response struct {
	// Text is the answer; Pending are the calls that wait for a person: then the turn is not over, see [Conversation.Continue]. Where agents handed over, Messages, Artifacts, Usage, Cost and Steps are of all that were at work in this call, and the rest is the last one's.
	*agent.Result
	// Violations are what validators found in the replies: one that blocks is the last, and those that only note come in the order in which they were found.
	Violations []*guard.Violation
}

// Send says text, and files, and waits for the answer.
//
// Before anything is on record or any model is called, it fails with errdefs.Validation where a variable is missing or wrong, a tool has no handler, or the prompt does not take the files; with a *guard.Violation (errdefs.PolicyDenied) where a validator refuses what is said; with
// Conflict where the turn before is not over; with NotAvailable after Close. With a Response come the error of a turn that failed, and the *guard.Violation of a reply that a validator blocked: its text is the validator's message then.
// Calls that wait for a person are no error.
func (c *Conversation) Send(ctx context.Context, text string, files ...message.File) (*Response, error) {
	return c.send(ctx, text, files)
}

func (c *Conversation) send(ctx context.Context, text string, files []message.File, opts ...agent.RunOption) (*Response, error) {
	var parts []message.Part
	if text != "" {
		parts = append(parts, message.Text{Text: text})
	}
	for _, f := range files {
		parts = append(parts, f)
	}
	m := message.New(message.RoleUser, parts...)
	return c.take(ctx, opts, func(ctx context.Context, d driver, opts ...agent.RunOption) (*agent.Result, error) {
		st, err := c.over(ctx, "send")
		if err != nil {
			return nil, err
		}
		if err := c.admit(ctx, st, m); err != nil {
			return nil, err
		}
		return d.run(ctx, agent.Request{ContextID: c.session, Message: m}, opts...)
	})
}

// Stream is Send, ranged over: the turn runs in the ranging goroutine, and its events are those of [Runtime.RunStream]. What of a reply is shown, validators have judged. Breaking out cancels the turn. A turn that does
// not complete yields its error last; one that waits for a person does not: its journal.Asked events say what for, as PendingTools does. Where the loop answers them at once, by ResolveTool, the turn goes on.
func (c *Conversation) Stream(ctx context.Context, text string, files ...message.File) iter.Seq2[event.Event, error] {
	return c.stream(ctx, func(ctx context.Context, opts ...agent.RunOption) (*Response, error) {
		return c.send(ctx, text, files, opts...)
	})
}

// ContinueStream is Continue, ranged over as [Conversation.Stream] is.
func (c *Conversation) ContinueStream(ctx context.Context) iter.Seq2[event.Event, error] {
	return c.stream(ctx, c.goOn)
}

func (c *Conversation) stream(ctx context.Context, run func(context.Context, ...agent.RunOption) (*Response, error)) iter.Seq2[event.Event, error] {
	return stream(ctx, c.host(), func(ctx context.Context, h engine.Host) (*agent.Result, error) {
		resp, err := run(ctx, agent.WithEngineHost(h))
		if resp == nil {
			return nil, err
		}
		return resp.Result, err
	})
}

// Continue goes on with the turn that is not over: one that waited for people, once each of them has answered, and one whose process died. Before that it waits further, and calls no model. errdefs.NotFound where no turn is under way.
func (c *Conversation) Continue(ctx context.Context) (*Response, error) { return c.goOn(ctx) }

func (c *Conversation) goOn(ctx context.Context, opts ...agent.RunOption) (*Response, error) {
	return c.take(ctx, opts, c.resume)
}

// AddMessage puts a user's or an assistant's message on record, behind all others, without a model call: the next turn knows of it. A user's is judged and admitted as in Send, with the same errors; what validators only note is in no response. An
// assistant's is the program's own word: no validator judges it. errdefs.Conflict where a turn is not over; Validation for a message of another role, for parts that nobody of the role says (calls, results; of a user anything but text and files), and
// for files as in Send.
func (c *Conversation) AddMessage(ctx context.Context, m message.Message) error {
	if m.Blank() {
		return errdefs.Validation.Errorf("pawl: add message: it says nothing")
	}
	if m.Role() != message.RoleUser && m.Role() != message.RoleAssistant {
		return errdefs.Validation.Errorf("pawl: add message: want one of role user or assistant; got role %q", m.Role())
	}
	for p := range m.Parts() {
		switch p.(type) {
		case message.Text, message.File:
			continue
		case message.Reasoning, message.ProviderCall, message.Opaque:
			if m.Role() == message.RoleAssistant {
				continue
			}
		}
		return errdefs.Validation.Errorf("pawl: add message: a message of role %s has no %T here", m.Role(), p)
	}
	if m.Role() == message.RoleUser {
		return c.note(ctx, "add message", m, nil)
	}
	if err := m.CheckFiles(); err != nil {
		return errdefs.Validation.Errorf("pawl: add message: %w", err)
	}
	return c.note(ctx, "add message", message.User("(a message is added)"), func(h message.History) message.History { return h.Append(m) })
}

// Clear empties the transcript: the next turn knows nothing of what was said before. The journal keeps it; variables and handlers stay. A turn that is not over is given up.
func (c *Conversation) Clear(ctx context.Context) error {
	return c.note(ctx, "", message.User("(the transcript is cleared)"), func(message.History) message.History { return message.History{} })
}

// note is a turn in which nobody says anything: seed makes the transcript of what there was before it; nil adds m, which is a user's. With an action, a turn must not be under way.
func (c *Conversation) note(ctx context.Context, action string, m message.Message, seed func(message.History) message.History) error {
	ctx, leave, err := c.enter(ctx)
	if err != nil {
		return err
	}
	defer leave()
	st, err := c.state(ctx)
	if err != nil {
		return err
	}
	if action != "" && st.Run != "" {
		return unfinished(action, st)
	}
	if seed == nil { // as in Send
		if err := c.admit(ctx, st, m); err != nil {
			return err
		}
	}
	opts := []agent.RunOption{agent.WithJournal(c.opts.store), agent.WithOpen(c.open)}
	if seed != nil {
		opts = append(opts, unsaid(seed))
	}
	who, err := c.who(st) // who has the conversation keeps it
	if err != nil {
		return err
	}
	if who == "" && c.flow != nil {
		who = c.pack.ID
	} else if who == "" {
		who = c.prompt.ID
	}
	still := engine.Func(func(_ context.Context, _ engine.Run, _ engine.Host, b *engine.Board) (*engine.Board, error) {
		return b, nil
	})
	res, err := agent.Run(ctx, agent.Agent{ID: who}, still, agent.Request{ContextID: c.session, Message: m}, opts...)
	if err != nil {
		return err
	}
	return res.Err
}

// unsaid keeps a run's message out of the transcript, of which seed makes another one; nil leaves it as it was.
func unsaid(seed func(message.History) message.History) agent.RunOption {
	return agent.WithBoardSeed(func(ctx context.Context, _ agent.RunInfo, _ *agent.Request) (*engine.Board, error) {
		b := agent.DefaultBoard(ctx)
		h := b.Channel(engine.MainChannel)
		h = h.Slice(0, h.Len()-1)
		if seed != nil {
			h = seed(h)
		}
		b.SetChannel(engine.MainChannel, h)
		return b, nil
	})
}

// Messages is the transcript as the model is told it, read from the journal.
func (c *Conversation) Messages(ctx context.Context) (message.History, error) {
	st, err := c.state(ctx)
	return st.Messages, err
}

// Fork is a conversation of its own that begins as this one stands now, in the same journal under another name: with its variables and handlers, which later changes on either side don't touch. A turn that is not over is
// not the fork's: its calls are answered with that. Closing one leaves the other open.
func (c *Conversation) Fork(ctx context.Context) (*Conversation, error) {
	st, err := c.state(ctx)
	if err != nil {
		return nil, err
	}
	o := c.opts
	o.session = "" // nothing was said yet: there is nothing to share
	if st.Seq > 0 {
		if o.session, err = journal.Fork(ctx, o.store, c.session, st.Seq, ""); err != nil {
			return nil, err
		}
	}
	c.mu.Lock()
	vars, handlers := maps.Clone(c.vars), maps.Clone(c.handlers)
	c.mu.Unlock()
	o.vars = vars
	fork, err := begin(c.pack, c.prompt, c.model, o)
	if err == nil {
		fork.handlers, fork.crew = handlers, nil
	}
	return fork, err
}

// Close cancels the turns that run or wait, waits for them, and ends subscriptions. What they did is on record: the session can be opened again. A turn that has not ended 10 s later is left behind, with errdefs.Timeout. A second call gives the
// first one's error again. The journal and the model stay open: they are whose they were.
func (c *Conversation) Close() error {
	c.closing.Do(func() {
		c.mu.Lock()
		if c.closed = true; c.inside == 0 {
			close(c.idle)
		}
		c.mu.Unlock()
		c.cancel()
		ended := func(after time.Duration) bool {
			timer := time.NewTimer(after)
			defer timer.Stop()
			select {
			case <-c.idle:
				return true
			case <-timer.C:
				return false
			}
		}
		if !ended(closeTimeout / 5) {
			c.bus.Close() // what the turn waits for may be a subscriber who reads no more
		}
		if !ended(closeTimeout * 4 / 5) {
			c.closeErr = errdefs.Timeout.Errorf("pawl: close: a turn of session %s did not end within %v of being cancelled, and is left behind: what ignores its context has to heed it", c.session, closeTimeout)
		}
		c.bus.Close()
	})
	return c.closeErr
}

// host is where turns run: the caller's host, and whoever subscribed.
func (c *Conversation) host() engine.Host {
	return engine.Publishing(&c.bus, c.opts.host)
}

// turnKey is the key of a turn under way in a context.
type turnKey struct{ c *Conversation }

// enter waits for the turn, or for ctx, or for Close.
func (c *Conversation) enter(ctx context.Context) (_ context.Context, leave func(), err error) {
	if ctx.Value(turnKey{c}) != nil {
		return nil, nil, errdefs.Conflict.Errorf("pawl: a handler of session %s can't take a turn of it: it would wait for itself", c.session)
	}
	if err := c.arrive(); err != nil {
		return nil, nil, err
	}
	caller := ctx
	ctx, cancel := context.WithCancel(caller)
	stop := context.AfterFunc(c.ctx, cancel)
	out := func() {
		stop()
		cancel()
		c.mu.Lock()
		defer c.mu.Unlock()
		if c.inside--; c.closed && c.inside == 0 {
			close(c.idle)
		}
	}
	select {
	case <-c.turn: // waiters on a channel are served in the order they came
	case <-ctx.Done():
		defer out()
		return nil, nil, c.left(caller)
	}
	if err := c.left(caller); err != nil { // both came at once: nothing has begun
		defer out()
		c.turn <- struct{}{}
		return nil, nil, err
	}
	return context.WithValue(ctx, turnKey{c}, &found{}), func() {
		c.turn <- struct{}{}
		out()
	}, nil
}

// left says why a turn need not begin: its caller has left, or the conversation was closed while it waited.
func (c *Conversation) left(caller context.Context) error {
	if err := caller.Err(); err != nil {
		return err
	}
	if c.ctx.Err() != nil {
		return c.isClosed()
	}
	return nil
}

func (c *Conversation) isClosed() error {
	return errdefs.NotAvailable.Errorf("pawl: the conversation is closed: open it again, by its session %s", c.session)
}

// arrive is the beginning of a turn, or of waiting for it: from then on Close waits for it.
func (c *Conversation) arrive() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return c.isClosed()
	}
	c.inside++
	return nil
}

func (c *Conversation) state(ctx context.Context) (journal.State, error) {
	log, err := c.open(ctx, c.opts.store, c.session)
	if err != nil {
		return journal.State{}, err
	}
	return log.State(), nil
}

// open opens the session as it was left, and reads only what is new.
func (c *Conversation) open(ctx context.Context, store journal.Store, session string) (log *journal.Log, err error) {
	c.reading.Lock()
	defer c.reading.Unlock()
	if c.log == nil {
		log, err = journal.Open(ctx, store, session)
	} else {
		log, err = c.log.Reopen(ctx)
	}
	if err == nil {
		c.log = log
	}
	return log, err
}

// over refuses to begin something while a turn is under way: what it has done, or people have said, would be lost.
func (c *Conversation) over(ctx context.Context, action string) (journal.State, error) {
	st, err := c.state(ctx)
	if err == nil && st.Run != "" {
		err = unfinished(action, st)
	}
	return st, err
}

// who is the agent that has the conversation: the last one, or the one that it handed over to; "" where nobody has had it.
func (c *Conversation) who(st journal.State) (string, error) {
	if len(st.Handoff) == 0 {
		return st.Agent, nil
	}
	var next agent.HandoffEvent
	if err := json.Unmarshal(st.Handoff, &next); err != nil {
		return "", errdefs.Internal.Errorf("pawl: the handoff on record in session %s can't be read: %w", c.session, err)
	}
	return next.ToAgentID, nil
}

// admit has the agent that has the conversation, or the state of its workflow, say whether it hears what a user says: its prompt's media, and its validators.
func (c *Conversation) admit(ctx context.Context, st journal.State, m message.Message) error {
	crew, err := c.members()
	if err != nil {
		return err
	}
	with := crew.members[0].prompt
	if c.flow != nil {
		now, err := c.flow.read(ctx)
		if err != nil {
			return err
		}
		if now.at.Ended == WorkflowExhausted {
			return c.flow.exhausted()
		}
		if m, ok := crew.of(now.at.State); ok {
			with = m.prompt
		}
	} else {
		who, err := c.who(st)
		if err != nil {
			return err
		}
		for _, m := range crew.members {
			if m.prompt.ID == who {
				with = m.prompt
			}
		}
	}
	if err := with.Admit(m); err != nil {
		return err
	}
	return c.heard(ctx, with, m.Text())
}

func unfinished(action string, st journal.State) error {
	if len(st.Pending) > 0 {
		return errdefs.Conflict.Errorf("pawl: %s: the turn before waits for a person: %s; answer with ResolveTool or RejectTool, then Continue, or Clear", action, asked(st.Pending))
	}
	return errdefs.Conflict.Errorf("pawl: %s: the turn before is not over: wait, if another process is at it; else Continue, or Clear", action)
}
