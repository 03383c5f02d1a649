package journal

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/pawl-dev/pawl/errdefs"
	"github.com/pawl-dev/pawl/message"
	"github.com/pawl-dev/pawl/model"
)

// Vars are named values that are journaled, and come back with their value and their type. One may be nil, a bool, a string, an int, an int64, a float64 (finite), a
// []byte, a time.Time (its instant and its offset, not the name of its zone), a time.Duration, a json.RawMessage, a json.Number, a message.Message, a []message.Message, a model.Usage, a []string, a []int, a []float64, a
// map[string]string, and a []any or a map[string]any of these, at most 100 deep. Anything else is errdefs.Validation, never a near miss: keep it as
// json.RawMessage. A value must not change once it is there.
//
// A JSON reader without Go sees plain JSON: an integer is an int (a json.Number when it is too long for one), a number with a point or an exponent a float64, and what
// JSON has no word for stands in an object with one member, whose name says the type: {"$int64": 1}.
type Vars map[string]any

// Check is errdefs.Validation for the first var, in the order of the names, that would not come back as it is.
func (v Vars) Check() error {
	_, err := v.MarshalJSON()
	return err
}

// MarshalJSON is Validation for what Check refuses.
func (v Vars) MarshalJSON() ([]byte, error) {
	if v == nil {
		return []byte("null"), nil
	}
	b := []byte{'{'}
	for i, name := range slices.Sorted(maps.Keys(v)) {
		var err error
		if b, err = appendMember(b, i, name, v[name], 0); err != nil {
			return nil, errdefs.Validation.Errorf("the var %q: %w", name, err)
		}
	}
	return append(b, '}'), nil
}

// UnmarshalJSON reads what MarshalJSON wrote. It shares nothing with b.
func (v *Vars) UnmarshalJSON(b []byte) error {
	var in map[string]json.RawMessage
	if err := json.Unmarshal(b, &in); err != nil || in == nil {
		*v = nil
		return err
	}
	out := make(Vars, len(in))
	for name, raw := range in {
		val, err := readVar(raw)
		if err != nil {
			return errdefs.Validation.Errorf("decode the var %q: %w", name, err)
		}
		out[name] = val
	}
	*v = out
	return nil
}

// Snapshot is a board at one moment: channels of messages, and vars; read-only. Its JSON keeps the types of vars.
type Snapshot struct {
	Channels map[string]message.History
	Vars     Vars
}

// With is the board after a change; s stays as it is. What it keeps is shared.
func (s Snapshot) With(b Board) Snapshot {
	if len(b.Append)+len(b.Edit) > 0 {
		s.Channels = maps.Clone(s.Channels)
		if s.Channels == nil {
			s.Channels = map[string]message.History{}
		}
		for name, ms := range b.Append {
			s.Channels[name] = s.Channels[name].Append(ms...)
		}
		for name, e := range b.Edit {
			s.Channels[name] = s.Channels[name].Edit(e)
		}
	}
	if len(b.Set)+len(b.Delete) > 0 {
		s.Vars = maps.Clone(s.Vars)
		if s.Vars == nil {
			s.Vars = Vars{}
		}
		for _, name := range b.Delete {
			delete(s.Vars, name)
		}
		maps.Copy(s.Vars, b.Set)
	}
	return s
}

// Diff is what makes after of before. Messages are compared by identity, vars by value; it costs what differs, and a word a message and a var.
func Diff(before, after Snapshot) (b Board) {
	for name, v := range after.Vars {
		if old, ok := before.Vars[name]; !ok || !sameVar(old, v) {
			if b.Set == nil {
				b.Set = Vars{}
			}
			b.Set[name] = v
		}
	}
	for name := range before.Vars {
		if _, ok := after.Vars[name]; !ok {
			b.Delete = append(b.Delete, name)
		}
	}
	slices.Sort(b.Delete)
	for name, now := range after.Channels {
		old := before.Channels[name]
		switch e := message.Diff(old, now); {
		case len(e.Head) > 0 || e.From > 0 || e.To < old.Len():
			b.edit(name, e)
		case len(e.Tail) > 0:
			if b.Append == nil {
				b.Append = map[string][]message.Message{}
			}
			b.Append[name] = e.Tail
		}
	}
	for name, old := range before.Channels {
		if _, ok := after.Channels[name]; !ok && old.Len() > 0 {
			b.edit(name, message.Edit{})
		}
	}
	return b
}

// Check is errdefs.Validation for a name of a channel that is no UTF-8, and for a var as [Vars.Check] says.
func (b Board) Check() error {
	for _, name := range slices.AppendSeq(slices.Collect(maps.Keys(b.Append)), maps.Keys(b.Edit)) {
		if !utf8.ValidString(name) {
			return errdefs.Validation.Errorf("the name %q of a channel is no UTF-8", name)
		}
	}
	return b.Set.Check()
}

// IsZero reports whether nothing changed.
func (b Board) IsZero() bool { return len(b.Append)+len(b.Edit)+len(b.Set)+len(b.Delete) == 0 }

func (b *Board) edit(name string, e message.Edit) {
	if b.Edit == nil {
		b.Edit = map[string]message.Edit{}
	}
	b.Edit[name] = e
}

// sameVar is quick for what is the same in memory: what stands on a board does not change.
func sameVar(a, b any) bool {
	switch a := a.(type) {
	case message.Message:
		b, ok := b.(message.Message)
		return ok && a == b
	case []message.Message:
		b, ok := b.([]message.Message)
		return ok && (a == nil) == (b == nil) && slices.Equal(a, b)
	case []any:
		b, ok := b.([]any)
		return ok && (a == nil) == (b == nil) && len(a) == len(b) && (len(a) == 0 || &a[0] == &b[0] || slices.EqualFunc(a, b, sameVar))
	case map[string]any:
		b, ok := b.(map[string]any)
		return ok && (a == nil) == (b == nil) && len(a) == len(b) && (reflect.ValueOf(a).Pointer() == reflect.ValueOf(b).Pointer() || maps.EqualFunc(a, b, sameVar))
	}
	return reflect.DeepEqual(a, b)
}

// MarshalJSON writes {"channels": …, "vars": …}.
func (s Snapshot) MarshalJSON() ([]byte, error) {
	out := struct {
		Channels map[string][]exact `json:"channels,omitempty"`
		Vars     Vars               `json:"vars,omitempty"`
	}{Vars: s.Vars}
	for name, h := range s.Channels {
		if out.Channels == nil {
			out.Channels = make(map[string][]exact, len(s.Channels))
		}
		out.Channels[name] = make([]exact, h.Len())
		for i, m := range h.All() {
			out.Channels[name][i] = exact{m}
		}
	}
	b, err := json.Marshal(out)
	if err != nil {
		return nil, errdefs.Validation.Errorf("journal: encode a board: %w", err)
	}
	return b, nil
}

// UnmarshalJSON reads what MarshalJSON wrote. It shares nothing with b.
func (s *Snapshot) UnmarshalJSON(b []byte) error {
	var in struct {
		Channels map[string][]exact `json:"channels"`
		Vars     Vars               `json:"vars"`
	}
	if err := json.Unmarshal(b, &in); err != nil {
		return errdefs.Validation.Errorf("journal: decode a board: %w", err)
	}
	*s = Snapshot{Vars: in.Vars}
	for name, ms := range in.Channels {
		if s.Channels == nil {
			s.Channels = make(map[string]message.History, len(in.Channels))
		}
		s.Channels[name] = message.NewHistory(messages(ms)...)
	}
	return nil
}

// exact is a message in JSON. encoding/json rewrites <, >, & and two separators wherever they stand, in the input of a call too, whose bytes must stay; a message
// that has any of them is written as a text, which comes back as it was.
type exact struct{ message.Message }

func (e exact) MarshalJSON() ([]byte, error) {
	b, err := e.Message.MarshalJSON()
	if err == nil && bytes.ContainsAny(b, "<>&\u2028\u2029") {
		return json.Marshal(string(b))
	}
	return b, err
}

func (e *exact) UnmarshalJSON(b []byte) error {
	if len(b) > 0 && b[0] == '"' {
		var text string
		if err := json.Unmarshal(b, &text); err != nil {
			return err
		}
		b = []byte(text)
	}
	return e.Message.UnmarshalJSON(b)
}

func messages(all []exact) []message.Message {
	if all == nil {
		return nil
	}
	ms := make([]message.Message, len(all))
	for i, e := range all {
		ms[i] = e.Message
	}
	return ms
}

func exactly(ms []message.Message) (all []exact) {
	if ms != nil {
		all = make([]exact, len(ms))
	}
	for i, m := range ms {
		all[i] = exact{m}
	}
	return all
}

// deepest is how far vars nest; one that contains itself goes further.
const deepest = 100

// varType is a type that JSON has no word for, under its name, by way of a type whose JSON is exact.
type varType struct {
	is     reflect.Type
	name   string
	encode func(any) any
	decode func([]byte) (any, error)
}

func varOf[T any](name string) varType {
	return varBy(name, func(v T) T { return v }, func(v T) T { return v })
}

func varBy[T, JSON any](name string, to func(T) JSON, from func(JSON) T) varType {
	return varType{reflect.TypeFor[T](), name, func(v any) any { return to(v.(T)) }, func(b []byte) (any, error) {
		var j JSON
		err := json.Unmarshal(b, &j)
		return from(j), err
	}}
}

var varTypes = []varType{
	varOf[int64]("$int64"), varOf[[]byte]("$bytes"), varOf[time.Time]("$time"), varOf[time.Duration]("$duration"), varOf[model.Usage]("$usage"),
	varOf[[]string]("$strings"), varOf[map[string]string]("$texts"), varOf[[]int]("$ints"), varOf[[]float64]("$floats"),
	varBy("$number", json.Number.String, func(s string) json.Number { return json.Number(s) }),
	varBy("$message", func(m message.Message) exact { return exact{m} }, func(e exact) message.Message { return e.Message }),
	varBy("$messages", exactly, messages),
	varBy("$json", func(r json.RawMessage) *string { // as a text, which keeps its bytes
		if r == nil {
			return nil
		}
		s := string(r)
		return &s
	}, func(s *string) json.RawMessage {
		if s == nil {
			return nil
		}
		return json.RawMessage(*s)
	}),
}

// These stand for values of ordinary types that their own form would not give back.
const (
	asText = "$text" // a string that is no UTF-8, in base64
	asList = "$list" // a nil []any
	asMap  = "$map"  // a nil map[string]any, or one that looks like an object of ours
)

func appendVar(dst []byte, v any, depth int) ([]byte, error) {
	if depth > deepest {
		return nil, fmt.Errorf("it nests deeper than %d, or contains itself", deepest)
	}
	switch v := v.(type) {
	case nil:
		return append(dst, "null"...), nil
	case bool:
		return strconv.AppendBool(dst, v), nil
	case int:
		return strconv.AppendInt(dst, int64(v), 10), nil
	case float64:
		return appendFloat(dst, v)
	case string:
		if !utf8.ValidString(v) {
			return tagged(dst, asText, strconv.AppendQuote(nil, base64.StdEncoding.EncodeToString([]byte(v)))), nil
		}
		return appendJSON(dst, v)
	case []any:
		return appendList(dst, v, depth)
	case map[string]any:
		return appendMap(dst, v, depth)
	}
	for _, t := range varTypes {
		if reflect.TypeOf(v) == t.is {
			if err := utf8Only(v); err != nil {
				return nil, err
			}
			b, err := appendJSON(nil, t.encode(v))
			return tagged(dst, t.name, b), err
		}
	}
	return nil, fmt.Errorf("a %T would not come back as it is: keep it as json.RawMessage", v)
}

// utf8Only refuses text that JSON can't give back. Messages take care of themselves.
func utf8Only(v any) error {
	var all []string
	switch v := v.(type) {
	case []string:
		all = v
	case map[string]string:
		all = slices.AppendSeq(slices.Collect(maps.Keys(v)), maps.Values(v))
	case json.RawMessage:
		all = []string{string(v)}
	case json.Number:
		all = []string{string(v)}
	}
	if i := slices.IndexFunc(all, func(s string) bool { return !utf8.ValidString(s) }); i >= 0 {
		return fmt.Errorf("the text %q is no UTF-8", all[i])
	}
	return nil
}

// appendFloat always writes a point or an exponent: without one it is an int.
func appendFloat(dst []byte, f float64) ([]byte, error) {
	if math.IsNaN(f) || math.IsInf(f, 0) {
		return nil, fmt.Errorf("JSON has no number %v", f)
	}
	b := strconv.AppendFloat(nil, f, 'g', -1, 64)
	if !bytes.ContainsAny(b, ".e") {
		b = append(b, ".0"...)
	}
	return append(dst, b...), nil
}

func appendList(dst []byte, list []any, depth int) (_ []byte, err error) {
	if list == nil {
		return tagged(dst, asList, []byte("null")), nil
	}
	dst = append(dst, '[')
	for i, v := range list {
		if i > 0 {
			dst = append(dst, ',')
		}
		if dst, err = appendVar(dst, v, depth+1); err != nil {
			return nil, err
		}
	}
	return append(dst, ']'), nil
}

func appendMap(dst []byte, m map[string]any, depth int) (_ []byte, err error) {
	if m == nil {
		return tagged(dst, asMap, []byte("null")), nil
	}
	var b []byte
	ours := false
	for i, name := range slices.Sorted(maps.Keys(m)) {
		ours = len(m) == 1 && strings.HasPrefix(name, "$")
		if b, err = appendMember(b, i, name, m[name], depth+1); err != nil {
			return nil, err
		}
	}
	b = append(append([]byte{'{'}, b...), '}')
	if ours {
		return tagged(dst, asMap, b), nil
	}
	return append(dst, b...), nil
}

func appendMember(dst []byte, i int, name string, v any, depth int) ([]byte, error) {
	if !utf8.ValidString(name) {
		return nil, fmt.Errorf("the name %q is no UTF-8", name)
	}
	if i > 0 {
		dst = append(dst, ',')
	}
	dst, err := appendJSON(dst, name)
	if err != nil {
		return nil, err
	}
	return appendVar(append(dst, ':'), v, depth)
}

func tagged(dst []byte, name string, b []byte) []byte {
	dst = append(append(append(dst, `{"`...), name...), `":`...)
	return append(append(dst, b...), '}')
}

// appendJSON leaves <, > and & as they are: the bytes of messages stay.
func appendJSON(dst []byte, v any) ([]byte, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	err := enc.Encode(v)
	return append(dst, bytes.TrimSuffix(b.Bytes(), []byte("\n"))...), err
}

func readVar(b []byte) (any, error) {
	b = bytes.TrimSpace(b)
	if len(b) == 0 {
		return nil, fmt.Errorf("it is empty")
	}
	switch b[0] {
	case '{':
		var m map[string]json.RawMessage
		if err := json.Unmarshal(b, &m); err != nil {
			return nil, err
		}
		return readMap(m)
	case '[':
		var l []json.RawMessage
		if err := json.Unmarshal(b, &l); err != nil {
			return nil, err
		}
		out := make([]any, len(l))
		for i, raw := range l {
			var err error
			if out[i], err = readVar(raw); err != nil {
				return nil, err
			}
		}
		return out, nil
	case '"', 't', 'f', 'n':
		var v any
		err := json.Unmarshal(b, &v)
		return v, err
	}
	if !bytes.ContainsAny(b, ".eE") {
		n, err := strconv.Atoi(string(b))
		if errors.Is(err, strconv.ErrRange) {
			return json.Number(b), nil
		}
		return n, err
	}
	return strconv.ParseFloat(string(b), 64)
}

func readMap(m map[string]json.RawMessage) (any, error) {
	for name, raw := range m {
		if len(m) != 1 || !strings.HasPrefix(name, "$") {
			break
		}
		return readTagged(name, raw)
	}
	return members(m)
}

func members(m map[string]json.RawMessage) (any, error) {
	out := make(map[string]any, len(m))
	for name, raw := range m {
		v, err := readVar(raw)
		if err != nil {
			return nil, err
		}
		out[name] = v
	}
	return out, nil
}

func readTagged(name string, raw json.RawMessage) (any, error) {
	null := string(bytes.TrimSpace(raw)) == "null"
	switch name {
	case asText:
		var b []byte
		err := json.Unmarshal(raw, &b)
		return string(b), err
	case asList:
		return []any(nil), nil
	case asMap:
		if null {
			return map[string]any(nil), nil
		}
		var m map[string]json.RawMessage
		if err := json.Unmarshal(raw, &m); err != nil {
			return nil, err
		}
		return members(m)
	}
	for _, t := range varTypes {
		if t.name == name {
			return t.decode(raw)
		}
	}
	return nil, fmt.Errorf("no type %s is known here: it was written by a later version", name)
}
