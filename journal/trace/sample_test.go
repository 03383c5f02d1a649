package trace_test

import (
	"context"
	"encoding/json"
	"testing"
	"time"

	"github.com/pawl-dev/pawl/journal"
	"github.com/pawl-dev/pawl/message"
	"github.com/pawl-dev/pawl/model"
)

// book fills a journal by hand, at times of its own.
type book struct {
	t     *testing.T
	store journal.Store
	now   time.Time
	seq   map[string]int64
	run   string
}

func newBook(t *testing.T) *book {
	return &book{t: t, store: journal.Memory(), now: time.Date(2026, 11, 20, 9, 30, 0, 0, time.UTC), seq: map[string]int64{}, run: "run-1"}
}

// add appends an entry, some time after the one before.
func (b *book) add(session string, after time.Duration, key journal.Key, d journal.Data) {
	b.t.Helper()
	b.now = b.now.Add(after)
	if err := b.store.Append(context.Background(), session, b.seq[session], journal.Entry{Time: b.now, Run: b.run, Key: key, Data: d}); err != nil {
		b.t.Fatal(err)
	}
	b.seq[session]++
}

func key(op, id string) journal.Key { return journal.Key{Op: op, ID: id} }

func input(v map[string]any) string {
	b, _ := json.Marshal(v)
	return string(b)
}

func cents(n int64) *int64 { n *= 10_000; return &n }

const ms = time.Millisecond

// reply adds a model call.
func (b *book) reply(session, step string, took time.Duration, m message.Message) {
	b.add(session, 5*ms, key("model", step), journal.ModelStarted{Model: "anthropic/claude-sonnet-5-5"})
	b.add(session, took, key("model", step), journal.ModelFinished{
		Message: m, Model: "claude-sonnet-5-5", Millis: took.Milliseconds(), CostMicros: cents(2), Stop: model.StopTools,
		Usage: model.Usage{Input: 1_240, CacheRead: 18_000, CacheWrite: 900, Output: 310, Reasoning: 120},
	})
}

// use adds the run of a call.
func (b *book) use(session string, c message.ToolCall, took time.Duration, outcome journal.Outcome, content string, files ...message.File) {
	b.add(session, 2*ms, key("judge", c.ID), journal.ToolJudged{Call: c.ID, Verdict: "allow", Reason: "the rule Bash(go test:*) of the project allows it"})
	b.add(session, 2*ms, key("tool", c.ID), journal.ToolStarted{Call: journal.CalledOf(c)})
	b.add(session, took, key("tool", c.ID), journal.ToolFinished{Call: c.ID, Name: c.Name, Content: content, Files: files, IsError: outcome != journal.OutcomeOK, Outcome: outcome, Millis: took.Milliseconds()})
}

// onePixel is a picture.
const onePixel = "\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR\x00\x00\x00\x01\x00\x00\x00\x01\x08\x06\x00\x00\x00\x1f\x15\xc4\x89\x00\x00\x00\rIDATx\x9cc\xf8\xcf\xc0\xf0\x1f\x00\x05\x00\x01\xff\x89\x99=\x1d\x00\x00\x00\x00IEND\xaeB`\x82"

// sample is a session with everything in it: two runs, a task, edits, questions, a denial, a crash, a compaction, a failure.
func sample(t *testing.T) *book {
	b := newBook(t)
	s := "fix-the-build"
	b.add(s, 0, journal.Key{}, journal.SessionCreated{})
	b.add(s, 1*ms, journal.Key{}, journal.RunStarted{Agent: "pawl", User: "ada", Owner: "driver-1", Attempt: 1, Model: "anthropic/claude-sonnet-5-5", Engine: "loop", Dir: "/home/ada/shop", Terms: []byte(`{"mode":"acceptEdits"}`)})
	b.add(s, 0, journal.Key{}, journal.Said{Message: message.User("The test of the basket fails. Find out why, and mend it.\nDon't touch the prices.")})
	b.add(s, 3*ms, key("prepare", ""), journal.Prepared{System: "You are an agent that works in a project directory.\nLook before you change.", Edit: message.Edit{Head: []message.Message{message.User("Today is Friday.")}, To: 1}})

	test := message.ToolCall{ID: "c1", Name: "bash", Input: input(map[string]any{"command": "go test ./basket", "timeout": 60000})}
	read := message.ToolCall{ID: "c2", Name: "read", Input: input(map[string]any{"file_path": "basket/total.go"})}
	b.reply(s, "1", 2300*ms, message.New(message.RoleAssistant, message.Reasoning{Text: "First see how it fails."}, message.Text{Text: "I run the test, and look at the code."}, test, read))
	b.use(s, test, 3100*ms, journal.OutcomeError, "\x1b[31m--- FAIL: TestTotal (0.00s)\x1b[0m\n    total_test.go:12: Total() = 30, want 27\nFAIL\texample.com/shop/basket\t0.004s")
	b.use(s, read, 4*ms, journal.OutcomeOK, "package basket\n\nfunc Total(items []Item) (sum int) {\n\tfor _, i := range items {\n\t\tsum += i.Price * i.Count\n\t}\n\treturn sum\n}\n")

	task := message.ToolCall{ID: "c3", Name: "task", Input: input(map[string]any{"agent": "explore", "prompt": "Where are discounts worked out? Answer with the file and the function."})}
	b.reply(s, "2", 1900*ms, message.New(message.RoleAssistant, message.Text{Text: "Somebody else looks for the discounts."}, task))
	b.add(s, 1*ms, key("judge", "c3"), journal.ToolJudged{Call: "c3", Verdict: "allow"})
	b.add(s, 1*ms, key("tool", "c3"), journal.ToolStarted{Call: journal.CalledOf(task)})
	child := journal.TaskSession(s, key("tool", "c3"))
	b.add(s, 1*ms, journal.TaskKey(key("tool", "c3")), journal.TaskStarted{Call: "c3", Session: child})
	b.run = "run-2"
	b.add(child, 0, journal.Key{}, journal.SessionCreated{TaskOf: s})
	b.add(child, 1*ms, journal.Key{}, journal.RunStarted{Agent: "explore", Owner: "driver-2", Attempt: 1, ParentRun: "run-1", Model: "anthropic/claude-haiku-5", Engine: "loop"})
	b.add(child, 0, journal.Key{}, journal.Said{Message: message.User("Where are discounts worked out? Answer with the file and the function.")})
	grep := message.ToolCall{ID: "c1", Name: "grep", Input: input(map[string]any{"pattern": "(?i)discount", "path": "."})}
	b.reply(child, "1", 800*ms, message.New(message.RoleAssistant, grep))
	b.use(child, grep, 12*ms, journal.OutcomeOK, "basket/discount.go:9:func Discount(sum int) int {")
	b.reply(child, "2", 600*ms, message.Assistant("In basket/discount.go, the function Discount."))
	b.add(child, 1*ms, journal.Key{}, journal.RunFinished{Status: "completed", Committed: true})
	b.run = "run-1"
	b.add(s, 2*ms, key("tool", "c3"), journal.ToolFinished{Call: "c3", Name: "task", Content: "In basket/discount.go, the function Discount.", Outcome: journal.OutcomeOK, Millis: 1430})

	edit := message.ToolCall{ID: "c4", Name: "edit", Input: input(map[string]any{"file_path": "basket/total.go", "old_string": "\treturn sum\n", "new_string": "\treturn sum - Discount(sum)\n"})}
	push := message.ToolCall{ID: "c5", Name: "bash", Input: input(map[string]any{"command": "git push origin main"})}
	wrong := message.ToolCall{ID: "c6", Name: "edit", Input: input(map[string]any{"file_path": "prices/list.go", "old_string": "const Apple = 10\nconst Pear = 12\n", "new_string": "const Apple = 9\nconst Pear = 12\n"})}
	b.reply(s, "3", 2600*ms, message.New(message.RoleAssistant, message.Text{Text: "The discount is never taken off. I change Total."}, edit, push, wrong))
	b.use(s, edit, 9*ms, journal.OutcomeOK, "edited basket/total.go (1 replacement)\n--- a/basket/total.go\n+++ b/basket/total.go\n@@ -4,5 +4,5 @@\n \tfor _, i := range items {\n \t\tsum += i.Price * i.Count\n \t}\n-\treturn sum\n+\treturn sum - Discount(sum)\n }")
	b.add(s, 1*ms, key("judge", "c5"), journal.ToolJudged{Call: "c5", Verdict: "ask", Reason: "git push reaches beyond this machine"})
	b.add(s, 1*ms, key("judge", "c6"), journal.ToolJudged{Call: "c6", Verdict: "deny", Reason: "the rule Edit(prices/**) of the project denies it"})
	pushed := journal.CalledOf(push)
	b.add(s, 1*ms, key("ask", "c5"), journal.Asked{ID: "c5", Prompt: "Run git push origin main?", Call: &pushed})
	b.add(s, 1*ms, journal.Key{}, journal.Parked{Cause: "awaiting_person", Detail: "c5"})
	b.add(s, 2*time.Hour, key("ask", "c5"), journal.Answered{ID: "c5", Approved: true, By: "ada", Session: true, Rule: "Bash(git push:*)"})
	b.add(s, 40*time.Second, journal.Key{}, journal.Resumed{Owner: "driver-3"})
	b.add(s, 2*ms, key("tool", "c5"), journal.ToolStarted{Call: pushed})
	b.add(s, 1200*ms, key("tool", "c5"), journal.ToolFinished{Call: "c5", Name: "bash", Content: "To example.com:shop.git\n   1f2e3d4..5a6b7c8  main -> main", Outcome: journal.OutcomeOK, Millis: 1200, Warning: "the hook notify took 1 s"})

	b.add(s, 10*ms, journal.Key{Op: "steer", ID: "1"}, journal.Said{Message: message.User("Show me a picture of the coverage, too."), By: "ada"})
	b.add(s, 900*ms, key("compact", "4"), journal.Compacted{TokensBefore: 162_000, TokensAfter: 21_000, Preserved: 5, SummarySize: 700, Model: "anthropic/claude-sonnet-5-5", Usage: model.Usage{Input: 9000, Output: 700}, CostMicros: cents(1), Millis: 880, Edit: message.Edit{Head: []message.Message{message.User("The person wants the basket mended. Total was changed.")}}})
	shot := message.ToolCall{ID: "c7", Name: "mcp__browser__shot", Input: input(map[string]any{"url": "http://localhost/coverage"})}
	b.reply(s, "4", 1500*ms, message.New(message.RoleAssistant, shot))
	b.use(s, shot, 700*ms, journal.OutcomeOK, "", message.File{MIME: "image/png", Name: "coverage.png", Data: onePixel})
	b.reply(s, "5", 1100*ms, message.Assistant("Done: the discount is taken off, the test passes, and it is pushed."))
	b.add(s, 1*ms, key("stop", "5"), journal.Stopped{Errors: []string{"the hook usage: no such file"}})
	b.add(s, 1*ms, journal.Key{}, journal.RunFinished{Status: "completed", Committed: true})

	b.run = "run-3"
	b.add(s, time.Hour, journal.Key{}, journal.RunStarted{Agent: "pawl", User: "ada", Owner: "driver-4", Attempt: 1, Model: "anthropic/claude-sonnet-5-5", Engine: "loop", Dir: "/home/ada/shop"})
	b.add(s, 0, journal.Key{}, journal.Said{Message: message.User("Start the server.")})
	serve := message.ToolCall{ID: "c8", Name: "bash", Input: input(map[string]any{"command": "go run ./cmd/shop", "background": true})}
	b.reply(s, "1", 700*ms, message.New(message.RoleAssistant, serve))
	b.add(s, 1*ms, key("judge", "c8"), journal.ToolJudged{Call: "c8", Verdict: "allow"})
	b.add(s, 1*ms, key("tool", "c8"), journal.ToolStarted{Call: journal.CalledOf(serve)})
	b.add(s, 90*time.Second, journal.Key{}, journal.Resumed{Owner: "driver-5"})
	b.add(s, 1*ms, key("model", "2"), journal.ModelFailed{Class: "rate_limit", Error: "anthropic: 429: slow down"})
	b.add(s, 1*ms, journal.Key{}, journal.RunFinished{Status: "failed", Class: "rate_limit", Error: "anthropic: 429: slow down"})
	return b
}
