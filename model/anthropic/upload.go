package anthropic

import (
	"context"
	"net/http"
	"net/url"
	"strings"
	"unicode/utf8"

	"github.com/pawl-dev/pawl/errdefs"
	"github.com/pawl-dev/pawl/internal/httpapi"
	"github.com/pawl-dev/pawl/internal/wire"
	"github.com/pawl-dev/pawl/message"
)

const (
	filesPath = "/v1/files"
	maxUpload = 500_000_000 // bytes, by the API's page on files: "500 MB per file"
)

// Upload gives a file to the API, which keeps it until it is discarded, for everybody whose keys belong to the same workspace. It takes images, PDF and text, up to 500 MB. See
// [model.Uploader].
func (m *Model) Upload(ctx context.Context, f message.File) (message.File, error) {
	if !m.keeps() {
		return f, m.keepsNone("upload")
	}
	if err := m.uploadable(f, maxUpload); err != nil {
		return f, err
	}
	mime := f.MIME
	if isText(mime) { // as it is sent inline, too
		mime = "text/plain"
	}
	form := httpapi.NewForm(fileName(f.Name), mime, f.Data)
	answer, err := m.api.Call(ctx, http.MethodPost, filesPath, form.Content(), form.Header())
	if err != nil {
		return f, err
	}
	id := wire.String(wire.Get(answer, "id"))
	if id == "" {
		return f, m.api.Malformed("the reply has no id of the file", answer)
	}
	f.Provider, f.ID = provider, id
	return f, nil
}

// uploadable says why the API would not keep, or never use, a file.
func (m *Model) uploadable(f message.File, most int) error {
	err := httpapi.Uploadable(m.can.Name, f, most)
	if err == nil && !typed(f.MIME) {
		err = errdefs.Validation.Errorf("%s: upload: file %q of type %q: %s", m.can.Name, f.Name, f.MIME, untyped)
	}
	return err
}

// Discard deletes a file that was uploaded. See [model.Uploader].
func (m *Model) Discard(ctx context.Context, f message.File) error {
	if !m.keeps() {
		return m.keepsNone("discard")
	}
	if !kept(f) {
		return errdefs.Validation.Errorf("%s: discard: file %q is not kept by %s", m.can.Name, f.Name, provider)
	}
	resp, err := m.api.Do(ctx, http.MethodDelete, filesPath+"/"+url.PathEscape(f.ID), httpapi.Content{}, httpapi.Accept("application/json")) //nolint:bodyclose // httpapi.Finish closes it
	if err != nil {
		return err
	}
	httpapi.Finish(resp)
	return nil
}

// fileName makes a name that the API takes: 1 to 255 characters, without those that have a meaning in paths.
func fileName(name string) string {
	name = strings.Map(func(r rune) rune {
		if r < ' ' || strings.ContainsRune(`<>:"|?*\/`, r) {
			return '_'
		}
		return r
	}, name)
	for len(name) > 255 {
		_, size := utf8.DecodeLastRuneInString(name)
		name = name[:len(name)-size]
	}
	if name == "" {
		return "file"
	}
	return name
}
