package main

import (
	"context"
	"embed"
	"encoding/json"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/pawl-dev/pawl/agent"
	"github.com/pawl-dev/pawl/errdefs"
	"github.com/pawl-dev/pawl/hook"
	"github.com/pawl-dev/pawl/model"
	"github.com/pawl-dev/pawl/model/scripted"
	"github.com/pawl-dev/pawl/tool"
)

const task = "Research how sea otters sleep."

// reporter is who does the task, whatever drives it.
var reporter = agent.Agent{
	ID:           "reporter",
	Instructions: "You write short reports from the notes in the library.",
	Tools:        []string{"library"},
	Hooks:        []hook.Middleware{{Name: "approval", PreToolUse: approval}},
}

// approval has a person asked before anything is published.
func approval(_ context.Context, u *hook.ToolUse) (hook.Decision, error) {
	var in request
	if err := json.Unmarshal([]byte(u.Call.Input), &in); err != nil || in.Publish == "" {
		return hook.Decision{}, err
	}
	return hook.Asking("Publish this? " + in.Publish), nil
}

// request is what the tool takes: one of the two.
type request struct {
	Search  string `json:"search,omitempty" jsonschema:"words; gives the lines of the notes that have all of them"`
	Publish string `json:"publish,omitempty" jsonschema:"the text of a report"`
}

//go:embed notes
var notes embed.FS

// library makes the tool. It publishes into dir, and may do so twice: the file is the same.
func library(dir string) tool.Tool {
	return tool.Func("library", "Search the notes, or publish a report.", func(_ context.Context, in request) (string, error) {
		switch {
		case in.Search != "" && in.Publish == "":
			return search(in.Search)
		case in.Publish != "" && in.Search == "":
			return "Published as report.md.", publish(dir, in.Publish)
		}
		return "", errdefs.Validation.Errorf("give either search or publish")
	}, tool.Idempotent)
}

// search gives the lines that have all the words, each behind the name of its file, which counts too.
func search(words string) (string, error) {
	files, err := fs.Glob(notes, "notes/*.md")
	if err != nil {
		return "", err
	}
	var found strings.Builder
	for _, name := range files {
		text, err := notes.ReadFile(name)
		if err != nil {
			return "", err
		}
		for line := range strings.Lines(string(text)) {
			line = path.Base(name) + ": " + line
			missing := func(word string) bool { return !strings.Contains(strings.ToLower(line), word) }
			if !slices.ContainsFunc(strings.Fields(strings.ToLower(words)), missing) {
				found.WriteString(line)
			}
		}
	}
	if found.Len() == 0 {
		return "No note has these words.", nil
	}
	return found.String(), nil
}

func publish(dir, text string) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(dir, "report.md"), []byte(text+"\n"), 0o600)
}

//go:embed model.yaml
var turns []byte

// openModel gives the model. Put a real one here: pawl.OpenModel.
func openModel() (model.Model, error) {
	s, err := scripted.Parse("model.yaml", turns)
	if err != nil {
		return nil, err
	}
	return s.Model(), nil
}
