package openai

import (
	"errors"
	"io"
	"mime"
	"mime/multipart"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pawl-dev/pawl/errdefs"
	"github.com/pawl-dev/pawl/message"
	"github.com/pawl-dev/pawl/model"
)

func TestAFileThatIsKeptIsSentByItsID(t *testing.T) {
	image := message.File{MIME: "image/png", Provider: "openai", ID: "file-1"}
	pdf := message.File{MIME: "application/pdf", Name: "a.pdf", Provider: "openai", ID: "file-1"}
	text := message.File{MIME: "text/plain", Provider: "openai", ID: "file-1"}
	with := func(f message.File) message.File { f.Data = "x"; return f }
	for name, c := range map[string]struct {
		file       message.File
		chat, resp string // "": refused
	}{
		"an image":            {image, "", `{"type":"input_image","detail":"auto","file_id":"file-1"}`},
		"an image with data":  {with(image), `{"type":"image_url","image_url":{"url":"data:image/png;base64,eA=="}}`, `{"type":"input_image","detail":"auto","file_id":"file-1"}`},
		"a PDF":               {pdf, `{"type":"file","file":{"file_id":"file-1"}}`, `{"type":"input_file","file_id":"file-1"}`},
		"a PDF with data":     {with(pdf), `{"type":"file","file":{"file_id":"file-1"}}`, `{"type":"input_file","file_id":"file-1"}`},
		"a text":              {text, "", `{"type":"input_file","file_id":"file-1"}`},
		"a text with data":    {with(text), `{"type":"text","text":"x"}`, `{"type":"input_file","file_id":"file-1"}`},
		"somebody else's":     {message.File{MIME: "application/pdf", Provider: "azure", ID: "file-1"}, "", ""},
		"Responses' as such":  {message.File{MIME: "application/pdf", Provider: responses, ID: "file-1"}, "", ""},
		"with data elsewhere": {with(message.File{MIME: "image/png", Provider: "azure", ID: "file-1"}), `{"type":"image_url","image_url":{"url":"data:image/png;base64,eA=="}}`, `{"type":"input_image","detail":"auto","image_url":"data:image/png;base64,eA=="}`},
	} {
		req := model.Request{Messages: message.NewHistory(message.New(message.RoleUser, c.file), message.Results(message.ToolResult{Call: "c", Content: "see", Files: []message.File{c.file}}))}
		for _, p := range []struct {
			name, want, reply string
			m                 func(...model.Option) model.Model
		}{
			{"chat", c.chat, chatOK, func(o ...model.Option) model.Model { return New("m", o...) }},
			{"responses", c.resp, responsesOK, func(o ...model.Option) model.Model { return NewResponses("m", o...) }},
		} {
			s := &server{status: 200, body: p.reply}
			_, err := p.m(s.option(), model.WithKey("k")).Complete(t.Context(), req)
			switch {
			case p.want == "" && (!errors.Is(err, errdefs.Validation) || len(s.asked) > 0):
				t.Errorf("%s, %s: %v", name, p.name, err)
			case p.want != "" && (err != nil || strings.Count(string(s.bodies[0]), p.want) != 2):
				t.Errorf("%s, %s: %v, want twice %s in %s", name, p.name, err, p.want, s.bodies)
			}
		}
	}
}

func TestAServerKnowsItsOwnFilesAlone(t *testing.T) {
	azure := model.WithBaseURL("https://x.openai.azure.com/openai/v1")
	groq := Vendor{Name: "groq", BaseURL: "https://api.groq.com/openai/v1"}
	for want, ms := range map[string][]model.Describer{
		"openai": {New("m"), NewResponses("m"), New("m", model.WithBaseURL("https://eu.api.openai.com/v1"))},
		"azure":  {New("m", azure), NewResponses("m", azure)},
		"groq":   {groq.New("m"), groq.NewResponses("m")},
	} {
		for _, m := range ms {
			if got := m.Capabilities().Files; got != want {
				t.Errorf("%T: %q, want %q", m, got, want)
			}
		}
	}
	kept := message.New(message.RoleUser, message.File{MIME: "application/pdf", Data: "x", Provider: "openai", ID: "file-1"})
	one, other := New("m"), groq.New("m")
	if got := string(kept.Encoded(one.format, one.encode)) + string(kept.Encoded(other.format, other.encode)); strings.Count(got, "file_id") != 1 || strings.Count(got, "file_data") != 1 {
		t.Errorf("one server got what was encoded for another: %s", got)
	}
}

func TestAnUploadIsAFormWithItsPurpose(t *testing.T) {
	for name, c := range map[string]struct {
		file          message.File
		purpose, name string
	}{
		"a PDF":               {message.File{MIME: "application/pdf", Name: "a \"b\".pdf", Data: "%PDF\r\n--x"}, "user_data", `a "b".pdf`},
		"an image, no name":   {message.File{MIME: "image/png", Data: "x"}, "vision", "file.png"},
		"a text, no name":     {message.File{MIME: "text/plain; charset=utf-8", Data: "x"}, "user_data", "file.txt"},
		"a table, and an URL": {message.File{MIME: "text/csv", Data: "a,b", URL: "https://x"}, "user_data", "file.csv"},
	} {
		s := &server{status: 200, body: `{"id":"file-1","object":"file"}`}
		got, err := NewResponses("m", s.option(), model.WithKey("k")).Upload(t.Context(), c.file)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		want := c.file
		want.Provider, want.ID = "openai", "file-1"
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
		r := s.asked[0]
		_, params, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
		if err != nil || r.Method != http.MethodPost || r.URL.Path != "/v1/files" || r.Header.Get("Authorization") != "Bearer k" || r.ContentLength != int64(len(s.bodies[0])) {
			t.Errorf("%s: %s %s %v, %d bytes of %d: %v", name, r.Method, r.URL, r.Header, len(s.bodies[0]), r.ContentLength, err)
		}
		form := multipart.NewReader(strings.NewReader(string(s.bodies[0])), params["boundary"])
		var said []string
		for {
			part, err := form.NextPart()
			if err == io.EOF {
				break
			}
			if err != nil {
				t.Fatalf("%s: %v: %q", name, err, s.bodies[0])
			}
			body, _ := io.ReadAll(part)
			said = append(said, part.FormName(), part.FileName(), part.Header.Get("Content-Type"), string(body))
		}
		if diff := cmp.Diff([]string{"purpose", "", "", c.purpose, "file", c.name, c.file.MIME, c.file.Data}, said); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

func TestAnUploadThatCannotBeIsAnError(t *testing.T) {
	s := &server{status: 200, body: `{"object":"file"}`}
	m := New("m", s.option(), model.WithKey("k"))
	if _, err := m.Upload(t.Context(), message.File{MIME: "image/png", Data: "x"}); !errors.Is(err, errdefs.NotAvailable) {
		t.Errorf("a reply without an ID: %v", err)
	}
	if err := m.Discard(t.Context(), message.File{Provider: "openai", ID: "a/../b?c"}); err != nil || s.asked[1].URL.EscapedPath() != "/v1/files/a%2F..%2Fb%3Fc" {
		t.Errorf("%v: %s", err, s.asked[1].URL)
	}
}
