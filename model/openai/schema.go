package openai

import (
	"encoding/json"
	"slices"
)

// strictWords are the keywords that strict mode knows and that hold no schema of their own.
var strictWords = []string{"type", "title", "description", "enum", "const", "required", "additionalProperties", "$ref"}

// strictSchema reports whether a schema is surely in the subset that OpenAI's strict mode takes: an object at the top, each object
// closed and with all of its properties required, no other keywords than the plain ones.
func strictSchema(raw json.RawMessage) bool {
	var top map[string]json.RawMessage
	if json.Unmarshal(raw, &top) != nil || top["anyOf"] != nil || string(top["type"]) != `"object"` {
		return false
	}
	return strictObject(top)
}

func strict(raw json.RawMessage) bool {
	var s map[string]json.RawMessage
	return json.Unmarshal(raw, &s) == nil && s != nil && strictObject(s)
}

func strictObject(s map[string]json.RawMessage) bool {
	for key, value := range s {
		var ok bool
		switch key {
		case "properties", "$defs", "definitions":
			ok = strictMap(value)
		case "items":
			ok = strict(value)
		case "anyOf":
			ok = strictList(value)
		default:
			ok = slices.Contains(strictWords, key)
		}
		if !ok {
			return false
		}
	}
	if string(s["type"]) == `"array"` {
		return s["items"] != nil
	}
	if string(s["type"]) != `"object"` && s["properties"] == nil {
		return s["type"] != nil || s["anyOf"] != nil || s["$ref"] != nil || s["enum"] != nil || s["const"] != nil
	}
	var properties map[string]json.RawMessage
	var required []string
	_ = json.Unmarshal(s["properties"], &properties)
	_ = json.Unmarshal(s["required"], &required)
	for name := range properties {
		if !slices.Contains(required, name) {
			return false
		}
	}
	return string(s["additionalProperties"]) == "false"
}

func strictMap(raw json.RawMessage) bool {
	var m map[string]json.RawMessage
	if json.Unmarshal(raw, &m) != nil || m == nil {
		return false
	}
	for _, s := range m {
		if !strict(s) {
			return false
		}
	}
	return true
}

func strictList(raw json.RawMessage) bool {
	var l []json.RawMessage
	if json.Unmarshal(raw, &l) != nil || l == nil {
		return false
	}
	return !slices.ContainsFunc(l, func(s json.RawMessage) bool { return !strict(s) })
}
