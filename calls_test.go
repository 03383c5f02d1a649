//go:build unix

package pawl_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/pawl-dev/pawl"
	"github.com/pawl-dev/pawl/errdefs"
	"github.com/pawl-dev/pawl/event"
	"github.com/pawl-dev/pawl/hook/permission"
	"github.com/pawl-dev/pawl/message"
	"github.com/pawl-dev/pawl/model"
)

func TestHowMuchAModelThinksAndWhatItsProviderRunsIsSaidInTheSettings(t *testing.T) {
	search, code := model.ProviderTool{Name: model.WebSearch, Options: []byte(`{"max_uses":2}`)}, model.ProviderTool{Name: model.CodeExecution}
	for name, c := range map[string]struct {
		settings string
		opts     pawl.Options
		level    model.ReasoningLevel
		tools    []string
		warning  string
	}{
		"nothing":                    {settings: `{}`},
		"the settings":               {settings: `{"reasoning": "high", "providerTools": ["web_search", "web_search"]}`, level: model.ReasoningHigh, tools: []string{"web_search"}},
		"the program's":              {settings: `{"reasoning": "high"}`, opts: pawl.Options{Settings: model.Settings{Reasoning: model.ReasoningLow, ProviderTools: []model.ProviderTool{code}}}, level: model.ReasoningLow, tools: []string{"code_execution"}},
		"both, one of them once":     {settings: `{"providerTools": ["code_execution", "web_search"]}`, opts: pawl.Options{Settings: model.Settings{ProviderTools: []model.ProviderTool{search}}}, tools: []string{"web_search", "code_execution"}},
		"what a rule denies":         {settings: `{"providerTools": ["web_search", "code_execution"], "permissions": {"deny": ["WebSearch"]}}`, tools: []string{"code_execution"}, warning: `web_search is left out: the rule "WebSearch"`},
		"a part of it":               {settings: `{"providerTools": ["web_fetch"], "permissions": {"deny": ["WebFetch(domain:example.com)"]}}`, warning: `web_fetch is left out: the rule "WebFetch(domain:example.com)"`},
		"what people are asked for":  {settings: `{"permissions": {"ask": ["WebSearch"]}}`, opts: pawl.Options{Settings: model.Settings{ProviderTools: []model.ProviderTool{search}}}, warning: "web_search is left out"},
		"what is disallowed":         {settings: `{"providerTools": ["web_search"], "disallowedTools": ["web_search"]}`, warning: "web_search is left out"},
		"a rule of the program's":    {settings: `{"providerTools": ["web_search"]}`, opts: pawl.Options{Permissions: permission.Config{Deny: []string{"web_search"}}}, warning: "web_search is left out"},
		"a rule with a star":         {settings: `{"providerTools": ["web_search", "code_execution"], "permissions": {"deny": ["Web*"]}}`, tools: []string{"code_execution"}, warning: `web_search is left out: the rule "Web*"`},
		"a rule about all":           {settings: `{"providerTools": ["web_search"], "permissions": {"ask": ["*"]}}`, warning: "web_search is left out"},
		"a rule that allows is none": {settings: `{"providerTools": ["web_search"], "permissions": {"allow": ["WebSearch"]}}`, tools: []string{"web_search"}},
	} {
		t.Run(name, func(t *testing.T) {
			dir := world(t, map[string]string{".agents/settings.json": c.settings})
			approve(t, dir)
			var asked model.Settings
			rt := serve(t, dir, thinking(func(req model.Request) message.Message {
				asked = req.Settings
				return message.Assistant("ok")
			}), func(o *pawl.Options) { o.Settings, o.Permissions.Deny = c.opts.Settings, c.opts.Permissions.Deny })
			var warned strings.Builder
			for e, err := range rt.RunStream(t.Context(), pawl.Request{Prompt: "go"}) {
				if err != nil {
					t.Fatal(err)
				}
				if e.Delta == event.Warning {
					warned.WriteString(e.Text)
				}
			}
			var names []string
			for _, p := range asked.ProviderTools {
				names = append(names, p.Name)
			}
			if asked.Reasoning != c.level || !slices.Equal(names, c.tools) {
				t.Errorf("%q %q", asked.Reasoning, names)
			}
			if !strings.Contains(warned.String(), c.warning) || c.warning == "" && strings.Contains(warned.String(), "left out") {
				t.Error(warned.String())
			}
		})
	}
}

func TestAProjectsToolsOfTheProviderWaitForApproval(t *testing.T) {
	dir := world(t, map[string]string{".agents/settings.json": `{"providerTools": ["web_search"], "reasoning": "low"}`})
	var asked model.Settings
	rt := serve(t, dir, thinking(func(req model.Request) message.Message {
		asked = req.Settings
		return message.Assistant("ok")
	}))
	if _, err := rt.Run(t.Context(), pawl.Request{Prompt: "go"}); err != nil {
		t.Fatal(err)
	}
	if len(asked.ProviderTools) > 0 || asked.Reasoning != model.ReasoningLow {
		t.Errorf("%+v", asked)
	}
}

func TestASubagentWithAModelOfItsOwnThinksAsItsProviderHasIt(t *testing.T) {
	dir := world(t, map[string]string{
		".agents/agents/own.md":  "---\nname: own\ndescription: x\nmodel: anthropic/claude-3-5-haiku-latest\n---\nDo.\n", // it can't think at all
		".agents/agents/same.md": "---\nname: same\ndescription: x\n---\nDo.\n",
	})
	var of []model.Settings
	rt := serve(t, dir, thinking(func(req model.Request) message.Message {
		if of = append(of, req.Settings); len(of) == 1 {
			return message.Assistant("", call("c1", "task", `{"agent":"same","prompt":"go"}`))
		}
		return message.Assistant("ok")
	}), func(o *pawl.Options) {
		o.Settings = model.Settings{Reasoning: model.ReasoningMax, ProviderTools: []model.ProviderTool{{Name: model.WebSearch}}}
	})
	if _, err := rt.Run(t.Context(), pawl.Request{Prompt: "go"}); err != nil {
		t.Fatal(err)
	}
	if len(of) != 3 || !of[1].Equal(of[0]) || of[1].Reasoning != model.ReasoningMax {
		t.Errorf("%+v", of)
	}
}

func TestALevelThatAModelDoesNotHaveIsSaidBeforeAnythingRuns(t *testing.T) {
	m, err := pawl.OpenModel("anthropic/claude-3-5-haiku-latest", model.WithKey("x"))
	if err != nil {
		t.Fatal(err)
	}
	_, err = pawl.New(t.Context(), pawl.Options{NoProject: true, Model: m, Settings: model.Settings{Reasoning: model.ReasoningMax}})
	if !errdefs.Validation.Is(err) || !strings.Contains(err.Error(), `reasoning "max"`) {
		t.Error(err)
	}
}

func TestASubagentsToolsBoundThoseOfTheProvider(t *testing.T) {
	agents := map[string]string{"all": "", "reads": "tools: Read\n", "searches": "tools: Read, WebSearch\n", "not": "disallowedTools: WebSearch\n"}
	files := map[string]string{}
	for name, line := range agents {
		files[".agents/agents/"+name+".md"] = "---\nname: " + name + "\ndescription: x\n" + line + "---\nDo.\n"
	}
	for name, want := range map[string][]string{"all": {"web_search", "code_execution"}, "reads": nil, "searches": {"web_search"}, "not": {"code_execution"}} {
		t.Run(name, func(t *testing.T) {
			var of []model.Settings
			rt := serve(t, world(t, files), thinking(func(req model.Request) message.Message {
				if of = append(of, req.Settings); len(of) == 1 {
					return message.Assistant("", call("c1", "task", `{"agent":"`+name+`","prompt":"go"}`))
				}
				return message.Assistant("ok")
			}), func(o *pawl.Options) {
				o.Settings = model.Settings{ProviderTools: []model.ProviderTool{{Name: model.WebSearch}, {Name: model.CodeExecution}}}
			})
			if _, err := rt.Run(t.Context(), pawl.Request{Prompt: "go"}); err != nil || len(of) != 3 {
				t.Fatal(err, of)
			}
			var got []string
			for _, p := range of[1].ProviderTools {
				got = append(got, p.Name)
			}
			if !slices.Equal(got, want) || len(of[0].ProviderTools) != 2 {
				t.Error(got)
			}
		})
	}
}
