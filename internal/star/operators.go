package star

import (
	"fmt"
	"math"
	"strings"

	"go.starlark.net/starlark"
	"go.starlark.net/syntax"
)

func (c *counter) binary(op syntax.Token, x, y starlark.Value) (starlark.Value, error) {
	switch op {
	case syntax.EQL, syntax.NEQ, syntax.LT, syntax.LE, syntax.GT, syntax.GE:
		if !simple(x) && !simple(y) {
			if _, err := c.look(x, y); err != nil {
				return nil, err
			}
		}
		ok, err := starlark.Compare(op, x, y)
		return starlark.Bool(ok), err
	case syntax.IN, syntax.NOT_IN:
		if !simple(y) {
			if err := c.key(x); err != nil {
				return nil, err
			}
			if _, isDict := y.(*starlark.Dict); !isDict {
				if _, err := c.look(x, y); err != nil {
					return nil, err
				}
			}
		} else if err := c.work(int64(max(starlark.Len(y), 0)) / 64); err != nil {
			return nil, err
		}
		return starlark.Binary(op, x, y)
	}
	if err := c.beforeBinary(op, x, y); err != nil {
		return nil, err
	}
	z, err := starlark.Binary(op, x, y)
	if err != nil {
		return nil, err
	}
	return z, c.made(z)
}

// beforeBinary refuses results that would be too large, before they are made.
func (c *counter) beforeBinary(op syntax.Token, x, y starlark.Value) error {
	switch op {
	case syntax.PLUS, syntax.PIPE, syntax.AMP, syntax.CIRCUMFLEX, syntax.MINUS:
		if _, ok := x.(starlark.Int); ok {
			return nil
		}
		if _, ok := x.(*starlark.Set); ok {
			return within(c, x, starlark.Tuple{y}, nil)
		}
		if _, ok := x.(*starlark.Dict); ok {
			return within(c, x, starlark.Tuple{y}, nil)
		}
		return c.room(length(x) + length(y))
	case syntax.STAR:
		if i, ok := x.(starlark.Int); ok {
			if j, ok := y.(starlark.Int); ok {
				if bits(i)+bits(j) > longestInt {
					return fmt.Errorf("an int of more than %d bits", longestInt)
				}
				return nil
			}
			x, y = y, x
		}
		if n, ok := y.(starlark.Int); ok {
			times := int64(math.MaxInt32) // more is an error anyway
			if i, ok := n.Int64(); ok {
				times = max(i, 0)
			}
			return c.room(mul(length(x), times))
		}
	case syntax.PERCENT:
		s, ok := starlark.AsString(x)
		if !ok {
			return nil
		}
		n, err := c.look(y)
		if err != nil {
			return err
		}
		if _, isDict := y.(*starlark.Dict); isDict { // whose values may be written again and again
			n = mul(n, int64(strings.Count(s, "%")))
		}
		return c.room(n + int64(len(s)))
	}
	return nil
}

// length in bytes, of what can be added to and repeated.
func length(x starlark.Value) int64 {
	n := int64(max(starlark.Len(x), 0))
	switch x.(type) {
	case *starlark.List, starlark.Tuple:
		n *= perItem
	}
	return n
}

// mul is a product that stops at the largest number.
func mul(a, b int64) int64 {
	if a > 0 && b > math.MaxInt64/2/a {
		return math.MaxInt64 / 2
	}
	return a * b
}

// augment is x op= y: a list, a dict and a set grow in place.
func (c *counter) augment(op syntax.Token, x, y starlark.Value) (starlark.Value, error) {
	switch x := x.(type) {
	case *starlark.List:
		if op != syntax.PLUS {
			break
		}
		if it := starlark.Iterate(y); it != nil {
			err := c.spread(y)
			var all []starlark.Value // first: y may be x
			for v := starlark.Value(nil); err == nil && it.Next(&v); {
				all = append(all, v)
			}
			it.Done()
			if err == nil {
				err = c.make(perItem * int64(len(all)))
			}
			for i := 0; err == nil && i < len(all); i++ {
				err = x.Append(all[i])
			}
			return x, err
		}
	case *starlark.Dict:
		if other, ok := y.(*starlark.Dict); ok && op == syntax.PIPE {
			if err := c.make(perKey * int64(other.Len())); err != nil {
				return nil, err
			}
			for k, v := range other.Entries() {
				if err := x.SetKey(k, v); err != nil {
					return nil, err
				}
			}
			return x, nil
		}
	}
	if guarded[op] {
		return c.binary(op, x, y)
	}
	return starlark.Binary(op, x, y)
}

// augmentAt is a[i] op= y.
func (c *counter) augmentAt(op syntax.Token, a, i, y starlark.Value) error {
	if err := c.key(i); err != nil {
		return err
	}
	switch a := a.(type) {
	case starlark.HasSetKey:
		x, found, err := a.Get(i)
		if err == nil && !found {
			err = fmt.Errorf("key %v not in %s", i, a.Type())
		}
		if err != nil {
			return err
		}
		if x, err = c.augment(op, x, y); err != nil {
			return err
		}
		return a.SetKey(i, x)
	case starlark.HasSetIndex:
		n, err := starlark.AsInt32(i)
		if err != nil {
			return fmt.Errorf("%s index: %w", a.Type(), err)
		}
		if n < 0 {
			n += a.Len()
		}
		if n < 0 || n >= a.Len() {
			return fmt.Errorf("%s index %v out of range", a.Type(), i)
		}
		x, err := c.augment(op, a.Index(n), y)
		if err != nil {
			return err
		}
		return a.SetIndex(n, x)
	}
	return fmt.Errorf("%s value does not support item assignment", a.Type())
}

// slice is x[lo:hi:step]. Parts of a string share its bytes, unless step says otherwise; of a list they are a copy.
func (c *counter) slice(x, lo, hi, step starlark.Value) (starlark.Value, error) {
	s, ok := x.(starlark.Sliceable)
	if !ok {
		return nil, fmt.Errorf("invalid slice operand %s", x.Type())
	}
	n, by := s.Len(), 1
	if step != starlark.None {
		var err error
		if by, err = starlark.AsInt32(step); err != nil {
			return nil, fmt.Errorf("invalid slice step: %w", err)
		}
		if by == 0 {
			return nil, fmt.Errorf("zero is not a valid slice step")
		}
	}
	// With a negative step it goes from the last to before the first.
	from, to, low, high := 0, n, 0, n
	if by < 0 {
		from, to, low, high = n-1, -1, -1, n-1
	}
	for _, b := range []struct {
		v  starlark.Value
		at *int
	}{{lo, &from}, {hi, &to}} {
		if b.v == starlark.None {
			continue
		}
		i, err := starlark.AsInt32(b.v)
		if err != nil {
			return nil, fmt.Errorf("invalid slice index: %w", err)
		}
		if i < 0 {
			i += n
		}
		*b.at = min(max(i, low), high)
	}
	if by > 0 {
		to = max(from, to)
	} else {
		from = max(from, to)
	}
	part := s.Slice(from, to, by)
	if _, ok := x.(starlark.String); ok && by == 1 {
		return part, nil
	}
	return part, c.made(part)
}
