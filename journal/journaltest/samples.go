package journaltest

import (
	"encoding/json"
	"time"

	"github.com/pawl-dev/pawl/journal"
	"github.com/pawl-dev/pawl/message"
	"github.com/pawl-dev/pawl/model"
)

// Samples gives an entry of every kind, with every field set and text that is easily spoiled. They are a corpus for codecs and
// stores, in the order of a run's life but not a run. Each call makes new ones.
func Samples() []journal.Entry {
	cost := int64(1234)
	tough := "tough: <b>&amp;</b> \"quoted\" \\ \u2028\x00\t é 👋🏽 \u202eabc \ufffd"
	file := message.File{MIME: "image/png", Name: "a.png", Data: "\x89PNG\r\n\x1a\n\x00\xff", Provider: "anthropic", ID: "file_1"}
	call := message.ToolCall{ID: "c1", Name: "read", Input: `{"path":"go.mod","n":[1,2.5]}`, Origin: message.Origin{Provider: "anthropic", Extra: `{"x":1}`}}
	reply := message.New(message.RoleAssistant,
		message.Reasoning{Text: "hm", Signature: "sig"}, message.Text{Text: tough, Citations: []message.Citation{{URL: "https://example.com", Title: tough, Quote: tough, Start: 3, End: 8}}}, call,
		message.ProviderCall{Opaque: message.Opaque{Provider: "anthropic", JSON: `{"type":"x"}`}, Call: "s1", Name: "web_search", Input: `{"q":"<>"}`, Output: tough, Sources: []message.Citation{{URL: "https://example.com"}}, IsError: true},
		message.Opaque{Provider: "openai", JSON: `{"type":"search","q":"<>"}`})
	results := message.Results(message.ToolResult{Call: "c1", Name: "read", Content: tough, Files: []message.File{file}, IsError: true})
	edit := message.Edit{Head: []message.Message{message.User("head")}, From: 1, To: 3, Tail: []message.Message{message.Assistant("tail"), results}}
	called := journal.Called{ID: "c1", Name: "read", Input: `{"path": "go.mod"}`}
	data := []journal.Data{
		journal.SessionCreated{},
		journal.RunStarted{
			Agent: "coder", User: "ann", ParentRun: "r0", Owner: "host/1", Attempt: 1, Model: "m", Engine: "loop", Dir: "/src", Trace: "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
			Inputs: journal.Vars{"text": tough, "list": []any{1.5, true, nil, map[string]any{"n": 2}}, "long": 9007199254740993, "time": time.Minute, "bytes": []byte("\xff<")},
			Terms:  json.RawMessage(`{"modes":["default"],"ask":["WebFetch"],"sandbox":{"network":{"hosts":["example.com"]}}}`),
		},
		journal.Resumed{Owner: "host/2", Terms: json.RawMessage(`{"modes":["plan"],"deny":["Bash(echo a < b && c:*)"]}`)},
		journal.Said{Message: message.New(message.RoleUser, message.Text{Text: tough}, file), By: "ann"},
		journal.Seeded{Edit: edit, Board: journal.Board{Set: journal.Vars{"k": tough}, Delete: []string{"text"}, Append: map[string][]message.Message{"aside": {reply}}}},
		journal.Prepared{System: tough, Edit: edit, CompactAt: 160000, Tokens: 12},
		journal.ModelStarted{Model: "m"},
		journal.ModelFinished{
			Message: reply, Usage: model.Usage{Input: 1, Output: 2, CacheRead: 3, CacheWrite: 4, Reasoning: 1}, CostMicros: &cost,
			Stop: model.StopTools, Reason: "because", Model: "m-1", ID: "msg_1", Millis: 12, Partial: true,
			Heard: []message.Message{message.User(tough)}, HeardTo: 9,
		},
		journal.ModelFailed{Class: "rate_limit", Error: tough},
		journal.ToolJudged{Call: "c1", Name: tough, Verdict: "ask", Reason: tough, Input: `{"path":"go.sum"}`, Context: tough, Ends: "over", Once: true},
		journal.Asked{ID: "c1", Prompt: tough, Call: &called, Unknown: true, Once: true, TTL: 3600000},
		journal.Answered{ID: "c1", Name: tough, Approved: true, Text: tough, Input: `{}`, By: "ann", Session: true, Rule: tough},
		journal.ToolStarted{Call: called},
		journal.ToolFinished{
			Call: "c1", Name: "read", Content: tough, IsError: true, Outcome: journal.OutcomeError, Millis: 7, Warning: "slow", Ask: true, Background: &called, Ends: tough,
			Files: []message.File{file, {MIME: "a/b", URL: "https://example.com/?a=1&b=2"}, {MIME: "a/b", Hash: "sha256:00"}},
		},
		journal.TaskStarted{Call: "c1", Session: "s/c1"},
		journal.CommandStarted{ID: "bg-1", Call: "c1", Command: tough, Dir: "/src"},
		journal.CommandEnded{ID: "bg-1", Reason: "exited", Code: 2, Signal: "SIGTERM", Millis: 1500},
		journal.Compacted{
			Edit: edit, TokensBefore: 170000, TokensAfter: 9000, Preserved: 5, SummarySize: 400, Model: "m-1", Usage: model.Usage{Input: 1, Output: 2}, CostMicros: &cost, Millis: 9, Error: tough,
		},
		journal.Stopped{Again: tough, Errors: []string{"one", "two"}, Steered: true},
		journal.Parked{Cause: "awaiting_person", Detail: tough, Stack: "goroutine 1"},
		journal.Board{
			Append: map[string][]message.Message{"main": {reply, results}, "b": nil}, Edit: map[string]message.Edit{"c": edit},
			Set: journal.Vars{"k": tough, "n": 1.0, "ms": []message.Message{reply}}, Delete: []string{"x"},
		},
		journal.RunFinished{
			Status: "failed", Reason: tough, Class: "internal", Error: "boom", Committed: true, Discarded: true, After: true,
			Handoff: json.RawMessage(`{"to":"bob","why":"<x>"}`),
		},
		journal.Visited{Node: "draft", Board: journal.Board{Append: map[string][]message.Message{"aside": {reply}}, Set: journal.Vars{"k": tough}, Delete: []string{"x"}}, Cached: true},
		journal.Failed{Class: "rate_limit", Error: tough},
		journal.Timed{At: time.Date(2026, 2, 3, 4, 5, 6, 789012345, time.UTC)},
	}
	at := time.Date(2026, 2, 3, 4, 5, 6, 789012345, time.UTC)
	entries := make([]journal.Entry, len(data))
	for i, d := range data {
		entries[i] = journal.Entry{Time: at.Add(time.Duration(i) * time.Microsecond), Run: "run-1", Data: d}
		switch d.(type) {
		case journal.SessionCreated:
			entries[i].Run = ""
		case journal.RunStarted, journal.Resumed, journal.Said, journal.Seeded, journal.Parked, journal.RunFinished:
		default:
			entries[i].Key = journal.Key{Scope: "review:draft", Op: string(d.Kind()), ID: "1/é"}
		}
	}
	return entries
}
