package cli

import (
	"context"
	"encoding/json"

	"github.com/pawl-dev/pawl/agent"
	"github.com/pawl-dev/pawl/engine/loop"
	"github.com/pawl-dev/pawl/project"
)

// settingFinding is a line of the doctor's about a value of the settings.
type settingFinding struct {
	finding
	Layer string          `json:"layer,omitempty"`
	Place string          `json:"place,omitempty"`
	State string          `json:"state"` // active, overridden, repeated, waiting, removed; "problem" for what has no effect, "note" for what may have none
	Value json.RawMessage `json:"value,omitempty"`
}

// settingsFindings are a line for each value of the settings of a directory, the lowest layer first, and one for each thing that was read there and has no effect. When they can't be understood
// there is one that says so, and the error.
func settingsFindings(ctx context.Context, dir string) ([]settingFinding, error) {
	root, err := projectRoot(dir)
	if err != nil {
		return nil, err
	}
	p, err := project.Load(ctx, root)
	if err != nil {
		return []settingFinding{{finding: finding{Name: "settings", Text: err.Error()}, State: "problem"}}, err
	}
	var all []settingFinding
	for _, v := range p.Values() {
		f := settingFinding{finding: finding{Name: "setting " + v.Key, OK: true}, Layer: string(v.Layer), State: string(v.State)}
		at := f.Layer
		if v.Layer != project.LayerDefault {
			f.Place = v.Place.String()
			at += ", " + f.Place
		}
		if f.Text = v.Text + " (" + at + ")"; v.State != project.StateActive {
			f.Text += ", " + f.State
		}
		switch v.State {
		case project.StateWaiting:
			f.OK, f.Text = false, f.Text+" for approval: see pawl trust "+quoted(p.Root)
		case project.StateRemoved:
			f.OK, f.Text = false, f.Text+" from the file, and counts until that is approved: see pawl trust "+quoted(p.Root)
		}
		if f.Value = json.RawMessage(v.Text); !json.Valid(f.Value) {
			f.Value = nil
		}
		all = append(all, f)
	}
	for _, problem := range p.Problems {
		all = append(all, settingFinding{finding: finding{Name: "settings", Text: problem.String()}, Place: problem.Place.String(), State: "problem"})
	}
	return append(all, toolFindings(ctx, p)...), nil
}

// toolFindings are a line for each tool that is named and that a run doesn't have: a problem when another name was meant, else a note, since a program of somebody's may have the tool.
func toolFindings(ctx context.Context, p *project.Project) (all []settingFinding) {
	c, _, err := newChecker(ctx, p.Root, policy{}, false)
	if err != nil { // what keeps a run from beginning is told elsewhere
		return nil
	}
	defer func() { _ = c.close() }()
	known := []string{project.SkillToolName, agent.TaskName, loop.SearchName} // there when there is something for them
	for _, t := range c.tools.Models(nil) {
		known = append(known, t.Name)
	}
	for _, problem := range p.UnknownTools(known) {
		f := settingFinding{finding: finding{Name: "settings", Text: problem.String()}, Place: problem.Place.String(), State: "problem"}
		if problem.Remedy == "" {
			f.OK, f.State, f.Text = true, "note", f.Text+" in runs of pawl; a program of your own may have one"
		}
		all = append(all, f)
	}
	return all
}

// mark is what stands before the line for a person.
func (f settingFinding) mark() string {
	if f.OK && f.State != "note" {
		return "ok"
	}
	return f.State
}
