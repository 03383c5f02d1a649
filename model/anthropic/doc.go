// Package anthropic speaks the Anthropic Messages API (POST /v1/messages, version 2023-06-01) to Claude models and to every server
// that takes the same requests. The key is taken from the options or from ANTHROPIC_API_KEY.
//
// What the API is told of a conversation is encoded once for each message and once for the system prompt and tools, so a further
// step costs the new messages only.
//
// Cache marks (cache_control) are placed by rule: one at the end of the system prompt, or of the tools when there is none, which other
// conversations share and which a compaction leaves; one that moves along with the end of the conversation; and after a long step
// one where the request before had ended, because the API looks back 20 blocks only. A request that is a single message without
// tools, which nobody will continue, has none. To place marks of your own, two at most, give the last text of a message an
// Origin{Provider: "anthropic", Extra: `{"cache_control":{…}}`}: there is none at the end of the system prompt then, since marks
// that last longer have to come first. Together that is four at most, as the API has it.
//
// What this package doesn't understand survives: unknown blocks become message.Opaque and unknown members of known blocks
// Origin.Extra, and both are sent back as they came. Beta features are asked for with model.WithHeader("anthropic-beta", …).
package anthropic
