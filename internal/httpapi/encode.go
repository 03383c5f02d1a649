package httpapi

import (
	"github.com/pawl-dev/pawl/internal/wire"
	"github.com/pawl-dev/pawl/message"
)

// Encode gives the bytes of m that f appends, in a slice of just their size: they live as long as m.
func Encode(m message.Message, f func(b []byte) []byte) []byte { return wire.Exact(size(m), f) }

// size guesses how long the bytes of m get, so that they are seldom moved.
func size(m message.Message) int {
	n := 64
	file := func(f message.File) int { return 128 + len(f.URL) + len(f.Name) + len(f.Data)*4/3 }
	for i := range m.Len() {
		n += 96
		switch p := m.Part(i).(type) {
		case message.Text:
			n += len(p.Text) + len(p.Text)/16 + len(p.Extra)
		case message.Reasoning:
			n += len(p.Text) + len(p.Text)/16 + len(p.Signature) + len(p.Extra)
		case message.File:
			n += file(p)
		case message.ToolCall:
			n += len(p.ID) + len(p.Name) + len(p.Input) + len(p.Extra)
		case message.ToolResult:
			n += len(p.Call) + len(p.Content) + len(p.Content)/16
			for _, f := range p.Files {
				n += file(f)
			}
		case message.ProviderCall:
			n += len(p.JSON)
		case message.Opaque:
			n += len(p.JSON)
		}
	}
	return n
}
