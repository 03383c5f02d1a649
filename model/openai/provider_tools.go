package openai

import (
	"encoding/json"
	"slices"

	"github.com/pawl-dev/pawl/errdefs"
	"github.com/pawl-dev/pawl/internal/wire"
	"github.com/pawl-dev/pawl/model"
)

// providerTools are the tools that OpenAI runs, by our names for them: its own words, what it needs besides, and what has to be asked for so that a
// reply says what came of it.
var providerTools = []struct{ name, kind, needs, include string }{
	{model.WebSearch, "web_search", "", "web_search_call.action.sources"},
	{model.CodeExecution, "code_interpreter", `{"container":{"type":"auto"}}`, "code_interpreter_call.outputs"},
	{"file_search", "file_search", "", "file_search_call.results"},
	{"image_generation", "image_generation", "", ""},
	{"mcp", "mcp", "", ""},
}

var providerToolNames = func() (names []string) {
	for _, t := range providerTools {
		names = append(names, t.name)
	}
	return names
}()

// admitProviderTool finds what is wrong with a tool's options: the provider refuses the rest in its own words.
func (c *client) admitProviderTool(t model.ProviderTool) error {
	if len(t.Options) > 0 && (!json.Valid(t.Options) || !validObject(string(t.Options))) {
		return errdefs.Validation.Errorf("%s: the options of %s are no JSON object: write them as {\"name\": value}, or leave them out", c.vendor.Name, t.Name)
	}
	approval := wire.Get(t.Options, "require_approval")
	if t.Name == "mcp" && (wire.IsNull(approval) || wire.String(approval) == "always") {
		return errdefs.Validation.Errorf("%s: the options of mcp let each call wait for an approval, which nobody can give here: set \"require_approval\" to \"never\", or to an object that names the tools that never need it", c.vendor.Name)
	}
	return nil
}

// appendProviderTool appends a tool: its type and what it needs, unless the options have that, and the options.
func appendProviderTool(dst []byte, t model.ProviderTool) []byte {
	i := slices.Index(providerToolNames, t.Name) // admitted before
	dst = append(dst, '{')
	n := len(dst)
	if wire.Get(t.Options, "type") == nil {
		dst = wire.AppendString(append(dst, `,"type":`...), providerTools[i].kind)
	}
	for m := wire.Object([]byte(providerTools[i].needs)); m.Next(); {
		if wire.Get(t.Options, string(m.Key)) == nil {
			dst = append(append(wire.AppendString(append(dst, ','), string(m.Key)), ':'), m.Value...)
		}
	}
	for m := wire.Object(t.Options); m.Next(); {
		dst = append(wire.AppendString(append(dst, ','), string(m.Key)), ':')
		dst, _ = wire.AppendCompact(dst, m.Value)
	}
	return append(slices.Delete(dst, n, n+1), '}')
}

// included are the parts of a reply that the provider leaves out unless they are asked for.
func included(name string, tools []model.ProviderTool) (list []string) {
	if reasons(name) {
		list = append(list, "reasoning.encrypted_content")
	}
	for _, t := range tools {
		if i := slices.Index(providerToolNames, t.Name); providerTools[i].include != "" && !slices.Contains(list, providerTools[i].include) {
			list = append(list, providerTools[i].include)
		}
	}
	return list
}

// providerChoice gives the provider's tool that has to be called; nil when it is none of them. A tool of ours with that name comes first.
func providerChoice(req *model.Request) *model.ProviderTool {
	name := string(req.ToolChoice)
	if slices.ContainsFunc(req.Tools, func(t model.Tool) bool { return t.Name == name }) {
		return nil
	}
	if i := slices.IndexFunc(req.ProviderTools, func(t model.ProviderTool) bool { return t.Name == name }); i >= 0 {
		return &req.ProviderTools[i]
	}
	return nil
}

func appendProviderChoice(dst []byte, t model.ProviderTool) []byte {
	kind := wire.String(wire.Get(t.Options, "type"))
	if kind == "" {
		kind = providerTools[slices.Index(providerToolNames, t.Name)].kind
	}
	dst = wire.AppendString(append(dst, `{"type":`...), kind)
	if label := wire.Get(t.Options, "server_label"); label != nil {
		dst = append(append(dst, `,"server_label":`...), label...)
	}
	return append(dst, '}')
}
