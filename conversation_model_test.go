package pawl_test

import (
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/pawl-dev/pawl"
	"github.com/pawl-dev/pawl/agent"
	"github.com/pawl-dev/pawl/errdefs"
	"github.com/pawl-dev/pawl/journal"
	"github.com/pawl-dev/pawl/message"
	"github.com/pawl-dev/pawl/model"
	"github.com/pawl-dev/pawl/model/scripted"
)

// noKeys has no provider's key in the environment, but those given.
func noKeys(t *testing.T, but ...string) {
	t.Helper()
	for _, p := range pawl.Providers() {
		for _, key := range p.Keys {
			t.Setenv(key, "")
		}
	}
	for _, key := range but {
		t.Setenv(key, "k")
	}
}

// talksTo is the model that a conversation's run was begun with.
func talksTo(t *testing.T, opts ...pawl.Option) (string, error) {
	t.Helper()
	store := journal.Memory()
	c, err := pawl.Open(packOf(t, plain), "chat", append(opts, pawl.WithJournal(store))...)
	if err != nil {
		return "", err
	}
	defer func() { _ = c.Close() }()
	f, err := c.Fork(t.Context()) // what it talks to, its forks do
	if err != nil {
		return "", err
	}
	defer func() { _ = f.Close() }()
	return f.Model(), nil
}

func TestTheModelIsTheExplicitOneOrByPrefixOrByEnvironment(t *testing.T) {
	for name, tc := range map[string]struct {
		opts []pawl.Option
		keys []string
		want string
	}{
		"explicit":              {[]pawl.Option{pawl.WithModel(scripted.New())}, []string{"OPENAI_API_KEY"}, "scripted/test"},
		"by its full name":      {[]pawl.Option{pawl.WithModelName("anthropic/x")}, []string{"OPENAI_API_KEY"}, "anthropic/x"},
		"claude":                {[]pawl.Option{pawl.WithModelName("claude-x")}, []string{"OPENAI_API_KEY"}, "anthropic/claude-x"},
		"gemini":                {[]pawl.Option{pawl.WithModelName("gemini-x")}, nil, "gemini/gemini-x"},
		"gpt":                   {[]pawl.Option{pawl.WithModelName("gpt-x")}, nil, "openai/gpt-x"},
		"o1":                    {[]pawl.Option{pawl.WithModelName("o1-x")}, nil, "openai/o1-x"},
		"o3":                    {[]pawl.Option{pawl.WithModelName("o3-x")}, nil, "openai/o3-x"},
		"ollama":                {[]pawl.Option{pawl.WithModelName("qwen3:8b")}, nil, "ollama/qwen3:8b"},
		"openai's key is first": {nil, []string{"ANTHROPIC_API_KEY", "OPENAI_API_KEY", "GEMINI_API_KEY"}, "openai/"},
		"then anthropic's":      {nil, []string{"ANTHROPIC_API_KEY", "GOOGLE_API_KEY"}, "anthropic/"},
		"then google's":         {nil, []string{"GOOGLE_API_KEY"}, "gemini/"},
		"or gemini's":           {nil, []string{"GEMINI_API_KEY"}, "gemini/"},
	} {
		t.Run(name, func(t *testing.T) {
			noKeys(t, tc.keys...)
			got, err := talksTo(t, tc.opts...)
			if err != nil || !strings.HasPrefix(got, tc.want) {
				t.Errorf("got %q, %v; want %q", got, err, tc.want)
			}
		})
	}
	for name, tc := range map[string]struct {
		opts []pawl.Option
		want *errdefs.Class
	}{
		"nothing says which":    {nil, errdefs.NotAvailable},
		"a name of nobody's":    {[]pawl.Option{pawl.WithModelName("llama")}, errdefs.Validation},
		"a key of nobody's":     {[]pawl.Option{pawl.WithAPIKey("k")}, errdefs.Validation},
		"a key that has no use": {[]pawl.Option{pawl.WithModel(scripted.New()), pawl.WithAPIKey("k")}, errdefs.Validation},
	} {
		t.Run(name, func(t *testing.T) {
			noKeys(t)
			if _, err := talksTo(t, tc.opts...); !tc.want.Is(err) {
				t.Errorf("got %v", err)
			}
		})
	}
}

func TestDefectAnExplicitKeyIsNotUsed(t *testing.T) {
	noKeys(t, "OPENAI_API_KEY")
	keys := make(chan string, 1)
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		keys <- r.Header.Get("Authorization")
		w.WriteHeader(http.StatusUnauthorized)
	}))
	defer s.Close()
	c, err := pawl.Open(packOf(t, plain), "chat", pawl.WithModelName("gpt-x", model.WithBaseURL(s.URL)), pawl.WithAPIKey("explicit"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = c.Close() }()
	if _, err := c.Send(t.Context(), "a"); !errdefs.Unauthorized.Is(err) {
		t.Errorf("got %v", err)
	}
	if got := <-keys; got != "Bearer explicit" {
		t.Errorf("the key was %q", got)
	}
}

// team is a pack whose agents hand over to each other.
const team = `"agents": {"entry": "chat", "members": {"chat": {}, "billing": {"description": "Knows of money."}}},`

func TestAgentsOfThePackHandOverToEachOther(t *testing.T) {
	file := packOf(t, `"system_template": "You are the front desk for {{name}}.", "tools": ["billing"], "variables": [{"name": "name", "type": "string", "required": true}]},
		"billing": {"id": "billing", "name": "Billing", "version": "1.0.0", "system_template": "You bill {{name}}.", "tools": ["pay"], "variables": [{"name": "name", "type": "string", "required": true}]`, team)
	m := listening(
		scripted.Calls(callOf("h", "transfer_to_billing", `{"reason":"money"}`)),
		scripted.Calls(callOf("p", "pay", `{"amount":500}`)), scripted.Text("Paid."), scripted.Text("Anything else?"))
	c := converse(t, file, m)
	var paid []string
	c.OnToolAsync("pay", large, func(map[string]any) (any, error) { paid = append(paid, "x"); return "ok", nil })
	c.SetVar("name", "Ada")
	resp := send(t, c, "pay my bill")
	wantLines(t, ids(resp.Pending), "p Pay 500?")
	if err := c.ResolveTool(t.Context(), "p"); err != nil {
		t.Fatal(err)
	}
	resp, err := c.Continue(t.Context())
	if err != nil || resp.Text() != "Paid." || len(paid) != 1 {
		t.Errorf("got %v, paid %d times", err, len(paid))
	}
	if err := c.AddMessage(t.Context(), message.User("thanks")); err != nil { // who has the conversation keeps it
		t.Fatal(err)
	}
	send(t, c, "bye")
	s := m.systems()
	wantLines(t, s, "You are the front desk for Ada.", "You bill Ada.", "You bill Ada.", "You bill Ada.")
	if all := m.asked(); len(all[0].Tools) != 1 || all[0].Tools[0].Name != "transfer_to_billing" || !strings.Contains(all[0].Tools[0].Description, "money") || all[1].Tools[0].Name != "pay" {
		t.Errorf("tools: %+v, then %+v", all[0].Tools, all[1].Tools)
	}
}

// twoDesks is a pack whose two prompts hand over to each other, with these further members of each.
func twoDesks(t *testing.T, front, billing string) string {
	t.Helper()
	return packOf(t, `"system_template": "Front.", "tools": ["billing"]`+front+`},
		"billing": {"id": "billing", "name": "Billing", "version": "1.0.0", "system_template": "Billing.", "tools": ["chat"]`+billing, team)
}

func handOver(id, to string) scripted.Turn {
	return scripted.Calls(callOf(id, "transfer_to_"+to, `{}`))
}

// What a person says is heard by the agent that has the conversation: its validators judge, and its media admit, not those of the prompt that it began with.
func TestWhoHasTheConversationHearsByItsOwnRules(t *testing.T) {
	rule := func(word string) string {
		return `, "validators": [{"type": "banned_words", "fail_on_violation": true, "params": {"words": ["` + word + `"], "direction": "input"}}]`
	}
	m := listening(handOver("h", "billing"), scripted.Text("Hello."), scripted.Text("Fine."))
	file := twoDesks(t, rule("tulip"), rule("rose")+`, "media": {"enabled": false}`)
	store := journal.Memory()
	c := converse(t, file, m, pawl.WithJournal(store))
	image := message.File{MIME: "image/png", Data: "eA=="}
	if _, err := c.Send(t.Context(), "a tulip"); !errdefs.PolicyDenied.Is(err) {
		t.Errorf("the first agent's own rule: %v", err)
	}
	send(t, c, "a rose")
	for _, c := range []*pawl.Conversation{c, converse(t, file, m, pawl.WithSession(c.Session()), pawl.WithJournal(store))} {
		if _, err := c.Send(t.Context(), "another rose"); !errdefs.PolicyDenied.Is(err) {
			t.Errorf("the second agent's rule: %v", err)
		}
		if _, err := c.Send(t.Context(), "a picture", image); !errdefs.Validation.Is(err) || !strings.Contains(err.Error(), "billing") {
			t.Errorf("the second agent's media: %v", err)
		}
	}
	if resp := send(t, c, "a tulip"); resp.Text() != "Fine." {
		t.Errorf("the first agent's rule is not the second one's: %q", resp.Text())
	}
}

// A Response is of the turn, whoever was at work in it.
func TestAResponseHasWhatAllAgentsOfTheTurnSaidAndTook(t *testing.T) {
	costs := func(turn scripted.Turn, input, output int) scripted.Turn {
		turn.Usage.Input, turn.Usage.Output = input, output
		return turn
	}
	m := listening(costs(handOver("h", "billing"), 100, 1), costs(scripted.Text("Hello."), 400, 4), costs(scripted.Text("Bye."), 800, 8))
	c := converse(t, twoDesks(t, "", ""), m)
	resp := send(t, c, "bill me")
	if resp.Usage.Input != 500 || resp.Usage.Output != 5 || resp.Steps != 2 || resp.Text() != "Hello." {
		t.Errorf("%+v in %d steps: %q", resp.Usage, resp.Steps, resp.Text())
	}
	var said []string
	for _, m := range resp.Messages {
		said = append(said, string(m.Role())+" "+m.Text())
	}
	wantLines(t, said, "assistant ", "tool ", "assistant Hello.")
	if resp := send(t, c, "bye"); resp.Usage.Input != 800 || resp.Steps != 1 || len(resp.Messages) != 1 {
		t.Errorf("a turn of one agent: %+v in %d steps", resp.Usage, resp.Steps)
	}
}

// Agents that hand over for ever are stopped, and the turn failed.
func TestATurnHasSoManyHandovers(t *testing.T) {
	var turns []scripted.Turn
	for i := range 6 {
		turns = append(turns, handOver(fmt.Sprint("a", i), "billing"), handOver(fmt.Sprint("b", i), "chat"))
	}
	store := journal.Memory()
	c := converse(t, twoDesks(t, "", ""), listening(turns...), pawl.WithJournal(store))
	resp, err := c.Send(t.Context(), "go")
	if !errdefs.BudgetExceeded.Is(err) || resp == nil || resp.Status != agent.StatusFailed || !errors.Is(resp.Err, err) || resp.Steps != 9 {
		t.Errorf("%+v, %v", resp, err)
	}
	if err := c.AddMessage(t.Context(), message.User("who is there?")); err != nil { // whom it was handed over to has it
		t.Fatal(err)
	}
	m := listening(append(slices.Repeat([]scripted.Turn{scripted.Text("x")}, 9), scripted.Text("I am."))...) // a script goes on behind what was played of it
	again := converse(t, twoDesks(t, "", ""), m, pawl.WithJournal(store), pawl.WithSession(c.Session()))
	send(t, again, "you")
	wantLines(t, m.systems(), "Billing.")
}
