package layout

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// Ref is where a part belongs that was cut out of an entry's data.
type Ref struct {
	At   int    // the offset, in what lies in the row, at which it goes in: between two quotes
	Size int    // in bytes
	Hash string // SHA-256 of its bytes, in lower-case hexadecimal
}

// cut empties the string literals of JSON that have more than threshold bytes between their quotes, and says what was there; parts gets
// those bytes. Names of members stay. The bytes of data are neither changed nor read as anything but the quotes, backslashes and colons that
// delimit strings: what is no JSON is cut somewhere or not at all, and is whole again after splice all the same.
func cut(data []byte, threshold int, parts func(hash string, b []byte)) (rest []byte, refs []Ref) {
	from := 0                              // of data, up to which rest has it
	for i := 0; len(data)-i > threshold; { // else no literal that long can follow
		open := bytes.IndexByte(data[i:], '"')
		if open < 0 {
			break
		}
		start := i + open + 1
		size := literal(data[start:])
		if size < 0 {
			break
		}
		end := start + size
		if size > threshold && !isName(data[end+1:]) {
			rest = append(rest, data[from:start]...)
			from = end
			sum := sha256.Sum256(data[start:end])
			r := Ref{At: len(rest), Size: size, Hash: hex.EncodeToString(sum[:])}
			refs = append(refs, r)
			parts(r.Hash, data[start:end])
		}
		i = end + 1
	}
	if refs == nil {
		return data, nil
	}
	return append(rest, data[from:]...), refs
}

// literal gives how long a string literal is whose opening quote is just before b, without its closing one; -1 when there is none.
func literal(b []byte) int {
	for end := 0; ; end++ {
		i := bytes.IndexByte(b[end:], '"')
		if i < 0 {
			return -1
		}
		end += i
		escapes := end // where the backslashes before the quote begin
		for escapes > 0 && b[escapes-1] == '\\' {
			escapes--
		}
		if (end-escapes)%2 == 0 {
			return end
		}
	}
}

// isName reports whether the literal that rest follows is the name of a member.
func isName(rest []byte) bool {
	rest = bytes.TrimLeft(rest, " \t\r\n")
	return len(rest) > 0 && rest[0] == ':'
}

// splice puts parts back into what cut left. It fails where they don't fit; then the row or a part is damaged.
func splice(rest []byte, refs []Ref, part func(hash string) ([]byte, error)) ([]byte, error) {
	parts := make([][]byte, len(refs))
	size, last := len(rest), 0
	for i, r := range refs {
		if r.At <= last || r.At >= len(rest) || rest[r.At-1] != '"' || rest[r.At] != '"' {
			return nil, fmt.Errorf("part %s belongs at %d, where no string is empty", r.Hash, r.At)
		}
		b, err := part(r.Hash)
		if err != nil {
			return nil, fmt.Errorf("part %s %w", r.Hash, err)
		}
		if len(b) != r.Size {
			return nil, fmt.Errorf("part %s has %d bytes, not %d", r.Hash, len(b), r.Size)
		}
		parts[i], last = b, r.At
		size += r.Size
	}
	data, from := make([]byte, 0, size), 0
	for i, r := range refs {
		data = append(append(data, rest[from:r.At]...), parts[i]...)
		from = r.At
	}
	return append(data, rest[from:]...), nil
}

// format writes refs for a column that people can read: "57+1398104:HASH", one after the other with a space between.
func format(refs []Ref) string {
	var b strings.Builder
	b.Grow(len(refs) * (2*sha256.Size + len("57+1398104: ")))
	for i, r := range refs {
		if i > 0 {
			b.WriteByte(' ')
		}
		fmt.Fprintf(&b, "%d+%d:%s", r.At, r.Size, r.Hash)
	}
	return b.String()
}

var errRefs = errors.New("the references to its parts can't be read: its row is damaged")

// parse reads what format wrote, and nothing else.
func parse(text string) (refs []Ref, err error) {
	for word := range strings.SplitSeq(text, " ") {
		place, hash, _ := strings.Cut(word, ":")
		at, size, _ := strings.Cut(place, "+")
		r := Ref{Hash: hash}
		if r.At, err = strconv.Atoi(at); err != nil {
			return nil, errRefs
		}
		if r.Size, err = strconv.Atoi(size); err != nil || r.Size > maxPart {
			return nil, errRefs
		}
		refs = append(refs, r)
	}
	if format(refs) != text || slices.ContainsFunc(refs, func(r Ref) bool { return !isHash(r.Hash) || r.At < 0 || r.Size <= 0 }) {
		return nil, errRefs
	}
	return refs, nil
}

// maxPart is more than any store takes as an entry, and little enough to be added up.
const maxPart = 1 << 30

func isHash(text string) bool {
	return len(text) == 2*sha256.Size && strings.Trim(text, "0123456789abcdef") == ""
}
