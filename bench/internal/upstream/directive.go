package upstream

import (
	"bytes"
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// Directive says in the words of a user's prompt how the model is to answer it: "turns=20 tool=echo par=1 deltas=2 flush=1 gap=5". A turn is one call of the model; all but the last
// call the tool.
type Directive struct {
	Turns  int    // model calls until the answer: at least 1
	Tool   string // the tool to call
	Par    int    // calls of it in a turn; 0 is 1
	Deltas int    // pieces of the answer, of [PieceSize] bytes each; 0 is 2
	Flush  bool   // the pieces are sent one by one, and not all at once
	Gap    int    // milliseconds between two pieces
	Result int    // bytes that a result of the tool has at least; 0: it gives back its argument
	Stamp  bool   // each piece but the first is the time when it was sent: see [Piece]
}

// String is how a prompt says it.
func (d Directive) String() string {
	s := fmt.Sprintf("turns=%d tool=%s", d.Turns, d.Tool)
	for _, f := range []struct {
		name string
		n    int
	}{{"par", d.Par}, {"deltas", d.Deltas}, {"flush", number(d.Flush)}, {"gap", d.Gap}, {"result", d.Result}, {"stamp", number(d.Stamp)}} {
		if f.n != 0 {
			s += fmt.Sprintf(" %s=%d", f.name, f.n)
		}
	}
	return s
}

func number(b bool) int {
	if b {
		return 1
	}
	return 0
}

// Calls is how often the tool is called before the answer.
func (d Directive) Calls() int { return (d.Turns - 1) * d.Par }

// find reads the last directive of a request, and gives what stands behind it.
func find(body []byte) (d Directive, rest []byte, err error) {
	i := bytes.LastIndex(body, []byte("turns="))
	if i < 0 {
		return d, nil, errors.New("no prompt says how it is to be answered: turns=N tool=NAME")
	}
	rest = body[i:]
	end := bytes.IndexByte(rest, '"')
	if end < 0 {
		return d, nil, errors.New("the prompt has no end")
	}
	d = Directive{Par: 1, Deltas: 2}
	for f := range strings.FieldsSeq(string(rest[:end])) {
		name, value, _ := strings.Cut(f, "=")
		if name == "tool" {
			d.Tool = value
			continue
		}
		n, err := strconv.Atoi(value)
		if err != nil || n < 0 {
			return d, nil, fmt.Errorf("the prompt says %q: want a number", f)
		}
		switch name {
		case "turns":
			d.Turns = n
		case "par":
			d.Par = n
		case "deltas":
			d.Deltas = n
		case "flush":
			d.Flush = n > 0
		case "gap":
			d.Gap = n
		case "result":
			d.Result = n
		case "stamp":
			d.Stamp = n > 0
		default:
			return d, nil, fmt.Errorf("the prompt says %q, which means nothing", f)
		}
	}
	if d.Turns < 1 || d.Par < 1 || d.Deltas < 1 || d.Tool == "" {
		return d, nil, fmt.Errorf("the prompt says %q: want turns, par and deltas of at least 1, and a tool", rest[:end])
	}
	return d, rest[end:], nil
}
