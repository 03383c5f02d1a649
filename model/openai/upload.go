package openai

import (
	"context"
	"net/http"
	"net/url"
	"strings"

	"github.com/pawl-dev/pawl/errdefs"
	"github.com/pawl-dev/pawl/internal/httpapi"
	"github.com/pawl-dev/pawl/internal/wire"
	"github.com/pawl-dev/pawl/message"
)

const filesPath = "/files"

// maxUpload is the largest file that OpenAI keeps, in bytes, as its reference says of POST /v1/files.
const maxUpload = 512 << 20

// Upload implements [model.Uploader]. What OpenAI keeps is there until it is discarded, up to 512 MB a file; models made by [New] and [NewResponses] both send it by its
// ID. Over Chat Completions that goes for PDF alone.
func (c *client) Upload(ctx context.Context, f message.File) (message.File, error) {
	if err := httpapi.Uploadable(c.vendor.Name, f, maxUpload); err != nil {
		return f, err
	}
	purpose := "user_data"
	if kindOf(f) == "image" {
		purpose = "vision"
	}
	form := httpapi.NewForm(uploadName(f), f.MIME, f.Data, "purpose", purpose)
	reply, err := c.api.Call(ctx, http.MethodPost, filesPath, form.Content(), form.Header())
	if err != nil {
		return f, err
	}
	id := wire.String(wire.Get(reply, "id"))
	if id == "" {
		return f, c.api.Malformed("the reply has no id of the file", reply)
	}
	f.Provider, f.ID = c.keeper, id
	return f, nil
}

// Discard implements [model.Uploader].
func (c *client) Discard(ctx context.Context, f message.File) error {
	if !kept(f, c.keeper) {
		return errdefs.Validation.Errorf("%s: discard %s: %s keeps no such file: it has the provider %q and the ID %q", c.vendor.Name, uploadName(f), c.keeper, f.Provider, f.ID)
	}
	_, err := c.api.Call(ctx, http.MethodDelete, filesPath+"/"+url.PathEscape(f.ID), httpapi.Content{}, nil)
	return err
}

// uploadName gives a file's name, or one that ends as its type says: the provider tells types apart by it.
func uploadName(f message.File) string {
	if f.Name != "" {
		return f.Name
	}
	_, kind, _ := strings.Cut(mediaType(f), "/")
	if kind == "plain" {
		kind = "txt"
	}
	return "file." + kind
}
