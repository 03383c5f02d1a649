package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/pawl-dev/pawl/bench/internal/child"
)

// The parts of a tier are this program again.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && (os.Args[1] == asUpstream || os.Args[1] == asServer) {
		if err := do(os.Args[1:]); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	os.Exit(m.Run())
}

func TestEveryRequestOfATierIsAnsweredWithOneCallOfTheTool(t *testing.T) {
	for name, tc := range map[string]struct {
		tool, floor       bool
		clients, requests int
		want              counts
	}{
		"with the tool":    {true, false, 20, 3, counts{ModelCalls: 120, ToolCalls: 60}},
		"without Pawl":     {true, true, 5, 2, counts{ModelCalls: 20, ToolCalls: 10}},
		"without the tool": {false, false, 5, 2, counts{ModelCalls: 10}},
	} {
		t.Run(name, func(t *testing.T) {
			o := options{profile: "fast", tool: tc.tool, floor: tc.floor, perEach: tc.requests}
			got, err := run(t.Context(), o, tc.clients)
			if err != nil {
				t.Fatal(err)
			}
			if err := got.check(o); err != nil {
				t.Error(err)
			}
			all := tc.clients * tc.requests
			if got.requests != all || got.errors != 0 || len(got.first) != all || len(got.total) != all {
				t.Errorf("%d requests, %d errors (%v), %d times; want %d requests", got.requests, got.errors, got.wrong, len(got.total), all)
			}
			if c := got.model; c.ModelCalls != tc.want.ModelCalls || c.ToolCalls != tc.want.ToolCalls || c.Refused != 0 {
				t.Errorf("%+v, want %+v", c, tc.want)
			}
			if c := got.model; c.ModelConnections < 1 || 4*c.ModelConnections > 3*c.ModelCalls || 4*c.ToolConnections > 3*c.ToolCalls {
				t.Errorf("connections are not used again: %+v", c)
			}
			if got.total.at(50) < profiles["fast"].least(tc.tool) || got.first.at(50) > got.total.at(50) {
				t.Errorf("first byte after %v, all of it after %v: that is not by the timetable", got.first.at(50), got.total.at(50))
			}
			if got.server.CPU <= 0 || runtime.GOOS == "linux" && got.server.Peak < 1<<20 {
				t.Errorf("the server took %+v", got.server)
			}
		})
	}
}

func TestATableHasARowForEachTier(t *testing.T) {
	var out bytes.Buffer
	dir := t.TempDir()
	if err := benchMain(t.Context(), []string{"-tiers", "2,3", "-requests", "2", "-profile", "fast", "-pprof", dir}, &out); err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(out.String(), "\n")
	head := strings.Join(strings.Fields(lines[0]), " ")
	if !strings.HasPrefix(head, "clients requests errors calls req/s") || !strings.HasPrefix(strings.Join(strings.Fields(lines[1]), " "), "2 4 0 4 ") || !strings.HasPrefix(strings.Join(strings.Fields(lines[2]), " "), "3 6 0 6 ") {
		t.Errorf("%s", out.String())
	}
	for _, name := range []string{"chat-2.cpu.pprof", "chat-2.heap.pprof", "chat-3.allocs.pprof"} {
		if s, err := os.Stat(filepath.Join(dir, name)); err != nil || s.Size() == 0 {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestWhatIsWrongWithTheCommandLineIsSaid(t *testing.T) {
	for _, args := range [][]string{{"-tiers", "0"}, {"-tiers", "a"}, {"-profile", "slow"}, {"-requests", "0"}, {"-nonsense"}, {"more"}} {
		if err := benchMain(t.Context(), args, &bytes.Buffer{}); err == nil {
			t.Errorf("%v is taken", args)
		}
	}
	if _, err := child.Start(t.Context(), asServer, "-nonsense"); err == nil || !strings.Contains(err.Error(), "did not begin to listen") {
		t.Error(err)
	}
}

func TestATierThatIsWrongFails(t *testing.T) {
	good := tier{load: load{requests: 10}, model: counts{ModelCalls: 20, ToolCalls: 10}}
	if err := good.check(options{tool: true}); err != nil {
		t.Error(err)
	}
	for what, spoil := range map[string]func(*tier){
		"1 of 10 requests failed":                                func(t *tier) { t.errors = 1 },
		"the tool was called 11 times, want 10 for 10 requests":  func(t *tier) { t.model.ToolCalls = 11 },
		"the tool was called 9 times, want 10 for 10 requests":   func(t *tier) { t.model.ToolCalls = 9 },
		"the model was called 21 times, want 20 for 10 requests": func(t *tier) { t.model.ModelCalls = 21 },
		"the model or the tool was asked wrongly 1 times":        func(t *tier) { t.model.Refused = 1 },
	} {
		bad := good
		spoil(&bad)
		if err := bad.check(options{tool: true}); err == nil || err.Error() != what {
			t.Errorf("%v, want %s", err, what)
		}
	}
}

func TestAWrongOrCutAnswerIsAnError(t *testing.T) {
	want := profiles["fast"].text
	var says atomic.Value
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		switch said := says.Load().(string); said {
		case "broken off":
			panic(http.ErrAbortHandler)
		case "500":
			http.Error(w, "no", http.StatusInternalServerError)
		default:
			fmt.Fprint(w, said)
		}
	}))
	defer s.Close()
	event := func(text string) string { b, _ := json.Marshal(text); return "data: " + string(b) + "\n\n" }
	const end = "data: [DONE]\n\n"
	right := want("000001")
	for answer, wrong := range map[string]string{
		event(right[:9]) + event(right[9:]) + end: "",
		event(right):                                   "cut off",
		event(right[:9]) + end:                         "the answer is",
		event(want("000002")) + end:                    "the answer is",
		event(right) + event("x") + end:                "the answer is",
		event(right) + end + event("x"):                "more behind the end",
		"event: error\ndata: \"it is late\"\n\n" + end: "it is late",
		"data: {}\n\n" + end:                           "cannot unmarshal",
		"":                                             "no answer",
		"500":                                          "500 Internal Server Error: no",
		"broken off":                                   "EOF",
	} {
		says.Store(answer)
		l := ask(t.Context(), s.URL, 1, 1, want)
		switch got := strings.Join(l.wrong, ""); {
		case wrong == "" && (l.errors != 0 || len(l.total) != 1):
			t.Errorf("the right answer is an error: %s", got)
		case wrong != "" && (l.errors != 1 || len(l.total) != 0 || !strings.Contains(got, wrong)):
			t.Errorf("%q: %d errors, %q, want %q", answer, l.errors, got, wrong)
		}
	}
}

func TestTheModelRefusesWhatItIsNotToBeAsked(t *testing.T) {
	u := &upstream{profile: profile{chunks: 2}, tool: true}
	s := httptest.NewServer(u.server().Handler)
	defer s.Close()
	ask := func(messages string) (int, string) {
		resp, err := http.Post(s.URL+"/v1/chat/completions", "application/json", strings.NewReader(`{"stream":true,"messages":[`+messages+`]}`))
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = resp.Body.Close() }()
		var b bytes.Buffer
		if _, err := b.ReadFrom(resp.Body); err != nil {
			t.Fatal(err)
		}
		return resp.StatusCode, b.String()
	}
	result, _ := json.Marshal(toolResult)
	const user, call = `{"role":"user","content":"#7."}`, `{"role":"assistant","tool_calls":[{"id":"a"}]}`
	tool := func(id string, content []byte) string {
		return fmt.Sprintf(`{"role":"tool","tool_call_id":%q,"content":%s}`, id, content)
	}
	if status, got := ask(user); status != 200 || strings.Count(got, toolName) != 1 || strings.Contains(got, "chunk-") {
		t.Errorf("first it calls the tool, once: %d, %s", status, got)
	}
	if status, got := ask(user + "," + call + "," + tool("a", result)); status != 200 || strings.Contains(got, toolName) || !strings.Contains(got, `"content":"chunk-0 "`) || !strings.Contains(got, `chunk-1 #7"`) {
		t.Errorf("then it answers: %d, %s", status, got)
	}
	wrong := []string{
		"", `{"role":"user","content":"no number"}`, call, user + "," + tool("a", result), user + "," + call + "," + tool("b", result), user + "," + call + "," + tool("a", []byte(`"lost"`)),
		call + "," + tool("a", result), tool("a", result),
	}
	for _, messages := range wrong {
		if status, got := ask(messages); status != 400 {
			t.Errorf("%s: %d, %s", messages, status, got)
		}
	}
	if n := u.refused.Load(); n != int64(len(wrong)) {
		t.Errorf("%d were refused, want %d", n, len(wrong))
	}
}

func TestWhatATimetableComesTo(t *testing.T) {
	if d := profiles["default"].least(true); d != 1270*time.Millisecond {
		t.Error(d)
	}
	if d := profiles["default"].least(false); d != 670*time.Millisecond {
		t.Error(d)
	}
	sorted := times{1, 2, 3, 4, 5, 6, 7, 8, 9, 10}
	if sorted.at(50) != 5 || sorted.at(99) != 10 || sorted[:1].at(50) != 1 || (times{}).at(50) != 0 {
		t.Errorf("%v, %v", sorted.at(50), sorted.at(99))
	}
	if got, err := answer(bufio.NewReader(strings.NewReader("data: \"a\"\n\ndata: [DONE]\n\n"))); got != "a" || err != nil {
		t.Error(got, err)
	}
}

func TestThePageHasEveryFlagTimetableAndColumn(t *testing.T) {
	b, err := os.ReadFile("../README.md")
	if err != nil {
		t.Fatal(err)
	}
	page := string(b)
	has := func(row string) {
		t.Helper()
		if !strings.Contains(page, row) {
			t.Errorf("the page has no %q", row)
		}
	}
	var o options
	var tiers string
	flagsOf(&o, &tiers).VisitAll(func(f *flag.Flag) {
		name, value := f.Name, "`"+f.DefValue+"`"
		if f.DefValue == "" {
			name, value = name+" DIR", ""
		}
		has(strings.TrimSpace("| `-"+name+"` | "+value) + " |")
	})
	for name, p := range profiles {
		least := strconv.FormatFloat(p.least(true).Seconds(), 'g', -1, 64)
		has(fmt.Sprintf("| `%s` | %d | %d ms | %d ms | %d ms | %s s |", name, p.chunks, p.first.Milliseconds(), p.gap.Milliseconds(), p.tool.Milliseconds(), least))
	}
	for _, c := range columns {
		name, percent, _ := strings.Cut(c.(string), " ")
		if percent == "" || percent == "p50" {
			has("\n| " + name)
			continue
		}
		has(" " + percent + " |")
	}
}
