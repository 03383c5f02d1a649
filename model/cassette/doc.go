// Package cassette records what programs and models say to each other, and plays it back, so that a test is quick, costs nothing and needs no key.
//
// [Record] stands around any model.Model, [Open] in its place. [RecordHTTP] and [OpenHTTP] do the same a floor below, to a provider's HTTP
// client (model.WithHTTPClient): they keep what went over the wire, the provider's own code runs in the replay too. Tests say [New] or [NewHTTP], which
// play, and record only when PAWL_RECORD=1 says so. Which one: the model for tests of agents and programs, HTTP for tests of a provider.
//
// # What a replay holds a program to
//
// Each exchange is played once. Its request is compared with the recorded one as a whole: of a model the way it was called, system prompt, tools,
// all messages, settings and output schema; of HTTP method, address, headers and body. The order is the recorded one, or with [AnyOrder] each
// request finds its own. A request that differs is an error of class errdefs.Validation with the place of the first difference and what
// stands there on both sides; it uses nothing up. [Player.Done] says what was asked in vain, and what was never asked for.
//
// An error of a provider comes back as a *model.Error with its class, status and times, behind the pieces that were streamed before it. A call that
// its context ended gives context.Canceled or DeadlineExceeded again, at once; a stream that its handler stopped ends in an error if the handler does not
// stop it again. Pauses are not kept, nor what the key's limits were at the time ([model.Rate], and headers of that kind).
//
// # Secrets
//
// What is written is scrubbed, in requests and replies alike, and so is each request of a replay before it is compared. [Redacted] stands for
//
//   - the values of environment variables named as secrets are (a word of the name is KEY, TOKEN, SECRET, PASSWORD or the like), from 8 bytes on;
//   - what has the form of a key or token of a well-known service, and private keys: hook.Secrets has the same;
//   - of HTTP: headers whose names speak of auth, key, token or cookie, wherever else their values stand, users in addresses, and parameters of addresses with
//     such names as in the environment;
//   - whatever the rules of [Scrub] find.
//
// Text files in messages are scrubbed, other files are not. A secret that a model says over several pieces of a stream is found by [Record], and
// all of that stream's text, or of that call's input, then stands in one piece; RecordHTTP can't take it out: the next request fails, and Close says why. Look at a file before you publish it:
// no rule finds a password that it does not know.
//
// # The file
//
// JSON documents, indented, one behind the other; an exchange is appended as a whole when it is over, so that a program that dies loses none that
// was. A text of several lines is {"|": ["line", "line"]}; a member whose own name begins with "|" has one more of it. The first document is
//
//	{"cassette": 1, "kind": "model", "model": {"name": "anthropic/claude-sonnet-4-5", "provider": "anthropic", "can": ["tools"]}}
//
// with the version of this format; kind may be http. The others have "exchange", a number in the order in which the calls began. Of a model they have
//
//	call      complete or stream
//	request   system, tools, messages, settings, output. With after (exchange, messages, sha256) it goes on from an earlier request: it begins with so
//	          many of its messages, and system and tools are the same unless they stand here ("" for none). The fingerprint of system, tools and those
//	          messages makes sure that nobody changed the one and not the other
//	stream    its pieces: text, reasoning, or input of a call, the number of which is call and whose tool is tool; stopped, if the handler ended it with the last one
//	response  message, usage, stop, reason, model, id
//	error     context (canceled, deadline), or class, message and, of a provider, provider, status, code, request_id, retry_after, cause
//
// and of HTTP
//
//	request   method, url, header, body
//	response  status, header, body; closed, if the client closed the body here
//	error     instead of a response, or where its body broke off
//
// where a body is {"json": …} if it was compact JSON, {"text": …} or {"base64": …}. Members that this version does not know are errors.
package cassette
