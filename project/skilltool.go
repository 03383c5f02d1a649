package project

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/pawl-dev/pawl/errdefs"
	"github.com/pawl-dev/pawl/internal/near"
	"github.com/pawl-dev/pawl/tool"
)

// SkillToolName is the name of the tool that [Project.SkillTool] makes.
const SkillToolName = "skill"

type skillInput struct {
	Name string `json:"name"`
	File string `json:"file"`
}

// SkillTool makes the tool by which a model reads a skill's instructions, and learns of its support files, which it reads as it reads other files. ok is false when there is no skill that can be used.
func (p *Project) SkillTool() (t tool.Tool, ok bool) {
	return p.skillTool("Get the instructions of a skill, and the names of the files that support it. The system prompt lists the skills.", map[string]any{
		"name": map[string]any{"type": "string", "description": "of the skill"},
	})
}

// SkillFilesTool is SkillTool for where no other tool reads files: it also gives the text of a support file; see [Skill.ReadFile].
func (p *Project) SkillFilesTool() (t tool.Tool, ok bool) {
	return p.skillTool("Get the instructions of a skill, and the names of the files that support it; or the text of one of these files. The system prompt lists the skills.", map[string]any{
		"name": map[string]any{"type": "string", "description": "of the skill"},
		"file": map[string]any{"type": "string", "description": "a support file to read, by its name as the instructions list it; without it you get the instructions"},
	})
}

func (p *Project) skillTool(about string, properties map[string]any) (t tool.Tool, ok bool) {
	var names []string
	for _, k := range p.usable() {
		names = append(names, k.Name)
	}
	if len(names) == 0 {
		return nil, false
	}
	schema, err := json.Marshal(map[string]any{"type": "object", "additionalProperties": false, "required": []string{"name"}, "properties": properties})
	if err != nil {
		return nil, false
	}
	run := func(_ context.Context, in skillInput) (string, error) {
		k, ok := p.Skill(in.Name)
		if !ok {
			hint := ""
			if close := near.Names(in.Name, names); len(close) > 0 {
				hint = fmt.Sprintf(", did you mean %s?", close[0])
			}
			return "", errdefs.NotFound.Errorf("there is no skill %q%s The skills are: %s", clip(in.Name), hint, strings.Join(names, ", "))
		}
		if in.File != "" {
			return k.ReadFile(in.File)
		}
		return k.Instructions(), nil
	}
	return tool.Func(SkillToolName, about, run, tool.ReadOnly, tool.WithSchema(schema), tool.WithAliases(map[string]string{"skill": "name", "command": "name"})), true
}

// Instructions is what the model gets of a skill when it is activated: its text, its directory, what it needs, the names of its support files, and what it may use while the skill is active.
func (k Skill) Instructions() string {
	var b strings.Builder
	dir := k.rel
	if dir == "." || k.base == "" { // outside of the project
		dir = k.Dir
	}
	fmt.Fprintf(&b, "# Skill %s\n\n", k.Name)
	if dir != "" {
		fmt.Fprintf(&b, "Its directory, which relative paths are relative to: %s\n\n", dir)
	}
	if k.Compatibility != "" {
		fmt.Fprintf(&b, "It needs: %s\n\n", oneLine(k.Compatibility))
	}
	fmt.Fprintf(&b, "%s\n", k.Body)
	if files := k.Files(); len(files) > 0 {
		fmt.Fprintf(&b, "\nSupport files in that directory:\n- %s\n", strings.Join(files, "\n- "))
	}
	if k.AllowedTools != nil {
		fmt.Fprintf(&b, "\nFrom now on, only these tools may be used, beside those that other active skills allow: %s\n", cmp.Or(strings.Join(k.AllowedTools, ", "), "none"))
	}
	return b.String()
}
