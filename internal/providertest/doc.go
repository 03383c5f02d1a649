// Package providertest holds every provider of Pawl to one matrix of cases: what a reply means, how a stream may arrive, what a
// request must say, how a call fails and how it is cancelled. A provider package proves itself by one call:
//
//	func TestMatrix(t *testing.T) {
//		providertest.Run(t, providertest.Provider{
//			Name: "anthropic",
//			New:  func(opts ...model.Option) model.Model { return anthropic.New("claude-sonnet-4-5", opts...) },
//			Read: readRequest,
//			Dir:  "testdata",
//			Lacks: map[string]string{"seed": "the Messages API has none"},
//		})
//	}
//
// # Replies
//
// Each case is a file <case>.json, a whole reply, and a file <case>.sse, the same reply as a stream. Both have to give equal
// Responses, and the stream has to give the same one however its bytes arrive. Every reply says that the model is "test-model".
//
//	text           "Hello, wörld 👋! <b>&amp;</b>" in four deltas at least; end_turn; usage: input 10, output 5
//	calls          "Let me look.", then call_1 read {"file_path":"go.mod"} and call_2 bash {"command":"echo \"hi\"","timeout":5},
//	               each one's arguments in several deltas; tool_use
//	reasoning      reasoning "Think: 2+2" with the signature "c2lnbmF0dXJl", then "4"; end_turn; output 20, of which reasoning 12
//	length         "The answer is"; max_tokens
//	half_call      a call of read whose arguments end as {"file_path":"go.m; max_tokens
//	empty          nothing; end_turn
//	empty_length   nothing; max_tokens
//	refusal        "I can't help with that." as text or as the reason; refusal
//	filter         any text or none; content_filter
//	stop_sequence  "one, two"; stop_sequence, or end_turn where the wire can't tell
//	pause          an opaque block at least; pause_turn
//	cache          any text; usage: input 7, cache_read 100, cache_write 50, output 3
//	unknown_block  {"type":"holo_gram","data":{"x":1}} beside the text "ok"; end_turn. It is sent back as it came.
//	provider_tools a web search for "go release", which found https://go.dev/dl/ among others; code, print(6*7), which wrote 42; then "Go 1.26; 42.";
//	               end_turn. What the provider wants back is sent back as it came.
//	citations      "Größe 👋: Go 1.26 is out. More later.", in four deltas at least, where "Go 1.26 is out." rests on https://go.dev/dl/,
//	               "Downloads — Go"; end_turn
//
// # Failures
//
//	truncated.sse         some text, then the end without the terminal event: NotAvailable, code "truncated_stream"
//	error_midstream.sse   some text, then the provider's own error object for an overload: NotAvailable
//	error_400.json        Validation
//	error_401.json        Unauthorized
//	error_404.json        NotFound
//	error_429.json        RateLimit; served with and without Retry-After: 7
//	error_500.json        NotAvailable
//	error_529.json        NotAvailable
//	error_overflow.json   Overflow; served as 400 with the provider's own words for a prompt that is too long
//
// # Requests
//
// The cases, by their names: system, tool_round, reasoning_back, foreign_parts, image, image_url, pdf, result_files, max_tokens,
// temperature, top_p, top_k, seed, stop, tool_choice_auto, tool_choice_none, tool_choice_required, tool_choice_name, output,
// invalid_input, consecutive, unicode, prefix.
//
// Besides, each level of reasoning; the provider's own tools, beside ours and alone, with options; files by ID.
//
// # Files and counts
//
//	upload.json   the answer to an upload: the ID is "file_1"
//	discard.json  the answer to a deletion
//	count.json    the answer to a count: 42 tokens
//
// # What a wire lacks
//
// Provider.Lacks has the name of a case, of a reply, failure or request. A request that a wire lacks has to be refused with
// errdefs.Validation before any call; a reply or failure is left out. These names weaken a case where a wire is poorer:
//
//	call_ids          calls have no ids: any ids that are not empty and differ will do
//	cache_write       no count of tokens written to the cache: 0 is expected
//	cache_read        likewise
//	reasoning_tokens  no count of reasoning tokens: 0 is expected
//	signature         reasoning has no signature
//	is_error          a failed result has no mark: its text has to contain the content
//	reasoning_level   the model can't be told how much to think
//	provider_tools    the provider runs no tools
//	provider_tools_required  the provider's own tools alone can't be required
//	upload, count     the provider keeps no files, counts no tokens
//	ping              an event "ping" with the data {"type": "ping"} can't be told from a chunk, and isn't sent
package providertest
