package providertest

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"

	"github.com/pawl-dev/pawl/errdefs"
	"github.com/pawl-dev/pawl/message"
	"github.com/pawl-dev/pawl/model"
)

// files checks what is kept at the provider: uploaded, sent by its ID, discarded.
func (p Provider) files(t *testing.T) {
	can, _ := model.CapabilitiesOf(p.New())
	keeper := cmp.Or(can.Files, can.Provider)
	here := message.File{MIME: "application/pdf", Name: "report.pdf", Provider: keeper, ID: "file_1"}
	t.Run("another provider's", func(t *testing.T) {
		away := here
		away.Provider = "somebody-else"
		p.refused(t, file(away))
		away.Data = pdf
		got, _ := p.ask(t, file(away))
		wantFile(t, "application/pdf", pdf, got)
	})
	if _, ok := model.As[model.Uploader](p.New()); ok == p.lacks("upload") {
		t.Fatalf("a model that uploads: %v, and lacks it: %v", ok, !ok)
	}
	if p.lacks("upload") {
		p.refused(t, file(here))
		return
	}
	t.Run("by ID", func(t *testing.T) {
		for _, data := range []string{"", pdf} {
			f := here
			f.Data = data
			got, _ := p.ask(t, file(f))
			part := got.Messages[0].Parts[1]
			equal(t, "file", SeenPart{Kind: "file", ID: "file_1"}, SeenPart{Kind: part.Kind, ID: part.ID, Data: part.Data})
		}
	})
	t.Run("upload", p.upload)
	t.Run("discard", func(t *testing.T) {
		u, s := p.uploader(t, http.StatusOK, "discard.json")
		if err := u.Discard(t.Context(), here); err != nil {
			t.Fatal(err)
		}
		c := s.seen()[0]
		if c.method != http.MethodDelete || !strings.HasSuffix(c.path, "file_1") || !strings.Contains(values(c.header), Key) {
			t.Errorf("%s %s %v", c.method, c.path, c.header)
		}
		if err := u.Discard(t.Context(), message.File{MIME: "application/pdf", Provider: "somebody-else", ID: "file_1"}); !errors.Is(err, errdefs.Validation) || len(s.seen()) != 1 {
			t.Errorf("another provider's file: %v after %d calls", err, len(s.seen())-1)
		}
		u, _ = p.uploader(t, http.StatusNotFound, "error_404.json")
		if err := u.Discard(t.Context(), here); !errors.Is(err, errdefs.NotFound) {
			t.Errorf("a file that isn't there: %v", err)
		}
	})
}

func (p Provider) upload(t *testing.T) {
	whole := message.File{MIME: "application/pdf", Name: "report.pdf", Data: pdf}
	u, s := p.uploader(t, http.StatusOK, "upload.json")
	got, err := u.Upload(t.Context(), whole)
	if err != nil {
		t.Fatal(err)
	}
	can, _ := model.CapabilitiesOf(p.New())
	equal(t, "file", message.File{MIME: "application/pdf", Name: "report.pdf", Data: pdf, Provider: cmp.Or(can.Files, can.Provider), ID: "file_1"}, got)
	var sent string
	for _, c := range s.seen() {
		sent += string(c.body)
		if !strings.Contains(values(c.header), Key) {
			t.Errorf("a call without the key: %v", c.header)
		}
	}
	if !strings.Contains(sent, pdf) || !strings.Contains(sent, "report.pdf") || !strings.Contains(sent+values(s.seen()[0].header), "application/pdf") {
		t.Errorf("the bytes, the name or the type aren't there: %q", sent)
	}
	calls := len(s.seen())
	for name, f := range map[string]message.File{
		"no data": {MIME: "application/pdf", Name: "report.pdf"}, "no type": {Data: pdf}, "a type that is none": {MIME: "a/b\r\nX-Other: 1", Data: pdf},
	} {
		if _, err := u.Upload(t.Context(), f); !errors.Is(err, errdefs.Validation) || len(s.seen()) != calls {
			t.Errorf("%s: %v after %d calls", name, err, len(s.seen())-calls)
		}
	}
	canceled, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := u.Upload(canceled, whole); !errors.Is(err, context.Canceled) {
		t.Errorf("canceled: %v", err)
	}
	u, s = p.uploader(t, http.StatusTooManyRequests, "error_429.json")
	if _, err := u.Upload(t.Context(), whole); !errors.Is(err, errdefs.RateLimit) || len(s.seen()) != 1 {
		t.Errorf("refused: %v after %d calls", err, len(s.seen()))
	}
}

// uploader is a model whose provider answers every call with a fixture.
func (p Provider) uploader(t *testing.T, status int, name string) (model.Uploader, *server) {
	t.Helper()
	body := p.fixture(t, name)
	s := serve(t, func(w http.ResponseWriter, _ *http.Request, _ call) { whole(w, status, body) })
	u, ok := model.As[model.Uploader](p.model(s))
	if !ok {
		t.Fatal("the model doesn't upload")
	}
	return u, s
}

// values joins what headers say.
func values(h http.Header) (all string) {
	for _, v := range h {
		all += strings.Join(v, " ") + "\n"
	}
	return all
}
