// Package tokens estimates what messages take of a model's window, for where no provider has counted them.
package tokens

import (
	"encoding/binary"

	"github.com/pawl-dev/pawl/message"
)

// file is what providers take for an image of ordinary size.
const file = 1600

// In is the estimate for all messages of h. Each message is looked at once in its life, and remembers what came of it: a conversation is asked about before every call.
func In(h message.History) (n int) {
	for _, m := range h.All() {
		if m.IsZero() {
			n += Of(m)
			continue
		}
		of, _ := binary.Varint(m.Encoded(estimated{}, func(m message.Message) []byte { return binary.AppendVarint(nil, int64(Of(m))) }))
		n += int(of)
	}
	return n
}

// estimated is the key of the estimate among what a message remembers.
type estimated struct{}

// Of is the estimate for a message. Cost: linear in its bytes.
func Of(m message.Message) int {
	n := 4 // a role, and marks of its beginning and end
	for i := range m.Len() {
		switch p := m.Part(i).(type) {
		case message.Text:
			n += Text(p.Text)
		case message.Reasoning:
			n += Text(p.Text)
		case message.ToolCall:
			n += Text(p.Name) + Text(p.Input)
		case message.ToolResult:
			n += Text(p.Content) + file*len(p.Files)
		case message.ProviderCall:
			n += Text(p.JSON)
		case message.Opaque:
			n += Text(p.JSON)
		case message.File:
			n += file
		}
	}
	return n
}

// Text is the estimate for a text: a token for 4 bytes of ASCII, and for 3 of anything else. English takes some 4 characters a token, Chinese 1, of 3 bytes.
func Text(s string) int {
	ascii := 0
	for i := range len(s) {
		if s[i] < 0x80 {
			ascii++
		}
	}
	return Bytes(ascii, len(s)-ascii)
}

// Bytes is the estimate for a text of so many bytes of ASCII, and of anything else.
func Bytes(ascii, other int) int { return (ascii+3)/4 + (other+2)/3 }
