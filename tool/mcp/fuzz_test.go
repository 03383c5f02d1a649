package mcp

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"log/slog"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// A form is asked field by field, what is required first, and what a person answers can be sent, and is a choice where there are choices.
func FuzzForm(f *testing.F) {
	for _, s := range [][2]string{
		{`{"type":"object","properties":{"a":{"type":"number","title":"A"},"b":{"type":"integer"},"c":{"type":"boolean","default":true}},"required":["b"]}`, "NaN"},
		{`{"properties":{"a":{"type":"string","enum":["x","y"],"enumNames":["X"]},"b":{"type":"array","items":{"anyOf":[{"const":"p","title":"q"}]}}}}`, "x, 1."},
		{`{"properties":{"a":{"oneOf":[{"const":"1"},{"const":"2"}]},"b":{"default":{"c":[1e9]}}}}`, "2"},
		{`{"properties":{"a":null,"":{}}}`, " "},
		{`{"properties":[]}`, ""},
		{`null`, "yes."},
		{`{"properties":{"n":{"type":"number"}}}`, "1_000"},
		{`{"properties":{"n":{"type":"number"}}}`, "-infinity"},
	} {
		f.Add(s[0], s[1])
	}
	f.Fuzz(func(t *testing.T, schema, answer string) {
		var form any
		if json.Unmarshal([]byte(schema), &form) != nil {
			return
		}
		fields, err := fieldsOf(form)
		if err != nil {
			return
		}
		optional := false
		for _, f := range fields {
			if optional = optional || !f.required; optional && f.required {
				t.Fatalf("%q: %q comes behind what is not required", schema, f.name)
			}
			if !strings.HasPrefix(f.String(), f.name) {
				t.Fatalf("%q: %q is asked as %q", schema, f.name, f.String())
			}
			v, given, err := f.read(answer)
			if err != nil {
				if given || strings.TrimSpace(err.Error()) == "" {
					t.Fatalf("%q to %q: %v, %v", answer, schema, v, err)
				}
				continue
			}
			if _, err := json.Marshal(v); err != nil {
				t.Fatalf("%q to %q is %v, which can't be sent: %v", answer, schema, v, err)
			}
			if text, is := v.(string); is && given && len(f.choices) > 0 && f.kind != "boolean" && strings.TrimSpace(answer) != "" {
				found := false
				for _, c := range f.choices {
					found = found || c.value == text
				}
				if !found && f.kind != "number" && f.kind != "integer" {
					t.Fatalf("%q to %q: %q is no choice", answer, schema, text)
				}
			}
		}
	})
}

// What a server writes is the same messages in whatever pieces it comes, and each is one that can be answered or matched.
func FuzzLines(f *testing.F) {
	for _, s := range []string{
		`{"jsonrpc":"2.0","id":1,"result":{}}` + "\n" + `{"jsonrpc":"2.0","method":"x"}`, "hello\n\n[]\n", `[{"jsonrpc":"2.0","id":"a","error":{"code":1,"message":"m"}},5]`, "{\"jsonrpc\":\"2.0\",\"id\":1}\r\n", "[{", `{"jsonrpc":"2.0","id":1,"method":"m","result":1}`,
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		read := func(r io.Reader) (out []string) {
			s := &stdio{warn: func(string) {}}
			for in := bufio.NewReaderSize(r, 16); ; {
				line, err := readLine(in)
				for _, m := range s.messages(line) {
					said, err := jsonrpc.EncodeMessage(m)
					if err != nil {
						t.Fatalf("%q: %v can't be written: %v", b, m, err)
					}
					out = append(out, string(said))
				}
				if err != nil {
					return out
				}
			}
		}
		atOnce, inPieces := read(bytes.NewReader(b)), read(iotest.OneByteReader(bytes.NewReader(b)))
		if strings.Join(atOnce, "\n") != strings.Join(inPieces, "\n") {
			t.Fatalf("%q: %q, in pieces %q", b, atOnce, inPieces)
		}
		for _, m := range atOnce {
			if again := read(strings.NewReader(m)); len(again) != 1 || again[0] != m {
				t.Fatalf("%q: %q is read again as %q", b, m, again)
			}
		}
	})
}

// A tool whose schema is any JSON is offered with one of an object that compiles, or with none and a warning.
func FuzzSchema(f *testing.F) {
	for _, s := range []string{`{"type":"object","properties":{"a":{"type":"string"}}}`, `{}`, `null`, `true`, `{"type":["object"]}`, `{"type":"array"}`, `{"properties":{}}`, `"x"`, `{"Type":"object"}`, `{"type":null}`, `{"$ref":"https://elsewhere"}`} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		var v any
		if json.Unmarshal(b, &v) != nil {
			return
		}
		s := &server{client: &Client{opts: Options{Logger: slog.New(slog.DiscardHandler)}}}
		got := s.schema(&sdk.Tool{Name: "t", InputSchema: v})
		warned := len(s.client.Warnings())
		if got == nil {
			if o, empty := v.(map[string]any); v != nil && warned != 1 && (!empty || len(o) > 0) { // that says: any object
				t.Fatalf("%q: nothing, and %d warnings", b, warned)
			}
			return
		}
		var is struct{ Type string }
		if err := json.Unmarshal(got, &is); err != nil || is.Type != "object" && string(got) != "{}" {
			t.Fatalf("%q: %s, %v", b, got, err)
		}
	})
}

// What an authorization server says of itself stays what it says, but for the one thing that is put right: the issuer of an older server, of the same origin.
func FuzzMetadata(f *testing.F) {
	for _, s := range []string{`{"issuer":"https://h/path","token_endpoint":"https://h/t","x":[1]}`, `{"issuer":"https://h"}`, `{"issuer":"https://other/path"}`, `{"issuer":5}`, `[`, `{"issuer":"https://h/a","issuer":"https://o"}`, `{"issuer":"HTTPS://H/%zz"}`, `{"issuer":"//h/x"}`} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		d := &discovery{origin: &url.URL{Scheme: "https", Host: "h"}}
		d.notes(b)
		got := d.old(bytes.Clone(b))
		if bytes.Equal(got, b) {
			return
		}
		var before, after map[string]any
		if json.Unmarshal(b, &before) != nil || json.Unmarshal(got, &after) != nil || after["issuer"] != "https://h" || len(before) != len(after) {
			t.Fatalf("%q became %q", b, got)
		}
		u, err := url.Parse(d.issuer)
		if err != nil || u.Host != "h" && u.Host != "H" || d.iss(d.issuer) != "https://h" {
			t.Fatalf("%q became %q: of %q", b, got, d.issuer)
		}
	})
}

// A file of tokens is those of this server, or an error that does not quote it.
func FuzzTokens(f *testing.F) {
	const conf = "https://h/mcp"
	for _, s := range []string{`{"url":"https://h/mcp","token":{"access_token":"SECRETSECRET","expiry":"2026-01-02T03:04:05Z"}}`, `{"url":"https://other","token":{"access_token":"SECRETSECRET"}}`, `{"url":"https://h/mcp"}`, `SECRETSECRET`, ``, `{"url":"https://h/mcp","token":{"access_token":5,"refresh_token":"SECRETSECRET"}}`} {
		f.Add([]byte(s))
	}
	dir := f.TempDir()
	l := &login{server: &server{client: &Client{opts: Options{Tokens: dir}}, conf: Server{Name: "s", URL: conf}}}
	path, err := l.file()
	if err != nil {
		f.Fatal(err)
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		if err := os.WriteFile(path, b, 0o600); err != nil {
			t.Fatal(err)
		}
		k, err := l.load()
		if err != nil {
			if errors.Is(err, fs.ErrNotExist) || strings.Contains(err.Error(), "SECRETSECRET") || !strings.Contains(err.Error(), path) {
				t.Fatalf("%q: %v", b, err)
			}
			return
		}
		if k.URL != conf || k.Token == nil {
			t.Fatalf("%q: %+v", b, k)
		}
	})
}
