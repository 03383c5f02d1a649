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
//	provider_tools a call of web_search for "pawl" with the page https://example.com/pawl; a call of code_execution that wrote "42" and a
//	               newline, and one that failed; then "It is 42."; end_turn. All of it is sent back as it came.
//	citations      "Grüße 👋! Pawl holds." whose last two words rest on the page https://example.com/pawl, titled "Pawl", which says
//	               "A pawl holds."; end_turn
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
// invalid_input, consecutive, unicode, prefix. Outside of them stand reasoning_level (each level that the model takes says something of its own, any other
// one is refused), provider_tools (all that the model has, and what is refused), file_id (what the provider keeps is sent by its ID), and long: a history of thousands of messages, however it came
// to be, says what its messages say one by one, in few pieces, and the call costs as many allocations as that of a short one.
//
// # Besides
//
//	upload.json  the answer to a file that was given to the provider, which keeps it as "file_test"
//	count.json   the answer to a request whose tokens are counted: 42
//
// What one server is asked in a test is one conversation: each request has to begin with the one before it, in the bytes of its system prompt, tools and
// messages, cache marks apart, or be its beginning; else the test fails, whatever it looks at.
//
// # Faults
//
// The group faults damages the fixtures: how a stream may be written and still say the same, replies of the wrong type, status, encoding and
// size, cut off at each byte, with each member replaced or missing; servers that fall silent, in fake time, and connections that break. What
// has to come of each stands with it: the same reply, or the class and code of an error; never a panic, a part that is taken for the whole, a
// wait without end, a goroutine or connection that is left, or memory without bound. Whatever reply comes of a damaged one has to be a valid
// part of a request to every wire there is (package wires).
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
//	provider_search   there are no steps of a search, or they don't tell what was looked for
//	provider_tools_beside  tools that the provider runs don't go with the caller's: a request that has both is refused
//	provider_code     there are no steps of code
//	file_id_image     pictures are not sent by ID
//	quote             a citation doesn't tell what the source says
//	is_error          a failed result has no mark: its text has to contain the content
//	terminal          no event says that the stream is over: what comes behind it counts, and its connection has to end
//	ping              an event "ping" with the data {"type": "ping"} can't be told from a chunk, and isn't sent
package providertest
