package providertest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"regexp"
)

// What providers make a prompt of, in their several words: all of it, and the list that grows.
var (
	heads = []string{"tools", "system", "instructions", "systemInstruction", "text", "response_format", "output_config"}
	turns = []string{"messages", "input", "contents"}
)

// cacheMark is left out of what is compared: marks move by rule, and are no part of the prompt.
var cacheMark = regexp.MustCompile(`,?"cache_control":\{[^{}]*\}`)

// moved says where a request's prompt does not begin with that of the request before it, byte by byte, so that the provider would not find it in its cache; "" when it does. The same one again,
// and one that is the beginning of the one before, are fine.
func moved(before, after []byte) string {
	var a, b map[string]json.RawMessage
	if err := json.Unmarshal(before, &a); err != nil {
		return fmt.Sprintf("the request before is no JSON object: %v", err)
	}
	if err := json.Unmarshal(after, &b); err != nil {
		return fmt.Sprintf("the request is no JSON object: %v", err)
	}
	for _, name := range heads {
		if x, y := unmarked(a[name]), unmarked(b[name]); !bytes.Equal(x, y) {
			return fmt.Sprintf("%s moved: it was\n%s\nand is\n%s", name, x, y)
		}
	}
	for _, name := range turns {
		var x, y []json.RawMessage
		if err := json.Unmarshal(or(a[name], "[]"), &x); err != nil {
			return fmt.Sprintf("%s: %v", name, err)
		}
		if err := json.Unmarshal(or(b[name], "[]"), &y); err != nil {
			return fmt.Sprintf("%s: %v", name, err)
		}
		for i := range min(len(x), len(y)) {
			from, to := unmarked(x[i]), unmarked(y[i])
			if i == len(x)-1 { // a wire that merges neighbours of a role goes on inside of it
				from = bytes.TrimRight(from, "]}")
			} else if i == len(y)-1 {
				to = bytes.TrimRight(to, "]}")
				from, to = to, from
			}
			if i < min(len(x), len(y))-1 && !bytes.Equal(from, to) || !bytes.HasPrefix(to, from) {
				return fmt.Sprintf("%s: element %d moved: it was\n%s\nand is\n%s", name, i+1, x[i], y[i])
			}
		}
	}
	return ""
}

func unmarked(raw json.RawMessage) []byte { return cacheMark.ReplaceAll(raw, nil) }

func or(raw json.RawMessage, otherwise string) json.RawMessage {
	if raw == nil {
		return json.RawMessage(otherwise)
	}
	return raw
}
