// Package scripted is the deterministic model: it plays a script instead of thinking. It is the test double of the SDK and what
// "--model scripted/FILE" runs. It can do everything that a [model.Model] may do, errors and half written calls included.
//
// # The script
//
// A script is YAML or JSON of at most 1 MiB, read by [Load] and [Parse], or [Turn] values given to [New]:
//
//	turns:                                    # one entry a model call
//	  - reasoning: "The file, then."          # streamed first
//	    text: "Let me look."                  # streamed word by word
//	    tool_calls:
//	      - {name: bash, input: {command: "echo one >> out.txt"}}
//	      - {id: c2, name: read, input: '{"file_path":"go.m'}   # a string is raw, so a call may be half written
//	    usage: {input_tokens: 10, output_tokens: 5}             # default: zeros
//	    stop: max_tokens                      # a model.StopReason; default: tool_use with calls, else end_turn
//	  - when: {tool_error: c2}                # played only if all of this is true, else skipped
//	    text: "That failed."
//	  - error: {status: 529, retry_after: 1s, code: overloaded, message: "Too much.", mid_stream: true}
//	    text: "Half of these words are shown before."           # with mid_stream only
//	  - delay: 200ms                          # before the first word, or the error
//	    text: "Done."
//	agents:
//	  reviewer: {turns: [{text: "Looks right."}]}               # scripts of child agents: [Model.For]
//	moves: false                              # true: what conversations begin with may change, see below
//
// A call without an id gets call_N_K: N is the entry's position in its script, K the call's in its entry, from 1. An error without
// a status has 500; its class is [model.ClassOfStatus]. The conditions of when are
//
//	tool_error: ID   the last result of this call in the transcript is an error
//	tool_ok: ID      the last result of this call in the transcript is not an error
//	contains: TEXT   what came after the last assistant message (users' texts, results) contains this text
//
// An unknown field, a value of a wrong type, anchors and aliases, an entry without anything to play and an empty script are errors
// of class errdefs.Validation that name the file, the line and what would be right.
//
// # Which entry is played
//
// The transcript in the request decides alone, together with [model.Attempt], and nothing that a Model remembers. So a resumed run, a replay and a
// second process go on where the transcript stands, and the same transcript always gets the same entry. The entries are walked in
// their order beside the transcript:
//
//   - A reply is an entry without error; it is blank when it has no calls and no text but white space. Each assistant message
//     stands for the next reply that is not blank, whatever it says. What is skipped on the way there has been played: errors were
//     retried, blank replies left no message. (A blank assistant message stands for the next reply of any kind.)
//   - Errors and blank replies leave no message. They count as played when a later assistant message follows, or when a user's
//     message does after something that could be answered: a user's message or tool results, or a reply cut off by max_tokens or
//     pause_turn. One such message passes all errors in a row, for the run that met them is over, and the one blank reply behind
//     them, if it is blank. So a user who writes again after a failed run gets the reply behind the errors.
//   - For the request itself, attempt n (from 0) plays the n-th error of those in a row, and a later attempt the reply behind them.
//   - An entry whose when is false is not there. It is asked of the transcript as it was at that point; for an entry that a later
//     user's message leaves unplayed, it is asked anew.
//   - Messages all of whose parts the loop made (message.Origin with the provider "pawl") stand for no entry and begin no run; but where
//     the loop says that a reply was empty, and no assistant message stands before it, the next reply was played.
//
// A later run of the same session therefore goes on after the entries that earlier runs played. Asked for more than it has, a
// script fails with errdefs.Validation. The loop's compactions are understood: a request for a summary gets [Summary], and the summary stands for the replies that it took the place of. Any other
// change that drops assistant messages makes a script begin again accordingly. What an engine says as the assistant on the same channel (the emit of a
// script, a graph's template) stands for a reply as any other message does: write an entry for it, or have the model work on another one.
//
// # Prompt caches
//
// Providers cache what requests begin with. Requests with the same CacheKey ([model.Request]), which the loop gives to all calls of a conversation, have to begin with the one before them: the same
// system prompt, tools in the same order, schema of the answer, and messages. A Model remembers, by reference, the last request of each of the latest 256 conversations, and fails with
// errdefs.Validation when the next one does not begin with it, or is not its beginning; the error names the place. So every test with more than one call fails when the prefix moved. What is
// said counts, not which message says it. Settings are no part of it. Each Model remembers for itself, those that For gives too; so a new one for the next process of a test knows nothing of the one before: share it to have the
// check go on. moves: true, or [Script].Moves, leaves the check out, for scripts of child agents as well: for a test that moves the prefix on purpose.
package scripted
