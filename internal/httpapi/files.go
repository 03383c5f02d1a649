package httpapi

import (
	"io"
	"mime"
	"mime/multipart"
	"net/http"
	"net/textproto"
	"strings"

	"github.com/pawl-dev/pawl/errdefs"
	"github.com/pawl-dev/pawl/message"
)

// Uploadable says what is wrong with a file that an API is to keep, which takes up to most bytes; nil: nothing.
func Uploadable(who string, f message.File, most int) error {
	kind, _, err := mime.ParseMediaType(f.MIME) // it stands in a header
	switch {
	case f.Data == "":
		return errdefs.Validation.Errorf("%s: upload: file %q has no data: give its bytes as Data", who, f.Name)
	case err != nil || !strings.Contains(kind, "/"):
		return errdefs.Validation.Errorf("%s: upload: file %q: its MIME type %q is wrong: want one such as image/png", who, f.Name, f.MIME)
	case len(f.Data) > most:
		return errdefs.Validation.Errorf("%s: upload: file %q has %d bytes, and the API keeps files of at most %d: split it", who, f.Name, len(f.Data), most)
	}
	return nil
}

// Content is what a request sends: a [Body] or a [Form].
type Content struct {
	Len  int64                         // the number of bytes
	Open func() (io.ReadCloser, error) // reads them from the beginning, each time; it never fails

	small *joint // a body that is joined; nil: it is not
}

// Form is a multipart form (RFC 7578), or another body of several parts, with a file. The file's bytes are sent from where they lie.
type Form struct{ kind, head, data, tail string }

// NewForm makes a form with a file in its field "file", and before it the fields that are given by name and value in turn.
func NewForm(name, mime, data string, fields ...string) *Form {
	var b strings.Builder // which takes everything, so that there are no errors
	w := multipart.NewWriter(&b)
	for i := 0; i+1 < len(fields); i += 2 {
		_ = w.WriteField(fields[i], fields[i+1])
	}
	_, _ = w.CreatePart(textproto.MIMEHeader{"Content-Disposition": {multipart.FileContentDisposition("file", name)}, "Content-Type": {oneLine(mime)}})
	head := b.String()
	_ = w.Close()
	return &Form{w.FormDataContentType(), head, data, b.String()[len(head):]}
}

// NewRelated makes a body of two parts (RFC 2387): a JSON document that tells of a file, and the file.
func NewRelated(about []byte, mime, data string) *Form {
	var b strings.Builder
	w := multipart.NewWriter(&b)
	part, _ := w.CreatePart(textproto.MIMEHeader{"Content-Type": {"application/json; charset=UTF-8"}})
	_, _ = part.Write(about)
	_, _ = w.CreatePart(textproto.MIMEHeader{"Content-Type": {oneLine(mime)}})
	head := b.String()
	_ = w.Close()
	return &Form{"multipart/related; boundary=" + w.Boundary(), head, data, b.String()[len(head):]}
}

// oneLine keeps a type from being more than one header: mime.ParseMediaType lets line ends through between its parameters.
func oneLine(mime string) string { return strings.NewReplacer("\r", "", "\n", "").Replace(mime) }

// Header has the form's own type. It may be added to.
func (f *Form) Header() http.Header {
	return http.Header{"Content-Type": {f.kind}, "Accept": {"application/json"}}
}

// Len is the number of bytes.
func (f *Form) Len() int64 { return int64(len(f.head) + len(f.data) + len(f.tail)) }

// Reader reads the form from its beginning. Each Reader is its own.
func (f *Form) Reader() io.ReadCloser {
	return io.NopCloser(io.MultiReader(strings.NewReader(f.head), strings.NewReader(f.data), strings.NewReader(f.tail)))
}

// Content is what is sent.
func (f *Form) Content() Content {
	return Content{f.Len(), func() (io.ReadCloser, error) { return f.Reader(), nil }, nil}
}
