package oracle

import (
	"bytes"
	"encoding/json"
	"fmt"
	"iter"
	"maps"
	"math/big"
	"slices"
	"strings"
	"testing"
)

// change is a place where two JSON documents say something else.
type change struct {
	pointer      string // RFC 6901
	theirs, ours any    // nil: it isn't there
}

func (c change) String() string {
	show := func(v any) string {
		if v == nil {
			return "nothing"
		}
		b, _ := json.Marshal(v)
		if len(b) > 300 {
			return string(b[:300]) + "…"
		}
		return string(b)
	}
	return fmt.Sprintf("%s: the vendor's %s, ours %s", c.pointer, show(c.theirs), show(c.ours))
}

// changes compares two documents. Where both have an object it looks into it, and likewise into arrays of the same length.
func changes(pointer string, theirs, ours any) (all []change) {
	switch a := theirs.(type) {
	case object:
		b, ok := ours.(object)
		if !ok {
			break
		}
		names := maps.Clone(a)
		maps.Copy(names, b)
		for _, name := range slices.Sorted(maps.Keys(names)) {
			all = append(all, member(pointer, name, a, b)...)
		}
		return all
	case []any:
		b, ok := ours.([]any)
		if !ok || len(a) != len(b) {
			break
		}
		for i := range a {
			all = append(all, changes(fmt.Sprintf("%s/%d", pointer, i), a[i], b[i])...)
		}
		return all
	case json.Number:
		if b, ok := ours.(json.Number); ok && sameNumber(a, b) {
			return nil
		}
	default:
		if theirs == ours {
			return nil
		}
	}
	return []change{{pointer, theirs, ours}}
}

// member compares a member; null is told from what isn't there.
func member(pointer, name string, theirs, ours object) []change {
	pointer += "/" + strings.NewReplacer("~", "~0", "/", "~1").Replace(name)
	a, there := theirs[name]
	b, here := ours[name]
	if there != here {
		return []change{{pointer, a, b}}
	}
	return changes(pointer, a, b)
}

// sameNumber compares what two numbers are, not how they are spelled.
func sameNumber(a, b json.Number) bool {
	x, ok1 := new(big.Rat).SetString(a.String())
	y, ok2 := new(big.Rat).SetString(b.String())
	return ok1 && ok2 && x.Cmp(y) == 0
}

// document reads a JSON object; numbers keep their digits.
func document(t *testing.T, raw []byte) (v object) {
	t.Helper()
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	if err := d.Decode(&v); err != nil {
		t.Fatalf("not JSON: %v: %s", err, raw)
	}
	return v
}

// object is a JSON object.
type object = map[string]any

// objects yields the objects of a list; none of what is no list.
func objects(list any) iter.Seq[object] {
	return func(yield func(object) bool) {
		all, _ := list.([]any)
		for _, v := range all {
			if o, ok := v.(object); ok && !yield(o) {
				return
			}
		}
	}
}
