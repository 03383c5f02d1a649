package exact

import (
	"bytes"
	"encoding/json"
	"errors"
	"math"
	"strconv"
	"strings"
)

// Integers reads JSON that is valid by a schema. JSON Schema calls 1.0 and 1e3 integers, and models write them; encoding/json doesn't, so when read
// stumbles over a number it is called again, once, with those written out. What read makes the first time counts no more then.
func Integers(data []byte, read func(data []byte) error) error {
	err := read(data)
	var wrong *json.UnmarshalTypeError
	if !errors.As(err, &wrong) || !strings.HasPrefix(wrong.Value, "number ") {
		return err
	}
	d := json.NewDecoder(bytes.NewReader(data))
	d.UseNumber()
	var v any
	if d.Decode(&v) != nil {
		return err
	}
	var plain bytes.Buffer
	enc := json.NewEncoder(&plain)
	enc.SetEscapeHTML(false)
	if enc.Encode(integers(v)) != nil {
		return err
	}
	return read(bytes.TrimSuffix(plain.Bytes(), []byte("\n")))
}

// integers writes numbers without a fraction as integers, as far as float64 is exact.
func integers(v any) any {
	switch v := v.(type) {
	case map[string]any:
		for k := range v {
			v[k] = integers(v[k])
		}
	case []any:
		for i := range v {
			v[i] = integers(v[i])
		}
	case json.Number:
		if f, err := v.Float64(); err == nil && strings.ContainsAny(v.String(), ".eE") && f == math.Trunc(f) && math.Abs(f) < 1<<53 {
			return json.Number(strconv.FormatInt(int64(f), 10))
		}
	}
	return v
}
