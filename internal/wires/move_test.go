package wires_test

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/pawl-dev/pawl/errdefs"
	"github.com/pawl-dev/pawl/internal/wires"
	"github.com/pawl-dev/pawl/message"
	"github.com/pawl-dev/pawl/model"
)

// A conversation that goes from provider to provider stays valid for each, and loses what only another one understands: never a text, a call,
// a result, their pairing or a file. Who gets it back finds its own parts as it gave them.
func TestAConversationMayMoveBetweenAllWires(t *testing.T) {
	replies := fixtures(t)
	rapid.Check(t, func(t *rapid.T) {
		g := &generator{}
		h := message.Repair(message.NewHistory(g.messages(t)...))
		type own struct {
			wire wires.Wire
			at   int
			sent []byte // the reply, as its wire took it back the first time
		}
		var given []own
		for range rapid.IntRange(1, 5).Draw(t, "turns") {
			if h.Len() == 0 || h.Last().Role() == message.RoleAssistant {
				h = h.Append(message.User(g.text(t)))
			}
			w := rapid.SampledFrom(wires.All).Draw(t, "wire")
			if !survives(t, w, h) {
				h = h.Append(message.User(g.text(t)))
				continue
			}
			reply, sent := answer(t, w, rapid.SampledFrom(replies[w.Name]).Draw(t, "reply"), g.name())
			if reply.Blank() {
				continue
			}
			given = append(given, own{w, h.Len(), sent})
			h = message.Repair(h.Append(reply))
			if h.Last().Role() == message.RoleTool && rapid.Bool().Draw(t, "a person speaks") {
				h = h.Append(message.User(g.text(t)))
			}
			if rapid.Bool().Draw(t, "by way of the journal") {
				h = reread(t, h)
			}
		}
		for _, o := range given {
			if !takesFiles(o.wire, h) {
				continue
			}
			body, err := o.wire.Body(model.Request{Messages: h.Append(message.User("Back again"))})
			if err != nil {
				t.Fatal(err)
			}
			if !bytes.Contains(body, o.sent) {
				t.Fatalf("%s doesn't get back what it said:\n%s\n%s", o.wire.Name, o.sent, body)
			}
		}
	})
}

// survives sends h to w, holds the request to the wire's rules and to what has to be in it, and reports whether w took it.
func survives(t *rapid.T, w wires.Wire, h message.History) bool {
	t.Helper()
	body, err := w.Body(model.Request{Messages: h})
	if !takesFiles(w, h) {
		if !errors.Is(err, errdefs.Validation) {
			t.Fatalf("%s: %v for a file that it can't take", w.Name, err)
		}
		return false
	}
	if err != nil {
		t.Fatalf("%s: %v", w.Name, err)
	}
	said, err := w.Read(body)
	if err != nil {
		t.Fatal(err)
	}
	ids := map[string]string{} // ours by the wire's
	texts, calls, results := said, said, said
	for _, m := range h.All() {
		role := string(m.Role())
		for p := range m.Parts() {
			switch p := p.(type) {
			case message.Text:
				for _, c := range p.Citations { // for readers alone
					foreign(t, w, body, "readers", c.URL, c.Title, c.Quote)
				}
				texts = find(t, w, texts, role, "text", p.Text)
			case message.ToolCall:
				calls = findCall(t, w, calls, p, ids)
			case message.ToolResult:
				results = findResult(t, w, results, p, ids)
				for _, f := range p.Files {
					findFile(t, w, said, f)
				}
			case message.File:
				findFile(t, w, said, p)
			case message.Reasoning:
				foreign(t, w, body, p.Provider, p.Text, p.Signature)
			case message.ProviderCall:
				foreign(t, w, body, p.Provider, p.JSON)
				foreign(t, w, body, "readers", p.Input, p.Output)
			case message.Opaque:
				foreign(t, w, body, p.Provider, p.JSON)
			}
		}
	}
	if n := count(calls, "call") + count(results, "result"); n > 0 {
		t.Fatalf("%s: %d calls or results that nobody made: %+v", w.Name, n, said)
	}
	return true
}

func count(said []wires.Said, kind string) (n int) {
	for _, s := range said {
		if s.Kind == kind {
			n++
		}
	}
	return n
}

// find looks for a text and gives what comes from there on: order stays, and a wire may join texts.
func find(t *rapid.T, w wires.Wire, said []wires.Said, role, kind, text string) []wires.Said {
	t.Helper()
	if strings.TrimSpace(text) == "" {
		return said
	}
	for i, s := range said {
		if s.Kind == kind && s.Role == role && strings.Contains(s.Text, text) {
			return said[i:]
		}
	}
	t.Fatalf("%s: the text %q of the %s is gone, or not in its order: %+v", w.Name, text, role, said)
	return nil
}

func findCall(t *rapid.T, w wires.Wire, said []wires.Said, c message.ToolCall, ids map[string]string) []wires.Said {
	t.Helper()
	for i, s := range said {
		if s.Kind != "call" {
			continue
		}
		if s.Name != c.Name && legal(c.Name) || !sameInput(s.Args, c.Input) {
			t.Fatalf("%s: the call %+v became %+v", w.Name, c, s)
		}
		if s.ID != "" {
			ids[s.ID] = c.ID
		}
		return said[i+1:]
	}
	t.Fatalf("%s: the call %+v is gone", w.Name, c)
	return nil
}

func legal(name string) bool {
	return name != "" && len(name) <= 64 && strings.Trim(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_") == ""
}

// sameInput compares arguments; those that are no object may be wrapped.
func sameInput(got, want string) bool {
	var g, o any
	if want == "" {
		want = "{}"
	}
	if got == want {
		return true
	}
	if json.Unmarshal([]byte(got), &g) != nil {
		return false
	}
	if json.Unmarshal([]byte(want), &o) == nil && reflect.DeepEqual(g, o) {
		return true
	}
	wrapped, _ := g.(map[string]any)
	return len(wrapped) == 1 && wrapped["INVALID_JSON"] == want
}

func findResult(t *rapid.T, w wires.Wire, said []wires.Said, r message.ToolResult, ids map[string]string) []wires.Said {
	t.Helper()
	for i, s := range said {
		if s.Kind != "result" {
			continue
		}
		if s.ID != "" && ids[s.ID] != r.Call || strings.TrimSpace(r.Content) != "" && !strings.HasPrefix(s.Text, r.Content) {
			t.Fatalf("%s: the result %+v became %+v", w.Name, r, s)
		}
		return said[i+1:]
	}
	t.Fatalf("%s: the result %+v is gone", w.Name, r)
	return nil
}

func findFile(t *rapid.T, w wires.Wire, said []wires.Said, f message.File) {
	t.Helper()
	for _, s := range said {
		if f.ID != "" && s.Kind == "file" && f.Provider == keeper(w) && strings.HasSuffix(s.Text, f.ID) {
			return
		}
		if s.Kind == "file" && s.Text == f.Data+f.URL || strings.HasPrefix(f.MIME, "text/") && f.Data != "" && strings.Contains(s.Text, f.Data) {
			return
		}
	}
	t.Fatalf("%s: the file %+v is gone: %+v", w.Name, f, said)
}

// foreign wants nothing of another provider's own words in a request.
func foreign(t *rapid.T, w wires.Wire, body []byte, provider string, words ...string) {
	t.Helper()
	for _, s := range words {
		if provider != w.Provider && s != "" && strings.Contains(s, "own") && bytes.Contains(body, []byte(s)) {
			t.Fatalf("%s gets what only %s understands: %q", w.Name, provider, s)
		}
	}
}

// keeper is who keeps the files that w sends by ID.
func keeper(w wires.Wire) string {
	can, _ := model.CapabilitiesOf(w.New())
	return cmp.Or(can.Files, can.Provider)
}

// takesFiles reports whether w says that it takes all files of h, where they stand. Which of them it takes by URL is a matter of each wire.
func takesFiles(w wires.Wire, h message.History) bool {
	can, _ := model.CapabilitiesOf(w.New())
	for _, m := range h.All() {
		var fs []message.File
		for p := range m.Parts() {
			switch p := p.(type) {
			case message.File:
				fs = append(fs, p)
				if m.Role() == message.RoleAssistant && w.Provider != "gemini" {
					return false
				}
			case message.ToolResult:
				fs = append(fs, p.Files...)
			}
		}
		for _, f := range fs {
			if f.ID != "" && f.Provider == keeper(w) && (w.Provider != "openai" || f.MIME == "application/pdf") {
				if !can.Takes(f.MIME) {
					return false
				}
				continue // by its ID
			}
			if f.Data == "" && f.URL == "" {
				return false // somebody else keeps it
			}
			if !can.Takes(f.MIME) || f.Hash != "" || f.URL != "" && !byURL[w.Provider](f.MIME) {
				return false
			}
		}
	}
	return true
}

var byURL = map[string]func(mime string) bool{
	"anthropic":        func(m string) bool { return !strings.HasPrefix(m, "text/") },
	"openai":           func(m string) bool { return strings.HasPrefix(m, "image/") },
	"openai-responses": func(string) bool { return true },
	"gemini":           func(string) bool { return true },
}

// reply is a fixture, with the type that it comes with.
type reply struct {
	name, contentType string
	body              []byte
}

func fixtures(t *testing.T) map[string][]reply {
	t.Helper()
	out := map[string][]reply{}
	for _, w := range wires.All {
		for pattern, contentType := range map[string]string{"*.sse": "text/event-stream", "*.json": "application/json"} {
			files, err := filepath.Glob(filepath.Join("../../model", w.Dir, pattern))
			if err != nil || len(files) == 0 {
				t.Fatal(files, err)
			}
			for _, f := range files {
				name := filepath.Base(f)
				if strings.HasPrefix(name, "request_") || strings.HasPrefix(name, "error_") || strings.HasPrefix(name, "truncated") || name == "count.json" || name == "upload.json" {
					continue
				}
				b, err := os.ReadFile(f)
				if err != nil {
					t.Fatal(err)
				}
				out[w.Name] = append(out[w.Name], reply{name, contentType, b})
			}
		}
	}
	return out
}

// answer has w decode a fixture, its ids made unique by suffix as the loop makes them, and gives the bytes that w takes it back as.
func answer(t *rapid.T, w wires.Wire, r reply, suffix string) (m message.Message, sent []byte) {
	t.Helper()
	body := bytes.ReplaceAll(r.body, []byte("call_1"), []byte("call_1"+suffix))
	body = bytes.ReplaceAll(body, []byte("call_2"), []byte("call_2"+suffix))
	err := w.Answering(r.contentType, func() io.Reader { return bytes.NewReader(body) }).CompleteStream(t.Context(), hi(), func(s model.StreamResult) error {
		if s.Final {
			m = s.Response.Message
		}
		return nil
	})
	if err != nil {
		t.Fatalf("%s: %s: %v", w.Name, r.name, err)
	}
	const before, after = "before it", "behind it"
	h := message.Repair(message.NewHistory(message.User(before), m, message.User(after)))
	request, err := w.Body(model.Request{Messages: h})
	if err != nil {
		t.Fatal(err)
	}
	_, sent, _ = bytes.Cut(request, []byte(before))
	sent, _, _ = bytes.Cut(sent, []byte(after))
	sent, _, _ = bytes.Cut(sent, []byte("This call has no result"))
	_, sent, _ = bytes.Cut(sent[:bytes.LastIndexByte(sent, '}')+1], []byte("{")) // from the message's own first brace to its last
	if len(sent) == 0 && (m.Text() != "" || len(m.ToolCalls()) > 0) {
		t.Fatalf("%s: nothing of %s is in %s", w.Name, r.name, request)
	}
	return m, sent
}

func reread(t *rapid.T, h message.History) (again message.History) {
	t.Helper()
	b, err := h.MarshalJSON()
	if err == nil {
		err = again.UnmarshalJSON(b)
	}
	if err != nil {
		t.Fatal(err)
	}
	return again
}

// generator makes random messages. Each text, thought and file has a name of its own in it, so that it can be found again.
type generator struct{ n int }

func (g *generator) name() string {
	g.n++
	return fmt.Sprintf("own%d.", g.n)
}

var tails = []string{"", "", " plain", " \"quoted\" \\", "\n", " \u2028 é 世界 👋🏽", " </script>", "\x00\x01", " {\"a\":1}", strings.Repeat(" long", 200)}

func (g *generator) text(t *rapid.T) string {
	return g.name() + rapid.SampledFrom(tails).Draw(t, "text")
}

func (g *generator) messages(t *rapid.T) []message.Message {
	ms := []message.Message{message.User(g.text(t))}
	for range rapid.IntRange(0, 6).Draw(t, "messages") {
		switch rapid.IntRange(0, 3).Draw(t, "kind") {
		case 0:
			ms = append(ms, message.New(message.RoleUser, g.user(t)...))
		default:
			m := message.New(message.RoleAssistant, g.assistant(t)...)
			ms = append(ms, m)
			if calls := m.ToolCalls(); len(calls) > 0 {
				ms = append(ms, message.Results(g.results(t, calls)...))
			}
		}
	}
	return ms
}

// user makes the parts of a user's message. A new kind of part, or field of one, that users have goes here.
func (g *generator) user(t *rapid.T) (parts []message.Part) {
	for range rapid.IntRange(1, 3).Draw(t, "parts") {
		switch rapid.IntRange(0, 4).Draw(t, "part") {
		case 0:
			parts = append(parts, g.file(t))
		case 1:
			parts = append(parts, message.Text{Text: rapid.SampledFrom([]string{"", " ", "\n\t"}).Draw(t, "blank")})
		default:
			parts = append(parts, message.Text{Text: g.text(t)})
		}
	}
	return append(parts, message.Text{Text: g.text(t)})
}

// assistant makes the parts of a model's message, of any provider. A new kind of part, or field of one, that models have goes here.
func (g *generator) assistant(t *rapid.T) (parts []message.Part) {
	from := message.Origin{Provider: rapid.SampledFrom([]string{"", "anthropic", "openai", "openai-responses", "gemini", "pawl", "somebody"}).Draw(t, "provider")}
	for range rapid.IntRange(1, 4).Draw(t, "parts") {
		switch rapid.IntRange(0, 9).Draw(t, "part") {
		case 0, 1:
			r := message.Reasoning{Text: g.name(), Origin: from}
			if rapid.Bool().Draw(t, "signed") {
				r.Signature = g.name()
			}
			parts = append(parts, r)
		case 2:
			member := "type"
			if from.Provider == "openai" { // there, what is opaque is members of the message
				member = "refusal"
			}
			parts = append(parts, message.Opaque{Provider: from.Provider, JSON: `{"` + member + `":"` + g.name() + `"}`})
		case 3, 4, 5:
			parts = append(parts, message.ToolCall{ID: g.id(t), Name: g.tool(t), Input: g.input(t), Origin: from})
		case 6:
			if rapid.IntRange(0, 9).Draw(t, "a file of the model's") == 0 {
				parts = append(parts, g.file(t))
			}
		case 7:
			parts = append(parts, message.ProviderCall{
				Opaque: message.Opaque{Provider: from.Provider, JSON: `{"type":"` + g.name() + `"}`}, Call: g.name(), Name: model.WebSearch, Input: g.name(), Output: g.name(),
				Sources: []message.Citation{{URL: "https://example.com/" + g.name()}},
			})
		case 8:
			parts = append(parts, message.Text{Text: g.text(t), Citations: []message.Citation{{URL: "https://example.com/" + g.name(), Title: g.name(), Quote: g.name(), End: 3}}, Origin: from})
		default:
			parts = append(parts, message.Text{Text: g.text(t), Origin: from})
		}
	}
	return parts
}

func (g *generator) results(t *rapid.T, calls []message.ToolCall) (rs []message.ToolResult) {
	for _, c := range calls {
		r := message.ToolResult{Call: c.ID, Name: c.Name, Content: g.text(t), IsError: rapid.Bool().Draw(t, "failed")}
		if rapid.IntRange(0, 4).Draw(t, "empty") == 0 {
			r.Content = ""
		}
		if rapid.IntRange(0, 9).Draw(t, "result files") == 0 {
			r.Files = []message.File{g.file(t)}
		}
		switch rapid.IntRange(0, 19).Draw(t, "answered") {
		case 0: // Repair answers it
		case 1:
			rs = append(rs, r, r)
		default:
			rs = append(rs, r)
		}
	}
	return rs
}

// id is unique, as the loop makes it, in any of the shapes that providers have.
func (g *generator) id(t *rapid.T) string {
	return rapid.SampledFrom([]string{"call_", "toolu_01", "functions.read:", "gemini_call_", "é\"", strings.Repeat("long", 9), strings.Repeat("longer", 30)}).Draw(t, "id") + g.name()
}

func (g *generator) tool(t *rapid.T) string {
	return rapid.SampledFrom([]string{"read", "bash", "multi_tool_use.parallel", "", "a b", "0", "é", strings.Repeat("n", 64), strings.Repeat("n", 65)}).Draw(t, "tool")
}

func (g *generator) input(t *rapid.T) string {
	return rapid.SampledFrom([]string{`{}`, `{"a":"b","n":[1.50,1e3,null]}`, "", `{"a":`, `[1]`, `"x"`, `null`, `{"a":"` + strings.Repeat("long ", 100) + `"}`}).Draw(t, "input")
}

// file is any file that a caller may give: inline, by URL, by a provider's ID, or by both.
func (g *generator) file(t *rapid.T) message.File {
	f := message.File{MIME: rapid.SampledFrom([]string{"image/png", "image/png", "application/pdf", "text/plain", "audio/wav"}).Draw(t, "MIME")}
	if rapid.Bool().Draw(t, "named") {
		f.Name = "file.bin"
	}
	if rapid.IntRange(0, 2).Draw(t, "by URL") == 0 {
		f.URL = "https://example.com/" + g.name() + "?a=1&b=2"
	} else {
		f.Data = g.name() + "\x00\xff"
		if strings.HasPrefix(f.MIME, "text/") {
			f.Data = g.name()
		}
	}
	if rapid.IntRange(0, 4).Draw(t, "kept") == 0 {
		f.Provider, f.ID = rapid.SampledFrom([]string{"anthropic", "openai", "gemini", "somebody"}).Draw(t, "keeper"), "file-"+g.name()
		if rapid.Bool().Draw(t, "by ID alone") {
			f.URL, f.Data = "", ""
		}
	}
	return f
}
