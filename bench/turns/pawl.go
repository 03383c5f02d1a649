package main

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strconv"
	"sync/atomic"

	mnoop "go.opentelemetry.io/otel/metric/noop"
	tnoop "go.opentelemetry.io/otel/trace/noop"

	"github.com/pawl-dev/pawl/agent"
	"github.com/pawl-dev/pawl/bench/internal/load"
	"github.com/pawl-dev/pawl/engine"
	"github.com/pawl-dev/pawl/engine/loop"
	"github.com/pawl-dev/pawl/engine/telemetry"
	"github.com/pawl-dev/pawl/event"
	"github.com/pawl-dev/pawl/hook"
	"github.com/pawl-dev/pawl/hook/permission"
	"github.com/pawl-dev/pawl/internal/httpapi"
	"github.com/pawl-dev/pawl/journal"
	"github.com/pawl-dev/pawl/journal/sqlite"
	"github.com/pawl-dev/pawl/message"
	"github.com/pawl-dev/pawl/model"
	"github.com/pawl-dev/pawl/model/anthropic"
	"github.com/pawl-dev/pawl/tool"
)

// pawl runs agents as a program would: agent.Run over engine/loop, model/anthropic and a tool.Func, with somebody who listens to each event.
type pawl struct {
	t     *load.Task
	agent agent.Agent
	eng   engine.Engine
	opts  []agent.RunOption
	store journal.Store // nil: each run has one of its own, which goes with it
	close func() error
}

type input struct {
	Value string `json:"value"`
}

type callsKey struct{} // of the counter in a context

// pawlWith makes a system with a journal, and more.
func pawlWith(store func(*load.Task) (journal.Store, func() error, error), more func(*loop.Config, *pawl) error) func(*load.Task) (load.System, error) {
	return func(t *load.Task) (load.System, error) {
		p := &pawl{t: t, agent: agent.Agent{ID: "bench", Instructions: instructions}, close: func() error { return nil }}
		var err error
		if store != nil {
			if p.store, p.close, err = store(t); err != nil {
				return nil, err
			}
		}
		echo := tool.Func(load.Tool, about, func(ctx context.Context, in input) (string, error) {
			ctx.Value(callsKey{}).(*atomic.Int64).Add(1)
			return t.Call(in.Value), nil
		})
		cfg := loop.Config{
			Model: anthropic.New("bench", model.WithBaseURL(t.Upstream), model.WithKey("none")),
			Tools: []tool.Tool{echo}, Limits: loop.Limits{Steps: -1},
		}
		if more != nil {
			if err := more(&cfg, p); err != nil {
				return nil, err
			}
		}
		p.eng, err = loop.New(cfg)
		return p, err
	}
}

func inMemory(*load.Task) (journal.Store, func() error, error) {
	return journal.Memory(), func() error { return nil }, nil
}

func inFile(t *load.Task) (journal.Store, func() error, error) {
	s, err := sqlite.Open(filepath.Join(t.Dir, "journal.db"))
	if err != nil {
		return nil, nil, err
	}
	return s, s.Close, nil
}

// full adds ten hooks, permissions, a tracer whose spans go nowhere, and more tools.
func full(cfg *loop.Config, p *pawl) error {
	for i := range 10 {
		p.agent.Hooks = append(p.agent.Hooks, hook.Middleware{
			Name:           "hook" + strconv.Itoa(i),
			PreGeneration:  func(context.Context, *hook.Generation) error { return nil },
			PreToolUse:     func(context.Context, *hook.ToolUse) (hook.Decision, error) { return hook.Decision{}, nil },
			PostToolUse:    func(context.Context, *hook.ToolUse) error { return nil },
			PostGeneration: func(context.Context, *hook.Generation) error { return nil },
		})
	}
	rules, err := permission.New(permission.Config{Allow: []string{load.Tool, "other1"}, Deny: []string{"other2", "Bash(rm:*)"}, Ask: []string{"other3"}})
	if err != nil {
		return err
	}
	p.agent.Hooks = append(p.agent.Hooks, rules)
	tracer, err := telemetry.New(telemetry.Config{TracerProvider: tnoop.NewTracerProvider(), MeterProvider: mnoop.NewMeterProvider()})
	if err != nil {
		return err
	}
	p.opts = append(p.opts, agent.WithTracer(tracer))
	for i := range 19 {
		cfg.Tools = append(cfg.Tools, tool.Func("other"+strconv.Itoa(i), "Is never called.", func(context.Context, input) (string, error) { return "", errors.New("it was called") }))
	}
	return nil
}

// Open implements [load.System].
func (p *pawl) Open(number int) load.Session {
	return &pawlSession{p: p, id: "session-" + strconv.Itoa(number)}
}

// CloseIdle closes connections that nobody uses.
func (p *pawl) CloseIdle() { httpapi.CloseIdle() }

// Close implements [load.System].
func (p *pawl) Close() error { return p.close() }

type pawlSession struct {
	p    *pawl
	id   string
	last *agent.Result
}

// Ask implements [load.Session].
func (s *pawlSession) Ask(ctx context.Context, prompt string, said func(string)) (load.Answer, error) {
	var calls atomic.Int64
	events := 0
	host := engine.HostFuncs{PublishFunc: func(_ context.Context, e event.Event) error {
		if events++; e.Delta == event.TextDelta {
			said(e.Text)
		}
		return nil
	}}
	msg := message.User(prompt)
	if s.p.t.Image != "" {
		msg = message.New(message.RoleUser, message.File{MIME: "image/png", Data: s.p.t.Image}, message.Text{Text: prompt})
	}
	opts := append([]agent.RunOption{agent.WithEngineHost(host)}, s.p.opts...)
	if s.p.store != nil {
		opts = append(opts, agent.WithJournal(s.p.store))
	}
	res, err := agent.Run(context.WithValue(ctx, callsKey{}, &calls), s.p.agent, s.p.eng, agent.Request{ContextID: s.id, Message: msg}, opts...)
	if err != nil {
		return load.Answer{}, err
	}
	if res.Status != agent.StatusCompleted {
		return load.Answer{}, fmt.Errorf("the run is %s: %w", res.Status, res.Err)
	}
	if events == 0 {
		return load.Answer{}, errors.New("nobody was told of anything")
	}
	s.last = res
	return load.Answer{Text: res.Text(), Calls: int(calls.Load())}, nil
}
