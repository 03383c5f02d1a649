package httpapi

import (
	"slices"

	"github.com/pawl-dev/pawl/message"
)

// Inline gives m as it is for a server that keeps no files: those of m have no ID, so that their bytes or addresses are sent.
func Inline(m message.Message) message.Message {
	parts := make([]message.Part, 0, m.Len())
	for p := range m.Parts() {
		switch f := p.(type) {
		case message.File:
			f.Provider, f.ID = "", ""
			p = f
		case message.ToolResult:
			f.Files = slices.Clone(f.Files)
			for i := range f.Files {
				f.Files[i].Provider, f.Files[i].ID = "", ""
			}
			p = f
		}
		parts = append(parts, p)
	}
	return message.New(m.Role(), parts...)
}
