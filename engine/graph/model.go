package graph

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/pawl-dev/pawl/engine"
	"github.com/pawl-dev/pawl/engine/loop"
	"github.com/pawl-dev/pawl/errdefs"
	"github.com/pawl-dev/pawl/internal/schema"
	"github.com/pawl-dev/pawl/journal"
	"github.com/pawl-dev/pawl/message"
	"github.com/pawl-dev/pawl/model"
	"github.com/pawl-dev/pawl/tool"
)

type modelConfig struct {
	Loop     string         `json:"loop"`
	System   string         `json:"system"`
	Prompt   string         `json:"prompt"`
	Model    string         `json:"model"`
	Tools    []string       `json:"tools"`
	Channel  string         `json:"channel"`
	Output   string         `json:"output"`
	Schema   map[string]any `json:"schema"`
	MaxSteps int            `json:"max_steps"`
}

func (c modelConfig) sets() []output { return []output{{"output", c.Output}} }

// modelWork is the loop on a channel.
type modelWork struct {
	system, prompt *template
	channel        string
	output         string
	json           bool
	schema         *schema.Schema
}

func (c modelConfig) compile(s *scope, path string, n *node) work {
	s.models = true
	w := &modelWork{channel: c.Channel, output: c.Output}
	if w.channel == "" {
		w.channel = engine.MainChannel
	}
	if c.System != "" {
		t := s.template(path+".system", c.System)
		w.system = &t
	}
	if c.Prompt != "" {
		t := s.template(path+".prompt", c.Prompt)
		w.prompt = &t
	}
	cfg, set := s.loop(path, c.Loop)
	cfg.Channel = w.channel
	switch {
	case c.Model != "" && s.kinds.Absent:
	case c.Model != "" && s.kinds.Models == nil:
		s.add(path+".model", "leave it out, or give Kinds.Models", "no other models can be had here")
	case c.Model != "":
		m, err := s.kinds.Models(c.Model)
		if err != nil {
			s.add(path+".model", "", "%v", err)
			return w
		}
		cfg = cfg.For(m)
	case cfg.Model == loop.NoModel() && !s.kinds.Absent:
		s.add(path, "name one at the node, or give the run one: --model, in Go Kinds.Loop.Model", "there is no model")
	}
	if c.Tools != nil && !s.kinds.Absent {
		theirs := cfg.Settings.ProviderTools
		cfg.Tools, cfg.Settings.ProviderTools = nil, nil
		for i, name := range c.Tools {
			if t, _, ok := set.Lookup(name); ok {
				cfg.Tools = append(cfg.Tools, t)
			} else if at := slices.IndexFunc(theirs, func(t model.ProviderTool) bool { return strings.EqualFold(t.Name, name) }); at >= 0 {
				cfg.Settings.ProviderTools = append(cfg.Settings.ProviderTools, theirs[at])
			} else {
				s.unknownTool(fmt.Sprintf("%s.tools[%d]", path, i), name, set)
			}
		}
	}
	if c.Schema != nil {
		text, err := marshal(c.Schema)
		if err == nil {
			w.schema, err = schema.Compile(text)
		}
		if err != nil {
			s.add(path+".schema", "write a JSON Schema", "%v", err)
			return w
		}
		cfg.Output, w.json = text, true
	}
	if c.MaxSteps < 0 {
		s.add(path+".max_steps", "write a number from 1", "it is %d", c.MaxSteps)
	} else if c.MaxSteps > 0 {
		cfg.Limits.Steps = c.MaxSteps
	}
	l, err := loop.New(cfg)
	if err != nil {
		s.add(path, "", "%v", err)
		return w
	}
	n.loop = l
	n.given = l.Capabilities().Model
	for _, t := range cfg.Tools {
		n.given += " " + t.Definition().Name
	}
	for _, t := range cfg.Settings.ProviderTools {
		n.given += " " + t.Name
	}
	return w
}

// loop is the config that a model node has, with its tools.
func (s *scope) loop(path, name string) (loop.Config, tool.Set) {
	if name == "" {
		return s.kinds.Loop, s.set
	}
	cfg, ok := s.kinds.Loops[name]
	if !ok {
		if !s.kinds.Absent {
			s.add(path+".loop", meant(name, slices.Sorted(maps.Keys(s.kinds.Loops)), "add it to Kinds.Loops"), "there is no loop %s", quote(name))
		}
		return s.kinds.Loop, s.set
	}
	if cfg.Model == nil {
		cfg.Model = loop.NoModel()
	}
	set, err := tool.NewSet(cfg.Tools...)
	if err != nil {
		s.add(path+".loop", "", "%v", err)
		return s.kinds.Loop, s.set
	}
	return cfg, set
}

func (w *modelWork) do(ctx context.Context, v *visit) error {
	run := v.run
	if w.system != nil {
		text, err := w.system.text(v.seen)
		if err != nil {
			return err
		}
		run.System = text
	}
	prompt := ""
	if w.prompt != nil {
		text, err := w.prompt.text(v.seen)
		if err != nil {
			return err
		}
		prompt = text
	}
	var given []any
	if c := v.node.cache; c != nil && c.key == nil {
		given = []any{run.System, prompt, v.board.Channel(w.channel).Messages()}
	}
	return v.cached(ctx, "", given, func() (*journal.Board, error) { return w.talk(ctx, v, run, prompt) })
}

// talk has the model answer, and gives what that changed.
func (w *modelWork) talk(ctx context.Context, v *visit, run engine.Run, prompt string) (*journal.Board, error) {
	before := v.board.Snapshot()
	if w.prompt != nil {
		v.board.Append(w.channel, message.User(prompt))
	}
	do := listening{Steps: v.do, heard: new(bool)}
	if err := v.node.loop.Converse(ctx, do, run, v.board); err != nil {
		return nil, err
	}
	if err := w.read(v, before.Channels[w.channel].Len()); err != nil {
		return nil, err
	}
	if *do.heard { // what somebody said to the run was said once
		return nil, nil
	}
	change := journal.Diff(engine.Snapshot{Channels: before.Channels}, engine.Snapshot{Channels: v.board.Snapshot().Channels})
	change.Set = v.wrote(w.output)
	return &change, nil
}

// listening are steps that notice whether the model heard what somebody said to the run.
type listening struct {
	engine.Steps
	heard *bool
}

func (l listening) Do(ctx context.Context, effects ...engine.Effect) ([]journal.Data, error) {
	out, err := l.Steps.Do(ctx, effects...)
	for _, d := range out {
		if m, ok := d.(journal.ModelFinished); ok && len(m.Heard) > 0 {
			*l.heard = true
		}
	}
	return out, err
}

// wrote is the var of an output, as the node has set it: also when it was so before.
func (v *visit) wrote(output string) journal.Vars {
	if output == "" {
		return nil
	}
	return journal.Vars{output: v.board.Var(output)}
}

// read sets the output from the answer, which begins at a message of the channel.
func (w *modelWork) read(v *visit, from int) error {
	if w.output == "" {
		return nil
	}
	all := v.board.Channel(w.channel)
	text := engine.Answer(all.Slice(min(from, all.Len()), all.Len()).Messages())
	if text == "" { // a compaction made it shorter
		text = engine.Answer(all.Messages())
	}
	if !w.json {
		v.set(w.output, text)
		return nil
	}
	value, err := readJSON(text)
	if err != nil {
		return errdefs.Validation.Errorf("the model's reply is no JSON: %w", err)
	}
	if doc, err := schema.Parse([]byte(text)); err == nil {
		if faults, err := w.schema.Check(doc, false); err == nil && len(faults) > 0 {
			return errdefs.Validation.Errorf("the model's reply does not fit its schema: /%s: %s", strings.Join(faults[0].At, "/"), faults[0].Why())
		}
	}
	v.set(w.output, value)
	return nil
}

// readJSON gives a JSON text as vars have it: an integer is an int.
func readJSON(text string) (any, error) {
	d := json.NewDecoder(strings.NewReader(text))
	d.UseNumber()
	var v any
	if err := d.Decode(&v); err != nil {
		return nil, err
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("there is more behind the value")
	}
	return numbers(v)
}

// numbers makes ints and floats of numbers as they are written.
func numbers(v any) (any, error) {
	switch v := v.(type) {
	case json.Number:
		if n, err := strconv.Atoi(v.String()); err == nil {
			return n, nil
		}
		return v.Float64()
	case []any:
		for i, x := range v {
			var err error
			if v[i], err = numbers(x); err != nil {
				return nil, err
			}
		}
	case map[string]any:
		for name, x := range v {
			var err error
			if v[name], err = numbers(x); err != nil {
				return nil, err
			}
		}
	}
	return v, nil
}
