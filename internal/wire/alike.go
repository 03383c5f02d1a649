package wire

import "bytes"

// Alike knows JSON that differs from what came before in one text alone, as the
// deltas of a stream do: of such a one only the text has to be read. The zero Alike
// knows nothing.
type Alike struct {
	room [128]byte // the data up to the text, its quote included, and the brackets that close all behind it
	head int       // how much of that is the former; 0 when nothing is known
	all  int
}

// Keep has a know data, valid JSON in which text, a part of it, is the last thing
// but for brackets and white space. It forgets what it knew, and knows nothing when
// text is no JSON string, not the last thing, or has more than some hundred bytes
// before it.
func (a *Alike) Keep(data, text []byte) {
	*a = Alike{}
	end := len(bytes.TrimRight(data, " \t\r\n}]"))
	start := end - len(text)
	if start < 0 || len(text) == 0 || &data[start] != &text[0] || text[0] != '"' || start >= len(a.room) {
		return
	}
	a.head = copy(a.room[:], data[:start+1])
	a.all = a.head
	for _, c := range data[end:] {
		if isSpace(c) {
			continue
		}
		if a.all == len(a.room) {
			a.head = 0
			return
		}
		a.room[a.all] = c
		a.all++
	}
}

// Text returns what stands in data in the place of the text that Keep was given,
// when all around it is the same but for white space between the brackets: data is
// valid JSON then. Otherwise it returns nil, and data may be anything.
func (a *Alike) Text(data []byte) []byte {
	if a.head == 0 || len(data) < a.head || string(data[:a.head]) != string(a.room[:a.head]) {
		return nil
	}
	end, _, want := skipString(data, a.head)
	if want != "" {
		return nil
	}
	i := end
	for _, bracket := range a.room[a.head:a.all] {
		i = skipSpace(data, i)
		if i == len(data) || data[i] != bracket {
			return nil
		}
		i++
	}
	if skipSpace(data, i) < len(data) {
		return nil
	}
	return data[a.head-1 : end : end]
}
