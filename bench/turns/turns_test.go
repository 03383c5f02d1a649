package main

import (
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"math"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/pawl-dev/pawl/agent"
	"github.com/pawl-dev/pawl/bench/internal/child"
	"github.com/pawl-dev/pawl/bench/internal/load"
	"github.com/pawl-dev/pawl/bench/internal/upstream"
	"github.com/pawl-dev/pawl/engine"
	"github.com/pawl-dev/pawl/engine/loop"
	"github.com/pawl-dev/pawl/event"
	"github.com/pawl-dev/pawl/internal/raced"
	"github.com/pawl-dev/pawl/internal/testkit/tier"
	"github.com/pawl-dev/pawl/message"
	"github.com/pawl-dev/pawl/model"
	"github.com/pawl-dev/pawl/model/anthropic"
	"github.com/pawl-dev/pawl/model/gemini"
	"github.com/pawl-dev/pawl/model/openai"
	"github.com/pawl-dev/pawl/tool"
)

// The parts of a benchmark are this program again.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && slices.Contains([]string{asUpstream, asRun, asKept}, os.Args[1]) {
		if err := do(os.Args[1:]); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	if os.Getenv("PAWL_BENCH_FAIL") != "" {
		os.Exit(3)
	}
	_ = os.Setenv("GORACE", "atexit_sleep_ms=0 "+os.Getenv("GORACE")) // else each of many processes ends a second later
	os.Exit(m.Run())
}

// model starts an upstream.
func upstreamOf(t *testing.T) string {
	t.Helper()
	s := httptest.NewServer(upstream.New(0).Handler())
	t.Cleanup(s.Close)
	return s.URL
}

func TestEverySystemAnswersEveryWorkload(t *testing.T) {
	for workload, times := range map[string]float64{
		"W1": .2, "W2-200": .25, "W2-400": .02, "W3": .01, "W3-flushed": .01, "W4": .05, "W4-big": .002, "W8-parallel": .2, "W8-results": .3, "W8-image": .2, "W10": .03,
	} {
		t.Run(workload, func(t *testing.T) {
			url := upstreamOf(t)
			w, err := load.Named(workload, times)
			if err != nil {
				t.Fatal(err)
			}
			w.Latency = 0
			w.Warm, w.Sessions, w.Asks.Result, w.Image, w.Asks.Deltas = min(w.Warm, 1), min(w.Sessions, 10), min(w.Asks.Result, 32<<10), min(w.Image, 64<<10), min(w.Asks.Deltas, 20)
			if strings.HasPrefix(workload, "W2") {
				w.Sessions = 2
			}
			for name, system := range systems {
				if strings.HasSuffix(name, "-sqlite") && workload != "W1" && workload != "W4" {
					continue // as in the table: they wait for the disk
				}
				if otherWires[name] != nil && workload != "W1" && workload != "W3" && workload != "W3-flushed" {
					continue // as in the table, or nearly
				}
				before, err := upstream.CountsOf(t.Context(), url)
				if err != nil {
					t.Fatal(err)
				}
				r, err := load.Run(t.Context(), name, w, url, "", system)
				if err != nil {
					t.Error(err)
					continue
				}
				after, err := upstream.CountsOf(t.Context(), url)
				if err != nil {
					t.Fatal(err)
				}
				asked := int64((w.Warm + w.Sessions) * w.Asks.Turns)
				if name == "f3-sqlite" { // one session to see what the journal has
					asked += int64(w.Asks.Turns)
				}
				if got := after.Requests - before.Requests; got != asked || after.Refused != before.Refused {
					t.Errorf("%s: the model was asked %d times, and %d of them wrongly, want %d", name, got, after.Refused-before.Refused, asked)
				}
				if r.Turns != w.Sessions*w.Asks.Turns || r.Pieces != w.Sessions*w.Asks.Deltas || r.Allocs == 0 || r.Bytes == 0 || r.Wall <= 0 || runtime.GOOS == "linux" && (r.CPU <= 0 || r.Peak < r.Base-1<<20 || r.Base < 1<<20) { // Linux counts resident pages about right: each processor has some that it has not told of yet
					t.Errorf("%s: %+v", name, r)
				}
				if w.Asks.Stamp && name != "f0" && (r.Late50 <= 0 || r.Late99 < r.Late50) {
					t.Errorf("%s: pieces came %v and %v after they were sent", name, r.Late50, r.Late99)
				}
				if strings.HasPrefix(workload, "W2") && w.Asks.Turns > 41 && (r.First20 <= 0 || r.Last20 <= 0) {
					t.Errorf("%s: the first turns took %v, the last ones %v", name, r.First20, r.Last20)
				}
			}
		})
	}
}

// What is on the disk before the next step: the model's reply; the judgment of a tool call, with its begin; its end, with the next call of the model. The rest is once for a session: that there is one, the
// run and what was said, what the model is told, the first call of it, the stop, and the run's end.
func TestATurnIsPutOnRecordInThreePieces(t *testing.T) {
	for _, turns := range []int{1, 4} {
		w, err := load.Named("W1", 1)
		if err != nil {
			t.Fatal(err)
		}
		w.Asks.Turns = turns
		f, err := newF3SQLite(&load.Task{Workload: w, Upstream: upstreamOf(t), Dir: t.TempDir()})
		if err != nil {
			t.Fatal(err)
		}
		if got, want := len(f.(*f3sqlite).sizes), 3*(turns-1)+7; got != want {
			t.Errorf("%d turns: %d appends, want %d", turns, got, want)
		}
		if err := f.Close(); err != nil {
			t.Error(err)
		}
	}
}

// A floor that costs more than it has to would make everything beside it look good.
func TestTheFloorsAllocateWhatFloorsDo(t *testing.T) {
	if raced.Enabled {
		t.Skip("the race detector allocates")
	}
	b := &bench{pairs: 1, times: 1, models: map[time.Duration]*child.Process{}}
	defer func() {
		if err := b.end(); err != nil {
			t.Error(err)
		}
	}()
	for _, tc := range []struct {
		system, workload string
		what             metric
		want             float64
	}{
		{"f0", "W1", allocTurn, 64},
		{"f1", "W1", allocTurn, 181},
		{"f3", "W1", allocTurn, 80},
		{"f1", "W3", allocPiece, 10.07},
		{"f1-openai", "W1", allocTurn, 180},
		{"f1-openai", "W3", allocPiece, 11.07},
	} {
		r, err := b.run(t.Context(), "", tc.system, tc.workload)
		if err != nil {
			t.Fatal(err)
		}
		if got := tc.what.of(r); math.Abs(got-tc.want) > .05*tc.want {
			t.Errorf("%s, %s: %.2f %s, want %.2f within 5 %%", tc.system, tc.workload, got, tc.what.name, tc.want)
		}
	}
}

// liar answers wrongly.
type liar struct {
	answer load.Answer
	said   string
	err    error
}

func (l liar) Open(int) load.Session { return l }
func (l liar) Close() error          { return nil }
func (l liar) Ask(_ context.Context, _ string, said func(string)) (load.Answer, error) {
	said(l.said)
	return l.answer, l.err
}

func TestAWrongAnswerIsAnError(t *testing.T) {
	w, err := load.Named("W1", 1)
	if err != nil {
		t.Fatal(err)
	}
	right := upstream.Answer(w.Asks)
	all := right + strings.Repeat("x", 19*upstream.Preface)
	for wrong, l := range map[string]liar{
		"":                            {load.Answer{Text: right, Calls: 19}, all, nil},
		"the tool was called 18":      {load.Answer{Text: right, Calls: 18}, all, nil},
		"the answer is":               {load.Answer{Text: right[1:], Calls: 19}, all, nil},
		"bytes of text came as piece": {load.Answer{Text: right, Calls: 19}, all[1:], nil},
		"it broke":                    {load.Answer{}, "", fmt.Errorf("it broke")},
	} {
		_, err := load.Run(t.Context(), "liar", w, "", "", func(*load.Task) (load.System, error) { return l, nil })
		if wrong == "" && err != nil || wrong != "" && (err == nil || !strings.Contains(err.Error(), wrong)) {
			t.Errorf("%v, want %q", err, wrong)
		}
	}
}

func TestTheModelSpeaksAllWires(t *testing.T) {
	url := upstreamOf(t)
	for name, m := range map[string]model.Model{
		"anthropic": anthropic.New("bench", model.WithBaseURL(url), model.WithKey("none")),
		"chat":      openai.New("bench", model.WithBaseURL(url+"/v1"), model.WithKey("none")),
		"responses": openai.NewResponses("bench", model.WithBaseURL(url+"/v1"), model.WithKey("none")),
		"gemini":    gemini.New("bench", model.WithBaseURL(url+"/v1beta"), model.WithKey("none")),
	} {
		for _, streams := range []bool{true, false} {
			t.Run(fmt.Sprint(name, " streams:", streams), func(t *testing.T) {
				asks := upstream.Directive{Turns: 4, Tool: load.Tool, Par: 2, Deltas: 5, Flush: true}
				var values []string
				echo := tool.Func(load.Tool, about, func(_ context.Context, in input) (string, error) {
					values = append(values, in.Value)
					return in.Value, nil
				})
				eng, err := loop.New(loop.Config{Model: m, Tools: []tool.Tool{echo}, Limits: loop.Limits{Repeats: -1}})
				if err != nil {
					t.Fatal(err)
				}
				var opts []agent.RunOption
				heard := ""
				if streams {
					opts = append(opts, agent.WithEngineHost(engine.HostFuncs{PublishFunc: func(_ context.Context, e event.Event) error {
						if e.Delta == event.TextDelta {
							heard += e.Text
						}
						return nil
					}}))
				}
				res, err := agent.Run(t.Context(), agent.Agent{ID: "a"}, eng, agent.Request{Message: message.User("Do it: " + asks.String())}, opts...)
				if err != nil || res.Err != nil {
					t.Fatal(res, err)
				}
				if res.Text() != upstream.Answer(asks) || len(values) != 6 || !strings.HasPrefix(values[0], "item 0") {
					t.Errorf("%q, %q", res.Text(), values)
				}
				if streams && (!strings.HasSuffix(heard, res.Text()) || len(heard) != len(res.Text())+3*upstream.Preface) {
					t.Errorf("heard %q", heard)
				}
			})
		}
	}
}

func TestTheModelRefusesWhatItIsNotToBeAsked(t *testing.T) {
	url := upstreamOf(t)
	user := func(d string) string { return `{"role":"user","content":[{"type":"text","text":"` + d + `"}]}` }
	const call, result = `{"role":"assistant","content":[{"type":"tool_use","id":"a","name":"echo","input":{"value":"item 000007"}}]}`, `{"role":"user","content":[{"type":"tool_result","tool_use_id":"a","content":"item 000007"}]}`
	for body, want := range map[string]string{
		user("turns=2 tool=echo"):                             "",
		user("turns=2 tool=echo") + "," + call + "," + result: "",
		user("hello"):                                                                                                                 "no prompt says",
		user("turns=2 tool=echo") + "," + call:                                                                                        "1 calls, and 0 results",
		user("turns=2 tool=echo") + "," + result:                                                                                      "0 calls, and 1 results",
		user("turns=1 tool=echo") + "," + call + "," + result:                                                                         "1 results, of 1 calls a turn and 0 in all",
		user("turns=3 tool=echo par=2") + "," + call + "," + result:                                                                   "1 results, of 2 calls a turn",
		user("turns=2 tool=echo") + "," + strings.Replace(call, `"a"`, `"b"`, 1) + "," + result:                                       "which nobody made",
		user("turns=2 tool=echo") + "," + call + "," + strings.Replace(result, "item 000007", "", 1):                                  "1 arguments and results, want 2",
		user("turns=2 tool=echo") + "," + call + "," + strings.Replace(result, "item 000007", "item 000008", 1):                       "which nobody asked for",
		user("turns=2 tool=echo result=500") + "," + call + "," + result:                                                              "want 500 of each",
		user("turns=2 tool=echo result=500") + "," + call + "," + strings.Replace(result, "item 000007", strings.Repeat("r", 500), 1): "",
		user("turns=0 tool=echo"):                                                                                                     "at least 1",
		user("turns=2"):                                                                                                               "and a tool",
		user("turns=2 tool=x par=y"):                                                                                                  "want a number",
		user("turns=2 tool=x pa=1"):                                                                                                   "means nothing",
	} {
		resp, err := http.Post(url+"/v1/messages", "application/json", strings.NewReader(`{"stream":true,"messages":[`+body+`]}`))
		if err != nil {
			t.Fatal(err)
		}
		said, err := io.ReadAll(resp.Body)
		if err = errorsJoin(err, resp.Body.Close()); err != nil {
			t.Fatal(err)
		}
		if want == "" && resp.StatusCode != 200 || want != "" && (resp.StatusCode != 400 || !strings.Contains(string(said), want)) {
			t.Errorf("%s: %s, %s, want %q", body, resp.Status, said, want)
		}
	}
	if c, err := upstream.CountsOf(t.Context(), url); err != nil || c.Requests != 3 || c.Refused != 13 {
		t.Error(c, err)
	}
}

func errorsJoin(errs ...error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

func TestATableHasALineForEachFigure(t *testing.T) {
	dir := t.TempDir()
	file := func(name string) string { return filepath.Join(dir, name) }
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	err = benchMain(t.Context(), []string{"-workloads", "W1,W2", "-systems", "pawl-memory,f3", "-also", "f3=" + self, "-pairs", "2", "-times", "0.1", "-json", file("a.json"), "-svg", file("a.svg"), "-pprof", file("p")}, &out)
	if err != nil {
		t.Fatal(err)
	}
	table := out.String()
	for _, want := range []string{"workload     system", "\nW1           pawl-memory    CPU a turn, µs", "×0.70", "\nW1           f3             allocations a turn", "\nW2-400       pawl-memory    last 20 ÷ first 20", "\nW2           pawl-memory    exponent, 200 to 400"} {
		if !strings.Contains(table, want) {
			t.Errorf("the table has no %q:\n%s", want, table)
		}
	}
	if n := strings.Count(table, "\nW1           f3             CPU a turn"); n != 2 { // its own, and that of the other program
		t.Errorf("%d lines of f3", n)
	}
	var all []raw
	b, err := os.ReadFile(file("a.json"))
	if err == nil {
		err = json.Unmarshal(b, &all)
	}
	if err != nil || len(all) != 9 || len(all[0].Pairs) != 2 || all[0].Pairs[0].Base.System != "f1" || all[0].Pairs[1].System.Turns != 50*2 {
		t.Error(err, len(all))
	}
	if b, err := os.ReadFile(file("a.svg")); err != nil || !bytes.HasPrefix(b, []byte("<svg ")) || !bytes.Contains(b, []byte("W1, pawl-memory")) || !bytes.HasSuffix(b, []byte("</svg>\n")) {
		t.Errorf("%v: %s", err, b)
	}
	for _, name := range []string{"pawl-memory-W1.cpu.pprof", "f1-W2-400.allocs.pprof"} {
		if s, err := os.Stat(filepath.Join(dir, "p", name)); err != nil || s.Size() == 0 {
			t.Error(name, err)
		}
	}
}

func TestGrowthIsMeasuredAtFourSizes(t *testing.T) {
	tier.SkipUnlessAll(t, "it measures four sizes of sessions")
	var out bytes.Buffer
	if err := benchMain(t.Context(), []string{"-workloads", "W7", "-systems", "pawl-full", "-pairs", "1", "-times", "0.02", "-growth"}, &out); err != nil {
		t.Fatal(err)
	}
	_, table, _ := strings.Cut(out.String(), "exponent\n")
	if n := strings.Count(table, "\n"); n != 9 || !strings.Contains(table, "\nW4           pawl-memory") {
		t.Errorf("%d lines: %s", n, out.String())
	}
}

func TestASystemThatFailsFailsTheBenchmark(t *testing.T) {
	err := benchMain(t.Context(), []string{"-workloads", "W1", "-systems", "x", "-also", "x=/nowhere/x", "-pairs", "1", "-times", "0.1"}, io.Discard)
	if err == nil || !strings.Contains(err.Error(), "/nowhere/x") {
		t.Error(err)
	}
}

func TestWhatIsWrongWithTheCommandLineIsSaid(t *testing.T) {
	for _, args := range [][]string{{"-pairs", "0"}, {"-tls", "http3"}, {"-from", "x", "-growth"}, {"-times", "0"}, {"-workloads", "W99"}, {"-systems", "x"}, {"-also", "x"}, {"more"}, {"-nonsense"}} {
		if err := benchMain(t.Context(), args, io.Discard); err == nil {
			t.Errorf("%v is taken", args)
		}
	}
	for _, args := range [][]string{{"-system", "x", "-workload", "W1"}, {"-system", "f1", "-workload", "W99"}, {"-x"}} {
		if err := load.Main(t.Context(), args, systems, io.Discard); err == nil {
			t.Errorf("%v is taken", args)
		}
	}
}

func TestFiguresAreTheMiddleOfPairsAndMissedTargetsAreMarked(t *testing.T) {
	of := func(cpu time.Duration, allocs uint64) load.Result {
		return load.Result{Turns: 10, CPU: cpu, Allocs: allocs}
	}
	pairs := []pair{{of(100, 1), of(50, 900)}, {of(100, 1), of(90, 900)}, {of(200, 1), of(120, 950)}}
	r := row{workload: "W1", system: "x", base: "f1", wants: []want{{cpuTurn, .6}, {cpuTurn, .59}, {cpuTurn, 0}, {allocTurn, 90}, {allocTurn, 89}}}
	for i, above := range []bool{false, true, false, false, true} {
		l := r.lines(pairs)[i]
		if l.above() != above {
			t.Errorf("line %d: %+v", i, l)
		}
		var out bytes.Buffer
		if l.print(&out); strings.Contains(out.String(), "ABOVE") != above {
			t.Error(out.String())
		}
	}
	if l := r.lines(pairs)[0]; math.Abs(l.ratio.middle-.6)+math.Abs(l.ratio.least-.5)+math.Abs(l.ratio.most-.9) > 1e-9 {
		t.Errorf("%+v", l.ratio)
	}
	if s := spreadOf([]float64{4, 1, 2, 3}); s != (spread{2.5, 1, 4}) {
		t.Error(s)
	}
	if e := slope([]float64{1, 4, 16, 64}); math.Abs(e-2) > 1e-9 {
		t.Error(e)
	}
	if e := load.Exponent(1, 2); e != 1 {
		t.Error(e)
	}
}

func TestTheFloorReadsWhatModelsWrite(t *testing.T) {
	for in, want := range map[string]string{
		`{"a":1,"b":{"a":2}}`:              "1",
		` { "x" : [1, {"a":3}] , "a":"q"}`: `"q"`,
		`{"b":{"a":2},"c":"a","a":null}`:   "null",
		`{"b":1}`:                          "",
		`[1]`:                              "",
		`{"a":{"b":"}\""}}`:                `{"b":"}\""}`,
	} {
		if got := string(field([]byte(in), "a")); got != want {
			t.Errorf("%s: %s, want %s", in, got, want)
		}
	}
	for _, s := range []string{"plain", "a\n\t\"\\é", "\x01"} {
		b, _ := json.Marshal(s)
		if got := string(unquote(nil, b)); got != s {
			t.Errorf("%q, want %q", got, s)
		}
		var back string
		if err := json.Unmarshal(appendQuoted(nil, []byte(s)), &back); err != nil || back != s {
			t.Errorf("%q, want %q: %v", back, s, err)
		}
	}
}

func TestThePageHasEveryFlagWorkloadAndSystem(t *testing.T) {
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
	flagsOf(&options{}).VisitAll(func(f *flag.Flag) {
		if f.DefValue == "" {
			has("| `-" + f.Name + " ")
			return
		}
		has("| `-" + f.Name + "` | `" + f.DefValue + "` |")
	})
	for _, w := range load.Workloads() {
		has("| " + w.Name + " |")
	}
	for name := range systems {
		has("| `" + name + "` |")
	}
}
