package anthropic

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pawl-dev/pawl/errdefs"
	"github.com/pawl-dev/pawl/internal/raced"
	"github.com/pawl-dev/pawl/message"
	"github.com/pawl-dev/pawl/model"
)

// play reads a stream whose events have the given data.
func play(data ...string) (*model.Response, string, error) {
	var sse strings.Builder
	for _, d := range data {
		fmt.Fprintf(&sse, "data: %s\n\n", d)
	}
	return playBytes([]byte(sse.String()))
}

func playBytes(sse []byte) (r *model.Response, heard string, err error) {
	resp := &http.Response{Header: http.Header{"Request-Id": {"req_1"}}, Body: io.NopCloser(bytes.NewReader(sse))}
	var b strings.Builder
	r, err = New("claude-sonnet-4-5").listen(context.Background(), resp, nil, func(s model.StreamResult) error {
		b.WriteString(s.Text + s.Reasoning)
		return nil
	})
	return r, b.String(), err
}

// blocks plays a stream around the given events of content.
func blocks(t *testing.T, events ...string) (*model.Response, string) {
	t.Helper()
	all := append([]string{`{"type":"message_start","message":{"id":"msg_1","model":"m","content":[],"usage":{"input_tokens":3,"output_tokens":1}}}`}, events...)
	r, heard, err := play(append(all, `{"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":{"output_tokens":9}}`, `{"type":"message_stop"}`)...)
	if err != nil {
		t.Fatal(err)
	}
	return r, heard
}

func start(i int, block string) string {
	return fmt.Sprintf(`{"type":"content_block_start","index":%d,"content_block":%s}`, i, block)
}

func delta(i int, d string) string {
	return fmt.Sprintf(`{"type":"content_block_delta","index":%d,"delta":%s}`, i, d)
}

func TestBlocksAreReadAsTheyAreStreamed(t *testing.T) {
	ours := message.Origin{Provider: provider}
	for name, c := range map[string]struct {
		events []string
		heard  string
		want   []message.Part
	}{
		"a redacted thought has no deltas": {
			[]string{start(0, `{"type":"redacted_thinking","data":"cmVk"}`), `{"type":"content_block_stop","index":0}`},
			"",
			[]message.Part{message.Opaque{Provider: provider, JSON: `{"type":"redacted_thinking","data":"cmVk"}`}},
		},
		"an omitted thought has a signature only": {
			[]string{start(0, `{"type":"thinking","thinking":"","signature":""}`), delta(0, `{"type":"signature_delta","signature":"c2ln"}`)},
			"",
			[]message.Part{message.Reasoning{Signature: "c2ln", Origin: ours}},
		},
		"a block may begin with something": {
			[]string{start(0, `{"type":"text","text":"He"}`), delta(0, `{"type":"text_delta","text":"y"}`), start(1, `{"type":"thinking","thinking":"hm","signature":"s"}`)},
			"Heyhm",
			[]message.Part{message.Text{Text: "Hey", Origin: ours}, message.Reasoning{Text: "hm", Signature: "s", Origin: ours}},
		},
		"an empty block is no part": {
			[]string{start(0, `{"type":"text","text":"","citations":[]}`), start(1, `{"type":"thinking","thinking":"","signature":""}`), start(2, `null`)}, "", nil,
		},
		"citations gather in the text's extra": {
			[]string{
				start(0, `{"type":"text","text":"","citations":[]}`), delta(0, `{"type":"citations_delta","citation":{"type":"char_location", "n": 1}}`),
				delta(0, `{"type":"text_delta","text":"So."}`), delta(0, `{"type":"citations_delta","citation":{"type":"char_location","n":2}}`),
			},
			"So.",
			[]message.Part{message.Text{Text: "So.", Origin: message.Origin{Provider: provider, Extra: `{"citations":[{"type":"char_location","n":1},{"type":"char_location","n":2}]}`}}},
		},
		"a call without arguments has none": {
			[]string{start(0, `{"type":"tool_use","id":"1","name":"now","input":{}}`), delta(0, `{"type":"input_json_delta","partial_json":""}`)},
			"",
			[]message.Part{message.ToolCall{ID: "1", Name: "now", Input: `{}`, Origin: ours}},
		},
		"a call's arguments may come at once": {
			[]string{start(0, `{"type":"tool_use","id":"1","name":"now","input":{"a": 1},"caller":{"type":"direct"}}`)},
			"",
			[]message.Part{message.ToolCall{ID: "1", Name: "now", Input: `{"a":1}`, Origin: message.Origin{Provider: provider, Extra: `{"caller":{"type":"direct"}}`}}},
		},
		"and then again in deltas, which win": {
			[]string{start(0, `{"type":"tool_use","id":"1","name":"now","input":{"a":1}}`), delta(0, `{"type":"input_json_delta","partial_json":""}`), delta(0, `{"type":"input_json_delta","partial_json":"{\"a\": 2}"}`)},
			"",
			[]message.Part{message.ToolCall{ID: "1", Name: "now", Input: `{"a":2}`, Origin: ours}},
		},
		"blocks may begin out of order, and under an index that was there": {
			[]string{start(5, `{"type":"text","text":"a"}`), start(2, `{"type":"text","text":"b"}`), start(5, `{"type":"text","text":"c"}`), delta(5, `{"type":"text_delta","text":"d"}`), delta(2, `{"type":"text_delta","text":"e"}`)},
			"abcde",
			[]message.Part{message.Text{Text: "a", Origin: ours}, message.Text{Text: "be", Origin: ours}, message.Text{Text: "cd", Origin: ours}},
		},
		"calls that share an id are two": { // the loop names them
			[]string{start(0, `{"type":"tool_use","id":"1","name":"now","input":{}}`), start(1, `{"type":"tool_use","id":"1","name":"then","input":{}}`)},
			"",
			[]message.Part{message.ToolCall{ID: "1", Name: "now", Input: `{}`, Origin: ours}, message.ToolCall{ID: "1", Name: "then", Input: `{}`, Origin: ours}},
		},
		"blocks may be interleaved": {
			[]string{start(0, `{"type":"text","text":""}`), start(1, `{"type":"text","text":""}`), delta(1, `{"type":"text_delta","text":"b"}`), delta(0, `{"type":"text_delta","text":"a"}`)},
			"ba",
			[]message.Part{message.Text{Text: "a", Origin: ours}, message.Text{Text: "b", Origin: ours}},
		},
		"a server's tool is kept with its arguments": {
			[]string{start(0, `{"type":"mcp_tool_use","id":"1","name":"ask","input":{},"server_name":"wiki"}`), delta(0, `{"type":"input_json_delta","partial_json":"{\"q\": "}`), delta(0, `{"type":"input_json_delta","partial_json":"1}"}`)},
			"",
			[]message.Part{message.ProviderCall{
				Opaque: message.Opaque{Provider: provider, JSON: `{"type":"mcp_tool_use","id":"1","name":"ask","input":{"q":1},"server_name":"wiki"}`}, Call: "1", Name: "ask", Input: `{"q":1}`,
			}},
		},
		"an unknown block grows by unknown deltas": {
			[]string{
				start(0, `{"type":"compaction","content":null,"list":[],"n":1,"text":"\u00e9"}`), delta(0, `{"type":"compaction_delta","content":"Once ","list":[1],"n":2}`),
				delta(0, `{"type":"compaction_delta","content":"upon","list":[2, 3],"new":true}`), delta(0, `{"type":"text_delta","text":"!"}`),
			},
			"",
			[]message.Part{message.Opaque{Provider: provider, JSON: `{"type":"compaction","content":"Once upon","list":[1,2,3],"n":2,"text":"é!","new":true}`}},
		},
		"an unknown block that nothing changes stays as it is": {
			[]string{start(0, `{"type":"x", "text": "\u00e9\/"}`)},
			"",
			[]message.Part{message.Opaque{Provider: provider, JSON: `{"type":"x","text":"\u00e9\/"}`}},
		},
		"a delta without an index is of the last block": {
			[]string{start(0, `{"type":"text","text":"a"}`), start(1, `{"type":"text","text":"b"}`), `{"type":"content_block_delta","delta":{"type":"text_delta","text":"c"}}`},
			"abc",
			[]message.Part{message.Text{Text: "a", Origin: ours}, message.Text{Text: "bc", Origin: ours}},
		},
		"a block of the same index takes what comes then": {
			[]string{start(0, `{"type":"text","text":""}`), delta(0, `{"type":"text_delta","text":"a"}`), start(0, `{"type":"text","text":""}`), delta(0, `{"type":"text_delta","text":"b"}`)},
			"ab",
			[]message.Part{message.Text{Text: "a", Origin: ours}, message.Text{Text: "b", Origin: ours}},
		},
		"events of the future say nothing": {
			[]string{`{"type":"ping"}`, `{"type":"weather","delta":{"text":"rain"}}`, start(0, `{"type":"text","text":"a"}`)},
			"a",
			[]message.Part{message.Text{Text: "a", Origin: ours}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			r, heard := blocks(t, c.events...)
			if heard != c.heard {
				t.Errorf("heard %q, want %q", heard, c.heard)
			}
			if diff := cmp.Diff(c.want, slices.Collect(r.Message.Parts())); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestUsageIsWhatTheLastWordSaysUnlessItIsZero(t *testing.T) {
	const open, stop = `{"type":"message_start","message":{"usage":{"input_tokens":3,"cache_read_input_tokens":0,"output_tokens":1}}}`, `{"type":"message_stop"}`
	for name, c := range map[string]struct {
		usage string
		want  model.Usage
	}{
		"only the output is new":                 {`{"output_tokens":9}`, model.Usage{Input: 3, Output: 9}},
		"a gateway tells the cache at the end":   {`{"input_tokens":5,"cache_read_input_tokens":7,"cache_creation_input_tokens":2,"output_tokens":9}`, model.Usage{Input: 5, Output: 9, CacheRead: 7, CacheWrite: 2}},
		"zeros and nulls don't win":              {`{"input_tokens":0,"output_tokens":null}`, model.Usage{Input: 3, Output: 1}},
		"thoughts are counted where it is told":  {`{"output_tokens":9,"output_tokens_details":{"thinking_tokens":4}}`, model.Usage{Input: 3, Output: 9, Reasoning: 4}},
		"a last word without usage changes none": {`null`, model.Usage{Input: 3, Output: 1}},
	} {
		r, _, err := play(open, `{"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":`+c.usage+`}`, stop)
		if err != nil || r.Usage != c.want {
			t.Errorf("%s: got %+v, %v, want %+v", name, r.Usage, err, c.want)
		}
	}
}

func TestStopReasonsAreOurs(t *testing.T) {
	for in, want := range map[string]model.StopReason{
		`"end_turn"`: model.StopEnd, `"max_tokens"`: model.StopLength, `"stop_sequence"`: model.StopSequence, `"tool_use"`: model.StopTools,
		`"pause_turn"`: model.StopPause, `"refusal"`: model.StopRefusal, `"model_context_window_exceeded"`: model.StopWindow,
		`"something_new"`: "something_new", `null`: model.StopEnd,
	} {
		r, err := New("m").decode([]byte(`{"type":"message","content":[],"stop_reason":` + in + `}`))
		if err != nil || r.Stop != want {
			t.Errorf("%s: got %v, %v, want %q", in, r, err, want)
		}
	}
	r, err := New("m").decode([]byte(`{"type":"message","content":[{"type":"tool_use","id":"1","name":"a","input":{}}]}`))
	if err != nil || r.Stop != model.StopTools {
		t.Errorf("a call without a reason: %v, %v", r, err)
	}
}

func TestARefusalGivesItsReason(t *testing.T) {
	for details, want := range map[string]string{
		`{"type":"refusal","category":"bio","explanation":"No."}`: "No.", `{"type":"refusal","category":"bio","explanation":null}`: "bio", `null`: "",
	} {
		r, _, err := play(`{"type":"message_start","message":{}}`, `{"type":"message_delta","delta":{"stop_reason":"refusal","stop_details":`+details+`}}`, `{"type":"message_stop"}`)
		if err != nil || r.Reason != want || r.Stop != model.StopRefusal {
			t.Errorf("%s: %v, %v", details, r, err)
		}
	}
}

func TestABrokenStreamSaysHow(t *testing.T) {
	const open = `{"type":"message_start","message":{"id":"msg_1"}}`
	for name, c := range map[string]struct {
		sse   string
		class *errdefs.Class
		code  string
	}{
		"nothing at all":                       {"", errdefs.NotAvailable, "truncated_stream"},
		"no last event":                        {"data: " + open + "\n\n", errdefs.NotAvailable, "truncated_stream"},
		"cut off in the middle of an event":    {"data: " + open + "\n\ndata: {\"type\":\"message_st", errdefs.NotAvailable, "truncated_stream"},
		"an event that is not JSON":            {"data: <html>\n\ndata: " + open + "\n\n", errdefs.NotAvailable, "malformed_reply"},
		"a delta for a block that never began": {"data: " + open + "\n\ndata: " + delta(7, `{"type":"text_delta","text":"lost"}`) + "\n\n", errdefs.NotAvailable, "malformed_reply"},
		"arguments for a text":                 {"data: " + start(0, `{"type":"text","text":"a"}`) + "\n\ndata: " + delta(0, `{"type":"input_json_delta","partial_json":"{"}`) + "\n\n", errdefs.NotAvailable, "malformed_reply"},
		"a text for a call":                    {"data: " + start(0, `{"type":"tool_use","id":"1","name":"now","input":{}}`) + "\n\ndata: " + delta(0, `{"type":"text_delta","text":"lost"}`) + "\n\n", errdefs.NotAvailable, "malformed_reply"},
		"a block without a type":               {"data: " + start(0, `{"text":"lost"}`) + "\n\n", errdefs.NotAvailable, "malformed_reply"},
		"a block that is a text":               {"data: " + start(0, `"lost"`) + "\n\n", errdefs.NotAvailable, "malformed_reply"},
		"an overload":                          {"event: error\ndata: {\"type\":\"error\",\"error\":{\"type\":\"overloaded_error\",\"message\":\"Overloaded\"}}\n\n", errdefs.NotAvailable, "overloaded_error"},
		"a rate limit":                         {"data: {\"type\":\"error\",\"error\":{\"type\":\"rate_limit_error\",\"message\":\"slow\"}}\n\n", errdefs.RateLimit, "rate_limit_error"},
		"a bad request, told late":             {"data: {\"type\":\"error\",\"error\":{\"type\":\"invalid_request_error\",\"message\":\"bad\"}}\n\n", errdefs.Validation, "invalid_request_error"},
		"an error that is one by its name":     {"event: error\ndata: {\"message\":\"bad\"}\n\n", errdefs.NotAvailable, ""},
		"an error that is one by its shape":    {"data: {\"error\":{\"message\":\"bad\"}}\n\n", errdefs.NotAvailable, ""},
		"the window is full, in other words":   {"data: {\"type\":\"error\",\"error\":{\"type\":\"invalid_request_error\",\"message\":\"input length and `max_tokens` exceed context limit: 1 + 2 > 2\"}}\n\n", errdefs.Overflow, "invalid_request_error"},
		"the account has no credit":            {"data: {\"type\":\"error\",\"error\":{\"type\":\"invalid_request_error\",\"message\":\"Your credit balance is too low\"}}\n\n", errdefs.Unauthorized, "invalid_request_error"},
		"the filter of the provider":           {"data: {\"type\":\"error\",\"error\":{\"type\":\"invalid_request_error\",\"message\":\"Output blocked by content filtering policy\"}}\n\n", errdefs.Refused, "invalid_request_error"},
		"a time limit":                         {"data: {\"type\":\"error\",\"error\":{\"type\":\"timeout_error\",\"message\":\"t\"}}\n\n", errdefs.Timeout, "timeout_error"},
		"a request that is too large for all":  {"data: {\"type\":\"error\",\"error\":{\"type\":\"request_too_large\",\"message\":\"t\"}}\n\n", errdefs.Overflow, "request_too_large"},
	} {
		_, _, err := playBytes([]byte(c.sse))
		var e *model.Error
		if !errors.As(err, &e) || e.Kind != c.class || e.Code != c.code || e.RequestID != "req_1" {
			t.Errorf("%s: got %#v", name, err)
		}
	}
}

func TestAWholeReplyThatIsNoneIsAnError(t *testing.T) {
	for name, c := range map[string]struct {
		body  string
		class *errdefs.Class
	}{
		"an error with status 200": {`{"type":"error","error":{"type":"rate_limit_error","message":"slow"}}`, errdefs.RateLimit},
		"a gateway's error":        {`{"error":"bad gateway"}`, errdefs.NotAvailable},
		"something else":           {`{"object":"chat.completion","choices":[]}`, errdefs.NotAvailable},
		"no object":                {`[]`, errdefs.NotAvailable},
	} {
		if _, err := New("m").decode([]byte(c.body)); !errors.Is(err, c.class) {
			t.Errorf("%s: got %v, want class %v", name, err, c.class)
		}
	}
}

func TestAnErrorOfTheHandlerIsNotTouched(t *testing.T) {
	own := &model.Error{Provider: "mine"}
	resp := &http.Response{Header: http.Header{"Request-Id": {"req_1"}}, Body: io.NopCloser(strings.NewReader("data: " + start(0, `{"type":"text","text":"a"}`) + "\n\n"))}
	_, err := New("m").listen(t.Context(), resp, nil, func(model.StreamResult) error { return own })
	if err != error(own) || own.RequestID != "" { //nolint:errorlint // it has to be this very error
		t.Errorf("got %#v", err)
	}
}

// apart puts a ping between all events, so that none follows one that is like it.
func apart(sse []byte) []byte {
	return bytes.ReplaceAll(sse, []byte("\n\n"), []byte("\n\ndata: {\"type\":\"ping\"}\n\n"))
}

func TestDeltasThatAreAlikeAreReadAsAnyOthers(t *testing.T) {
	text := func(s string) string { return delta(0, `{"type":"text_delta","text":`+s+`}`) }
	begun := start(0, `{"type":"text","text":""}`)
	for name, events := range map[string][]string{
		"texts":                          {begun, text(`"a"`), text(`"b\u00e9\ud83d"`), text(`"\ude00"`), text(`""`), text(`"c"`)},
		"padded":                         {begun, text(`"a"`), text(`"b"`) + "  ", delta(0, `{"type":"text_delta","text":"c"}  `), text(`"d"`)},
		"not a text for once":            {begun, text(`"a"`), text(`null`), text(`1`), text(`"b"`)},
		"more members for once":          {begun, text(`"a"`), text(`"b","text":"c"`), text(`"d"`), text(`"e","x":"f"`)},
		"another text behind":            {begun, delta(0, `{"type":"text_delta","text":"a"},"x":"a"`), delta(0, `{"type":"text_delta","text":"a"},"x":"b"`)},
		"a block of the same index":      {begun, text(`"a"`), start(0, `{"type":"text","text":"b"}`), text(`"c"`), text(`"d"`)},
		"two blocks in turn":             {begun, start(1, `{"type":"text","text":""}`), text(`"a"`), delta(1, `{"type":"text_delta","text":"b"}`), text(`"c"`), text(`"d"`)},
		"a block of another kind":        {begun, text(`"a"`), start(0, `{"type":"thinking","thinking":""}`), text(`"b"`)},
		"thoughts and a signature":       {start(0, `{"type":"thinking","thinking":""}`), delta(0, `{"type":"thinking_delta","thinking":"a"}`), delta(0, `{"type":"thinking_delta","thinking":"b"}`), delta(0, `{"type":"signature_delta","signature":"c"}`), delta(0, `{"type":"signature_delta","signature":"d"}`)},
		"arguments":                      {start(0, `{"type":"tool_use","id":"1","name":"n","input":{}}`), delta(0, `{"type":"input_json_delta","partial_json":""}`), delta(0, `{"type":"input_json_delta","partial_json":"{\"a\":"}`), delta(0, `{"type":"input_json_delta","partial_json":"1}"}`)},
		"arguments of the API's tools":   {start(0, `{"type":"server_tool_use","id":"1","name":"n","input":{}}`), delta(0, `{"type":"input_json_delta","partial_json":"{\"a\":"}`), delta(0, `{"type":"input_json_delta","partial_json":"1}"}`)},
		"unknown deltas":                 {start(0, `{"type":"x","text":""}`), delta(0, `{"type":"x_delta","text":"a"}`), delta(0, `{"type":"x_delta","text":"b"}`), delta(0, `{"type":"text_delta","text":"c"}`), delta(0, `{"type":"text_delta","text":"d"}`)},
		"no index":                       {begun, `{"type":"content_block_delta","delta":{"type":"text_delta","text":"a"}}`, start(1, `{"type":"text","text":""}`), `{"type":"content_block_delta","delta":{"type":"text_delta","text":"b"}}`},
		"what is broken":                 {begun, text(`"a"`), text(`"b`), text(`"c"`)},
		"a bracket more":                 {begun, text(`"a"`), text(`"b"`) + "}", text(`"c"`)},
		"an error in the form of a text": {begun, text(`"a"`), `{"type":"error","error":{"type":"overloaded_error"},"delta":{"type":"text_delta","text":"b"}}`},
	} {
		var sse bytes.Buffer
		for _, e := range append(events, `{"type":"message_stop"}`) {
			fmt.Fprintf(&sse, "data: %s\n\n", e)
		}
		got, heard, err := playBytes(sse.Bytes())
		want, wanted, wantErr := playBytes(apart(sse.Bytes()))
		if (err == nil) != (wantErr == nil) || err != nil && err.Error() != wantErr.Error() || heard != wanted {
			t.Errorf("%s: heard %q, %v, want %q, %v", name, heard, err, wanted, wantErr)
		}
		if diff := cmp.Diff(want, got, cmp.Transformer("parts", func(m message.Message) []message.Part { return slices.Collect(m.Parts()) })); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

func TestADeltaCostsNoAllocation(t *testing.T) {
	if raced.Enabled {
		t.Skip("the race detector allocates by itself")
	}
	cost := func(n int, block, piece, between string) float64 {
		var sse bytes.Buffer
		fmt.Fprintf(&sse, "event: content_block_start\ndata: %s\n\n", start(0, block))
		for range n {
			fmt.Fprintf(&sse, "event: content_block_delta\ndata: %s\n\n%s", delta(0, piece), between)
		}
		fmt.Fprintf(&sse, "event: message_stop\ndata: {\"type\":\"message_stop\"}\n\n")
		m := New("claude-sonnet-4-5")
		least := math.Inf(1)
		for range 20 { // with -race pools lose things by chance, which is no delta's cost
			least = min(least, testing.AllocsPerRun(1, func() {
				resp := &http.Response{Body: io.NopCloser(bytes.NewReader(sse.Bytes()))}
				if _, err := m.listen(context.Background(), resp, nil, func(model.StreamResult) error { return nil }); err != nil {
					t.Fatal(err)
				}
			}))
		}
		return least
	}
	const n = 2000
	for block, piece := range map[string]string{
		`{"type":"text","text":""}`:                                `{"type":"text_delta","text":"some words \n"}`,
		`{"type":"tool_use","id":"toolu_1","name":"x","input":{}}`: `{"type":"input_json_delta","partial_json":"\"a\": 1,"}`,
	} {
		for _, between := range []string{"", "event: ping\ndata: {\"type\": \"ping\"}\n\n"} {
			if more := cost(2*n, block, piece, between) - cost(n, block, piece, between); more > 3 { // for more room
				t.Errorf("%d further deltas cost %.0f allocations", n, more)
			}
		}
		if all := cost(n, block, piece, ""); all > 12 {
			t.Errorf("a reply of %d deltas costs %.0f allocations", n, all)
		}
	}
}

func FuzzStream(f *testing.F) {
	files, err := filepath.Glob(filepath.Join("testdata", "*.sse"))
	if err != nil || len(files) == 0 {
		f.Fatal(files, err)
	}
	for _, name := range files {
		b, err := os.ReadFile(name)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b)
	}
	f.Add([]byte("data: " + start(0, `{"type":"x","a":[1],"b":"\ud800"}`) + "\n\ndata: " + delta(0, `{"type":"y","a":[],"b":"z","citation":1}`) + "\n\ndata: {\"type\":\"message_stop\"}\n\n"))
	f.Fuzz(func(t *testing.T, sse []byte) {
		r, heard, err := playBytes(sse)
		if _, apart, errApart := playBytes(apart(sse)); heard != apart || (err == nil) != (errApart == nil) {
			t.Fatalf("heard %q, %v, and with other events between %q, %v", heard, err, apart, errApart)
		}
		if err != nil {
			var e *model.Error
			if !errors.As(err, &e) || e.Kind == nil || r != nil {
				t.Fatalf("%v, %#v", r, err)
			}
			return
		}
		if n := len(r.Message.Text()); n > len(heard) {
			t.Fatalf("%d bytes of text, %d were heard", n, len(heard))
		}
		for o := range message.Of[message.Opaque](r.Message) {
			if !json.Valid([]byte(o.JSON)) {
				t.Fatalf("not JSON: %s", o.JSON)
			}
		}
		for c := range message.Of[message.ProviderCall](r.Message) {
			if !json.Valid([]byte(c.JSON)) || c.Input != "" && !json.Valid([]byte(c.Input)) {
				t.Fatalf("not JSON: %s", c.JSON)
			}
		}
		if b := encode(r.Message); b != nil && !json.Valid(b[1:]) {
			t.Fatalf("not JSON: %s", b)
		}
	})
}

func FuzzReply(f *testing.F) {
	files, err := filepath.Glob(filepath.Join("testdata", "*.json"))
	if err != nil || len(files) == 0 {
		f.Fatal(files, err)
	}
	for _, name := range files {
		b, err := os.ReadFile(name)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b)
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		if !json.Valid(body) { // ReadAll lets nothing else through
			return
		}
		r, err := New("m").decode(body)
		if err != nil {
			return
		}
		if b := encode(r.Message); b != nil && !json.Valid(b[1:]) {
			t.Fatalf("not JSON: %s", b)
		}
	})
}
