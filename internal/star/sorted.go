package star

import (
	"fmt"
	"slices"

	"go.starlark.net/starlark"
	"go.starlark.net/syntax"
)

// keyed are values with what they are sorted by.
type keyed struct{ value, key starlark.Value }

// keys calls key for each of the values, and counts what comparing its results n times takes.
func keys(t *starlark.Thread, values starlark.Value, key starlark.Value) ([]keyed, error) {
	c := counterOf(t)
	if err := c.spread(values); err != nil {
		return nil, err
	}
	it := starlark.Iterate(values)
	if it == nil {
		return nil, fmt.Errorf("%s value is not iterable", values.Type())
	}
	defer it.Done()
	var all []keyed
	var x starlark.Value
	for it.Next(&x) {
		k := x
		if key != nil && key != starlark.None {
			var err error
			if k, err = starlark.Call(t, key, starlark.Tuple{x}, nil); err != nil {
				return nil, err
			}
		}
		if _, err := c.look(k); err != nil {
			return nil, err
		}
		all = append(all, keyed{x, k})
	}
	return all, nil
}

// compares is how many comparisons of small values, in a sort, are worth a look at the limits, and a step for each 8.
const compares = 1024

func sorted(t *starlark.Thread, b *starlark.Builtin, args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
	var values, key starlark.Value
	var reverse bool
	if err := starlark.UnpackArgs(b.Name(), args, kwargs, "iterable", &values, "key?", &key, "reverse?", &reverse); err != nil {
		return nil, err
	}
	all, err := keys(t, values, key)
	if err != nil {
		return nil, err
	}
	c, op := counterOf(t), syntax.LT
	if reverse {
		op = syntax.GT
	}
	compared := 0
	slices.SortStableFunc(all, func(x, y keyed) int {
		if compared++; compared%compares == 0 && err == nil {
			err = c.busy()
		}
		if err != nil {
			return 0
		}
		var first starlark.Value
		if first, err = c.binary(op, x.key, y.key); err == nil && bool(first.Truth()) {
			return -1
		}
		if err == nil {
			if first, err = c.binary(op, y.key, x.key); err == nil && bool(first.Truth()) {
				return 1
			}
		}
		return 0
	})
	if err != nil {
		return nil, err
	}
	out := make([]starlark.Value, len(all))
	for i, x := range all {
		out[i] = x.value
	}
	l := starlark.NewList(out)
	return l, c.made(l)
}

// extreme is min and max: of its arguments, or of the items of the only one.
func extreme(t *starlark.Thread, b *starlark.Builtin, args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
	var key starlark.Value
	if err := starlark.UnpackArgs(b.Name(), nil, kwargs, "key?", &key); err != nil {
		return nil, err
	}
	var values starlark.Value = args
	switch len(args) {
	case 0:
		return nil, fmt.Errorf("%s requires at least one positional argument", b.Name())
	case 1:
		values = args[0]
	}
	all, err := keys(t, values, key)
	if err != nil {
		return nil, err
	}
	if len(all) == 0 {
		return nil, fmt.Errorf("%s: argument is an empty sequence", b.Name())
	}
	op := syntax.LT
	if b.Name() == "max" {
		op = syntax.GT
	}
	best := all[0]
	for _, x := range all[1:] {
		better, err := counterOf(t).binary(op, x.key, best.key)
		if err != nil {
			return nil, err
		}
		if better.Truth() {
			best = x
		}
	}
	return best.value, nil
}
