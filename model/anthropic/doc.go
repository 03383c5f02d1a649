// Package anthropic speaks the Anthropic Messages API (POST /v1/messages, version 2023-06-01) to Claude models and to every server
// that takes the same requests. The key is taken from the options or from ANTHROPIC_API_KEY.
//
// What the API is told of a conversation is encoded once for each message and once for the system prompt and tools, so a further
// step costs the new messages only. One cache mark (cache_control) moves along with the end of the conversation; it is left out of
// a request that is a single message without tools, which nobody will continue. To place marks of your own, give the last text of a
// message an Origin{Provider: "anthropic", Extra: `{"cache_control":{…}}`}.
//
// What this package doesn't understand survives: unknown blocks become message.Opaque and unknown members of known blocks
// Origin.Extra, and both are sent back as they came. Beta features are asked for with model.WithHeader("anthropic-beta", …).
package anthropic
