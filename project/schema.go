package project

import _ "embed"

//go:embed settings.schema.json
var schema []byte

// Schema is the JSON Schema of a settings file, for editors and checkers. It knows the keys that [Load] knows; permission rules, patterns and paths are checked by Load alone.
func Schema() []byte { return append([]byte(nil), schema...) }
