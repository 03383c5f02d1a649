package journal

import (
	"bytes"
	"encoding/json"
	"strconv"
	"strings"

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

// unmarshal is json.Unmarshal that keeps long integers.
func unmarshal(b []byte, v any) error {
	var free map[string]any
	switch v := v.(type) {
	case *RunStarted:
		if err := numbers(b, v); err != nil {
			return err
		}
		free = v.Inputs
	case *Board:
		if err := numbers(b, v); err != nil {
			return err
		}
		free = v.Set
	default:
		return json.Unmarshal(b, v)
	}
	for k, v := range free {
		free[k] = floats(v)
	}
	return nil
}

func numbers(b []byte, v any) error {
	if !json.Valid(b) { // a Decoder stops after the first value
		return json.Unmarshal(b, v)
	}
	dec := json.NewDecoder(bytes.NewReader(b))
	dec.UseNumber()
	return dec.Decode(v)
}

func floats(v any) any {
	switch v := v.(type) {
	case json.Number:
		f, err := v.Float64()
		if err != nil || !strings.ContainsAny(v.String(), ".eE") && strconv.FormatFloat(f, 'f', -1, 64) != v.String() {
			return v
		}
		return f
	case []any:
		for i, e := range v {
			v[i] = floats(e)
		}
	case map[string]any:
		for k, e := range v {
			v[k] = floats(e)
		}
	}
	return v
}

// file is a message.File with its bytes in base64: they are no text.
type file struct {
	MIME string `json:"mime"`
	Name string `json:"name,omitempty"`
	URL  string `json:"url,omitempty"`
	Hash string `json:"hash,omitempty"`
	Data []byte `json:"data,omitempty"`
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
		out.Files = append(out.Files, file{f.MIME, f.Name, f.URL, f.Hash, []byte(f.Data)})
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
		d.Files = append(d.Files, message.File{MIME: f.MIME, Name: f.Name, URL: f.URL, Hash: f.Hash, Data: string(f.Data)})
	}
	return nil
}
