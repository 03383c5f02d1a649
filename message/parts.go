package message

import (
	"github.com/pawl-dev/pawl/errdefs"
	"github.com/pawl-dev/pawl/internal/wire"
)

// Parts is a list of parts outside of a message, with the JSON that they have in one: see [Message.AppendJSON].
type Parts []Part

// MarshalJSON writes what UnmarshalJSON reads; nil is null. A nil part is an error.
func (ps Parts) MarshalJSON() ([]byte, error) {
	if ps == nil {
		return []byte("null"), nil
	}
	for i, p := range ps {
		if p == nil {
			return nil, errdefs.Validation.Errorf("message: part %d is nil", i+1)
		}
	}
	return appendParts(make([]byte, 0, 256), ps), nil
}

// UnmarshalJSON replaces ps. A part of a type that this version doesn't know is refused.
func (ps *Parts) UnmarshalJSON(data []byte) error {
	if string(data) == "null" {
		*ps = nil
		return nil
	}
	parts, err := parseParts(data)
	if err == nil && parts == nil {
		parts = []Part{}
	}
	if err != nil {
		return err
	}
	*ps = parts
	return nil
}

func appendParts(dst []byte, parts []Part) []byte {
	dst = append(dst, '[')
	for i, p := range parts {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = appendPart(dst, p)
	}
	return append(dst, ']')
}

func parseParts(data []byte) (parts []Part, err error) {
	a := wire.Array(data)
	for a.Next() {
		p, err := parsePart(a.Value)
		if err != nil {
			return nil, err
		}
		parts = append(parts, p)
	}
	if err := a.Err(); err != nil {
		return nil, errdefs.Validation.Errorf("message: parts: %w", err)
	}
	return parts, nil
}
