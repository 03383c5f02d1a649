package providertest

import (
	"bytes"
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

// fileIDs checks that what the provider keeps is sent by its ID, and what another one keeps never is.
func (p Provider) fileIDs(t *testing.T) {
	kept := message.File{MIME: "image/png", Provider: p.keeper(), ID: "file_test"}
	if p.lacks("file_id") {
		p.refused(t, file(kept))
	} else {
		images := []message.File{
			kept,
			{MIME: "image/png", Provider: p.keeper(), ID: "file_test", Data: png},
			{MIME: "image/png", Provider: p.keeper(), ID: "file_test", URL: "https://example.com/cat.png"},
			{MIME: "image/png", Provider: p.keeper(), ID: "file_test", Hash: "abc"},
		}
		for _, f := range images {
			if p.lacks("file_id_image") {
				if f.Data == "" && f.URL == "" {
					p.refused(t, file(f))
				}
				continue
			}
			got, _ := p.ask(t, file(f))
			wantFile(t, "image/png", "file_test", got)
		}
		got, _ := p.ask(t, file(message.File{MIME: "application/pdf", Name: "a.pdf", Provider: p.keeper(), ID: "file_test"}))
		wantFile(t, "application/pdf", "file_test", got)
	}
	got, _ := p.ask(t, file(message.File{MIME: "image/png", Provider: "somebody-else", ID: "file_test", Data: png}))
	wantFile(t, "image/png", png, got)
	p.refused(t, file(message.File{MIME: "image/png", Provider: "somebody-else", ID: "file_test"}))
}

// keeper is who keeps the files that are sent by ID: several wires of one provider share them.
func (p Provider) keeper() string {
	can, _ := model.CapabilitiesOf(p.New())
	return cmp.Or(can.Files, p.Name)
}

// uploads checks how files are given to the provider, and taken from it.
func (p Provider) uploads(t *testing.T) {
	if p.lacks("upload") {
		if _, ok := model.As[model.Uploader](p.New()); ok {
			t.Error("the model is a model.Uploader")
		}
		p.skip(t, "upload")
	}
	whatever := message.File{MIME: "application/pdf", Name: "report.pdf", Data: pdf}
	answer := p.fixture(t, "upload.json")
	var method []string
	s := serve(t, func(w http.ResponseWriter, r *http.Request, _ call) {
		method = append(method, r.Method)
		whole(w, http.StatusOK, answer)
	})
	u, ok := model.As[model.Uploader](p.model(s))
	if !ok {
		t.Fatal("the model is no model.Uploader")
	}
	f, err := u.Upload(t.Context(), whatever)
	if err != nil {
		t.Fatal(err)
	}
	want := whatever
	want.Provider, want.ID = p.keeper(), "file_test"
	equal(t, "file", want, f)
	up := s.seen()[0]
	if !bytes.Contains(up.body, []byte(pdf)) || !bytes.Contains(up.body, []byte("report.pdf")) || !carriesKey(up) {
		t.Errorf("%s %v: %s", up.path, up.header, up.body)
	}
	if err := u.Discard(t.Context(), f); err != nil {
		t.Fatal(err)
	}
	if down := s.seen()[1]; method[1] != http.MethodDelete || !strings.Contains(down.path, "file_test") || !carriesKey(down) || len(down.body) > 0 {
		t.Errorf("%s %s %v: %s", method[1], down.path, down.header, down.body)
	}

	_, err = u.Upload(t.Context(), message.File{MIME: "image/png", URL: "https://example.com/cat.png"})
	for what, err := range map[string]error{
		"a file without data":        err,
		"a file that nobody keeps":   u.Discard(t.Context(), whatever),
		"a file of somebody else's":  u.Discard(t.Context(), message.File{MIME: "image/png", Provider: "somebody-else", ID: "file_test"}),
		"a file without an ID there": u.Discard(t.Context(), message.File{MIME: "image/png", Provider: p.keeper()}),
	} {
		if !errors.Is(err, errdefs.Validation) {
			t.Errorf("%s: got %v, want an error of class validation", what, err)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := u.Upload(ctx, whatever); !errors.Is(err, context.Canceled) {
		t.Errorf("after its context was over: %v", err)
	}
	if n := len(s.seen()); n != 2 {
		t.Errorf("%d calls, want 2", n)
	}
	p.uploadFails(t, whatever)
}

func (p Provider) uploadFails(t *testing.T, f message.File) {
	for _, c := range failures {
		if c.retryAfter != "" || p.lacks(c.name) || c.name == "error_overflow" {
			continue
		}
		body := p.fixture(t, c.name+".json")
		s := serve(t, func(w http.ResponseWriter, _ *http.Request, _ call) { whole(w, c.status, body) })
		u, _ := model.As[model.Uploader](p.model(s))
		got, err := u.Upload(t.Context(), f)
		c.check(t, p, err)
		equal(t, "the file that was not uploaded", f, got)
		c.check(t, p, u.Discard(t.Context(), message.File{MIME: f.MIME, Provider: p.keeper(), ID: "file_test"}))
		if n := len(s.seen()); n != 2 {
			t.Errorf("%s: %d calls, want one for each", c.name, n)
		}
	}
}

// carriesKey reports whether a call has the key, wherever the provider wants it.
func carriesKey(c call) bool {
	for _, values := range c.header {
		if strings.Contains(strings.Join(values, " "), Key) {
			return true
		}
	}
	return strings.Contains(c.path, Key)
}
