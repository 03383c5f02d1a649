package pawl_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"

	"github.com/pawl-dev/pawl"
	"github.com/pawl-dev/pawl/errdefs"
	"github.com/pawl-dev/pawl/message"
	"github.com/pawl-dev/pawl/model"
	"github.com/pawl-dev/pawl/model/scripted"
	"github.com/pawl-dev/pawl/pack"
	"github.com/pawl-dev/pawl/pack/guard"
)

// What the check of AskBefore reads in a call is what its handler reads, by whatever it reads it.
func TestArgumentsDoNotHideFromWhoAsks(t *testing.T) {
	for _, input := range []string{`{"amount":5000,"amount":5}`, `{"amount":5,"Amount":5000}`, `{"AMOUNT":5000}`, `{"to":"x","amount":5,"\u0061mount":5000}`} {
		t.Run(input, func(t *testing.T) {
			c := handled(converse(t, packOf(t, looks), scripted.New(scripted.Calls(callOf("a", "pay", input)), scripted.Text("x"))))
			c.AskBefore("pay", large2)
			pawl.OnTyped(c, "pay", func(_ context.Context, a json.RawMessage) (any, error) {
				t.Errorf("it is paid, with nobody asked: %s", a)
				return "paid", nil
			})
			send(t, c, "a")
		})
	}
}

// lying streams something else than what its reply is in the end.
type lying struct{ said, reply string }

func (m lying) Complete(context.Context, model.Request) (*model.Response, error) {
	return &model.Response{Message: message.Assistant(m.reply), Stop: model.StopEnd}, nil
}

func (m lying) CompleteStream(ctx context.Context, req model.Request, cb model.StreamHandler) error {
	if m.said != "" {
		if err := cb(model.StreamResult{Text: m.said}); err != nil {
			return err
		}
	}
	resp, err := m.Complete(ctx, req)
	if err != nil {
		return err
	}
	return cb(model.StreamResult{Final: true, Response: resp})
}

// What is on record was judged, whatever was streamed before.
func TestAReplyThatIsNotWhatWasStreamedIsJudged(t *testing.T) {
	banned := `"system_template": "x", "validators": [{"type": "banned_words", "message": "No.", "fail_on_violation": true, "params": {"words": ["refund"]}}]`
	for name, tc := range map[string]struct {
		model                 lying
		streamed, on, problem string
	}{
		"honest":         {lying{"all fine", "all fine"}, "all fine", "all fine", ""},
		"more":           {lying{"fine, ", "fine, a refund"}, "fine, a No.", "fine, a No.", "refund"},
		"something else": {lying{"all fine ", "a refund for you"}, "all fine No.", "all fine No.", "refund"},
		"less":           {lying{"a refund", "a cup"}, "a cup", "a cup", ""},
		"nothing":        {lying{"", "a refund"}, "a No.", "a No.", "refund"},
		"harmless":       {lying{"all fine, really", "all fine"}, "all fine, really", "all fine", ""},
	} {
		t.Run(name, func(t *testing.T) {
			c := converse(t, packOf(t, banned), tc.model)
			got, err := streamText(t, c, "a")
			if said := transcript(t, c)[1]; got != tc.streamed || said != "assistant: "+tc.on || (err == nil) != (tc.problem == "") {
				t.Errorf("streamed %q, on record %q, %v", got, said, err)
			}
		})
	}
}

func TestAValidatorThatPanicsLetsNothingThrough(t *testing.T) {
	l := &pack.Loader{Validators: guard.Types{"boo": func(guard.Params) (guard.Rule, error) {
		return guard.RuleFunc(func(context.Context, string) (string, error) { panic("boo") }), nil
	}}}
	for _, direction := range []string{"input", "output"} {
		c := converse(t, packOf(t, `"system_template": "x", "validators": [{"type": "boo", "message": "No.", "fail_on_violation": true, "params": {"direction": "`+direction+`"}}]`), scripted.New(scripted.Text("secret")), pawl.WithLoader(l))
		resp, err := c.Send(t.Context(), "a")
		if !errdefs.PolicyDenied.Is(err) || direction == "output" && resp.Text() != "No." {
			t.Errorf("%s: %v", direction, err)
		}
		if got, err := c.Messages(t.Context()); err != nil || direction == "input" && got.Len() > 0 {
			t.Errorf("%s: %d messages are on record, %v", direction, got.Len(), err)
		}
	}
}

func TestAServersStatusIsNotWithoutLimit(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		conn, err := l.Accept()
		if err != nil {
			return
		}
		r, err := http.ReadRequest(bufio.NewReader(conn))
		if err == nil {
			_ = r.Write(io.Discard)
			_, _ = fmt.Fprintf(conn, "HTTP/1.1 500 %s\r\nContent-Length: 4\r\nConnection: close\r\n\r\nbody", strings.Repeat("x", 1<<20))
		}
		_ = conn.Close()
	}()
	got := byHTTP(t, pawl.HTTPTool{URL: "http://" + l.Addr().String(), Allow: []string{"127.0.0.1"}, MaxBytes: 1000}, `{"city":"x"}`)
	if len(got) > 1100 || !strings.Contains(got, "500 Internal Server Error\nbody") {
		t.Errorf("the model is told %d bytes: %s", len(got), got[:min(200, len(got))])
	}
	_ = l.Close()
	<-done
}
