package journal

import (
	"bytes"
	"encoding/json"

	"github.com/pawl-dev/pawl/message"
)

// marshal is json.Marshal without HTML escapes, which would change the bytes of messages, and with one spelling of what was no UTF-8: the
// bytes don't change when what was read is written again.
func marshal(v any) ([]byte, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return nil, err
	}
	return unescape(bytes.TrimSuffix(b.Bytes(), []byte("\n"))), nil
}

// unescape spells the replacement character as itself: encoding/json escapes it where it stands for a broken byte.
func unescape(b []byte) []byte {
	const escape = `\ufffd`
	if !bytes.Contains(b, []byte(escape)) {
		return b
	}
	out := make([]byte, 0, len(b))
	for i := 0; i < len(b); i++ {
		switch {
		case bytes.HasPrefix(b[i:], []byte(escape)):
			out = append(out, "\ufffd"...)
			i += len(escape) - 1
		case b[i] == '\\':
			out = append(out, b[i], b[i+1])
			i++
		default:
			out = append(out, b[i])
		}
	}
	return out
}

// file is a message.File with its bytes in base64: they are no text.
type file struct {
	MIME string `json:"mime"`
	Name string `json:"name,omitempty"`
	URL  string `json:"url,omitempty"`
	Hash string `json:"hash,omitempty"`
	Data []byte `json:"data,omitempty"`

	Provider string `json:"provider,omitempty"`
	ID       string `json:"id,omitempty"`
}

type (
	plainFinished ToolFinished // without the methods
	toolFinished  struct {
		plainFinished
		Files []file `json:"files,omitempty"` // in place of the other one
	}
)

// MarshalJSON writes files as messages do: their bytes in base64.
func (d ToolFinished) MarshalJSON() ([]byte, error) {
	out := toolFinished{plainFinished: plainFinished(d)}
	for _, f := range d.Files {
		out.Files = append(out.Files, file{f.MIME, f.Name, f.URL, f.Hash, []byte(f.Data), f.Provider, f.ID})
	}
	return marshal(out)
}

// UnmarshalJSON reads what MarshalJSON wrote.
func (d *ToolFinished) UnmarshalJSON(b []byte) error {
	var in toolFinished
	if err := json.Unmarshal(b, &in); err != nil {
		return err
	}
	*d = ToolFinished(in.plainFinished)
	for _, f := range in.Files {
		d.Files = append(d.Files, message.File{MIME: f.MIME, Name: f.Name, URL: f.URL, Hash: f.Hash, Data: string(f.Data), Provider: f.Provider, ID: f.ID})
	}
	return nil
}
