package exact

import (
	"bytes"
	"encoding/json"
	"errors"
	"math"
	"strconv"
	"strings"
)

// Integers gives data anew where err, of reading it, is that encoding/json stumbled over a number: with integers written out, to be read once more into a
// value of its own. JSON Schema calls 1.0 and 1e3 integers, and models write them; encoding/json doesn't. nil: nothing else is to be read.
func Integers(data []byte, err error) []byte {
	var wrong *json.UnmarshalTypeError
	if !errors.As(err, &wrong) || !strings.HasPrefix(wrong.Value, "number ") {
		return nil
	}
	d := json.NewDecoder(bytes.NewReader(data))
	d.UseNumber()
	var v any
	if d.Decode(&v) != nil {
		return nil
	}
	var plain bytes.Buffer
	enc := json.NewEncoder(&plain)
	enc.SetEscapeHTML(false)
	if enc.Encode(integers(v)) != nil {
		return nil
	}
	return bytes.TrimSuffix(plain.Bytes(), []byte("\n"))
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
