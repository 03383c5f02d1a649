package judged_test

import (
	"context"
	"errors"
	"testing"

	"github.com/pawl-dev/pawl/internal/judged"
	"github.com/pawl-dev/pawl/message"
	"github.com/pawl-dev/pawl/model"
	"github.com/pawl-dev/pawl/pack/guard"
)

// pieces is a model that streams them.
type pieces []model.StreamResult

func (pieces) Complete(context.Context, model.Request) (*model.Response, error) {
	return nil, errors.New("it only streams")
}

func (p pieces) CompleteStream(_ context.Context, _ model.Request, cb model.StreamHandler) error {
	for _, s := range p {
		if err := cb(s); err != nil {
			return err
		}
	}
	return nil
}

// A reply that begins anew is judged as one of its own, whatever the one before it came to.
func TestAReplyThatBeginsAnewIsJudgedAnew(t *testing.T) {
	g, err := guard.New(guard.Config{Type: "banned_words", FailOnViolation: true, Params: guard.Params{"words": []any{"secret plan"}}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	again := model.StreamResult{Void: errors.New("again")}
	end := func(text string) model.StreamResult {
		return model.StreamResult{Final: true, Response: &model.Response{Message: message.Assistant(text), Stop: model.StopEnd}}
	}
	for name, c := range map[string]struct {
		pieces  pieces
		blocked bool
	}{
		"half a word was held back":  {pieces{{Text: "a secret "}, again, {Text: "plan b"}, end("plan b")}, false},
		"the first one was blocked":  {pieces{{Text: "the secret plan"}, again, {Text: "plan b"}, end("plan b")}, false},
		"the second one is to blame": {pieces{{Text: "plan b"}, again, {Text: "the secret plan is"}, end("the secret plan is")}, true},
	} {
		t.Run(name, func(t *testing.T) {
			m := judged.Rules{MaxRounds: 1, Guards: []*guard.Guard{g}, Found: func(context.Context, *guard.Violation, ...*guard.Violation) {}}.Middleware(c.pieces)
			shown, voids := "", 0
			var final *model.Response
			err := m.CompleteStream(t.Context(), model.Request{Messages: message.NewHistory(message.User("go"))}, func(s model.StreamResult) error {
				if s.Void != nil {
					shown, voids = "", voids+1
				}
				shown += s.Text
				final = s.Response
				return nil
			})
			if err != nil || voids != 1 || final.Message.Text() != shown {
				t.Fatalf("%v, %d voids, shown %q, %q on record", err, voids, shown, final.Message.Text())
			}
			if blocked := final.Stop == model.StopFilter; blocked != c.blocked || !blocked && shown != "plan b" {
				t.Errorf("%q, %s", shown, final.Stop)
			}
		})
	}
}

// That a call is held back, and then sent, is told although nothing is said by it.
func TestAWaitPassesThrough(t *testing.T) {
	g, err := guard.New(guard.Config{Type: "banned_words", FailOnViolation: true, Params: guard.Params{"words": []any{"secret plan"}}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	m := judged.Rules{MaxRounds: 1, Guards: []*guard.Guard{g}, Found: func(context.Context, *guard.Violation, ...*guard.Violation) {}}.Middleware(pieces{
		{Held: true, Wait: 3}, {}, {Text: "Hello."}, {Final: true, Response: &model.Response{Message: message.Assistant("Hello."), Stop: model.StopEnd}},
	})
	var got []model.StreamResult
	err = m.CompleteStream(t.Context(), model.Request{Messages: message.NewHistory(message.User("go"))}, func(s model.StreamResult) error {
		got = append(got, s)
		return nil
	})
	if err != nil || len(got) < 3 || !got[0].Held || got[0].Wait != 3 || got[1] != (model.StreamResult{}) {
		t.Errorf("%v: %+v", err, got)
	}
}
