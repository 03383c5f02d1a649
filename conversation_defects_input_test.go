package pawl_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pawl-dev/pawl"
	"github.com/pawl-dev/pawl/errdefs"
	"github.com/pawl-dev/pawl/event"
	"github.com/pawl-dev/pawl/journal"
	"github.com/pawl-dev/pawl/message"
	"github.com/pawl-dev/pawl/model/scripted"
	"github.com/pawl-dev/pawl/pack/guard"
	"github.com/pawl-dev/pawl/tool"
)

// changed is a pack file with something else in it.
func changed(t *testing.T, file, from, to string) string {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(text), from) {
		t.Fatalf("there is no %s in it", from)
	}
	file = filepath.Join(t.TempDir(), "changed.pack.json")
	if err := os.WriteFile(file, []byte(strings.Replace(string(text), from, to, 1)), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

// Arguments that a tool would not take are no answer: whoever gave them may give others.
func TestDefectAnAnswerThatBreaksTheSchemaIsUsedUp(t *testing.T) {
	for name, call := range map[string]string{"its name": "pay", "in another case": "PAY"} {
		t.Run(name, func(t *testing.T) {
			file := changed(t, packOf(t, looks), `"amount": {"type": "integer"}`, `"amount": {"type": "integer", "minimum": 0}`)
			var paid []string
			c := paying(converse(t, file, scripted.New(scripted.Calls(callOf("a", call, `{"amount":500,"to":"Ada"}`)), scripted.Text("done"))), &paid)
			c.AskBefore("pay", func(context.Context, map[string]any) pawl.Pending { return pawl.Pending{Reason: "always"} })
			if waiting := send(t, c, "pay").Pending; len(waiting) != 1 {
				t.Fatalf("%d calls wait", len(waiting))
			}
			for _, args := range []map[string]any{{"amount": -5}, {"amount": "much"}, {"to": 7}} {
				if err := c.ResolveToolWithArgs(t.Context(), "a", args); !errdefs.Validation.Is(err) || !strings.Contains(err.Error(), "pay: ") {
					t.Errorf("%v: %v", args, err)
				}
			}
			if all, err := c.PendingTools(t.Context()); err != nil || len(all) != 1 {
				t.Fatalf("%d calls wait, %v", len(all), err)
			}
			if err := c.ResolveToolWithArgs(t.Context(), "a", map[string]any{"amount": 5}); err != nil {
				t.Fatal(err)
			}
			if resp, err := c.Continue(t.Context()); err != nil || resp.Text() != "done" {
				t.Errorf("Continue: %v", err)
			}
			wantLines(t, paid, "5 to Ada")
		})
	}
}

// What a user says is judged, however it is said.
func TestDefectAnAddedMessageGoesPastTheValidators(t *testing.T) {
	c := converse(t, packOf(t, plain+`, "media": {"enabled": true, "supported_types": ["image"], "image": {"allowed_formats": ["png"]}}`+input), listening(scripted.Text("ok")))
	gif := message.File{MIME: "image/gif", Data: "GIF89a"}
	for name, m := range map[string]message.Message{
		"a word":          message.User("a bomb"),
		"a word in parts": message.New(message.RoleUser, message.Text{Text: "a bo"}, message.Text{Text: "mb"}),
		"a file":          message.New(message.RoleUser, message.Text{Text: "see"}, gif),
	} {
		var parts []message.File
		for f := range message.Of[message.File](m) {
			parts = append(parts, f)
		}
		_, said := c.Send(t.Context(), m.Text(), parts...)
		added := c.AddMessage(t.Context(), m)
		var v *guard.Violation
		if said == nil || added == nil || said.Error() != added.Error() || errdefs.Of(said) != errdefs.Of(added) || errors.As(said, &v) != errors.As(added, &v) {
			t.Errorf("%s: Send: %v; AddMessage: %v", name, said, added)
		}
	}
	for name, m := range map[string]message.Message{
		"a result": message.New(message.RoleUser, message.Text{Text: "see"}, message.ToolResult{Call: "c", Name: "look", Content: "a bomb"}),
		"a call":   message.New(message.RoleUser, message.Text{Text: "see"}, message.ToolCall{ID: "c", Name: "look", Input: "{}"}),
		"thoughts": message.New(message.RoleUser, message.Text{Text: "see"}, message.Reasoning{Text: "a bomb"}),
	} {
		if err := c.AddMessage(t.Context(), m); !errdefs.Validation.Is(err) {
			t.Errorf("%s: %v", name, err)
		}
	}
	wantLines(t, transcript(t, c))
	if err := c.AddMessage(t.Context(), message.User("this is too long, which is only noted")); err != nil {
		t.Error(err)
	}
	if err := c.AddMessage(t.Context(), message.Assistant("a bomb")); err != nil { // it is not the user's
		t.Error(err)
	}
	if all := transcript(t, c); len(all) != 2 {
		t.Errorf("got %q", all)
	}
}

func TestDefectFilesWithoutBytesAreOnRecord(t *testing.T) {
	for name, media := range map[string]string{"media": `, "media": {"enabled": true}`, "no media": ""} {
		t.Run(name, func(t *testing.T) {
			m := listening(scripted.Text("ok"))
			c := converse(t, packOf(t, plain+media), m)
			for want, f := range map[string]message.File{
				"file 2: it has no MIME type":       {},
				"a.png: it has no bytes":            {MIME: "image/png", Name: "a.png"},
				"image/png: it has no bytes":        {MIME: "image/png"},
				"a.png: it has Data and URL":        {MIME: "image/png", Name: "a.png", Data: "x", URL: "https://example.com/a.png"},
				"file 2: it has no MIME":            {Data: "x"},
				`a: its URL "file:///etc/passwd"`:   {MIME: "image/png", Name: "a", URL: "file:///etc/passwd"},
				`b: its URL begins with data:`:      {MIME: "image/png", Name: "b", URL: "data:image/png;base64,eA=="},
				`c: its URL "https:///a.png"`:       {MIME: "image/png", Name: "c", URL: "https:///a.png"},
				`png: its MIME type "png" is wrong`: {MIME: "png", Data: "x"},
			} {
				first := message.File{MIME: "image/png", Name: "first", Data: "x"}
				_, err := c.Send(t.Context(), "see", first, f)
				if !errdefs.Validation.Is(err) || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "first") {
					t.Errorf("Send: %v, want %s", err, want)
				}
				for _, role := range []message.Role{message.RoleUser, message.RoleAssistant} {
					err := c.AddMessage(t.Context(), message.New(role, message.Text{Text: "see"}, first, f))
					if !errdefs.Validation.Is(err) || !strings.Contains(err.Error(), want) {
						t.Errorf("AddMessage of %s: %v, want %s", role, err, want)
					}
				}
			}
			wantLines(t, transcript(t, c))
			if len(m.asked()) > 0 {
				t.Error("the model was called")
			}
			if _, err := c.Send(t.Context(), "see", message.File{MIME: "image/png", URL: "HTTPS://example.com/a.png"}); err != nil {
				t.Error(err)
			}
		})
	}
}

// A handler that is nil is none: that is known before a model is called.
func TestDefectANilHandlerPanics(t *testing.T) {
	fine := func(map[string]any) (any, error) { return "x", nil }
	for name, tc := range map[string]struct {
		give func(c *pawl.Conversation)
		want string
	}{
		"OnTool":      {func(c *pawl.Conversation) { c.OnTool("pay", nil) }, "pay"},
		"OnTools":     {func(c *pawl.Conversation) { c.OnTools(map[string]func(map[string]any) (any, error){"pay": nil}) }, "pay"},
		"OnToolCtx":   {func(c *pawl.Conversation) { c.OnToolCtx("pay", nil) }, "pay"},
		"OnTyped":     {func(c *pawl.Conversation) { pawl.OnTyped[struct{}](c, "pay", nil) }, "pay"},
		"OnToolAsync": {func(c *pawl.Conversation) { c.OnToolAsync("pay", large, nil) }, "pay"},
		"no check":    {func(c *pawl.Conversation) { c.OnToolAsync("pay", nil, fine) }, "pay (OnToolAsync got no check"},
		"taken away":  {func(c *pawl.Conversation) { c.OnTool("pay", fine); c.OnTool("pay", nil) }, "pay"},
		"still none": {func(c *pawl.Conversation) {
			c.OnToolAsync("pay", nil, fine)
			c.OnTool("pay", fine)
		}, "pay (OnToolAsync got no check"},
	} {
		t.Run(name, func(t *testing.T) {
			m := listening(scripted.Calls(callOf("c", "pay", `{"amount":500}`)), scripted.Text("ok"))
			c := converse(t, packOf(t, looks), m)
			c.OnTool("look", fine)
			tc.give(c)
			_, err := c.Send(t.Context(), "a")
			if !errdefs.Validation.Is(err) || !strings.Contains(err.Error(), "chat: "+tc.want) || len(m.asked()) > 0 {
				t.Errorf("got %v", err)
			}
			wantLines(t, transcript(t, c))
			c.OnTool("pay", fine)
			c.AskBefore("pay", nil) // this says that nobody is to be asked
			if got := send(t, c, "a").Text(); got != "ok" {
				t.Errorf("then: %q", got)
			}
		})
	}
	m := scripted.New()
	c := converse(t, packOf(t, plain), m, nil)
	r, err := pawl.Resume(t.Context(), c.Session(), packOf(t, plain), "chat", nil, pawl.WithModel(m), nil)
	if !errdefs.NotFound.Is(err) || r != nil {
		t.Errorf("Resume: %v", err)
	}
}

// odd is a journal whose errors have no class.
type odd struct{ journal.Store }

func (odd) Append(context.Context, string, int64, ...journal.Entry) error { return errors.New("odd") }

func TestDefectACanceledTurnHasNoClass(t *testing.T) {
	for name, want := range map[string]string{"canceled": "canceled", "before it began": "canceled", "a defect": "internal"} {
		t.Run(name, func(t *testing.T) {
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			c := converse(t, packOf(t, looks), scripted.New(scripted.Calls(callOf("c", "look", `{"city":"x"}`)), scripted.Text("x")))
			s := c.Subscribe(t.Context(), event.Policy{}, pawl.EventError)
			c.OnTool("look", func(map[string]any) (any, error) { cancel(); return "x", nil })
			c.OnTool("pay", func(map[string]any) (any, error) { return "x", nil })
			switch name {
			case "before it began":
				cancel()
			case "a defect":
				c = converse(t, packOf(t, plain), scripted.New(), pawl.WithJournal(odd{journal.Memory()}))
				s = c.Subscribe(t.Context(), event.Policy{}, pawl.EventError)
			}
			if _, err := c.Send(ctx, "a"); err == nil {
				t.Fatal("it completed")
			}
			var got []string
			for _, e := range collect(t, c, s) {
				got = append(got, fmt.Sprint(e.Data["class"]))
			}
			wantLines(t, got, want)
		})
	}
}

// What a private address needs is said in the words of who refuses it.
func TestDefectTheRemedyForAPrivateAddressIsNone(t *testing.T) {
	s := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { t.Error("it was reached") }))
	defer s.Close()
	for _, host := range []string{"127.0.0.1", "localhost", "LOCALHOST"} {
		got := byHTTP(t, pawl.HTTPTool{URL: strings.Replace(s.URL, "127.0.0.1", host, 1)}, `{"city":"x"}`)
		if !strings.Contains(got, "is this machine") || !strings.Contains(got, "HTTPTool.Allow") || strings.Contains(got, "sandbox.network") {
			t.Errorf("%s: %s", host, got)
		}
	}
}

func TestHowAllowMatches(t *testing.T) {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "reached") }))
	defer s.Close()
	away := httptest.NewServer(http.RedirectHandler(strings.Replace(s.URL, "127.0.0.1", "localhost", 1), http.StatusFound))
	defer away.Close()
	for _, tc := range []struct {
		url   string
		allow []string
		want  bool
	}{
		{s.URL, []string{"127.0.0.1"}, true},
		{s.URL, []string{"::ffff:127.0.0.1"}, true}, // the same address
		{s.URL, []string{"127.0.0.2"}, false},
		{s.URL, []string{"localhost"}, false}, // a name does not stand for an address
		{strings.Replace(s.URL, "127.0.0.1", "localhost", 1), []string{"LOCALHOST"}, true},
		{strings.Replace(s.URL, "127.0.0.1", "localhost", 1), []string{"127.0.0.1"}, true}, // but leads to one
		{away.URL, []string{"127.0.0.1"}, false},
		{away.URL, []string{"127.0.0.1", "localhost"}, true},
		{away.URL, []string{"127.0.0.1", "*.localhost"}, false},
	} {
		got := byHTTP(t, pawl.HTTPTool{URL: tc.url, Method: "get", Allow: tc.allow}, `{"city":"x"}`)
		if strings.Contains(got, "= reached]") != tc.want {
			t.Errorf("%s, %q: %s", tc.url, tc.allow, got)
		}
	}
}

func TestDefectAnHTTPToolThatCanNotWorkIsTaken(t *testing.T) {
	c := converse(t, packOf(t, looks), scripted.New())
	for name, h := range map[string]pawl.HTTPTool{
		"{city":      {URL: "http://a.example/{city"},
		"city}":      {URL: "http://a.example/city}"},
		"{}":         {URL: "http://a.example/{}"},
		"{a city}":   {URL: "http://a.example/?q={a city}"},
		"town":       {URL: "http://a.example/{town}"},
		"Method":     {URL: "http://a.example/", Method: "GET IT"},
		"Allow":      {URL: "http://a.example/", Allow: []string{""}},
		"http://b":   {URL: "http://a.example/", Allow: []string{"http://b"}},
		"b/c":        {URL: "http://a.example/", Allow: []string{"b/c"}},
		"b:80":       {URL: "http://a.example/", Allow: []string{"b:80"}},
		"[::1]:80":   {URL: "http://a.example/", Allow: []string{"[::1]:80"}},
		"10.0.0.0/8": {URL: "http://a.example/", Allow: []string{"10.0.0.0/8"}},
		`"*"`:        {URL: "http://a.example/", Allow: []string{"*"}},
		"A B":        {URL: "http://a.example/", Header: http.Header{"A B": {"c"}}},
		"A C":        {URL: "http://a.example/", Environment: map[string]string{"A C": "PATH"}},
	} {
		if err := c.OnToolHTTP("look", h); !errdefs.Validation.Is(err) || !strings.Contains(err.Error(), name) {
			t.Errorf("%s: %v", name, err)
		}
	}
	for _, h := range []pawl.HTTPTool{
		{URL: "http://a.example/{city}?n={n}", Method: "patch"}, {URL: "http://a.example/", Method: "M-SEARCH", Allow: []string{"*.b.example", "::1", "[::1]", "10.0.0.1", "localhost", "b"}},
	} {
		if err := c.OnToolHTTP("look", h); err != nil {
			t.Error(err)
		}
	}
	for schema, refused := range map[string]bool{
		`{"type": "object", "properties": {"city": {}}, "additionalProperties": false}`:                           true,
		`{"type": "object", "properties": {}}`:                                                                    true,
		`{"type": "object", "properties": {"town": {}}}`:                                                          false,
		`{"type": "object", "properties": {}, "additionalProperties": true}`:                                      false,
		`{"type": "object", "properties": {}, "additionalProperties": {"type": "string"}}`:                        false,
		`{"type": "object", "properties": {}, "allOf": [{"properties": {"town": {}}}]}`:                           false,
		`{"type": "object", "properties": {}, "patternProperties": {"^t": {"type": "string"}}}`:                   false,
		`{"type": "object", "$ref": "#/$defs/a", "$defs": {"a": {"properties": {"town": {}}}}, "properties": {}}`: false,
	} {
		c := converse(t, changed(t, packOf(t, looks), `{"type": "object", "properties": {"city": {"type": "string"}, "n": {"type": "integer"}}, "required": ["city"]}`, schema), scripted.New())
		if err := c.OnToolHTTP("look", pawl.HTTPTool{URL: "http://a.example/{town}"}); errdefs.Validation.Is(err) != refused || !refused && err != nil {
			t.Errorf("%s: %v", schema, err)
		}
	}
	if err := c.OnToolHTTP("nothing", pawl.HTTPTool{URL: "http://a.example/{town}"}); err != nil { // its parameters are not known; Send tells
		t.Error(err)
	}
}

// melted is an error of a program's own.
type melted struct{ why string }

func (m *melted) Error() string { return m.why }

func TestDefectValuesOfHandlersAreShownAsJSONOfWhatTheyAreNot(t *testing.T) {
	var none *melted
	var nothing *tool.Result
	for name, tc := range map[string]struct {
		value any
		err   error
		want  string
	}{
		"an error":            {errdefs.NotFound.Errorf("no such city"), nil, "c look true no such city"},
		"a result":            {tool.Result{Content: "snow", IsError: true}, nil, "c look true snow"},
		"a pointer to one":    {&tool.Result{Content: "snow", IsError: true}, nil, "c look true snow"},
		"a pointer to none":   {nothing, nil, "c look false null"},
		"a pointer, no error": {none, nil, "c look false null"},
		"bytes":               {[]byte("snöw"), nil, "c look false snöw"},
		"JSON":                {json.RawMessage(`{"a":1}`), nil, `c look false {"a":1}`},
		"other bytes":         {[]byte{0xff, 0xfe}, nil, `c look false "//4="`},
		"both":                {&tool.Result{Content: "snow"}, errors.New("it melted"), "c look true snow\nit melted"},
	} {
		t.Run(name, func(t *testing.T) {
			c := converse(t, packOf(t, looks), scripted.New(scripted.Calls(callOf("c", "look", `{"city":"x"}`)), scripted.Text("x")))
			c.OnTool("look", func(map[string]any) (any, error) { return tc.value, tc.err })
			c.OnTool("pay", func(map[string]any) (any, error) { return "x", nil })
			send(t, c, "a")
			if got := results(t, c); len(got) != 1 || !strings.Contains(got[0], tc.want) {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
}
