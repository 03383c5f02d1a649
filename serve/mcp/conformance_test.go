package mcp_test

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/pawl-dev/pawl"
	"github.com/pawl-dev/pawl/engine"
	"github.com/pawl-dev/pawl/engine/loop"
	"github.com/pawl-dev/pawl/errdefs"
	"github.com/pawl-dev/pawl/hook/permission"
	"github.com/pawl-dev/pawl/internal/component"
	"github.com/pawl-dev/pawl/internal/testkit/tier"
	"github.com/pawl-dev/pawl/journal"
	"github.com/pawl-dev/pawl/message"
	"github.com/pawl-dev/pawl/model"
	"github.com/pawl-dev/pawl/serve/mcp"
	"github.com/pawl-dev/pawl/tool"
)

// installed is a program of an npm package that scripts/test installs.
func installed(t *testing.T, name string) string {
	t.Helper()
	tier.SkipQuick(t, "it runs packages of npm")
	dir := os.Getenv("PAWL_NPM")
	if dir == "" {
		component.Absent(t, "PAWL_NPM is not set", "run scripts/test, which installs "+name)
	}
	path, err := filepath.Abs(filepath.Join(dir, "node_modules", ".bin", name))
	if err == nil {
		_, err = os.Stat(path)
	}
	if err != nil {
		component.Absent(t, err.Error(), "run scripts/test")
	}
	return path
}

// The official runner is a client of what this package makes of tools, prompts and resources of a program. Each call of a tool is a run in a journal.
func TestTheOfficialConformanceRunnerIsContent(t *testing.T) {
	runner, node, out := installed(t, "conformance"), installed(t, "node"), t.TempDir()
	baseline, err := filepath.Abs("testdata/conformance.yaml")
	if err != nil {
		t.Fatal(err)
	}
	store := journal.Memory()
	rt, err := pawl.New(t.Context(), pawl.Options{NoProject: true, NoBuiltins: true, Model: loop.NoModel(), Tools: theirTools(), Journal: store, ProjectRoot: t.TempDir(), Permissions: permission.Config{Mode: permission.ModeBypass}})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = rt.Close() }()
	s, err := mcp.New(rt, mcp.Options{
		Name: "conformance", Version: "1", NoAgent: true, NoAnswer: true, NoSessions: true, Tools: mcp.All, Prompts: theirPrompts(), Resources: theirResources(),
		Completion: func(context.Context, string, string, string) ([]string, error) { return []string{"paris", "park"}, nil },
	})
	if err != nil {
		t.Fatal(err)
	}
	h, err := s.Handler(mcp.HTTP{})
	if err != nil {
		t.Fatal(err)
	}
	srv := httptest.NewServer(h)
	defer srv.Close()
	defer func() { _ = s.Close() }()

	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, node, runner, "server", "--url", srv.URL+"/mcp", "--suite", "all", "--expected-failures", baseline, "--output-dir", out)
	cmd.Dir = out
	said, err := cmd.CombinedOutput()
	if err != nil {
		t.Errorf("%v\n%s", err, said)
	}
	count := func(pattern string) int { return len(regexp.MustCompile(pattern).FindAll(said, -1)) }
	n, pass := count(`(?m)^[✓✗] `), count(`(?m)^✓ `)
	t.Logf("conformance: %d scenarios of a server, %d pass, %d are expected to fail", n, pass, n-pass)
	if n != 32 || pass != 29 || strings.Contains(string(said), "0 passed, 0 failed") {
		t.Errorf("%s", said)
	}
	ran := 0
	for _, err := range store.Sessions(t.Context(), journal.Query{}) {
		if ran++; err != nil {
			t.Fatal(err)
		}
	}
	if ran < 9 {
		t.Errorf("%d calls are on record", ran)
	}
}

const aPixel = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8DwHwAFBQIAX8jx0gAAAABJRU5ErkJggg=="

func pixel() message.File {
	b, _ := base64.StdEncoding.DecodeString(aPixel)
	return message.File{MIME: "image/png", Data: string(b)}
}

// a tool of a function, with a schema of its own.
type given struct {
	def tool.Definition
	do  func(ctx context.Context, input json.RawMessage) (tool.Result, error)
}

func (g given) Definition() tool.Definition { return g.def }

func (g given) Execute(ctx context.Context, input json.RawMessage) (tool.Result, error) {
	return g.do(ctx, input)
}

func give(name, schema string, do func(ctx context.Context, input json.RawMessage) (tool.Result, error)) tool.Tool {
	return given{tool.Definition{Tool: model.Tool{Name: name, Description: "does " + name, Schema: json.RawMessage(schema)}}, do}
}

func theirTools() []tool.Tool {
	const none = `{"type":"object"}`
	text := message.File{MIME: "text/plain", Name: "test://embedded-resource", Data: "This is an embedded resource content."}
	is := func(name string, res tool.Result) tool.Tool {
		return give(name, none, func(context.Context, json.RawMessage) (tool.Result, error) { return res, nil })
	}
	asks := func(name, schema string) tool.Tool {
		return give(name, `{"type":"object","properties":{"message":{"type":"string"}}}`, func(ctx context.Context, input json.RawMessage) (tool.Result, error) {
			in, _ := engine.InsideOf(ctx)
			q := engine.Prompt{Schema: []byte(schema)}
			q.Prompt = "Please fill in"
			r, err := in.Ask(ctx, q)
			return tool.Result{Content: fmt.Sprintf("User response: approved=%v %s", r.Approved, r.Text)}, err
		})
	}
	return []tool.Tool{
		is("test_simple_text", tool.Result{Content: "This is a simple text response for testing."}),
		is("test_image_content", tool.Result{Files: []message.File{pixel()}}),
		is("test_audio_content", tool.Result{Files: []message.File{{MIME: "audio/wav", Data: "RIFF....WAVE"}}}),
		is("test_embedded_resource", tool.Result{Files: []message.File{text}}),
		is("test_multiple_content_types", tool.Result{Content: "Multiple content types test:", Files: []message.File{pixel(), text}}),
		is("test_tool_with_logging", tool.Result{Content: "done"}),
		give("test_error_handling", none, func(context.Context, json.RawMessage) (tool.Result, error) {
			return tool.Result{}, errdefs.Internal.Errorf("This tool intentionally returns an error for testing")
		}),
		give("test_tool_with_progress", none, func(ctx context.Context, _ json.RawMessage) (tool.Result, error) {
			for _, s := range []string{"a", "b", "c"} {
				fmt.Fprintln(tool.FromContext(ctx).Output, s)
			}
			return tool.Result{Content: "done"}, nil
		}),
		is("test_reconnection", tool.Result{Content: "done"}),
		is("test_sampling", tool.Result{Content: "done"}),
		asks("test_elicitation", `{"type":"object","properties":{"username":{"type":"string","description":"User's response"},"email":{"type":"string"}},"required":["username"]}`),
		asks("test_elicitation_sep1034_defaults", `{"type":"object","properties":{"name":{"type":"string","default":"John Doe"},"age":{"type":"integer","default":30},"score":{"type":"number","default":95.5},
			"status":{"type":"string","enum":["active","inactive","pending"],"default":"active"},"verified":{"type":"boolean","default":true}}}`),
		asks("test_elicitation_sep1330_enums", `{"type":"object","properties":{"untitledSingle":{"type":"string","enum":["option1","option2","option3"]},
			"titledSingle":{"type":"string","oneOf":[{"const":"value1","title":"First Option"},{"const":"value2","title":"Second Option"}]},
			"legacyEnum":{"type":"string","enum":["opt1","opt2"],"enumNames":["Option One","Option Two"]},
			"untitledMulti":{"type":"array","items":{"type":"string","enum":["option1","option2"]}},
			"titledMulti":{"type":"array","items":{"anyOf":[{"const":"value1","title":"First Choice"},{"const":"value2","title":"Second Choice"}]}}}}`),
		give("json_schema_2020_12_tool", `{"$schema":"https://json-schema.org/draft/2020-12/schema","type":"object","$defs":{"address":{"type":"object","properties":{"street":{"type":"string"},"city":{"type":"string"}}}},
			"properties":{"name":{"type":"string"},"address":{"$ref":"#/$defs/address"}},"additionalProperties":false}`, func(context.Context, json.RawMessage) (tool.Result, error) {
			return tool.Result{Content: "done"}, nil
		}),
	}
}

func theirPrompts() []mcp.Prompt {
	says := func(parts ...message.Part) func(context.Context, map[string]string) ([]message.Message, error) {
		return func(context.Context, map[string]string) ([]message.Message, error) {
			return []message.Message{message.New(message.RoleUser, parts...)}, nil
		}
	}
	return []mcp.Prompt{
		{Name: "test_simple_prompt", Description: "simple", Get: says(message.Text{Text: "This is a simple prompt for testing."})},
		{
			Name: "test_prompt_with_arguments", Description: "with arguments", Arguments: []mcp.Argument{{Name: "arg1", Description: "first", Required: true}, {Name: "arg2", Description: "second", Required: true}},
			Get: func(_ context.Context, args map[string]string) ([]message.Message, error) {
				return []message.Message{message.User(fmt.Sprintf("Prompt with arguments: arg1='%s', arg2='%s'", args["arg1"], args["arg2"]))}, nil
			},
		},
		{
			Name: "test_prompt_with_embedded_resource", Description: "with a resource", Arguments: []mcp.Argument{{Name: "resourceUri", Description: "which", Required: true}},
			Get: func(_ context.Context, args map[string]string) ([]message.Message, error) {
				return []message.Message{message.New(message.RoleUser, message.File{MIME: "text/plain", Name: args["resourceUri"], Data: "Embedded resource content for testing."}, message.Text{Text: "Please process it."})}, nil
			},
		},
		{Name: "test_prompt_with_image", Description: "with an image", Get: says(pixel(), message.Text{Text: "Please analyze the image above."})},
	}
}

func theirResources() []mcp.Resource {
	is := func(f message.File) func(context.Context, string) (message.File, error) {
		return func(context.Context, string) (message.File, error) { return f, nil }
	}
	return []mcp.Resource{
		{URI: "test://static-text", Name: "text", Description: "a text", MIME: "text/plain", Read: is(message.File{MIME: "text/plain", Data: "This is the content of the static text resource."})},
		{URI: "test://static-binary", Name: "binary", Description: "an image", MIME: "image/png", Read: is(pixel())},
		{URI: "test://watched-resource", Name: "watched", Description: "changes", MIME: "text/plain", Read: is(message.File{MIME: "text/plain", Data: "now"})},
		{URI: "test://template/{id}/data", Name: "template", Description: "by id", MIME: "application/json", Read: func(_ context.Context, uri string) (message.File, error) {
			id := strings.TrimSuffix(strings.TrimPrefix(uri, "test://template/"), "/data")
			return message.File{MIME: "application/json", Data: fmt.Sprintf(`{"id":%q,"templateTest":true,"data":"Data for ID: %s"}`, id, id)}, nil
		}},
	}
}
