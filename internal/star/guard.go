package star

import (
	"fmt"
	"slices"
	"strings"
	"unicode"

	"go.starlark.net/starlark"
)

const (
	longestInt   = 1024   // bits: operators that are not guarded make one a step
	longestDigit = 20_000 // of a text that becomes an int
)

// guards are what rewritten programs call, and the universal functions whose work or results are as large as what they are given.
var guards = func() starlark.StringDict {
	all := starlark.StringDict{guardNone: starlark.None}
	add := func(name string, f func(c *counter, t *starlark.Thread, args starlark.Tuple) (starlark.Value, error)) {
		all[name] = starlark.NewBuiltin(name, func(t *starlark.Thread, _ *starlark.Builtin, args starlark.Tuple, _ []starlark.Tuple) (starlark.Value, error) {
			return f(counterOf(t), t, args)
		})
	}
	for op := range guarded {
		add(guardOp+op.String(), func(c *counter, _ *starlark.Thread, args starlark.Tuple) (starlark.Value, error) {
			return c.binary(op, args[0], args[1])
		})
	}
	for aug, op := range augmented {
		add(guardOp+aug.String(), func(c *counter, _ *starlark.Thread, args starlark.Tuple) (starlark.Value, error) {
			return c.augment(op, args[0], args[1])
		})
		add(guardAt+aug.String(), func(c *counter, _ *starlark.Thread, args starlark.Tuple) (starlark.Value, error) {
			return starlark.None, c.augmentAt(op, args[0], args[1], args[2])
		})
	}
	add(guardKey, func(c *counter, _ *starlark.Thread, args starlark.Tuple) (starlark.Value, error) {
		return args[0], c.key(args[0])
	})
	add(guardDict, func(c *counter, _ *starlark.Thread, args starlark.Tuple) (starlark.Value, error) {
		return args[0], c.made(args[0])
	})
	add(guardSlice, func(c *counter, _ *starlark.Thread, args starlark.Tuple) (starlark.Value, error) {
		return c.slice(args[0], args[1], args[2], args[3])
	})
	add(guardSpread, func(c *counter, _ *starlark.Thread, args starlark.Tuple) (starlark.Value, error) {
		return args[0], c.arguments(args[0])
	})
	add(guardAttr, func(_ *counter, _ *starlark.Thread, args starlark.Tuple) (starlark.Value, error) {
		name, _ := starlark.AsString(args[1])
		return attr(args[0], name)
	})
	for name, pre := range universal {
		all[name] = guardedCall(name, starlark.Universe[name].(*starlark.Builtin), pre)
	}
	for name, f := range map[string]func(*starlark.Thread, *starlark.Builtin, starlark.Tuple, []starlark.Tuple) (starlark.Value, error){
		"sorted": sorted, "min": extreme, "max": extreme, "getattr": getattr,
	} {
		all[name] = starlark.NewBuiltin(name, f)
	}
	return all
}()

// plain are the universal functions that take and make little.
var plain = []string{
	"None", "True", "False", "abs", "bool", "chr", "dir", "float", "hasattr", "len", "ord", "range", "type",
}

// A before counts what a call is going to take.
type before func(c *counter, recv starlark.Value, args starlark.Tuple, kwargs []starlark.Tuple) error

var universal = map[string]before{
	"list": shallow, "tuple": shallow, "enumerate": paired, "reversed": shallow, "zip": paired, "any": shallow, "all": shallow,
	"dict": whole, "set": whole, "hash": whole, "str": printed, "repr": printed, "fail": printed, "bytes": shallow,
	"int": func(c *counter, _ starlark.Value, args starlark.Tuple, _ []starlark.Tuple) error {
		for _, a := range args {
			if s, ok := starlark.AsString(a); ok && len(s) > longestDigit {
				return fmt.Errorf("a text of %d bytes is too long for an int", len(s))
			}
		}
		return nil
	},
}

// guardedCall counts before the call what it is going to take, and afterwards what it made.
func guardedCall(name string, b *starlark.Builtin, pre before) *starlark.Builtin {
	recv := b.Receiver()
	g := starlark.NewBuiltin(name, func(t *starlark.Thread, _ *starlark.Builtin, args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
		c := counterOf(t)
		if err := pre(c, recv, args, kwargs); err != nil {
			return nil, err
		}
		v, err := b.CallInternal(t, args, kwargs)
		if err != nil {
			return nil, err
		}
		return v, c.made(v)
	})
	if recv != nil {
		return g.BindReceiver(recv)
	}
	return g
}

// shallow is for what goes over its arguments' items, however many.
func shallow(c *counter, _ starlark.Value, args starlark.Tuple, _ []starlark.Tuple) error {
	for _, a := range args {
		if err := c.spread(a); err != nil {
			return err
		}
	}
	return nil
}

// paired is for what makes tuples of its receiver's or its arguments' items.
func paired(c *counter, recv starlark.Value, args starlark.Tuple, kwargs []starlark.Tuple) error {
	if err := shallow(c, recv, args, kwargs); err != nil {
		return err
	}
	n := 0
	for _, a := range append(args[:len(args):len(args)], recv) {
		if a != nil {
			n = max(n, starlark.Len(a))
		}
	}
	return c.make(mul(int64(n), int64(len(args)+2)*word))
}

// whole is for what goes through its arguments with all that is in them.
func whole(c *counter, recv starlark.Value, args starlark.Tuple, kwargs []starlark.Tuple) error {
	if err := shallow(c, recv, args, kwargs); err != nil { // a range is small, and long
		return err
	}
	if _, err := c.look(args...); err != nil {
		return err
	}
	for _, kv := range kwargs {
		if _, err := c.look(kv...); err != nil {
			return err
		}
	}
	return nil
}

// printed is for what writes its arguments.
func printed(c *counter, _ starlark.Value, args starlark.Tuple, _ []starlark.Tuple) error {
	n, err := c.look(args...)
	if err != nil {
		return err
	}
	return c.make(n)
}

// within is for what looks for its arguments among the items of its receiver.
func within(c *counter, recv starlark.Value, args starlark.Tuple, kwargs []starlark.Tuple) error {
	if _, err := c.look(recv); err != nil {
		return err
	}
	return whole(c, recv, args, kwargs)
}

// linear is for what is made of a string once.
func linear(c *counter, recv starlark.Value, args starlark.Tuple, kwargs []starlark.Tuple) error {
	if err := whole(c, recv, args, kwargs); err != nil {
		return err
	}
	return c.work(int64(starlark.Len(recv) / 64))
}

// taken is for what may be taken apart in one step: it does not say how long it is.
func taken(c *counter, recv starlark.Value, _ starlark.Tuple, _ []starlark.Tuple) error {
	n := int64(max(starlark.Len(recv), 0))
	if err := c.work(n / 16); err != nil {
		return err
	}
	return c.make(n * 2 * perItem)
}

// methods are those of the built-in types that are guarded.
var methods = map[string]bool{}

var methodsOf = map[string]map[string]before{
	"string": {
		"capitalize": linear, "lower": linear, "upper": linear, "title": linear, "strip": linear, "lstrip": linear, "rstrip": linear, "partition": linear,
		"rpartition": linear, "removeprefix": linear, "removesuffix": linear, "count": linear, "find": linear, "rfind": linear, "index": linear, "rindex": linear,
		"split": pieces, "rsplit": pieces, "splitlines": pieces, "join": joined, "replace": replaced, "format": formatted,
		"elems": taken, "elem_ords": taken, "codepoints": taken, "codepoint_ords": taken,
	},
	"bytes": {"elems": taken},
	"list":  {"extend": shallow, "insert": linear, "index": within, "remove": within},
	"dict":  {"get": whole, "pop": whole, "setdefault": whole, "update": whole, "items": paired, "keys": linear, "values": linear},
	"set": {
		"add": whole, "discard": whole, "remove": whole, "update": within, "union": within, "difference": within, "intersection": within,
		"symmetric_difference": within, "issubset": within, "issuperset": within,
	},
}

func init() {
	for _, ms := range methodsOf {
		for name := range ms {
			methods[name] = true
		}
	}
}

// attr is x.name, of built-in types a guarded method.
func attr(x starlark.Value, name string) (starlark.Value, error) {
	h, ok := x.(starlark.HasAttrs)
	if !ok {
		return nil, fmt.Errorf("%s has no .%s field or method", x.Type(), name)
	}
	v, err := h.Attr(name)
	if err != nil {
		return nil, err
	}
	if v == nil {
		return nil, fmt.Errorf("%s has no .%s field or method", x.Type(), name)
	}
	if b, ok := v.(*starlark.Builtin); ok {
		if pre := methodsOf[x.Type()][name]; pre != nil {
			return guardedCall(name, b, pre), nil
		}
	}
	return v, nil
}

func getattr(_ *starlark.Thread, b *starlark.Builtin, args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
	var x, otherwise starlark.Value
	var name string
	if err := starlark.UnpackPositionalArgs(b.Name(), args, kwargs, 2, &x, &name, &otherwise); err != nil {
		return nil, err
	}
	v, err := attr(x, name)
	if err != nil && otherwise != nil {
		return otherwise, nil
	}
	return v, err
}

// pieces counts what the parts of a string take before it is taken apart.
func pieces(c *counter, recv starlark.Value, args starlark.Tuple, kwargs []starlark.Tuple) error {
	s, _ := starlark.AsString(recv)
	n := strings.Count(s, "\n")
	if len(args) > 0 {
		if sep, ok := starlark.AsString(args[0]); ok && sep != "" {
			n = strings.Count(s, sep)
		}
	}
	for _, r := range s {
		if unicode.IsSpace(r) { // some are counted twice
			n++
		}
	}
	if err := linear(c, recv, args, kwargs); err != nil {
		return err
	}
	return c.make(int64(n) * 2 * perItem)
}

func joined(c *counter, recv starlark.Value, args starlark.Tuple, _ []starlark.Tuple) error {
	if len(args) != 1 {
		return nil // it says what is wrong
	}
	if err := c.spread(args[0]); err != nil {
		return err
	}
	it := starlark.Iterate(args[0])
	if it == nil {
		return nil
	}
	defer it.Done()
	sep := int64(starlark.Len(recv))
	var size int64
	var x starlark.Value
	for it.Next(&x) {
		size += sep + int64(max(starlark.Len(x), 0))
	}
	if size > c.largest() { // nothing is counted twice but what is too much
		return c.make(size)
	}
	return c.work(size / 64)
}

func replaced(c *counter, recv starlark.Value, args starlark.Tuple, _ []starlark.Tuple) error {
	if len(args) < 2 {
		return nil
	}
	s, _ := starlark.AsString(recv)
	from, ok1 := starlark.AsString(args[0])
	to, ok2 := starlark.AsString(args[1])
	if !ok1 || !ok2 {
		return nil
	}
	size := mul(int64(strings.Count(s, from)), int64(len(to))) + int64(len(s))
	if size > c.largest() {
		return c.make(size)
	}
	return c.work(size / 64)
}

// formatted bounds what format can come to: every field may be the longest of the arguments.
func formatted(c *counter, recv starlark.Value, args starlark.Tuple, kwargs []starlark.Tuple) error {
	s, _ := starlark.AsString(recv)
	all := slices.Clone(args)
	for _, kv := range kwargs {
		all = append(all, kv[1])
	}
	var longest int64
	for _, a := range all {
		n, err := c.look(a)
		if err != nil {
			return err
		}
		longest = max(longest, n)
	}
	return c.room(mul(int64(strings.Count(s, "{")), longest) + int64(len(s)))
}

// room refuses what would be too large, and counts its work: what is made in the end is counted then.
func (c *counter) room(size int64) error {
	if size > c.largest() {
		return c.make(size)
	}
	return c.work(size / 64)
}

// made counts what was made, without what is in it.
func (c *counter) made(v starlark.Value) error {
	switch v := v.(type) {
	case starlark.String:
		return c.make(word + int64(len(v)))
	case starlark.Bytes:
		return c.make(word + int64(len(v)))
	case *starlark.List:
		return c.make(word + perItem*int64(v.Len()))
	case starlark.Tuple:
		return c.make(word + perItem*int64(len(v)))
	case *starlark.Dict:
		return c.make(perDict + perKey*int64(v.Len()))
	case *starlark.Set:
		return c.make(perDict + perKey*int64(v.Len()))
	case starlark.Int:
		if n := bits(v); n > longestInt {
			return fmt.Errorf("an int of more than %d bits", longestInt)
		} else if n > 0 {
			return c.make(word + int64(n)/8)
		}
	}
	return nil
}

// spread counts going over the items of x.
func (c *counter) spread(x starlark.Value) error {
	n := max(starlark.Len(x), 0)
	if err := c.work(int64(n) / 16); err != nil {
		return err
	}
	return c.fits(int64(n) * perItem)
}

// arguments counts handing over the items of x one by one, or by their names.
func (c *counter) arguments(x starlark.Value) error {
	n := int64(max(starlark.Len(x), 0))
	if err := c.work(n / 4); err != nil {
		return err
	}
	if _, ok := x.(*starlark.Dict); ok {
		return c.make(n * (perKey + 2*word))
	}
	return c.make(n * perItem)
}

// fits refuses what would be too large.
func (c *counter) fits(size int64) error {
	if size > c.largest() {
		return c.make(size)
	}
	return nil
}

// key counts hashing.
func (c *counter) key(x starlark.Value) error {
	if _, ok := x.(starlark.Tuple); !ok {
		return nil // a string is hashed as quickly as it was made, and lists not at all
	}
	_, err := c.look(x)
	return err
}

// simple values are compared at once.
func simple(x starlark.Value) bool {
	switch x.(type) {
	case starlark.NoneType, starlark.Bool, starlark.Int, starlark.Float, starlark.String, starlark.Bytes:
		return true
	}
	return false
}
