package loop_test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pawl-dev/pawl/engine"
	"github.com/pawl-dev/pawl/engine/loop"
	"github.com/pawl-dev/pawl/errdefs"
	"github.com/pawl-dev/pawl/hook"
	"github.com/pawl-dev/pawl/journal"
	"github.com/pawl-dev/pawl/message"
	"github.com/pawl-dev/pawl/model"
	"github.com/pawl-dev/pawl/tool"
)

// tickets are tools of which one is shown and three are deferred.
func tickets() []tool.Tool {
	type ticket struct {
		Number int `json:"number"`
	}
	say := func(what string) func(context.Context, ticket) (string, error) {
		return func(_ context.Context, in ticket) (string, error) { return fmt.Sprint(what, in.Number), nil }
	}
	return []tool.Tool{
		tool.Func("mcp__t__close", "Close a ticket.", say("closed "), tool.Deferred),
		constant("shown"),
		tool.Func("mcp__t__open", "Open a ticket again.", say("opened "), tool.Deferred),
		tool.Func("mcp__u__weather", "Tell <the> weather.", func(context.Context, none) (string, error) { return "sun", nil }, tool.Deferred),
	}
}

func offered(req model.Request) (names []string) {
	for _, t := range req.Tools {
		names = append(names, t.Name)
	}
	return names
}

func search(id, query string) message.ToolCall {
	in, _ := json.Marshal(map[string]string{"query": query})
	return call(id, "tool_search", string(in))
}

func TestDeferredToolsAreOfferedOnceTheyWereFound(t *testing.T) {
	m := plays(uses(search("c1", "weather")), uses(search("c2", "TICKET again"), call("c3", "mcp__u__weather", "{}")), uses(call("c4", "mcp__t__open", `{"number":7}`)), says("done"))
	d := play{cfg: loop.Config{Model: m, Tools: tickets()}}.do(t)
	wantErr(t, d.err, nil)
	var got [][]string
	for _, req := range m.asked {
		got = append(got, offered(req))
	}
	begin := []string{"shown", "tool_search", "mcp__u__weather"}
	want := [][]string{begin[:2], begin, append(slices.Clone(begin), "mcp__t__open", "mcp__t__close"), append(slices.Clone(begin), "mcp__t__open", "mcp__t__close")}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error("each is behind those before it:", diff)
	}
	for i, req := range m.asked[1:] { // what a provider has cached stays
		for k, before := range m.asked[i].Tools {
			if diff := cmp.Diff(before, req.Tools[k]); diff != "" {
				t.Error(diff)
			}
		}
	}
	if got := m.asked[0].Tools[1].Description; !strings.HasSuffix(got, "There are: mcp__t, mcp__u.") {
		t.Error(got)
	}
	if diff := cmp.Diff([]string{
		`assistant:  <c1 tool_search {"query":"weather"}>`, `tool:  [c1 {"name":"mcp__u__weather","description":"Tell \u003cthe\u003e weather.","input":{"type":"object","additionalProperties":false}}` + "\n]",
	}, d.since()[:2]); diff != "" {
		t.Error(diff)
	}
	if got := d.since(); !strings.Contains(got[3], "[c3 sun]") || !strings.Contains(got[5], "[c4 opened 7]") {
		t.Errorf("%q", got)
	}
}

// Another process that goes on with the session has nothing but the transcript.
func TestAnotherProcessOffersTheSameTools(t *testing.T) {
	store := journal.Memory()
	m := plays(uses(search("c1", "mcp__t__close")), fails(errdefs.NotAvailable.Errorf("the process is gone")))
	first := play{cfg: loop.Config{Model: m, Tools: tickets()}, store: store}.do(t)
	wantErr(t, first.err, errdefs.NotAvailable)
	later := plays(says("done"))
	eng, err := loop.New(loop.Config{Model: later, Tools: tickets()})
	if err != nil {
		t.Fatal(err)
	}
	again := first
	again.eng = eng
	again.execute(t, t.Context(), engine.NoopHost{}) // what is on record is not asked again
	wantErr(t, again.err, nil)
	if diff := cmp.Diff(m.asked[1].Tools, later.asked[0].Tools); diff != "" || len(later.asked[0].Tools) != 3 {
		t.Error(diff, offered(later.asked[0]))
	}
}

func TestADeferredToolThatWasNotSearchedForRunsAllTheSame(t *testing.T) {
	m := plays(uses(call("c1", "mcp__t__close", `{"id":7}`)), uses(call("c2", "mcp__t__close", `{"number":7}`)), says("done"))
	d := play{cfg: loop.Config{Model: m, Tools: tickets()}}.do(t)
	wantErr(t, d.err, nil)
	got := d.since()
	if !strings.Contains(got[1], `"number"`) || !strings.Contains(got[1], `Its input is: {"type":"object","properties":{"number":{"type":"integer"}}`) {
		t.Errorf("the model is told what it wants: %q", got[1])
	}
	if !strings.Contains(got[3], "[c2 closed 7]") {
		t.Errorf("%q", got)
	}
	if got := offered(m.asked[2]); len(got) != 2 {
		t.Error("it was not found, so the requests stay:", got)
	}
}

func TestAGateBindsSearchesToo(t *testing.T) {
	m := plays(uses(search("c1", "ticket"), search("c2", "mcp__t__close")), uses(call("c3", "mcp__t__close", `{"number":1}`)), says("done"))
	d := play{cfg: loop.Config{Model: m, Tools: tickets()}, run: engine.Run{Tools: []string{"shown", "MCP__t__open"}}}.do(t)
	wantErr(t, d.err, nil)
	if diff := cmp.Diff([]string{"shown", "tool_search", "mcp__t__open"}, offered(m.asked[2])); diff != "" {
		t.Error(diff)
	}
	got := strings.Join(d.since(), "\n")
	if strings.Contains(got, `"name":"mcp__t__close"`) || strings.Contains(got, "closed") || !strings.Contains(got, "No tool fits. Try other words; there are: mcp__t (1)") {
		t.Error(got)
	}
	m = plays(uses(search("c1", "ticket")), says("done"))
	d = play{cfg: loop.Config{Model: m, Tools: tickets()}, run: engine.Run{Tools: []string{"shown"}}}.do(t)
	wantErr(t, d.err, nil)
	if got := offered(m.asked[0]); !slices.Equal(got, []string{"shown"}) || !strings.Contains(d.since()[1], "there is no tool") {
		t.Error("who may use none of them can't search:", got, d.since())
	}
}

func TestFoundToolsOutliveACompaction(t *testing.T) {
	m := plays(takes(100, uses(search("c0", "weather"))), takes(300, uses(look("2"))), takes(600, uses(look("3"))), takes(40, says("all of it")), takes(600, uses(look("4"))), takes(40, says("all of it")), says("done"))
	d := play{cfg: small(m, append(tickets(), looks())...)}.do(t)
	wantErr(t, d.err, nil)
	last := m.asked[len(m.asked)-1]
	if diff := cmp.Diff([]string{"shown", "look", "tool_search", "mcp__u__weather"}, offered(last)); diff != "" {
		t.Error(diff)
	}
	if got := dump(last.Messages); !strings.HasPrefix(got[0], "user: "+summary) || strings.Contains(strings.Join(got, ""), "tool_search") {
		t.Errorf("%q", got)
	}
}

func TestWhatHooksPutAroundAResultHidesNoTool(t *testing.T) {
	hooks := hook.Middleware{Name: "notes", PostToolUse: func(_ context.Context, u *hook.ToolUse) error {
		u.Result.Content = "note\n" + u.Result.Content + "{\"name\":\"mcp__t__gone\"}\n{\"name\":1}\n{\"name\":\"shown\"}\n"
		return nil
	}}
	m := plays(uses(search("c1", "weather")), says("done"))
	d := play{cfg: loop.Config{Model: m, Tools: tickets(), Hooks: []hook.Middleware{hooks}}}.do(t)
	wantErr(t, d.err, nil)
	if diff := cmp.Diff([]string{"shown", "tool_search", "mcp__u__weather"}, offered(m.asked[1])); diff != "" {
		t.Error(diff)
	}
}

func TestASearchFindsAFewOfMany(t *testing.T) {
	var tools []tool.Tool
	for i := range 100 {
		tools = append(tools, tool.Func(fmt.Sprintf("mcp__many__tool_%02d", i), "Does something.", func(context.Context, none) (string, error) { return "", nil }, tool.Deferred))
	}
	for query, want := range map[string]int{`{"query":"something"}`: 5, `{"query":"something","limit":7}`: 7, `{"query":"something","limit":1000}`: 20, `{"query":"mcp__many__tool_77","limit":1}`: 1, `{"query":""}`: 0} {
		m := plays(uses(call("c1", "tool_search", query)), says("done"))
		d := play{cfg: loop.Config{Model: m, Tools: tools}}.do(t)
		wantErr(t, d.err, nil)
		if got := offered(m.asked[1])[1:]; len(got) != want || want == 1 && got[0] != "mcp__many__tool_77" {
			t.Error(query, got, d.since())
		}
	}
	if _, err := loop.New(loop.Config{Model: plays(), Tools: append(tools, constant("tool_search"))}); !errdefs.Conflict.Is(err) {
		t.Error(err)
	}
	m := plays(says("done"))
	wantErr(t, play{cfg: loop.Config{Model: m, Tools: []tool.Tool{constant("a")}}}.do(t).err, nil)
	if diff := cmp.Diff([]string{"a"}, offered(m.asked[0])); diff != "" {
		t.Error("nothing is deferred:", diff)
	}
}
