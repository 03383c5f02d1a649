package chat

import (
	"encoding/json"
	"errors"
	"maps"
	"os"
	"regexp"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pawl-dev/pawl/errdefs"
	"github.com/pawl-dev/pawl/message"
)

// The parameters that are read are those of the document and of the manual's table; those without an effect are said to have none.
func TestTheParametersAreInTheManual(t *testing.T) {
	want := slices.Sorted(maps.Keys(params))
	b, err := os.ReadFile("../../openapi.json")
	if err != nil {
		t.Fatal(err)
	}
	var doc struct {
		Components struct {
			Schemas struct {
				ChatRequest struct {
					Properties map[string]struct{ Description string }
				}
			}
		}
	}
	if err := json.Unmarshal(b, &doc); err != nil {
		t.Fatal(err)
	}
	described := doc.Components.Schemas.ChatRequest.Properties
	if d := cmp.Diff(want, slices.Sorted(maps.Keys(described))); d != "" {
		t.Errorf("the document:\n%s", d)
	}
	page, err := os.ReadFile("../../../docs/serve.md")
	if err != nil {
		t.Fatal(err)
	}
	var told []string
	for _, row := range regexp.MustCompile("(?m)^\\| (`[a-z_]+`(?:, `[a-z_]+`)*) \\| (.*) \\|$").FindAllSubmatch(page, -1) {
		for _, name := range regexp.MustCompile("[a-z_]+").FindAllString(string(row[1]), -1) {
			told = append(told, name)
			if p, ok := params[name]; ok && p.effect != !regexp.MustCompile("^no effect|^only what").Match(row[2]) {
				t.Errorf("docs/serve.md says of %s: %s", name, row[2])
			}
		}
	}
	slices.Sort(told)
	if d := cmp.Diff(want, told); d != "" {
		t.Errorf("docs/serve.md:\n%s", d)
	}
}

func FuzzParse(f *testing.F) {
	for _, s := range []string{
		`{"model":"pawl","messages":[{"role":"user","content":"Hi."}]}`, `{"model":"pawl","messages":[{"role":"user","content":[{"type":"text","text":"Hi."}]}],"stream":true,"n":1}`,
		`{"model":"m","messages":[{"role":"assistant","content":null,"tool_calls":[{"id":"c","function":{"name":"x","arguments":"{"}}]},{"role":"tool","tool_call_id":"c","content":"y"},{"role":"user","content":"x"}],"user":"u"}`,
		`{"model":"m","messages":[{"role":"user","content":[{"type":"image_url","image_url":{"url":"data:;base64,AA=="}},{"type":"file","file":{"file_data":"data:a/b;base64,AA==","filename":"a.pdf"}},{"type":"input_audio","input_audio":{"data":"AA==","format":"mp3"}}]}]}`,
		`{}`, `[`, `{"model":"m","messages":null,"stop":[]}`, `{"model":"m","model":"n"}`, `{"model":"pawl","messages":[{"role":"user","content":"Hi."}]}}`, `{"stream_options":{"include_usage":true},"metadata":{"session":"s"}}`,
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		r, err := Parse(b)
		if err != nil {
			if !errors.Is(err, errdefs.Validation) || err.Error() == "" {
				t.Errorf("%q: %v", b, err)
			}
			return
		}
		if !json.Valid(b) {
			t.Errorf("%q is no JSON, and was taken", b)
		}
		if r.Model == "" || r.Message.Role() != message.RoleUser || r.Message.Blank() || r.Message.CheckFiles() != nil {
			t.Errorf("%q: %+v", b, r)
		}
		if h := message.Repair(r.History); h.Len() != r.History.Len() {
			t.Errorf("%q: its history is not valid", b)
		}
	})
}

func TestABodyIsOneObjectAndNothingElse(t *testing.T) {
	const body = `{"model":"pawl","messages":[{"role":"user","content":"Hi."}]}`
	if _, err := Parse([]byte(body + " \n")); err != nil {
		t.Error(err)
	}
	for _, more := range []string{"}", "]", "{}", " x", "\x00"} {
		if _, err := Parse([]byte(body + more)); !errdefs.Validation.Is(err) {
			t.Errorf("%q behind it: %v", more, err)
		}
	}
}
