package httpapi

import (
	"iter"
	"slices"

	"github.com/pawl-dev/pawl/message"
)

// Inline gives m as it is for a server that keeps no files: those of m have no ID, so that their bytes or addresses are sent.
func Inline(m message.Message) message.Message {
	parts := make([]message.Part, 0, m.Len())
	for p := range m.Parts() {
		switch f := p.(type) {
		case message.File:
			p = inline(f)
		case message.ToolResult:
			f.Files = slices.Clone(f.Files)
			for i := range f.Files {
				f.Files[i] = inline(f.Files[i])
			}
			p = f
		}
		parts = append(parts, p)
	}
	return message.New(m.Role(), parts...)
}

func inline(f message.File) message.File {
	f.Provider, f.ID = "", ""
	return f
}

// Files yields the files of a conversation, those in results too, each with the index of its message: as they are, or as [Inline] has them, for a server that keeps none.
func Files(h message.History, keeps bool) iter.Seq2[int, message.File] {
	return func(yield func(int, message.File) bool) {
		for i, m := range h.All() {
			for f := range FilesOf(m) {
				if !keeps {
					f = inline(f)
				}
				if !yield(i, f) {
					return
				}
			}
		}
	}
}

// FilesOf yields the files of one message, those in results too.
func FilesOf(m message.Message) iter.Seq[message.File] {
	return func(yield func(message.File) bool) {
		if !m.HasFiles() {
			return
		}
		for p := range m.Parts() {
			switch p := p.(type) {
			case message.File:
				if !yield(p) {
					return
				}
			case message.ToolResult:
				for _, f := range p.Files {
					if !yield(f) {
						return
					}
				}
			}
		}
	}
}
