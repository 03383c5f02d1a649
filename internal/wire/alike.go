package wire

import "bytes"

// Alike knows JSON that differs from what came before in one text alone, as the
// deltas of a stream do: of such a one only the text has to be read. The zero Alike
// knows nothing.
type Alike struct {
	room [512]byte // the data up to the text, its quote included, what follows it, and the brackets that close all behind that
	head int       // how much of that is the first; 0 when nothing is known
	tail int       // where the brackets begin
	all  int
}

// Keep has a know data, valid JSON in which text is a part. It forgets what it knew,
// and knows nothing when text is no JSON string of data, or has more than some
// hundred bytes around it.
func (a *Alike) Keep(data, text []byte) {
	a.head = 0
	start := placeOf(data, text)
	if start < 0 || text[0] != '"' {
		return
	}
	end := start + len(text)
	last := len(data) // where only brackets are left
	for last > end && (isSpace(data[last-1]) || data[last-1] == '}' || data[last-1] == ']') {
		last--
	}
	if start+1+last-end > len(a.room) {
		return
	}
	head := copy(a.room[:], data[:start+1])
	a.tail = head + copy(a.room[head:], data[end:last])
	a.all = a.tail
	for _, c := range data[last:] {
		if isSpace(c) {
			continue
		}
		if a.all == len(a.room) {
			return
		}
		a.room[a.all] = c
		a.all++
	}
	a.head = head
}

// placeOf finds where in data part lies, if it is a part of it; -1 when it is none.
func placeOf(data, part []byte) int {
	if len(part) == 0 {
		return -1
	}
	for i := range len(data) - len(part) + 1 {
		if &data[i] == &part[0] {
			return i
		}
	}
	return -1
}

// Text returns what stands in data in the place of the text that Keep was given,
// when all around it is the same but for white space between the brackets at the
// end: data is valid JSON then. Otherwise it returns nil, and data may be anything.
func (a *Alike) Text(data []byte) []byte {
	if a.head == 0 || len(data) < a.head || string(data[:a.head]) != string(a.room[:a.head]) {
		return nil
	}
	end, _, want := skipString(data, a.head)
	if want != "" {
		return nil
	}
	i := end
	if behind := a.room[a.head:a.tail]; len(behind) > 0 {
		if !bytes.HasPrefix(data[i:], behind) {
			return nil
		}
		i += len(behind)
	}
	for _, bracket := range a.room[a.tail:a.all] {
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
