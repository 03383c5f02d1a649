package pawl_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/pawl-dev/pawl"
	"github.com/pawl-dev/pawl/agent"
	"github.com/pawl-dev/pawl/engine"
	"github.com/pawl-dev/pawl/errdefs"
	"github.com/pawl-dev/pawl/journal"
	"github.com/pawl-dev/pawl/message"
	"github.com/pawl-dev/pawl/model"
	"github.com/pawl-dev/pawl/model/scripted"
)

// An answer as a value: the type says how it has to look.
func ExampleGenerate() {
	type review struct {
		Stars int      `json:"stars" jsonschema:"from 1 to 5"`
		Why   []string `json:"why"`
	}
	m := scripted.New(scripted.Text(`{"stars": 4, "why": ["quick", "kind"]}`))
	r, err := pawl.Generate[review](context.Background(), m, "Rate this shop: …")
	fmt.Println(r.Stars, r.Why, err)
	// Output: 4 [quick kind] <nil>
}

// What there is of a value, while the model writes it.
func ExampleGenerateStream() {
	type review struct {
		Stars int      `json:"stars" jsonschema:"from 1 to 5"`
		Why   []string `json:"why"`
	}
	m := scripted.New(scripted.Text(`{"stars": 4, "why": ["quick and kind", "cheap"]}`))
	var r review // what the loop leaves there is the answer
	for v, err := range pawl.GenerateStream[review](context.Background(), m, "Rate this shop: …") {
		if err != nil {
			fmt.Println(err)
			return
		}
		r = v
		fmt.Printf("%d %q\n", r.Stars, r.Why)
	}
	// Output:
	// 0 []
	// 4 []
	// 4 ["quick "]
	// 4 ["quick and "]
	// 4 ["quick and kind"]
	// 4 ["quick and kind" "cheap"]
	// 4 ["quick and kind" "cheap"]
}

// writer is a model that streams each of its replies in pieces; "void" begins a reply anew, "cut" cuts it off.
type writer struct {
	replies [][]string
	tool    bool // it answers by one
	calls   atomic.Int32
}

func (w *writer) Capabilities() model.Capabilities {
	return model.Capabilities{Name: "p/writer", Tools: true, Schema: !w.tool}
}

func (w *writer) Complete(ctx context.Context, req model.Request) (resp *model.Response, err error) {
	return resp, w.CompleteStream(ctx, req, func(s model.StreamResult) error { resp = s.Response; return nil })
}

func (w *writer) CompleteStream(ctx context.Context, _ model.Request, cb model.StreamHandler) error {
	text, stop := "", model.StopEnd
	for _, p := range w.replies[w.calls.Add(1)-1] {
		s := model.StreamResult{Text: p}
		switch {
		case p == "void":
			s, text = model.StreamResult{Void: errors.New("again")}, ""
		case p == "cut":
			stop = model.StopLength
			continue
		case w.tool:
			s = model.StreamResult{Input: p, Tool: model.OutputTool}
			fallthrough
		default:
			text += p
		}
		if err := errors.Join(cb(s), ctx.Err()); err != nil {
			return err
		}
	}
	resp := &model.Response{Message: message.Assistant(text), Stop: stop, Usage: model.Usage{Input: 3, Output: 5}}
	if w.tool {
		resp.Message = message.Assistant("", message.ToolCall{ID: "1", Name: model.OutputTool, Input: text})
	}
	return cb(model.StreamResult{Final: true, Response: resp})
}

type news struct {
	Title string     `json:"title"`
	Views *int       `json:"views"`
	At    *time.Time `json:"at"`
	Tags  []string   `json:"tags,omitempty"`
}

func TestWhatThereIsOfAValueIsGivenWhileItIsWritten(t *testing.T) {
	for name, c := range map[string]struct {
		replies [][]string
		want    []string // as JSON
	}{
		"each piece that says more":    {[][]string{{`{`, `"ti`, `tle"`, `:`, `"a`, `b"`, `,"views":1`, `2`, `}`}}, []string{`{}`, `{"title":"a"}`, `{"title":"ab"}`, `{"title":"ab","views":12}`, `{"title":"ab","views":12}`}},
		"all at once":                  {[][]string{{`{"title":"ab"}`}}, []string{`{"title":"ab"}`, `{"title":"ab"}`}},
		"not before T reads it":        {[][]string{{`{"title":"a","at":"2026`, `-01-02T03:04:05Z`, `"}`}}, []string{`{"title":"a","at":"2026-01-02T03:04:05Z"}`, `{"title":"a","at":"2026-01-02T03:04:05Z"}`}},
		"begun anew by a wrapper":      {[][]string{{`{"title":"a`, "void", `{"title":"b`, `"}`}}, []string{`{"title":"a"}`, `{"title":"b"}`, `{"title":"b"}`}},
		"sent back":                    {[][]string{{`{"title":"a","tags":[`, `7]}`}, {`{"title":"b"`, `}`}}, []string{`{"title":"a","tags":[]}`, `{"title":"b"}`, `{"title":"b"}`}},
		"in a fence, and sent back":    {[][]string{{"```json\n", `{"title":"a"}`, "\n```"}, {`{"title":"b"}`}}, []string{`{"title":"b"}`, `{"title":"b"}`}},
		"cut off, and gone on with":    {[][]string{{`{"title":"a`, "cut"}, {`b`, `c"}`}}, []string{`{"title":"a"}`, `{"title":"ab"}`, `{"title":"abc"}`, `{"title":"abc"}`}},
		"begun anew after it was cut":  {[][]string{{`{"title":"a`, "cut"}, {`b`, "void", `c"}`}}, []string{`{"title":"a"}`, `{"title":"ab"}`, `{"title":"ac"}`, `{"title":"ac"}`}},
		"an integer as JSON Schema is": {[][]string{{`{"title":"a","views":1e1}`}}, []string{`{"title":"a","views":10}`, `{"title":"a","views":10}`}},
	} {
		for _, tool := range []bool{false, true} {
			if tool && strings.Contains(name, "cut") { // a call that was cut off is made anew, not gone on with
				continue
			}
			t.Run(name, func(t *testing.T) {
				var got []string
				for v, err := range pawl.GenerateStream[news](t.Context(), &writer{replies: c.replies, tool: tool}, "News?") {
					if err != nil {
						t.Fatal(err)
					}
					b, err := json.Marshal(v)
					if err != nil {
						t.Fatal(err)
					}
					got = append(got, string(b))
				}
				for i, w := range c.want {
					var v news
					if err := json.Unmarshal([]byte(w), &v); err != nil {
						t.Fatal(err)
					}
					b, _ := json.Marshal(v)
					c.want[i] = string(b)
				}
				if d := cmp.Diff(c.want, got); d != "" {
					t.Errorf("by a tool: %v: %s", tool, d)
				}
			})
		}
	}
}

func TestAStreamOfAValueEndsWithItsErrorOrItsLoop(t *testing.T) {
	ctx := t.Context()
	var errs []error
	for v, err := range pawl.GenerateStream[news](ctx, scripted.New(scripted.Turn{Error: &scripted.Failure{Status: 503}}), "News?") {
		if v.Title != "" || v.Tags != nil {
			t.Error(v)
		}
		errs = append(errs, err)
	}
	if len(errs) != 1 || !errdefs.NotAvailable.Is(errs[0]) {
		t.Error(errs)
	}
	for _, err := range pawl.GenerateStream[func()](ctx, nil, "News?") {
		if !errdefs.Validation.Is(err) {
			t.Error(err)
		}
	}

	left := &writer{replies: [][]string{{`{"title":"a`, `","x":1}`}, {`{"title":"a"}`}}} // one that would be sent back
	n := 0
	for _, err := range pawl.GenerateStream[news](ctx, left, "News?") {
		if n++; err != nil {
			t.Error(err)
		}
		break
	}
	if n != 1 || left.calls.Load() != 1 {
		t.Errorf("%d values, %d calls after the loop was left", n, left.calls.Load())
	}

	defer func() {
		if p := recover(); p != "mine" {
			t.Errorf("the panic of the loop's body became %v", p)
		}
	}()
	for _, err := range pawl.GenerateStream[news](ctx, &writer{replies: [][]string{{`{"title":"a"}`}}}, "News?") {
		t.Log(err)
		panic("mine")
	}
}

// pair reads only what is whole.
type pair struct {
	AB   string
	a, b string
}

func (p *pair) UnmarshalJSON(text []byte) error {
	var all map[string]string
	if err := json.Unmarshal(text, &all); err != nil {
		return err
	}
	parts := strings.Split(all["AB"], "-")
	*p = pair{all["AB"], parts[0], parts[1]}
	return nil
}

func TestATypeThatPanicsOverHalfAValueIsLeftAlone(t *testing.T) {
	n := 0
	for v, err := range pawl.GenerateStream[pair](t.Context(), &writer{replies: [][]string{{`{"AB":"x`, `-y`, `"}`}}}, "?") {
		if n++; err != nil || v.a != "x" || v.b != "y" {
			t.Error(v, err)
		}
	}
	if n != 2 {
		t.Errorf("%d values", n)
	}
}

// However long the answer is, all values together are so many times its length.
func TestTheValuesOfAStreamCostALinearAmount(t *testing.T) {
	bytes := func(n int) (sum int) {
		pieces := []string{`{"title":"`}
		for range n / 4 {
			pieces = append(pieces, "word")
		}
		for v, err := range pawl.GenerateStream[news](t.Context(), &writer{replies: [][]string{append(pieces, `"}`)}}, "News?") {
			if err != nil {
				t.Fatal(err)
			}
			sum += len(v.Title)
		}
		return sum
	}
	for _, n := range []int{40, 400, 4000, 100_000} {
		if sum := bytes(n); sum > 70*n {
			t.Errorf("an answer of %d bytes is decoded %d times", n, sum/n)
		}
	}
}

func TestAnAnswerThatItsTypeDoesNotReadIsSentBack(t *testing.T) {
	w := &writer{replies: [][]string{{`{"title":"a","at":"yesterday"}`}, {`{"title":"a","views":99999999999999999999}`}, {`{"title":"a","views":7.0,"at":"2026-01-02T03:04:05Z"}`}}}
	v, err := pawl.Generate[news](t.Context(), w, "News?")
	if err != nil || v.Views == nil || *v.Views != 7 || v.At == nil || w.calls.Load() != 3 {
		t.Errorf("%+v %v", v, err)
	}
	w = &writer{replies: [][]string{{`{"title":"a","at":"yesterday"}`}, {`{"title":7}`}, {`{"title":"a","at":"today"}`}, {`{"title":"a"}`}}}
	if _, err := pawl.Generate[news](t.Context(), w, "News?"); !errdefs.Validation.Is(err) || !strings.Contains(err.Error(), "sent back 2 times") || !strings.Contains(err.Error(), "today") || w.calls.Load() != 3 {
		t.Error(w.calls.Load(), err)
	}
}

func TestAnAnswerThatWasCutOffOrRefusedIsNotSentBack(t *testing.T) {
	w := &writer{replies: [][]string{{`{"title":"a`, "cut"}, {`{"title":"again"}`}, {`{"title":"b"}`}}}
	if _, err := pawl.Generate[news](t.Context(), w, "News?"); !errdefs.Truncated.Is(err) || !strings.Contains(err.Error(), "output limit") || w.calls.Load() != 2 {
		t.Error(w.calls.Load(), err)
	}
	refusing := scripted.New(scripted.Turn{Text: "I won't.", Stop: model.StopRefusal}, scripted.Text(`{"title":"a"}`))
	if _, err := pawl.Generate[news](t.Context(), refusing, "News?"); !errdefs.Refused.Is(err) {
		t.Error(err)
	}
}

func TestCallsOfGenerateMayRunAtTheSameTimeWithOneModel(t *testing.T) {
	w := &writer{tool: true}
	for range 40 {
		w.replies = append(w.replies, []string{`{"title":`, `"a"}`})
	}
	var all sync.WaitGroup
	for range 20 {
		all.Go(func() {
			if v, err := pawl.Generate[news](t.Context(), w, "News?"); err != nil || v.Title != "a" {
				t.Error(v, err)
			}
		})
		all.Go(func() {
			for v, err := range pawl.GenerateStream[news](t.Context(), w, "News?") {
				if err != nil || !strings.HasPrefix("a", v.Title) {
					t.Error(v, err)
				}
			}
		})
	}
	all.Wait()
}

func TestGenerateGivesValuesOfAnyType(t *testing.T) {
	ctx := t.Context()
	if s, err := pawl.Generate[string](ctx, scripted.New(scripted.Text(`"Ada"`)), "Who?"); s != "Ada" || err != nil {
		t.Error(s, err)
	}
	if l, err := pawl.Generate[[]int](ctx, scripted.New(scripted.Text(`[1, "two"]`), scripted.Text(`[1, 2]`)), "Count."); fmt.Sprint(l) != "[1 2]" || err != nil {
		t.Error(l, err)
	}
	if m, err := pawl.Generate[map[string]float64](ctx, scripted.New(scripted.Text(`{"a": 0.5}`)), "Weigh."); m["a"] != 0.5 || err != nil {
		t.Error(m, err)
	}
	type in struct {
		Name string `json:"name"`
	}
	if v, err := pawl.Generate[in](ctx, (&inTurn{}).calls("final_answer", `{"name":"Ada"}`), "Who?"); v.Name != "Ada" || err != nil { // a model without a native mode
		t.Error(v, err)
	}
}

func TestWhatGenerateFailsWith(t *testing.T) {
	type in struct {
		Name string `json:"name"`
	}
	bad := scripted.New(scripted.Text(`{}`), scripted.Text(`{}`), scripted.Text(`{}`), scripted.Text(`{"name":"too late"}`))
	if v, err := pawl.Generate[in](t.Context(), bad, "Who?"); !errdefs.Validation.Is(err) || !strings.Contains(err.Error(), "missing property 'name'") || v.Name != "" {
		t.Error(v, err)
	}
	if _, err := pawl.Generate[func()](t.Context(), bad, "Who?"); !errdefs.Validation.Is(err) {
		t.Error(err)
	}
	down := scripted.New(scripted.Turn{Error: &scripted.Failure{Status: 503}})
	if _, err := pawl.Generate[in](t.Context(), down, "Who?"); !errdefs.NotAvailable.Is(err) {
		t.Error(err)
	}
	if _, err := pawl.Generate[in](t.Context(), bad, "Who?", agent.WithBudget(&engine.Budget{Calls: 1})); !errdefs.BudgetExceeded.Is(err) {
		t.Error(err)
	}
	if _, err := pawl.Generate[in](t.Context(), nil, "Who?"); !errdefs.Validation.Is(err) {
		t.Error(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := pawl.Generate[in](ctx, bad, "Who?"); !errdefs.Canceled(err) {
		t.Error(err)
	}
	store := journal.Memory()
	if _, err := pawl.Generate[in](t.Context(), scripted.New(scripted.Text(`{"name":"Ada"}`)), "Who?", agent.WithJournal(store)); err != nil {
		t.Fatal(err)
	}
	n := 0
	for _, err := range store.Sessions(t.Context(), journal.Query{}) {
		if err != nil {
			t.Fatal(err)
		}
		n++
	}
	if n != 1 {
		t.Errorf("%d sessions are on record", n)
	}
}
