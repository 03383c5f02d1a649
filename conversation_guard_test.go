package pawl_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/pawl-dev/pawl"
	"github.com/pawl-dev/pawl/agent"
	"github.com/pawl-dev/pawl/engine/loop"
	"github.com/pawl-dev/pawl/errdefs"
	"github.com/pawl-dev/pawl/event"
	"github.com/pawl-dev/pawl/journal"
	"github.com/pawl-dev/pawl/message"
	"github.com/pawl-dev/pawl/model"
	"github.com/pawl-dev/pawl/model/scripted"
	"github.com/pawl-dev/pawl/pack"
	"github.com/pawl-dev/pawl/pack/guard"
)

const (
	banned = `, "validators": [{"type": "banned_words", "fail_on_violation": true, "message": "I can't say.", "params": {"words": ["guarantee", "refund"]}}]`
	input  = `, "validators": [{"type": "banned_words", "fail_on_violation": true, "message": "Please don't.", "params": {"words": ["bomb"], "direction": "input"}}, {"type": "max_length", "params": {"max_characters": 5, "direction": "both"}}]`
)

// chunks streams a reply in pieces of three bytes.
type chunks struct{ *heeding }

func (m chunks) CompleteStream(ctx context.Context, req model.Request, cb model.StreamHandler) error {
	resp, err := m.Complete(ctx, req)
	if err != nil {
		return err
	}
	text := resp.Message.Text()
	for len(text) > 0 {
		n := min(3, len(text))
		if err := cb(model.StreamResult{Text: text[:n]}); err != nil {
			return err
		}
		text = text[n:]
	}
	return cb(model.StreamResult{Final: true, Response: resp})
}

func TestABlockedReplyIsNeitherShownNorOnRecordAndItsMessageIs(t *testing.T) {
	for name, stream := range map[string]bool{"send": false, "stream": true} {
		t.Run(name, func(t *testing.T) {
			store := journal.Memory()
			m := listening(scripted.Turn{Text: "You get a refund, we guarantee it.", Calls: []scripted.Call{callOf("c", "look", `{"city":"x"}`)}}, scripted.Text("Fine."))
			c := converse(t, packOf(t, looks+banned), chunks{m}, pawl.WithJournal(store))
			ran := false
			c.OnTool("look", func(map[string]any) (any, error) { ran = true; return "x", nil })
			c.OnTool("pay", func(map[string]any) (any, error) { return "x", nil })
			const want = "You get a I can't say."
			shown := ""
			var err error
			if stream {
				for e, end := range c.Stream(t.Context(), "a") {
					if e.Delta == event.TextDelta {
						shown += e.Text
					}
					err = end
				}
			} else {
				var resp *pawl.Response
				resp, err = c.Send(t.Context(), "a")
				if shown = resp.Text(); resp.Status != agent.StatusFailed || len(resp.Violations) != 1 {
					t.Errorf("%s, %v", resp.Status, resp.Violations)
				}
			}
			var v *guard.Violation
			if !errors.As(err, &v) && !stream || !errdefs.PolicyDenied.Is(err) {
				t.Errorf("the error is %v", err)
			}
			if shown != want {
				t.Errorf("shown: %q", shown)
			}
			wantLines(t, transcript(t, c), "user: a", "assistant: "+want)
			if ran {
				t.Error("a blocked reply called a tool")
			}
			blocked := false
			for e, err := range store.Read(t.Context(), c.Session(), 0) {
				if err != nil {
					t.Fatal(err)
				}
				d, ok := e.Data.(journal.ModelFinished)
				blocked = blocked || ok && d.Stop == model.StopFilter && strings.Contains(d.Reason, "banned_words")
			}
			if !blocked {
				t.Error("it is not on record as blocked")
			}
			if resp := send(t, c, "b"); resp.Text() != "Fine." || len(resp.Violations) > 0 { // and the conversation goes on
				t.Errorf("then: %q", resp.Text())
			}
		})
	}
}

func TestDefectTheGuardComesAfterTheChunk(t *testing.T) {
	c := converse(t, packOf(t, plain+banned), chunks{listening(scripted.Text("No guaranteed thing, no guarantee."))})
	shown, end := streamText(t, c, "a")
	if !errdefs.PolicyDenied.Is(end) {
		t.Errorf("it ended with %v", end)
	}
	const want = "No guaranteed thing, no I can't say."
	if shown != want {
		t.Errorf("shown: %q", shown)
	}
	wantLines(t, transcript(t, c), "user: a", "assistant: "+want)
}

func TestWhatAUserMayNotSayReachesNobody(t *testing.T) {
	m := listening(scripted.Text("ok"))
	c := converse(t, packOf(t, plain+input), m)
	_, err := c.Send(t.Context(), "a bomb")
	var v *guard.Violation
	if !errors.As(err, &v) || v.Message() != "Please don't." {
		t.Errorf("got %v", err)
	}
	if len(m.asked()) > 0 {
		t.Error("the model was called")
	}
	wantLines(t, transcript(t, c))
}

func TestDefectFailOnViolationIsIgnored(t *testing.T) {
	c := converse(t, packOf(t, plain+input), listening(scripted.Text("much too long")))
	resp := send(t, c, "this too")
	if resp.Text() != "much too long" || len(resp.Violations) != 2 {
		t.Errorf("%q, %v", resp.Text(), resp.Violations)
	}
}

func TestAReplyOfCallsAloneIsNotJudged(t *testing.T) {
	c := converse(t, packOf(t, looks+`, "validators": [{"type": "regex", "fail_on_violation": true, "params": {"pattern": "^OK"}}]`),
		listening(scripted.Calls(callOf("c", "look", `{"city":"x"}`)), scripted.Text("OK then")))
	c.OnTool("look", func(map[string]any) (any, error) { return "x", nil })
	c.OnTool("pay", func(map[string]any) (any, error) { return "x", nil })
	if resp := send(t, c, "a"); resp.Text() != "OK then" {
		t.Errorf("got %q", resp.Text())
	}
}

// judge answers a validator's question with no, and anything else as its model does.
type judge struct{ *heeding }

func (j judge) Complete(ctx context.Context, req model.Request) (*model.Response, error) {
	if req.System != "Be brief." {
		j.note(req)
		return &model.Response{Message: message.Assistant(`{"passed": false, "score": 0, "reasoning": "rude"}`)}, nil
	}
	return j.heeding.Complete(ctx, req)
}

func TestAModelJudgesForTheConversation(t *testing.T) {
	m := listening(scripted.Text("Go away."))
	c := converse(t, packOf(t, plain+`, "validators": [{"type": "llm_judge", "fail_on_violation": true, "message": "Sorry.", "params": {"criteria": "polite"}}]`), judge{m})
	resp, err := c.Send(t.Context(), "a")
	if !errdefs.PolicyDenied.Is(err) || resp.Text() != "Sorry." {
		t.Errorf("got %v", err)
	}
	if all := m.asked(); len(all) != 2 || !strings.Contains(all[1].Messages.At(0).Text(), "Go away.") {
		t.Errorf("%d calls", len(all))
	}
}

func TestAValidatorOfTheProgramsOwnJudges(t *testing.T) {
	loader := &pack.Loader{Validators: guard.Types{"shouting": func(guard.Params) (guard.Rule, error) {
		return guard.RuleFunc(func(_ context.Context, text string) (string, error) {
			if strings.ToUpper(text) == text {
				return "it shouts", nil
			}
			return "", nil
		}), nil
	}}}
	c := converse(t, packOf(t, plain+`, "validators": [{"type": "shouting", "fail_on_violation": true}]`), listening(scripted.Text("NO")), pawl.WithLoader(loader))
	if resp, err := c.Send(t.Context(), "a"); !errdefs.PolicyDenied.Is(err) || resp.Text() != guard.DefaultMessage {
		t.Errorf("got %v", err)
	}
}

func TestFilesThatThePromptDoesNotTakeAreRefused(t *testing.T) {
	m := listening(scripted.Text("a cat"))
	c := converse(t, packOf(t, plain+`, "media": {"enabled": true, "supported_types": ["image"], "image": {"max_size_mb": 1, "allowed_formats": ["png"]}}`), m)
	if _, err := c.Send(t.Context(), "What is it?", message.File{MIME: "image/gif", Data: "GIF89a"}); !errdefs.Validation.Is(err) || len(m.asked()) > 0 {
		t.Errorf("got %v", err)
	}
	if _, err := c.Send(t.Context(), "What is it?", message.File{MIME: "image/png", Data: "png"}); err != nil {
		t.Error(err)
	}
	for range message.Of[message.File](m.asked()[0].Messages.At(0)) {
		return
	}
	t.Error("the model got no file")
}

// A long conversation stays within the model's window, and what keeps it there is no reply: no validator cuts the summary.
func TestALongConversationIsCompactedAndItsSummaryIsNotJudged(t *testing.T) {
	var turns []scripted.Turn
	for i, tokens := range []int{100, 300, 900, 200} {
		turn := scripted.Text(fmt.Sprintf("Answer %d.", i))
		turn.Usage.Input = tokens
		turns = append(turns, turn)
	}
	m := listening(turns...)
	file := packOf(t, `"system_template": "Be brief.", "validators": [{"type": "max_length", "fail_on_violation": true, "message": "Too long.", "params": {"max_characters": 20}}]`)
	store := journal.Memory()
	c := converse(t, file, m, pawl.WithJournal(store), pawl.WithCompact(loop.Compact{Enabled: true, Window: 1000, PreserveCount: 2}))
	for i := range 4 {
		if resp := send(t, c, fmt.Sprintf("Question %d: ", i)+strings.Repeat("and so on ", 30)); resp.Text() != fmt.Sprintf("Answer %d.", i) || len(resp.Violations) > 0 {
			t.Errorf("%q, %v", resp.Text(), resp.Violations)
		}
	}
	var compacted []journal.Compacted
	for e, err := range store.Read(t.Context(), c.Session(), 0) {
		if err != nil {
			t.Fatal(err)
		}
		if d, ok := e.Data.(journal.Compacted); ok {
			compacted = append(compacted, d)
		}
	}
	if len(compacted) != 1 || compacted[0].Error != "" {
		t.Fatalf("compactions: %+v", compacted)
	}
	if summary := transcript(t, c)[0]; !strings.Contains(summary, "summarized") || strings.Contains(summary, "Too long.") {
		t.Errorf("the transcript begins with %q", summary)
	}
	off := converse(t, file, listening(turns...), pawl.WithCompact(loop.Compact{}))
	for i := range 4 {
		send(t, off, fmt.Sprintf("Question %d: ", i)+strings.Repeat("and so on ", 30))
	}
	if got := transcript(t, off); len(got) != 8 {
		t.Errorf("without compaction: %q", got)
	}
}
