package openai

import "github.com/pawl-dev/pawl/internal/wire"

// details gathers reasoning_details: OpenRouter's list of reasoning blocks, with signatures and encrypted ones, which go back as they
// came. A stream has them in pieces, which belong together when they follow each other with the same type and index.
type details []detail

type detail []detailMember

type detailMember struct {
	name  string
	value []byte // JSON; of a text that may go on, the text itself
	text  bool
}

// add takes a list. whole says that its elements aren't pieces.
func (d *details) add(list []byte, whole bool) {
	if wire.IsNull(list) {
		return
	}
	for e := wire.Array(list); e.Next(); {
		kind, index := wire.String(wire.Get(e.Value, "type")), wire.Get(e.Value, "index")
		goesOn := !whole && kind != "reasoning.encrypted" && len(*d) > 0 &&
			(*d)[len(*d)-1].has("type", wire.Get(e.Value, "type")) && (*d)[len(*d)-1].has("index", index)
		if !goesOn {
			*d = append(*d, nil)
		}
		into := &(*d)[len(*d)-1]
		for o := wire.Object(e.Value); o.Next(); {
			into.add(string(o.Key), o.Value)
		}
	}
}

func (d detail) has(name string, value []byte) bool {
	for _, m := range d {
		if m.name == name {
			return string(m.value) == string(value)
		}
	}
	return value == nil
}

func (d *detail) add(name string, value []byte) {
	text := (name == "text" || name == "summary") && value[0] == '"'
	for i := range *d {
		m := &(*d)[i]
		switch {
		case m.name != name:
			continue
		case text && m.text:
			m.value = wire.AppendText(m.value, value)
		case !wire.IsNull(value):
			*m = newDetailMember(name, value, text)
		}
		return
	}
	*d = append(*d, newDetailMember(name, value, text))
}

func newDetailMember(name string, value []byte, text bool) detailMember {
	if text {
		return detailMember{name, wire.AppendText(nil, value), true}
	}
	return detailMember{name, append([]byte(nil), value...), false}
}

func (d details) json() []byte {
	dst := []byte{'['}
	for i, one := range d {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = append(dst, '{')
		for j, m := range one {
			if j > 0 {
				dst = append(dst, ',')
			}
			dst = append(wire.AppendString(dst, m.name), ':')
			if m.text {
				dst = wire.AppendString(dst, string(m.value))
			} else {
				dst = append(dst, m.value...)
			}
		}
		dst = append(dst, '}')
	}
	return append(dst, ']')
}
