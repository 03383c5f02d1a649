package pack_test

import (
	"strings"
	"testing"

	"github.com/pawl-dev/pawl/pack"
)

// lines are problems, or warnings, each in a line.
func lines(all []pack.Problem) string {
	var b strings.Builder
	for _, p := range all {
		b.WriteString(p.String() + "\n")
	}
	return b.String()
}

func TestAllFaultsOfATemplateAreToldAtOnce(t *testing.T) {
	problems, _ := pack.Validate([]byte(`{"id": "p", "name": "P", "version": "1.0.0", "template_engine": {"version": "v1", "syntax": "{{variable}}"},
"fragments": {"x": "{{a b}} {{fragments.nix}} {{a b}}"}, "prompts": {"chat": {"id": "chat", "name": "Chat", "version": "1.0.0",
"system_template": "{{#if a}} {{/if}} {{a | upper}} {{fragments.tone}} {{fragments.y}} {{fragments.x}} {{a | upper}} {{open"}}}`))
	got := lines(problems)
	for _, want := range []string{
		"fragments.x: {{a b}} is no placeholder", `fragments.x: there is no fragment "nix"`, "prompts.chat.system_template: {{#if a}} is no placeholder", "prompts.chat.system_template: {{a | upper}} is no placeholder",
		`prompts.chat.system_template: there is no fragment "tone"`, `prompts.chat.system_template: there is no fragment "y"`, "prompts.chat.system_template: {{open is not closed",
	} {
		if strings.Count(got, want) != 1 {
			t.Errorf("%q is not once in\n%s", want, got)
		}
	}
	if len(problems) != 7 { // what closes a condition is not told beside it, and nothing twice
		t.Errorf("%s", got)
	}
	if problems, _ := pack.Validate([]byte(`{"prompts": {"chat": {"system_template": {"{{a b}}": 1}}}}`)); strings.Contains(lines(problems), "placeholder") {
		t.Errorf("%s", lines(problems))
	}
}

func TestNamesCollideOnlyWhereAModelIsOfferedBoth(t *testing.T) {
	const crew = `{"id": "p", "name": "P", "version": "1.0.0", "template_engine": {"version": "v1", "syntax": "{{variable}}"}, "prompts": {
"chat": {"id": "chat", "name": "Chat", "version": "1.0.0", "system_template": "x", "tools": ["billing", "TOOL"]},
"billing": {"id": "billing", "name": "Billing", "version": "1.0.0", "system_template": "x", "tools": ["billing", "TOOL", "chat"], "tool_policy": {"blocklist": ["BLOCKED"]}}},
"tools": {"TOOL": {"name": "TOOL", "description": "Do."}}, "agents": {"entry": "chat", "members": {"chat": {}, "billing": {}}}}`
	for _, c := range []struct{ tool, blocked, want string }{
		{"Transfer_to_Billing", "chat", "tools.Transfer_to_Billing: it has the name of the tool by which prompts.chat hands over to \"billing\": give it another name"},
		{"transfer_to_chat", "TOOL", ""},
		{"transfer_to_chat", "chat", ""},
		{"transfer_to_nobody", "chat", ""},
	} {
		text := strings.ReplaceAll(strings.ReplaceAll(crew, "BLOCKED", c.blocked), "TOOL", c.tool)
		problems, warnings := pack.Validate([]byte(text))
		if got := lines(problems); !strings.HasPrefix(got, c.want) || (c.want == "") != (got == "") {
			t.Errorf("%s: %s", c.tool, got)
		}
		if got := lines(warnings); !strings.Contains(got, "prompts.billing.tools[0]: it is the prompt itself, which can't hand over to itself: remove it") || strings.Count(got, "itself, which") != 1 {
			t.Errorf("%s: warnings %s", c.tool, got)
		}
	}
}

func TestUnknownFormatsOfFilesAreWarnedOf(t *testing.T) {
	const files = `{"id": "p", "name": "P", "version": "1.0.0", "template_engine": {"version": "v1", "syntax": "{{variable}}"}, "prompts": {"chat": {"id": "chat", "name": "Chat", "version": "1.0.0", "system_template": "x",
"media": {"enabled": true, "image": {"allowed_formats": ["png", "bmpp", "JPG", ".tif", "image/webp"]}, "audio": {"allowed_formats": ["mpeg", "x-wav", "jpeg"]}, "video": {"allowed_formats": ["mpeg", "quicktime"]},
"document": {"allowed_formats": ["pdf", "markdown", "docs"]}, "model3d": {"allowed_formats": ["obj"], "validation_params": {}}}}}}`
	problems, warnings := pack.Validate([]byte(files))
	got := lines(warnings)
	for _, want := range []string{
		`prompts.chat.media.image.allowed_formats[1]: there is no known format "bmpp" of image files: did you mean bmp? (line 2, `,
		`prompts.chat.media.audio.allowed_formats[2]: there is no known format "jpeg" of audio files: `,
		`prompts.chat.media.document.allowed_formats[2]: there is no known format "docs" of document files: did you mean doc`,
	} {
		if !strings.Contains(got, want) {
			t.Errorf("%q is not in\n%s", want, got)
		}
	}
	if len(problems) > 0 || strings.Count(got, "known format") != 3 {
		t.Errorf("%s%s", lines(problems), got)
	}
}
