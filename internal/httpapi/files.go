package httpapi

import (
	"bytes"
	"context"
	"io"
	"mime"
	"mime/multipart"
	"net/http"
	"net/textproto"
	"slices"
	"strings"

	"github.com/pawl-dev/pawl/errdefs"
)

// Upload is a multipart form with one file, whose bytes are sent from where they lie.
type Upload struct {
	Fields     [][2]string // name and value, before the file
	Field      string      // the name of the file's own field
	Name, MIME string
	Data       string
}

// PostFile sends a form, and gives the whole reply. header has names and values in turn, in addition to what every call has. It fails as [API.Post] does,
// and with errdefs.Validation for a type that is none: it stands in a header.
func (a *API) PostFile(ctx context.Context, path string, u Upload, header ...string) ([]byte, error) {
	if _, _, err := mime.ParseMediaType(u.MIME); err != nil {
		return nil, errdefs.Validation.Errorf("%s: upload %s: its MIME type %q is wrong: want one such as image/png", a.Provider, u.Name, u.MIME)
	}
	var around bytes.Buffer // never fails to be written to
	form := multipart.NewWriter(&around)
	for _, f := range u.Fields {
		_ = form.WriteField(f[0], f[1])
	}
	_, _ = form.CreatePart(textproto.MIMEHeader{
		"Content-Disposition": {multipart.FileContentDisposition(u.Field, u.Name)}, "Content-Type": {u.MIME},
	})
	n := around.Len()
	_ = form.Close()
	head, tail := around.String()[:n], around.String()[n:]
	open := func() io.ReadCloser {
		return io.NopCloser(io.MultiReader(strings.NewReader(head), strings.NewReader(u.Data), strings.NewReader(tail)))
	}
	return a.whole(ctx, http.MethodPost, path, open, int64(around.Len()+len(u.Data)), append(slices.Clip(header), "Content-Type", form.FormDataContentType()))
}

// Delete deletes what is at a path, and gives the whole reply. It fails as [API.Post] does.
func (a *API) Delete(ctx context.Context, path string, header ...string) ([]byte, error) {
	return a.whole(ctx, http.MethodDelete, path, nil, 0, header)
}

func (a *API) whole(ctx context.Context, method, path string, open func() io.ReadCloser, size int64, header []string) ([]byte, error) {
	resp, err := a.send(ctx, method, path, open, size, header) //nolint:bodyclose // ReadAll closes it
	if err != nil {
		return nil, err
	}
	return a.ReadAll(ctx, resp)
}
