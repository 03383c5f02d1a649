package star

import (
	"fmt"
	"strings"

	starjson "go.starlark.net/lib/json"
	"go.starlark.net/starlark"
)

// jsonModule has encode and decode. Starlark's own indents too, which makes any amount of little.
var jsonModule = NewStruct(starlark.StringDict{
	"encode": guardedCall("json.encode", starjson.Module.Members["encode"].(*starlark.Builtin), printed),
	"decode": starlark.NewBuiltin("json.decode", decodeJSON),
})

// decodeJSON reads as [To] does, so that a text is what it is on a board.
func decodeJSON(t *starlark.Thread, b *starlark.Builtin, args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
	var text string
	if err := starlark.UnpackPositionalArgs(b.Name(), args, kwargs, 1, &text); err != nil {
		return nil, err
	}
	c := counterOf(t)
	if err := c.work(int64(len(text) / 16)); err != nil {
		return nil, err
	}
	size := int64(len(text)) + int64(strings.Count(text, "{"))*perDict + int64(strings.Count(text, "[")+strings.Count(text, ","))*2*perItem
	if err := c.make(size); err != nil {
		return nil, err
	}
	v, err := DecodeJSON(text)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", b.Name(), err)
	}
	return v, nil
}

// DecodeJSON is the value that a JSON text says, as [To] has it of a json.RawMessage.
func DecodeJSON(text string) (starlark.Value, error) {
	v, err := decode([]byte(text))
	if err != nil {
		return nil, err
	}
	return To(v)
}

func newStruct(_ *starlark.Thread, b *starlark.Builtin, args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
	if len(args) > 0 {
		return nil, fmt.Errorf("%s: fields have names: struct(a = 1)", b.Name())
	}
	fields := starlark.StringDict{}
	for _, kv := range kwargs {
		name, _ := starlark.AsString(kv[0])
		fields[name] = kv[1]
	}
	return NewStruct(fields), nil
}
