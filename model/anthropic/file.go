package anthropic

import (
	"strings"

	"github.com/pawl-dev/pawl/errdefs"
	"github.com/pawl-dev/pawl/internal/httpapi"
	"github.com/pawl-dev/pawl/internal/wire"
	"github.com/pawl-dev/pawl/message"
)

const pdf = "application/pdf"

func isText(mime string) bool { return strings.HasPrefix(mime, "text/") }

func isImage(mime string) bool { return strings.HasPrefix(mime, "image/") }

// sendable fails when a message has a file that has no place on this wire.
func (m *Model) sendable(h message.History) error {
	for i, f := range httpapi.Files(h, m.keeps()) {
		why := unsendable(f)
		if why == "" && h.At(i).Role() == message.RoleAssistant {
			why = "the model's own messages can't hold files: move it to a user message"
		}
		if why != "" {
			return errdefs.Validation.Errorf("%s: file %q of type %q (message %d): %s", m.can.Name, f.Name, f.MIME, i+1, why)
		}
	}
	return nil
}

const untyped = "only images, PDF and text can be sent"

// typed reports whether the API has a block for a type.
func typed(mime string) bool { return isText(mime) || isImage(mime) || mime == pdf }

// kept reports whether the API keeps f.
func kept(f message.File) bool { return f.Provider == provider && f.ID != "" }

// keeps reports whether the server keeps files: a cloud that has the models in its owner's place has none of those.
func (m *Model) keeps() bool { return m.api.Provider == provider }

// keepsNone is the error of a server that keeps no files.
func (m *Model) keepsNone(what string) error {
	return errdefs.Validation.Errorf("%s: %s: it keeps no files: send them inline, or by a URL", m.can.Name, what)
}

// unsendable says why a file can't be sent, and "" when it can.
func unsendable(f message.File) string {
	switch {
	case kept(f) && typed(f.MIME):
		return ""
	case f.Data == "" && f.URL == "" && f.Hash != "":
		return "its bytes are in the journal: put them in before the call"
	case f.Data == "" && f.URL == "":
		return "it is empty: give Data, URL or the ID of an upload"
	case isText(f.MIME) && f.Data == "":
		return "a text can't be given by URL: put it in as Data or in the message's text"
	case !typed(f.MIME):
		return untyped
	}
	return ""
}

// appendFile appends an image or document that is sendable.
func appendFile(b []byte, f message.File) []byte {
	b = next(b)
	if isImage(f.MIME) {
		b = append(b, `{"type":"image","source":`...)
	} else {
		b = append(b, `{"type":"document","source":`...)
	}
	switch {
	case kept(f):
		b = wire.AppendString(append(b, `{"type":"file","file_id":`...), f.ID)
	case f.Data == "":
		b = wire.AppendString(append(b, `{"type":"url","url":`...), f.URL)
	case isText(f.MIME):
		b = wire.AppendString(append(b, `{"type":"text","media_type":"text/plain","data":`...), f.Data)
	default:
		b = wire.AppendString(append(b, `{"type":"base64","media_type":`...), f.MIME)
		b = wire.AppendBase64(append(b, `,"data":`...), f.Data)
	}
	b = append(b, '}')
	if !isImage(f.MIME) && f.Name != "" {
		b = wire.AppendString(append(b, `,"title":`...), f.Name)
	}
	return append(b, '}')
}
