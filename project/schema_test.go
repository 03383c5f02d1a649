package project

import (
	"bytes"
	"encoding/json"
	"maps"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/santhosh-tekuri/jsonschema/v6"
)

func compiled(t testing.TB) *jsonschema.Schema {
	t.Helper()
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(Schema()))
	if err != nil {
		t.Fatal(err)
	}
	c := jsonschema.NewCompiler()
	if err := c.AddResource("settings.json", doc); err != nil {
		t.Fatal(err)
	}
	s, err := c.Compile("settings.json")
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// at gives the names of the properties at a path of the schema.
func at(t *testing.T, path ...string) []string {
	t.Helper()
	var v any
	if err := json.Unmarshal(Schema(), &v); err != nil {
		t.Fatal(err)
	}
	for _, p := range append(path, "properties") {
		m, _ := v.(map[string]any)
		if v = m[p]; v == nil {
			t.Fatalf("the schema has no %v", path)
		}
	}
	return slices.Sorted(maps.Keys(v.(map[string]any)))
}

func TestTheSchemaHasTheKeysThatAreRead(t *testing.T) {
	for _, c := range []struct {
		known fields
		path  []string
	}{
		{ofSettings, nil},
		{ofPermissions, []string{"properties", "permissions"}},
		{ofMCP, []string{"properties", "mcp"}},
		{ofSandbox, []string{"properties", "sandbox"}},
		{ofNetwork, []string{"properties", "sandbox", "properties", "network"}},
		{ofLimits, []string{"properties", "sandbox", "properties", "limits"}},
	} {
		if d := cmp.Diff(slices.Sorted(maps.Keys(c.known)), at(t, c.path...)); d != "" {
			t.Errorf("%v: %s", c.path, d)
		}
	}
	if d := cmp.Diff(slices.Sorted(slices.Values(ofServer)), at(t, "$defs", "server")); d != "" {
		t.Error(d)
	}
	if d := cmp.Diff(ofOAuth, at(t, "$defs", "server", "properties", "oauth")); d != "" {
		t.Error(d)
	}
	for _, name := range at(t, "$defs", "hook") { // what package hook/shell reads
		r := &report{}
		text := `{"hooks": {"Stop": [{"hooks": [{"command": "x", "` + name + `": null}]}]}}`
		if name == "command" {
			text = `{"hooks": {"Stop": [{"hooks": [{"command": "x"}]}]}}`
		}
		(&decoder{source: newSource("f", []byte(text)), report: r}).settings()
		if len(r.problems) > 0 {
			t.Errorf("%s is no member of a hook: %v", name, r.problems)
		}
	}
	for _, event := range at(t, "properties", "hooks") {
		r := &report{}
		(&decoder{source: newSource("f", []byte(`{"hooks": {"`+event+`": []}}`)), report: r}).settings()
		if len(r.problems) > 0 {
			t.Errorf("%s is no event: %v", event, r.problems)
		}
	}
}

// taken reports whether settings are read without an error or a problem.
func taken(text string) bool {
	r := &report{}
	(&decoder{source: newSource("f", []byte(text)), report: r, home: "/home/me", root: "/project"}).settings()
	return len(r.errs)+len(r.problems) == 0
}

func TestTheSchemaAndTheReaderAgreeOnExamples(t *testing.T) {
	s := compiled(t)
	good := []string{
		`{}`, defaults,
		`{"$schema": "./settings.schema.json", "model": "a/b", "compat": true, "respectGitignore": false, "retries": 0}`, `{"retries": 100}`, `{"retries": null}`,
		`{"permissions": {"allow": ["Bash(go test:*)"], "deny": [], "ask": null, "defaultMode": "plan", "taint": "ask", "additionalDirectories": ["~/x", ".."]}}`,
		`{"permissions": {"defaultMode": null}, "model": null, "hooks": null, "sandbox": {"network": null, "limits": null, "enabled": null}, "env": null, "mcp": null, "disableAllHooks": null, "disallowedTools": null}`,
		`{"env": {"A": "1", "B": ""}}`,
		`{"reasoning": "high", "providerTools": ["web_search"]}`, `{"reasoning": "", "providerTools": []}`, `{"reasoning": null, "providerTools": null}`,
		`{"hooks": {"PreToolUse": [{"matcher": "Bash|Edit", "hooks": [{"type": "command", "command": "./x", "timeout": 1.5, "args": [], "env": {"A": "1"}, "async": true, "once": false, "name": "n", "statusMessage": "s", "shell": "bash", "if": "Bash(git:*)", "payload": "x"}]}], "Stop": {"*": "./y", "": ["./z"]}, "SessionEnd": null}}`,
		`{"mcp": {"servers": {"a": {"command": "x", "args": ["", "-y"], "env": {"A": "1"}, "timeout": 5, "enabledTools": ["a"], "disabledTools": []}, "b": {"type": "sse", "url": "http://localhost:1/x", "headers": {"A": "b"}}}}}`,
		`{"mcpServers": {"a": {"url": "https://x.example", "timeout": "1m30s"}, "c": {"type": "streamable-http", "url": "https://x.example/mcp"}}}`,
		`{"mcpServers": {"a": {"command": "x", "cwd": "y", "startup": 3, "required": true, "defer": "auto"}, "b": {"url": "${BASE:-http://localhost}/x", "oauth": {"clientId": "i", "clientSecret": "${S}"}, "defer": false}, "c": {"command": "x", "oauth": {}, "headers": {}}}}`,
		`{"sandbox": {"enabled": false, "write": ["x"], "read": ["~/.npmrc"], "hide": [".env"], "protect": [".git"], "env": ["A", "B=1", "C="], "network": {"all": false, "hosts": ["*.example.com"]}, "limits": {"cpu": "1h30m", "files": 0, "fileSize": 10, "processes": 5}}}`,
		`{"sandbox": {"limits": {"cpu": 1.5}}}`,
	}
	bad := []string{
		`[]`, `1`, `{"modal": "x"}`, `{"model": 1}`, `{"permissions": []}`, `{"permissions": {"deny": "Bash"}}`, `{"permissions": {"deny": [1]}}`, `{"permissions": {"deny": [""]}}`, `{"permissions": {"denny": []}}`,
		`{"permissions": {"defaultMode": "yolo"}}`, `{"permissions": {"additionalDirectories": [" "]}}`, `{"env": {"A": 1}}`, `{"env": {"A=B": "1"}}`, `{"env": {"": "1"}}`, `{"env": ["A=1"]}`,
		`{"hooks": []}`, `{"hooks": {"Stopp": []}}`, `{"hooks": {"Stop": [{"matcher": ""}]}}`, `{"hooks": {"Stop": [{"hooks": [{"type": "command"}]}]}}`, `{"hooks": {"Stop": [{"hooks": [{"type": "prompt", "command": "x"}]}]}}`,
		`{"hooks": {"Stop": [{"hooks": [{"command": "x", "when": "y"}]}]}}`, `{"hooks": {"Stop": [{"hooks": [{"command": " "}]}]}}`, `{"hooks": {"Stop": 1}}`, `{"hooks": {"Stop": [{"hooks": [{"command": "x", "shell": "zsh"}]}]}}`,
		`{"disableAllHooks": "true"}`, `{"mcp": {"a": {"command": "x"}}}`, `{"mcpServers": []}`, `{"mcpServers": {"a b": {"command": "x"}}}`, `{"mcpServers": {"a": {}}}`, `{"mcpServers": {"a": {"command": "x", "url": "https://x"}}}`,
		`{"mcpServers": {"a": {"type": "http", "command": "x"}}}`, `{"mcpServers": {"a": {"type": "ftp", "url": "https://x"}}}`, `{"mcpServers": {"a": {"url": "x"}}}`, `{"mcpServers": {"a": {"command": "x", "oauth": {"clientId": "x"}}}}`,
		`{"mcpServers": {"a": {"url": "https://x", "cwd": "y"}}}`, `{"mcpServers": {"a": {"command": "x", "defer": "yes"}}}`, `{"mcpServers": {"a": {"command": "x", "required": 1}}}`, `{"mcpServers": {"a__b": {"command": "x"}}}`, `{"mcpServers": {"a_": {"command": "x"}}}`, `{"mcpServers": {"_a": {"command": "x"}}}`,
		`{"mcpServers": {"a": {"command": "x", "timeout": 0}}}`, `{"mcpServers": {"a": {"command": ["x"]}}}`,
		`{"sandbox": true}`, `{"sandbox": {"enabled": 1}}`, `{"sandbox": {"off": true}}`, `{"sandbox": {"network": "all"}}`, `{"sandbox": {"network": {"hosts": "x"}}}`, `{"sandbox": {"limits": {"files": -1}}}`,
		`{"sandbox": {"limits": {"files": 1.5}}}`, `{"sandbox": {"limits": {"cpu": "1"}}}`, `{"sandbox": {"limits": {"cpu": -1}}}`, `{"sandbox": {"limits": {"memory": 1}}}`, `{"sandbox": {"env": ["=1"]}}`,
		`{"retries": -1}`, `{"retries": 101}`, `{"retries": 1.5}`, `{"retries": "3"}`, `{"retries": true}`, `{"retries": 1e99}`,
		`{"disallowedTools": "bash"}`, `{"reasoning": "much"}`, `{"reasoning": 3}`, `{"providerTools": "web_search"}`, `{"providerTools": [""]}`, `{"respectGitignore": 0}`, `{"compat": "yes"}`,
	}
	check := func(text string, want bool) {
		t.Helper()
		doc, err := jsonschema.UnmarshalJSON(bytes.NewReader([]byte(text)))
		if err != nil {
			t.Fatal(err)
		}
		if err := s.Validate(doc); (err == nil) != want {
			t.Errorf("the schema on %s: %v", text, err)
		}
		if taken(text) != want {
			t.Errorf("the reader on %s: %v", text, !want)
		}
	}
	for _, text := range good {
		check(text, true)
	}
	for _, text := range bad {
		check(text, false)
	}
}

// Nothing of the project's counts without approval, places are in the file, and what the reader takes without a word the schema takes, too.
func FuzzSettings(f *testing.F) {
	for _, s := range []string{
		defaults, `{"permissions": {"deny": ["Bash"], "deny": ["Read"]}}`, `{"hooks": {"Stop": [{"hooks": [{"type": "command", "command": "x"}]}]}}`,
		`{"mcp": {"servers": {"a": {"command": "x"}}}}`, `{"sandbox": {"limits": {"cpu": "1h"}}}`, "{\n// no\n}", `{"a":[1,]}`, `{"env": {"A": "1"}}`,
	} {
		f.Add([]byte(s))
	}
	s := compiled(f)
	f.Fuzz(func(t *testing.T, b []byte) {
		if invalid(b) >= 0 || len(b) > maxSettings {
			return // they don't come as far as the decoder
		}
		r := &report{}
		d := &decoder{source: newSource("f", b), report: r, layer: LayerProject, home: "/home/me", root: "/project"}
		d.settings()
		for _, p := range r.problems {
			if p.Line < 1 || p.Line > 1+bytes.Count(b, []byte("\n")) {
				t.Errorf("a problem at %s", p)
			}
		}
		if len(r.errs) == 0 {
			if !json.Valid(b) {
				t.Fatalf("%q is no JSON", b)
			}
			held, values, _ := merge("/project", d.entries, false)
			if len(held.Env)+len(held.Hooks)+len(held.MCP) > 0 || held.Sandbox.Off {
				t.Errorf("%q counts without approval: %+v", b, held)
			}
			if slices.ContainsFunc(values, func(v Value) bool { return v.State == StateWaiting }) && contentHash(wanted(d.entries)) == "" {
				t.Errorf("%q waits, and there is nothing to approve", b)
			}
		}
		if len(r.errs)+len(r.problems) == 0 && !bytes.Contains(b, []byte("ooks")) { // package hook/shell takes null for everything, the schema does not
			doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(b))
			if err != nil {
				t.Fatal(err)
			}
			if err := s.Validate(doc); err != nil {
				t.Errorf("the reader takes %q and the schema does not: %v", b, err)
			}
		}
	})
}
