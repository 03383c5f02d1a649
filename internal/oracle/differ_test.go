package oracle

import "slices"

// answersDiffer are the fields in which the vendor's SDK and we read an answer otherwise. A name with a number is that of a recorded answer.
var answersDiffer = slices.Concat(
	differing("a reply that is cut off within a call: ours keeps what the model wrote, as it wrote it, so that it can be told what was wrong",
		at("anthropic", "half_call.*", "call inputs"),
	),
	differing("no SDK says that a stream was cut off: who uses it has to see that there is no end",
		at("anthropic", "truncated.sse", "error code", "error message"),
		at("openai", "truncated.sse", "error code", "error message"),
		at("openai-responses", "truncated.sse", "error code", "error message"),
		at("gemini", "truncated.sse", "error code", "error message"),
	),
	differing("an error within a stream has no status of HTTP: the SDK gives that of the stream's beginning, or the body's",
		at("anthropic", "error_midstream.sse", "error status"),
		at("gemini", "error_midstream.sse", "error status"),
	),
	differing("the SDK gives an error within a stream as one text",
		at("openai", "error_midstream.sse", "error code", "error message"),
		at("openai", "*test_openrouter_stream_error/1", "error code", "error message"),
	),
	differing("ours leaves the key out of an error's text",
		at("openai", "error_401.json", "error message"),
		at("openai-responses", "error_401.json", "error message"),
	),
	differing("the SDK's accumulator drops the count",
		at("openai", "cache.sse", "cache write tokens", "input tokens"),
	),
	differing("the SDK's accumulator drops what other vendors add to a delta",
		at("openai", "reasoning.sse", "order", "reasoning", "signatures"),
		at("openai", "*test_deepseek_model_thinking_stream/1", "order", "reasoning", "signatures"),
	),
	differing("an item that says nothing is no part of a message",
		at("openai-responses", "empty.*", "order", "others"),
	),
	differing("the API says nothing but a status; ours says what that means",
		at("openai-responses", "*test_background_mode_vcr/1", "error message"),
	),
	differing("the SDK doesn't know an error in an array",
		at("gemini", "error_429.json", "error code", "error message"),
	),
	differing("the SDK gives the code of the body, which says 503, for the status",
		at("gemini", "error_529.json", "error status"),
	),
	differing("the SDK drops finishMessage",
		at("gemini", "filter.*", "reason"),
	),
	differing("the SDK drops parts that it doesn't know",
		at("gemini", "unknown_block.*", "order", "others"),
	),
	differing("Gemini gave the call no id, and ours makes one",
		at("gemini", "*__thinking-streaming/1", "call ids"),
		at("gemini", "*test_google_streaming_tool_call_thought_signature/1", "call ids"),
	),
)

// requestsDiffer are the members of a request that the vendor's types lose or change.
var requestsDiffer = slices.Concat(
	differing("the SDK takes any choice of a function for one of its other choices when it reads it; TestARequestInTheVendorsTypesIsTheSameCall has it",
		at("openai", "tool_choice_name", "/tool_choice/function"),
		at("openai-responses", "tool_choice_name", "/tool_choice/name"),
	),
)

// byHandDiffer are the members that one writes otherwise in the vendor's types.
var byHandDiffer = slices.Concat(
	differing("the SDK's way to write a result says of each whether it failed",
		at("anthropic", "tool_round", "/messages/2/content/0/is_error"),
	),
)

// backDiffer are the members in which a reply goes back otherwise than the vendor's SDK would send it, or, behind "again", those that its types
// lose of ours.
var backDiffer = slices.Concat(
	differing("a reply that says nothing is no message to send back: providers refuse it",
		at("anthropic", "empty*", ""), at("anthropic", "refusal.*", ""),
		at("openai", "empty*", ""),
		at("openai-responses", "empty.*", ""),
		at("gemini", "empty*", ""), at("gemini", "*test_google_model_max_tokens_thinking_model_empty_response/1", ""),
	),
	differing("a call that was cut off is no JSON: the vendor's SDK sends what the API refuses, or leaves out what the model wrote",
		at("anthropic", "half_call.json", "/0/content/0/input"), at("anthropic", "half_call.sse", "/0/content/0/input/INVALID_JSON"),
		at("openai", "half_call.*", "/0/tool_calls/0/function/arguments"),
	),
	differing("the SDK's types have no place for a block that they don't know",
		at("anthropic", "unknown_block.*", "again /messages/1/content"),
		at("anthropic", "*test_anthropic_mcp_servers_stream/1", "again /messages/1/content"), // of the beta
		at("gemini", "unknown_block.json", "/0/parts/1/data", "/0/parts/1/type"),
		at("gemini", "unknown_block.*", "again"),
	),
	differing(shortMessages,
		at("openai-responses", "*.*", "again /input/*/id", "again /input/*/status"),
		at("openai-responses", "*/*", "again /input/*/id", "again /input/*/status"),
	),
	differing("the SDK leaves out a null",
		at("openai-responses", "*test_openai_responses_model_mcp_server_tool_stream/1", "/*/error", "again /input/*/error"),
	),
)

const shortMessages = "reading an assistant's message again, the SDK takes it for one of the short kind, which has no id and no status"

// madeUpDiffer are those of replies that are made up.
var madeUpDiffer = differing(shortMessages, at("openai-responses", "*", "again /input/*/id", "again /input/*/status"))

// wishesDiffer are the members of a request for reasoning, tools of the provider and kept files that the vendor's types lose or change.
var wishesDiffer []allowance
