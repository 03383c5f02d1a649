package cassettes_test

import (
	"strings"

	"github.com/pawl-dev/pawl/internal/cassettes"
)

// allowance is a difference that is meant between what a model said and what is sent back of it.
type allowance struct {
	api, kind, member string // a member of a kind of block; no member: the whole block
	when              func(v any) bool
	why               string
}

// allowances has them all. One that no recording needs fails the test.
var allowances = []allowance{
	{cassettes.OpenAI, "message", "refusal", null, "it says that nothing was refused"},
	{cassettes.OpenAI, "message", "annotations", empty, "it says that there are none, and requests have no such member"},
	{cassettes.Responses, "reasoning", "", unencrypted, "a thought without its encrypted form would be looked up by its id, and nothing is stored"},
	{cassettes.Gemini, "text", "", blank, "the empty end of a stream, which the API refuses to take back"},
}

func null(v any) bool        { return v == nil }
func empty(v any) bool       { return len(list(v)) == 0 }
func unencrypted(v any) bool { return text(member(v)["encrypted_content"]) == "" }
func blank(v any) bool       { return text(member(v)["text"]) == "" && member(v)["thoughtSignature"] == nil }

// forgive takes out of a reply what may be missing when it is sent back, and notes in used which allowances that took.
func forgive(api string, blocks []any, used map[string]bool) []any {
	out := []any{}
	for _, b := range blocks {
		block, gone := member(b), false
		for _, a := range allowances {
			v, there := any(block), true
			if a.member != "" {
				v, there = block[a.member]
			}
			if a.api != api || a.kind != kindOf(api, block) || !there || !a.when(v) {
				continue
			}
			used[a.why] = true
			if delete(block, a.member); a.member == "" {
				gone = true
			}
		}
		if !gone {
			out = append(out, block)
		}
	}
	return out
}

// kindOf names a block as its wire format does.
func kindOf(api string, block object) string {
	switch api {
	case cassettes.OpenAI:
		return "message"
	case cassettes.Gemini:
		for _, kind := range []string{"text", "functionCall"} {
			if block[kind] != nil {
				return kind
			}
		}
		return strings.Join(keys(block), " ")
	}
	return text(block["type"])
}
