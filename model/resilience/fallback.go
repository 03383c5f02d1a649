package resilience

import (
	"context"
	"fmt"
	"slices"

	"github.com/pawl-dev/pawl/errdefs"
	"github.com/pawl-dev/pawl/model"
	"github.com/pawl-dev/pawl/model/catalog"
)

// FallbackPolicy says when the next model is asked. The zero value has the defaults given here.
type FallbackPolicy struct {
	// On are the failures after which the next model is asked; nil: RateLimit, NotAvailable, Timeout, Overflow and NotFound. What else fails would
	// most likely fail there, too, or is for people to see, such as a wrong key.
	On      []*errdefs.Class
	Restart bool             // also after text or reasoning was shown: for handlers that heed model.StreamResult.Void
	Breaker BreakerPolicy    // around each model; Failures below 0: none
	Catalog *catalog.Catalog // knows the models' windows; nil: catalog.Default()
}

// Fallback is a model that asks the first of models that can do what a request asks for, and the next one when that fails.
//
// A model is left out when it says that it can't do it ([model.Capabilities]: tools, files, an output schema, settings), and comes after
// the others when the request, by an estimate, does not fit its window. A model that fails too often is left alone for a while: see [Breaker].
//
// What a model thought, and what only its provider understands, stays in the transcript; providers leave out what is not theirs.
//
// Capabilities has the name and the provider of the first model, and everything that any of them can do: what none of them can do all of in one request is refused by
// the call, with errdefs.Validation. [model.Response].By says who answered. When all failed, the error says what each came to; its
// class is that of the first that was asked, and errors.Is finds all of them.
func Fallback(p FallbackPolicy, models ...model.Model) model.Model {
	f := &fallback{on: p.On, restart: p.Restart}
	if f.on == nil {
		f.on = append(slices.Clone(transient), errdefs.Overflow, errdefs.NotFound)
	}
	f.on = slices.Clone(f.on)
	if p.Catalog == nil {
		p.Catalog = catalog.Default()
	}
	guard := Breaker(p.Breaker)
	for i, m := range models {
		t := target{Model: guard(m), name: nameOf(m)}
		t.can, t.described = model.CapabilitiesOf(m)
		if known, ok := p.Catalog.Lookup(t.can.Name); ok {
			t.window = known.Window
		}
		f.targets = append(f.targets, t)
		if i == 0 {
			f.can = model.Capabilities{Name: t.can.Name, Provider: t.can.Provider, Files: t.can.Files}
		}
		f.can = union(f.can, t)
	}
	return f
}

type fallback struct {
	targets []target
	can     model.Capabilities
	on      []*errdefs.Class
	restart bool
}

// target is a model that may be asked.
type target struct {
	model.Model
	name      string
	can       model.Capabilities
	described bool // if not, it is taken to be able to do all
	window    int  // in tokens; 0: not known
}

// union adds what t can do to c.
func union(c model.Capabilities, t target) model.Capabilities {
	add := func(to *bool, can bool) { *to = *to || can || !t.described }
	add(&c.Tools, t.can.Tools)
	add(&c.Images, t.can.Images)
	add(&c.Documents, t.can.Documents)
	add(&c.Audio, t.can.Audio)
	add(&c.Schema, t.can.Schema)
	add(&c.TopK, t.can.TopK)
	add(&c.Seed, t.can.Seed)
	add(&c.Stop, t.can.Stop)
	add(&c.MaxTokens, t.can.MaxTokens)
	add(&c.Penalties, t.can.Penalties)
	levels, tools := t.can.Reasoning, t.can.ProviderTools
	if !t.described {
		levels, tools = model.ReasoningLevels(), []string{model.WebSearch, model.WebFetch, model.CodeExecution}
	}
	var both []model.ReasoningLevel // in their order
	for _, l := range model.ReasoningLevels() {
		if slices.Contains(c.Reasoning, l) || slices.Contains(levels, l) {
			both = append(both, l)
		}
	}
	c.Reasoning = both
	for _, name := range tools {
		if !slices.Contains(c.ProviderTools, name) {
			c.ProviderTools = append(slices.Clip(c.ProviderTools), name)
		}
	}
	return c
}

// Capabilities implements model.Describer.
func (f *fallback) Capabilities() model.Capabilities { return f.can }

// Complete implements model.Model.
func (f *fallback) Complete(ctx context.Context, req model.Request) (resp *model.Response, err error) {
	err = f.ask(ctx, req, nil, func(t *target) (err error) {
		resp, err = t.Complete(ctx, req)
		resp = by(resp, t)
		return err
	})
	if err != nil {
		return nil, err
	}
	return resp, nil
}

// CompleteStream implements model.Model.
func (f *fallback) CompleteStream(ctx context.Context, req model.Request, cb model.StreamHandler) error {
	w := &watch{to: cb}
	return f.ask(ctx, req, w, func(t *target) error {
		return w.stream(ctx, t.Model, req, func(s model.StreamResult) error {
			if s.Final {
				s.Response = by(s.Response, t)
			}
			return w.take(s)
		})
	})
}

// by says who answered.
func by(r *model.Response, t *target) *model.Response {
	if r == nil || r.By != "" {
		return r
	}
	signed := *r // it may be somebody else's, too
	signed.By = t.name
	return &signed
}

func (f *fallback) ask(ctx context.Context, req model.Request, w *watch, try func(*target) error) error {
	able, unable := f.able(req)
	var failed []error
	for i, t := range able {
		err := try(t)
		if err == nil || ctx.Err() != nil || w.done(f.restart) || !slices.Contains(f.on, classOf(err)) {
			return err
		}
		if len(able) == 1 && len(unable) == 0 {
			return err
		}
		failed = append(failed, fmt.Errorf("%s: %w", t.name, err))
		if i == len(able)-1 {
			break
		}
		if err := w.void(fmt.Errorf("%w; next: %s", err, able[i+1].name), 0); err != nil {
			return err
		}
	}
	if failed = append(failed, unable...); len(failed) == 0 {
		return errdefs.Validation.Errorf("resilience: a fallback has no model: give it one")
	}
	return fmt.Errorf("resilience: no model answered: %w", all(failed))
}

// able are the models that can do what req asks for, those that it seems to fit first; unable says what the others lack.
func (f *fallback) able(req model.Request) (able []*target, unable []error) {
	var tight []*target
	size := 0
	for i := range f.targets {
		t := &f.targets[i]
		if t.described {
			if err := t.can.Admit(req); err != nil {
				unable = append(unable, err)
				continue
			}
		}
		if t.window > 0 && size == 0 {
			size = max(1, estimate(req)+req.MaxTokens)
		}
		if t.window > 0 && size > t.window {
			tight = append(tight, t)
			continue
		}
		able = append(able, t)
	}
	return append(able, tight...), unable
}

// all are several failures, in one line. The first one has the say where one is asked for.
type all []error

func (es all) Error() string {
	var b []byte
	for i, err := range es {
		if i > 0 {
			b = append(b, "; "...)
		}
		b = append(b, err.Error()...)
	}
	return string(b)
}

// Unwrap gives all of them.
func (es all) Unwrap() []error { return es }
