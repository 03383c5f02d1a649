package gemini

import (
	"context"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/pawl-dev/pawl/errdefs"
	"github.com/pawl-dev/pawl/internal/httpapi"
	"github.com/pawl-dev/pawl/internal/wire"
	"github.com/pawl-dev/pawl/message"
	"github.com/pawl-dev/pawl/model"
)

// maxUpload is the most bytes of a file, by Google's page on files: "up to 2 GB of files per file".
const maxUpload = 2 << 30

var (
	_ model.Uploader = (*Model)(nil)
	_ model.Counter  = (*Model)(nil)
)

// kept reports whether the API keeps a file.
func kept(f message.File) bool { return f.Provider == provider && f.ID != "" }

// keeps reports whether the server keeps files: a cloud that has the models in its owner's place has none of those.
func (m *Model) keeps() bool { return m.api.Provider == provider }

// addressOf is what a file that was uploaded is sent as. The API gives files this address wherever it was asked.
func addressOf(id string) string { return ownBase + "/files/" + id }

// Upload gives a file to the API, which keeps it for 48 hours, for all keys of the same project: up to 2 GB a file and 20 GB in all. It waits until the API has looked at the file, which takes seconds for sounds and films. See [model.Uploader].
func (m *Model) Upload(ctx context.Context, f message.File) (message.File, error) {
	if err := httpapi.Uploadable(m.api.Provider, f, maxUpload); err != nil {
		return f, err
	}
	up, err := m.uploads()
	if err != nil {
		return f, err
	}
	about := []byte(`{"file":{}}`)
	if f.Name != "" {
		about = append(wire.AppendString([]byte(`{"file":{"displayName":`), f.Name), "}}"...)
	}
	form := httpapi.NewRelated(about, f.MIME, f.Data)
	header := form.Header()
	header.Set("X-Goog-Upload-Protocol", "multipart")
	answer, err := up.Call(ctx, http.MethodPost, "/files?uploadType=multipart", form.Content(), header)
	if err != nil {
		return f, err
	}
	file := wire.Get(answer, "file")
	id, ok := strings.CutPrefix(wire.String(wire.Get(file, "name")), "files/")
	if !ok || id == "" {
		return f, m.api.Malformed("the reply has no name of the file", answer)
	}
	if err := m.ready(ctx, id, file); err != nil {
		return f, err
	}
	f.Provider, f.ID = provider, id
	return f, nil
}

// uploads is the API under the address that takes files.
func (m *Model) uploads() (*httpapi.API, error) {
	at, err := url.Parse(m.api.Base)
	if err != nil || !m.keeps() {
		return nil, errdefs.Validation.Errorf("%s: upload: it keeps no files: send them inline, or by a URL", m.api.Provider)
	}
	at.Path = "/upload" + at.Path
	return m.api.At(at.String()), nil
}

// ready waits until a file can be used.
func (m *Model) ready(ctx context.Context, id string, file []byte) error {
	for wait := 250 * time.Millisecond; ; wait = min(2*wait, 5*time.Second) {
		switch state := wire.String(wire.Get(file, "state")); state {
		case "PROCESSING":
		case "FAILED":
			return &model.Error{Provider: provider, Kind: errdefs.Validation, Code: state, Message: "the file can't be used: " + wire.String(wire.Get(file, "error", "message"))}
		default:
			return nil
		}
		t := time.NewTimer(wait)
		select {
		case <-ctx.Done():
			t.Stop()
			return ctx.Err()
		case <-t.C:
		}
		var err error
		if file, err = m.api.Call(ctx, http.MethodGet, "/files/"+url.PathEscape(id), httpapi.Content{}, nil); err != nil {
			return err
		}
	}
}

// Discard deletes a file that was uploaded. See [model.Uploader].
func (m *Model) Discard(ctx context.Context, f message.File) error {
	if !m.keeps() {
		return errdefs.Validation.Errorf("%s: discard: it keeps no files", m.api.Provider)
	}
	if !kept(f) {
		return errdefs.Validation.Errorf("gemini: discard: file %q is not kept by %s", f.Name, provider)
	}
	_, err := m.api.Call(ctx, http.MethodDelete, "/files/"+url.PathEscape(f.ID), httpapi.Content{}, nil)
	return err
}

// CountTokens asks how many tokens a request takes. See [model.Counter].
func (m *Model) CountTokens(ctx context.Context, req model.Request) (int, error) {
	body, err := m.prepare(req)
	if err != nil {
		return 0, err
	}
	if m.api.Provider == provider { // Vertex takes the request as it is
		head := wire.AppendString([]byte(`{"generateContentRequest":{"model":`), strings.TrimSuffix(m.path[1:], ":"))
		body = append(append(httpapi.Body{append(head, ',')}, body[0][1:]), append(body[1:], []byte("}"))...)
	}
	answer, err := m.api.Call(ctx, http.MethodPost, m.path+"countTokens", body.Content(), nil)
	if err != nil {
		return 0, err
	}
	n := wire.Get(answer, "totalTokens")
	if wire.IsNull(n) {
		return 0, m.api.Malformed("the reply has no count", answer)
	}
	return int(wire.Int(n)), nil
}
