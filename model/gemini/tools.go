package gemini

import (
	"slices"

	"github.com/pawl-dev/pawl/errdefs"
	"github.com/pawl-dev/pawl/internal/wire"
	"github.com/pawl-dev/pawl/model"
)

// apiTools are the API's words for the tools that it runs itself, in the order in which Capabilities lists their names.
var apiTools = [...]struct{ name, word string }{
	{model.WebSearch, "googleSearch"},
	{model.WebFetch, "urlContext"},
	{model.CodeExecution, "codeExecution"},
	{"google_maps", "googleMaps"},
	{"file_search", "fileSearch"},
}

func wordOf(name string) string {
	i := slices.IndexFunc(apiTools[:], func(t struct{ name, word string }) bool { return t.name == name })
	return apiTools[i].word // Admit has let it through
}

// tools lists the names of those that the model has.
func (f *family) tools() (names []string) {
	for _, t := range apiTools {
		names = append(names, t.name)
	}
	return names
}

// appendTools appends the caller's tools, those that the API runs itself, and which of the former have to be called. Where no tool may be called, the latter are left out: the API has no other way to keep the model from them.
func (f *family) appendTools(b []byte, req model.Request) ([]byte, error) {
	tools, choice, theirs := req.Tools, req.ToolChoice, req.ProviderTools
	if choice == model.ToolsNone {
		theirs = nil
	}
	if len(tools) == 0 && choice != model.ToolsAuto && choice != model.ToolsNone {
		return nil, errdefs.Validation.Errorf("gemini: the tool choice %q needs tools of the caller's: whether one of its own is used is the API's matter", choice)
	}
	if len(tools) > 0 && len(theirs) > 0 && !f.combines {
		return nil, errdefs.Validation.Errorf("gemini: before Gemini 3 a model takes either tools of the caller's, or those that the API runs itself (%q): leave one of them out, or use a later model", theirs[0].Name)
	}
	if len(tools)+len(theirs) == 0 {
		return b, nil
	}
	b = append(b, `"tools":[`...)
	var err error
	if len(tools) > 0 {
		if b, err = appendFunctions(b, tools); err != nil {
			return nil, err
		}
	}
	for _, t := range theirs {
		if b[len(b)-1] != '[' {
			b = append(b, ',')
		}
		b = append(append(append(b, `{"`...), wordOf(t.Name)...), `":`...)
		if b, err = appendOptions(b, t); err != nil {
			return nil, err
		}
		b = append(b, '}')
	}
	b = append(b, "],"...)
	if len(tools) == 0 {
		return b, nil
	}
	var calling []byte
	switch choice {
	case model.ToolsAuto:
	case model.ToolsNone:
		calling = []byte(`{"mode":"NONE"}`)
	case model.ToolsRequired:
		calling = []byte(`{"mode":"ANY"}`)
	default:
		calling = append(wire.AppendString([]byte(`{"mode":"ANY","allowedFunctionNames":[`), string(choice)), "]}"...)
	}
	if calling == nil && len(theirs) == 0 {
		return b, nil
	}
	b = append(b, `"toolConfig":{`...)
	if calling != nil {
		b = append(append(b, `"functionCallingConfig":`...), calling...)
	}
	if len(theirs) > 0 { // what the API did itself has to come back with what the caller's tools gave
		if calling != nil {
			b = append(b, ',')
		}
		b = append(b, `"includeServerSideToolInvocations":true`...)
	}
	return append(b, "},"...), nil
}

func appendFunctions(b []byte, tools []model.Tool) ([]byte, error) {
	b = append(b, `{"functionDeclarations":[`...)
	for i, t := range tools {
		if i > 0 {
			b = append(b, ',')
		}
		b = wire.AppendString(append(b, `{"name":`...), t.Name)
		b = wire.AppendString(append(b, `,"description":`...), t.Description)
		if len(t.Schema) > 0 {
			var ok bool
			if b, ok = wire.AppendCompact(append(b, `,"parametersJsonSchema":`...), t.Schema); !ok {
				return nil, errdefs.Validation.Errorf("gemini: the schema of the tool %q is not JSON", t.Name)
			}
		}
		b = append(b, '}')
	}
	return append(b, "]}"...), nil
}

func appendOptions(b []byte, t model.ProviderTool) ([]byte, error) {
	if len(t.Options) == 0 {
		return append(b, "{}"...), nil
	}
	n := len(b)
	b, ok := wire.AppendCompact(b, t.Options)
	if !ok || b[n] != '{' {
		return nil, errdefs.Validation.Errorf("gemini: the options of the tool %q are no JSON object", t.Name)
	}
	return b, nil
}
