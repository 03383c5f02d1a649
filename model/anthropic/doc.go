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
// Settings.Reasoning is said as the model wants it: as tokens to think with (Claude 3.7 to 4.5), as effort (from 4.6 on), or both (Opus 4.5). Thoughts are asked
// for as summaries, which later models leave out otherwise. Tools that the API runs itself are model.WebSearch, model.WebFetch and model.CodeExecution, in the latest
// version that the model takes; a "type" among a tool's options asks for another one. Searches and pages are not used by the model's code
// (dynamic filtering), unless "allowed_callers" among their options says so. Code begins with an empty container in each request. What they did is in the reply as message.ProviderCall, as are the steps of an
// MCP connector. The text of a page that was fetched is in its JSON only.
//
// What this package doesn't understand survives: unknown blocks become message.Opaque and unknown members of known blocks
// Origin.Extra, and both are sent back as they came. Beta features are asked for with model.WithHeader("anthropic-beta", …); those that a request needs are added to
// them.
package anthropic
