package providertest

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/pawl-dev/pawl/message"
	"github.com/pawl-dev/pawl/model"
	"github.com/pawl-dev/pawl/model/anthropic"
)

func TestARequestBeginsWithTheOneBeforeIt(t *testing.T) {
	const before = `{"model":"m","system":[{"text":"s","cache_control":{"type":"ephemeral"}}],"tools":[{"name":"a"},{"name":"b"}],"messages":[{"role":"user","content":[{"text":"one"}]},{"role":"user","content":[{"text":"two","cache_control":{"type":"ephemeral"}}]}],"stream":false}`
	for name, c := range map[string]struct{ from, to, want string }{
		"the same":                             {"", "", ""},
		"what is no part of the prompt":        {`"stream":false`, `"stream":true`, ""},
		"a further message":                    {`]}],"stream"`, `]},{"role":"assistant","content":[]}],"stream"`, ""},
		"a mark that moved":                    {`"two","cache_control":{"type":"ephemeral"}`, `"two"`, ""},
		"a message that is gone":               {`,{"role":"user","content":[{"text":"two","cache_control":{"type":"ephemeral"}}]}`, ``, ""},
		"a part behind the last one":           {`}}]}],"stream"`, `}},{"text":"three"}]}],"stream"`, ""},
		"another system prompt":                {`"s"`, `"at ten past"`, "system moved"},
		"a tool that is gone":                  {`,{"name":"b"}`, ``, "tools moved"},
		"tools in another order":               {`{"name":"a"},{"name":"b"}`, `{"name":"b"},{"name":"a"}`, "tools moved"},
		"an early message":                     {`"one"`, `"ones"`, "messages: element 1 moved"},
		"a part behind an early one":           {`{"text":"one"}`, `{"text":"one"},{"text":"more"}`, "messages: element 1 moved"},
		"the last message":                     {`"two"`, `"Two"`, "messages: element 2 moved"},
		"the members in another order":         {`"role":"user","content":[{"text":"one"}]`, `"content":[{"text":"one"}],"role":"user"`, "messages: element 1 moved"},
		"what says the same in no fewer bytes": {`[{"text":"one"}]`, `[{"text": "one"}]`, "messages: element 1 moved"},
	} {
		after := strings.Replace(before, c.from, c.to, 1)
		if got := moved([]byte(before), []byte(after)); !strings.HasPrefix(got, c.want) || c.want == "" && got != "" {
			t.Errorf("%s: got %q, want %q", name, got, c.want)
		}
	}
}

// listening is a test whose faults are listened to.
type listening struct {
	testing.TB
	faults []string
}

func (l *listening) Errorf(format string, args ...any) {
	l.faults = append(l.faults, fmt.Sprintf(format, args...))
}

// Nobody asks for the check: a test with a second call whose beginning moved fails.
func TestTheServerFailsATestThatMovesThePrefix(t *testing.T) {
	first := model.Request{System: "Be brief.", Tools: tools, Messages: toolRound()}
	said := first.Messages.Append(message.Assistant("Well."), message.User("And then?"))
	for name, c := range map[string]struct {
		second func(*model.Request)
		want   string
	}{
		"the next step":     {func(r *model.Request) { r.Messages = said }, ""},
		"the same again":    {func(*model.Request) {}, ""},
		"the system prompt": {func(r *model.Request) { r.System = "It is ten past nine. Be brief." }, "system moved"},
		"the tools' order":  {func(r *model.Request) { r.Tools = []model.Tool{tools[1], tools[0]} }, "tools moved"},
		"an early message": {func(r *model.Request) {
			r.Messages = message.NewHistory(message.User("Hi!")).Append(said.Slice(1, said.Len()).Messages()...)
		}, "messages: element 1 moved"},
	} {
		t.Run(name, func(t *testing.T) {
			l := &listening{TB: t}
			s := serve(l, func(w http.ResponseWriter, _ *http.Request, _ call) {
				whole(w, http.StatusOK, []byte(`{"type":"message","role":"assistant","content":[{"type":"text","text":"ok"}],"stop_reason":"end_turn"}`))
			})
			m := anthropic.New("test-model", model.WithBaseURL(s.URL), model.WithKey(Key))
			second := first
			c.second(&second)
			for _, r := range []model.Request{first, second} {
				if _, err := m.Complete(t.Context(), r); err != nil {
					t.Fatal(err)
				}
			}
			switch {
			case c.want == "" && len(l.faults) > 0:
				t.Error(l.faults)
			case c.want != "" && (len(l.faults) != 1 || !strings.Contains(l.faults[0], "request 2 moved") || !strings.Contains(l.faults[0], c.want)):
				t.Errorf("got %q, want one fault about %q", l.faults, c.want)
			}
		})
	}
}
