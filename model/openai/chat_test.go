package openai

import (
	"encoding/json"
	"errors"
	"io"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pawl-dev/pawl/errdefs"
	"github.com/pawl-dev/pawl/internal/wire"
	"github.com/pawl-dev/pawl/message"
	"github.com/pawl-dev/pawl/model"
)

// compatible is a model on a server that isn't OpenAI's.
func compatible() *Model { return New("m", model.WithBaseURL("http://localhost:1/v1")) }

// delta makes a chunk of a delta, finish one of a finish reason.
func delta(d string) string {
	return `{"id":"1","model":"m","choices":[{"index":0,"delta":` + d + `,"finish_reason":null}]}`
}

func finish(reason string) string {
	return `{"id":"1","model":"m","choices":[{"index":0,"delta":{},"finish_reason":"` + reason + `"}]}`
}

func TestCallsAreFoundHoweverAServerStreamsThem(t *testing.T) {
	type call struct{ ID, Name, Input string }
	two := []call{{"a", "read", `{"p":1}`}, {"b", "bash", `{"q":2}`}}
	noIDs := []call{{"call_1", "read", `{"p":1}`}, {"call_2", "bash", `{"q":2}`}}
	for name, c := range map[string]struct {
		deltas []string
		want   []call
	}{
		"pieces by index, the id with the first": {[]string{
			`{"tool_calls":[{"index":0,"id":"a","type":"function","function":{"name":"read","arguments":""}}]}`,
			`{"tool_calls":[{"index":0,"function":{"arguments":"{\"p\""}}]}`,
			`{"tool_calls":[{"index":1,"id":"b","type":"function","function":{"name":"bash","arguments":""}}]}`,
			`{"tool_calls":[{"index":0,"function":{"arguments":":1}"}},{"index":1,"function":{"arguments":"{\"q\":2}"}}]}`,
		}, two},
		"the id and the name in every piece": {[]string{
			`{"tool_calls":[{"index":0,"id":"a","function":{"name":"read","arguments":"{\"p\""}}]}`,
			`{"tool_calls":[{"index":0,"id":"a","function":{"name":"read","arguments":":1}"}}]}`,
			`{"tool_calls":[{"index":1,"id":"b","function":{"name":"bash","arguments":"{\"q\":2}"}}]}`,
		}, two},
		"no index": {[]string{
			`{"tool_calls":[{"id":"a","function":{"name":"read","arguments":"{\"p\""}}]}`,
			`{"tool_calls":[{"function":{"arguments":":1}"}}]}`,
			`{"tool_calls":[{"id":"b","function":{"name":"bash","arguments":""}}]}`,
			`{"tool_calls":[{"id":"b","function":{"arguments":"{\"q\":2}"}}]}`,
		}, two},
		"whole calls in one chunk without an index": {[]string{
			`{"tool_calls":[{"id":"a","function":{"name":"read","arguments":"{\"p\":1}"}},{"id":"b","function":{"name":"bash","arguments":"{\"q\":2}"}}]}`,
		}, two},
		"whole calls that are all of index 0": {[]string{
			`{"tool_calls":[{"index":0,"id":"a","function":{"name":"read","arguments":"{\"p\":1}"}}]}`,
			`{"tool_calls":[{"index":0,"id":"b","function":{"name":"bash","arguments":"{\"q\":2}"}}]}`,
		}, two},
		"no ids": {[]string{
			`{"tool_calls":[{"index":0,"id":"","function":{"name":"read","arguments":"{\"p\":1}"}}]}`,
			`{"tool_calls":[{"index":1,"id":null,"function":{"name":"bash","arguments":"{\"q\":2}"}}]}`,
		}, noIDs},
		"neither ids nor indexes": {[]string{
			`{"tool_calls":[{"function":{"name":"read","arguments":"{\"p\":1}"}}]}`,
			`{"tool_calls":[{"function":{"name":"bash","arguments":""}}]}`,
			`{"tool_calls":[{"function":{"arguments":"{\"q\":2}"}}]}`,
		}, noIDs},
		"the same function twice with neither": {[]string{
			`{"tool_calls":[{"function":{"name":"read","arguments":"{\"p\":1}"}},{"function":{"name":"read","arguments":"{\"p\":2}"}}]}`,
		}, []call{{"call_1", "read", `{"p":1}`}, {"call_2", "read", `{"p":2}`}}},
		"arguments as an object": {[]string{
			`{"tool_calls":[{"index":0,"id":"a","function":{"name":"read","arguments":{"p": 1}}}]}`,
		}, []call{{"a", "read", `{"p":1}`}}},
		"no arguments": {[]string{
			`{"tool_calls":[{"index":0,"id":"a","function":{"name":"read"}}]}`,
		}, []call{{"a", "read", `{}`}}},
		"the old function_call": {[]string{
			`{"function_call":{"name":"read","arguments":""}}`, `{"function_call":{"arguments":"{\"p\":1}"}}`,
		}, []call{{"call_1", "read", `{"p":1}`}}},
		"null where there are none": {[]string{
			`{"content":"x","tool_calls":null,"function_call":null}`, `{"tool_calls":[{"index":0,"id":"a","function":{"name":"read","arguments":"{}"}}]}`,
		}, []call{{"a", "read", `{}`}}},
	} {
		t.Run(name, func(t *testing.T) {
			for _, reason := range []string{"tool_calls", "stop"} {
				var chunks []string
				for _, d := range c.deltas {
					chunks = append(chunks, delta(d))
				}
				h := play(t.Context(), compatible().stream, events(append(chunks, finish(reason), "[DONE]")...))
				if h.err != nil {
					t.Fatal(h.err)
				}
				var got []call
				for _, c := range h.final.Message.ToolCalls() {
					got = append(got, call{c.ID, c.Name, c.Input})
				}
				if diff := cmp.Diff(c.want, got); diff != "" {
					t.Errorf("(-want +got):\n%s", diff)
				}
				if h.final.Stop != model.StopTools {
					t.Errorf("%s: stop %q", reason, h.final.Stop)
				}
			}
		})
	}
}

func TestAStreamEndsWithDoneOrAFinishReason(t *testing.T) {
	text := delta(`{"content":"Hi"}`)
	for name, c := range map[string]struct {
		events []string
		stop   model.StopReason
		class  *errdefs.Class
		code   string
	}{
		"done":                                {[]string{text, finish("stop"), "[DONE]"}, model.StopEnd, nil, ""},
		"a finish reason and the end":         {[]string{text, finish("length")}, model.StopLength, nil, ""},
		"done without a finish reason":        {[]string{text, "[DONE]"}, model.StopEnd, nil, ""},
		"nothing after done is read":          {[]string{text, finish("stop"), "[DONE]", "{"}, model.StopEnd, nil, ""},
		"neither":                             {[]string{text}, "", errdefs.NotAvailable, "truncated_stream"},
		"cut off in an event":                 {[]string{text, `{"choices":[{"del`}, "", errdefs.NotAvailable, "truncated_stream"},
		"an event that isn't JSON":            {[]string{text, `{"choices":`, text}, "", errdefs.NotAvailable, "malformed_reply"},
		"an event that is no object":          {[]string{text, `"hello"`, text}, "", errdefs.NotAvailable, "malformed_reply"},
		"done at once":                        {[]string{"[DONE]"}, "", errdefs.NotAvailable, "malformed_reply"},
		"an error chunk":                      {[]string{text, `{"error":{"code":502,"message":"Upstream"},"choices":[{"index":0,"delta":{"content":""},"finish_reason":"error"}]}`, "[DONE]"}, "", errdefs.NotAvailable, "502"},
		"an error after the length is said":   {[]string{text, finish("length"), `{"error":{"code":400,"message":"Token limit reached"},"choices":[]}`, "[DONE]"}, "", errdefs.Validation, "400"},
		"an error in a choice":                {[]string{text, `{"choices":[{"index":0,"error":{"code":"server_error","message":"x"},"delta":{}}]}`}, "", errdefs.NotAvailable, ""},
		"finish reason error alone":           {[]string{text, finish("error"), "[DONE]"}, "", errdefs.NotAvailable, "error"},
		"DeepSeek out of resources":           {[]string{text, finish("insufficient_system_resource"), "[DONE]"}, "", errdefs.NotAvailable, "insufficient_system_resource"},
		"a call that was dropped":             {[]string{text, finish("tool_calls"), "[DONE]"}, model.StopBadCall, nil, ""},
		"the window is full":                  {[]string{text, finish("model_length"), "[DONE]"}, model.StopWindow, nil, ""},
		"a word from the future":              {[]string{text, finish("tired"), "[DONE]"}, "tired", nil, ""},
		"another choice isn't listened to":    {[]string{text, `{"choices":[{"index":1,"delta":{"content":"no"},"finish_reason":"length"}]}`, finish("stop")}, model.StopEnd, nil, ""},
		"chunks without choices say nothing":  {[]string{`{"prompt_filter_results":[]}`, text, `{"choices":null}`, finish("stop")}, model.StopEnd, nil, ""},
		"a whole message in place of a delta": {[]string{`{"choices":[{"message":{"content":"Hi"},"finish_reason":"stop"}]}`}, model.StopEnd, nil, ""},
	} {
		t.Run(name, func(t *testing.T) {
			sse := events(c.events...)
			if name == "cut off in an event" {
				sse = strings.TrimRight(sse, "\n")
			}
			h := play(t.Context(), compatible().stream, sse)
			if c.class != nil {
				var e *model.Error
				if !errors.As(h.err, &e) || e.Kind != c.class || c.code != "" && e.Code != c.code {
					t.Fatalf("%v", h.err)
				}
				return
			}
			if h.err != nil || h.final.Stop != c.stop || h.final.Message.Text() != "Hi" || strings.Join(h.text, "") != "Hi" {
				t.Fatalf("%+v", h)
			}
		})
	}
}

func TestAnErrorEventIsAnError(t *testing.T) {
	sse := events(delta(`{"content":"Hi"}`)) + "event: error\ndata: {\"error\":{\"message\":\"Tool call validation failed\",\"type\":\"invalid_request_error\",\"code\":\"tool_use_failed\"}}\n\n"
	var e *model.Error
	if h := play(t.Context(), compatible().stream, sse); !errors.As(h.err, &e) || e.Code != "tool_use_failed" {
		t.Errorf("%v", h.err)
	}
}

func TestAConnectionThatBreaksAfterTheFinishReasonLostNothing(t *testing.T) {
	sse := events(delta(`{"content":"Hi"}`), finish("stop"))
	read := func(sse string) (*model.Response, error) {
		r := io.MultiReader(strings.NewReader(sse), brokenReader{})
		return compatible().stream(t.Context(), nil, wire.NewEvents(r), func(model.StreamResult) error { return nil })
	}
	if r, err := read(sse); err != nil || r.Message.Text() != "Hi" {
		t.Errorf("%v", err)
	}
	if _, err := read(events(delta(`{"content":"Hi"}`))); !errors.Is(err, errdefs.NotAvailable) || !errors.Is(err, io.ErrClosedPipe) {
		t.Errorf("%v", err)
	}
}

type brokenReader struct{}

func (brokenReader) Read([]byte) (int, error) { return 0, io.ErrClosedPipe }

func TestReasoningComesInTheFieldOfTheServer(t *testing.T) {
	for name, c := range map[string]struct {
		deltas  []string
		text    string
		extra   string
		encoded string // the members that go back
	}{
		"DeepSeek": {
			[]string{`{"role":"assistant","content":null,"reasoning_content":""}`, `{"content":null,"reasoning_content":"a"}`, `{"reasoning_content":"b"}`, `{"content":"x","reasoning_content":null}`},
			"ab", `{"#field":"reasoning_content"}`, `"reasoning_content":"ab"`,
		},
		"Groq":        {[]string{`{"reasoning":"a"}`, `{"reasoning":"b"}`, `{"content":"x"}`}, "ab", `{"#field":"reasoning"}`, `"reasoning":"ab"`},
		"both fields": {[]string{`{"reasoning":"a","reasoning_content":"a"}`, `{"reasoning_content":"b","reasoning":"b"}`, `{"content":"x"}`}, "ab", `{"#field":"reasoning"}`, `"reasoning":"ab"`},
		"OpenRouter": {
			[]string{
				`{"content":"","reasoning":"a","reasoning_details":[{"type":"reasoning.text","text":"a","index":0,"format":null}]}`,
				`{"content":"","reasoning":"b","reasoning_details":[{"type":"reasoning.text","text":"b","index":0,"format":"f"}]}`,
				`{"content":"","reasoning":null,"reasoning_details":[{"type":"reasoning.text","signature":"s","index":0,"format":null}]}`,
				`{"reasoning_details":[{"type":"reasoning.encrypted","data":"x","index":0},{"type":"reasoning.encrypted","data":"y","index":0}]}`,
				`{"content":"x","reasoning_details":[]}`,
			},
			"ab",
			`{"#field":"reasoning","reasoning_details":[{"type":"reasoning.text","text":"ab","index":0,"format":"f","signature":"s"},{"type":"reasoning.encrypted","data":"x","index":0},{"type":"reasoning.encrypted","data":"y","index":0}]}`,
			`"reasoning":"ab","reasoning_details":[{"type":"reasoning.text","text":"ab","index":0,"format":"f","signature":"s"},{"type":"reasoning.encrypted","data":"x","index":0},{"type":"reasoning.encrypted","data":"y","index":0}]`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			var chunks []string
			for _, d := range c.deltas {
				chunks = append(chunks, delta(d))
			}
			h := play(t.Context(), compatible().stream, events(append(chunks, finish("stop"))...))
			if h.err != nil {
				t.Fatal(h.err)
			}
			want := []message.Part{
				message.Reasoning{Text: c.text, Origin: message.Origin{Provider: chat, Extra: c.extra}},
				message.Text{Text: "x", Origin: message.Origin{Provider: chat}},
			}
			if diff := cmp.Diff(want, parts(h.final.Message)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if got := strings.Join(h.reasoning, ""); got != c.text {
				t.Errorf("streamed %q", got)
			}
			call := message.New(message.RoleAssistant, want[0], message.ToolCall{ID: "a", Name: "f", Input: "{}"})
			if got := string(chatFormat{}.encode(call)); !strings.Contains(got, c.encoded) || strings.Contains(got, "#field") {
				t.Errorf("sent back: %s", got)
			}
		})
	}
}

func TestReasoningGoesBackToWhoeverIsNotOpenAI(t *testing.T) {
	r := message.Reasoning{Text: "hm", Origin: message.Origin{Provider: chat, Extra: `{"#field":"reasoning"}`}}
	alone := message.New(message.RoleAssistant, r, message.Text{Text: "x"})
	call := message.New(message.RoleAssistant, r, message.ToolCall{ID: "a", Name: "f", Input: "{}"})
	for name, c := range map[string]struct {
		got  []byte
		want bool
	}{
		"beside a call":                 {chatFormat{}.encode(call), true},
		"without a call":                {chatFormat{}.encode(alone), true},
		"never to OpenAI":               {chatFormat{own: true}.encode(call), false},
		"nothing but reasoning is none": {chatFormat{}.encode(message.New(message.RoleAssistant, r)), false},
	} {
		if got := strings.Contains(string(c.got), `"reasoning":"hm"`); got != c.want {
			t.Errorf("%s: %s", name, c.got)
		}
	}
}

func TestARefusalGoesBackAsOne(t *testing.T) {
	h := play(t.Context(), compatible().stream, events(delta(`{"role":"assistant","content":null,"refusal":""}`), delta(`{"refusal":"I can't"}`), delta(`{"refusal":" \"do\" that."}`), finish("stop")))
	if h.err != nil || h.final.Stop != model.StopRefusal || h.final.Reason != `I can't "do" that.` {
		t.Fatalf("%+v", h)
	}
	if got, want := string(chatFormat{own: true}.encode(h.final.Message)), `,{"role":"assistant","content":null,"refusal":"I can't \"do\" that."}`; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

func TestACallGoesBackAsItWasSpelled(t *testing.T) {
	const wanted = `{"id":"a","type":"function","function":{"name":"f","arguments":"{ \"p\": 1 }"},"extra_content":{"google":{"thought_signature":"s"}}}`
	body := `{"choices":[{"message":{"content":null,"tool_calls":[` + wanted + `]},"finish_reason":"tool_calls"}]}`
	r, err := compatible().decode([]byte(body))
	if err != nil {
		t.Fatal(err)
	}
	if c := r.Message.ToolCalls()[0]; c.Input != `{"p":1}` {
		t.Errorf("input %s", c.Input)
	}
	var got struct {
		ToolCalls []json.RawMessage `json:"tool_calls"`
	}
	if err := json.Unmarshal(chatFormat{}.encode(r.Message)[1:], &got); err != nil || string(got.ToolCalls[0]) != wanted {
		t.Errorf("%v: got  %s\nwant %s", err, got.ToolCalls[0], wanted)
	}
	if own := string(chatFormat{own: true}.encode(r.Message)); strings.Contains(own, "extra_content") {
		t.Errorf("to OpenAI: %s", own)
	}
	changed := r.Message.ToolCalls()[0]
	changed.Input = `{"p":2}`
	if got := string(chatFormat{}.encode(message.New(message.RoleAssistant, changed))); !strings.Contains(got, `"arguments":"{\"p\":2}"`) {
		t.Errorf("a changed call is sent as it was before: %s", got)
	}
}

func TestUsageIsCountedInOneWay(t *testing.T) {
	for name, c := range map[string]struct {
		usage string
		want  model.Usage
	}{
		"OpenAI":                    {`{"prompt_tokens":4020,"completion_tokens":4,"total_tokens":4024,"prompt_tokens_details":{"cached_tokens":0,"cache_write_tokens":4012},"completion_tokens_details":{"reasoning_tokens":3}}`, model.Usage{Input: 8, Output: 4, CacheWrite: 4012, Reasoning: 3}},
		"DeepSeek":                  {`{"prompt_tokens":6,"completion_tokens":212,"total_tokens":218,"prompt_tokens_details":{"cached_tokens":4},"completion_tokens_details":{"reasoning_tokens":198},"prompt_cache_hit_tokens":4,"prompt_cache_miss_tokens":2}`, model.Usage{Input: 2, Output: 212, CacheRead: 4, Reasoning: 198}},
		"xAI":                       {`{"prompt_tokens":10,"completion_tokens":5,"total_tokens":35,"completion_tokens_details":{"reasoning_tokens":20}}`, model.Usage{Input: 10, Output: 25, Reasoning: 20}},
		"OpenRouter, miscounting":   {`{"prompt_tokens":43,"completion_tokens":10,"total_tokens":53,"completion_tokens_details":{"reasoning_tokens":11}}`, model.Usage{Input: 43, Output: 10, Reasoning: 10}},
		"without details":           {`{"prompt_tokens":1,"completion_tokens":2}`, model.Usage{Input: 1, Output: 2}},
		"more cached than sent":     {`{"prompt_tokens":1,"completion_tokens":2,"prompt_tokens_details":{"cached_tokens":5}}`, model.Usage{Output: 2, CacheRead: 5}},
		"nulls":                     {`{"prompt_tokens":1,"completion_tokens":2,"prompt_tokens_details":null,"completion_tokens_details":null}`, model.Usage{Input: 1, Output: 2}},
		"the Responses API":         {`{"input_tokens":9,"input_tokens_details":{"cached_tokens":4},"output_tokens":5,"output_tokens_details":{"reasoning_tokens":2},"total_tokens":14}`, model.Usage{Input: 5, Output: 5, CacheRead: 4, Reasoning: 2}},
		"no numbers in their place": {`{"prompt_tokens":"many"}`, model.Usage{}},
	} {
		if diff := cmp.Diff(c.want, decodeUsage([]byte(c.usage))); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

func TestContentMayBeAListOfParts(t *testing.T) {
	h := play(t.Context(), compatible().stream, events(delta(`{"content":[{"type":"text","text":"a"},{"type":"thinking","thinking":[]},{"type":"text","text":"b"}]}`), delta(`{"content":[]}`), delta(`{"content":"c"}`), finish("stop")))
	if h.err != nil || h.final.Message.Text() != "abc" {
		t.Errorf("%+v", h)
	}
}

func TestAWholeReplyWithoutAChoiceIsAnError(t *testing.T) {
	for _, body := range []string{`{}`, `{"choices":[]}`, `{"choices":null}`, `[]`, `"x"`} {
		if _, err := compatible().decode([]byte(body)); !errors.Is(err, errdefs.NotAvailable) {
			t.Errorf("%s: %v", body, err)
		}
	}
}

func FuzzChatStream(f *testing.F) {
	f.Add(events(delta(`{"content":"Hi","reasoning":"x"}`), delta(`{"tool_calls":[{"index":0,"id":"a","function":{"name":"f","arguments":"{"}}]}`), finish("stop"), "[DONE]"))
	f.Add(events(delta(`{"content":[{"text":"x"}],"reasoning_details":[{"type":"reasoning.text","text":"a","index":0}]}`), `{"error":{}}`))
	f.Add("data: {\"choices\":[{\"delta\":{\"content\":")
	f.Fuzz(func(t *testing.T, sse string) {
		fuzz(t, compatible().stream, chatFormat{}.encode, sse)
		alike(t, compatible().stream, sse)
	})
}

// alike wants chunks that are like the one before to say what they say with others between.
func alike(t *testing.T, stream listener, sse string) {
	t.Helper()
	near := play(t.Context(), stream, sse)
	apart := play(t.Context(), stream, strings.ReplaceAll(sse, "\n\n", "\n\ndata: {}\n\n"))
	if !slices.Equal(near.text, apart.text) || !slices.Equal(near.reasoning, apart.reasoning) || !slices.Equal(near.input, apart.input) || (near.err == nil) != (apart.err == nil) {
		t.Fatalf("heard %q, %q, %q, %v, and with others between %q, %q, %q, %v", near.text, near.reasoning, near.input, near.err, apart.text, apart.reasoning, apart.input, apart.err)
	}
	if near.final != nil {
		if diff := cmp.Diff(parts(apart.final.Message), parts(near.final.Message)); diff != "" {
			t.Fatalf("(-with others between +without):\n%s", diff)
		}
	}
}

func TestChunksThatAreAlikeAreReadAsAnyOthers(t *testing.T) {
	text := func(s string) string { return delta(`{"content":` + s + `}`) }
	call := func(s string) string { return delta(`{"tool_calls":[{"index":0,` + s + `}]}`) }
	for name, chunks := range map[string][]string{
		"texts":                       {text(`"a"`), text(`"b\u00e9\ud83d"`), text(`"\ude00"`), text(`""`), text(`"c"`)},
		"not a text for once":         {text(`"a"`), text(`null`), text(`1`), text(`"b"`), text(`[{"text":"c"}]`), text(`[{"text":"d"}]`)},
		"two texts in one":            {text(`"a","content":"b"`), text(`"c","content":"b"`), text(`"d","content":"b"`)},
		"a text and thoughts":         {text(`"a","reasoning":"b"`), text(`"a","reasoning":"c"`), text(`"d","reasoning":"c"`)},
		"thoughts in both members":    {text(`null,"reasoning":"a","reasoning_content":"a"`), text(`null,"reasoning":"b","reasoning_content":"a"`), text(`null,"reasoning":"b","reasoning_content":"c"`)},
		"a refusal again and again":   {text(`"a","refusal":"b"`), text(`"c","refusal":"b"`)},
		"sources again and again":     {text(`"a","annotations":[{"url":"x"}]`), text(`"c","annotations":[{"url":"x"}]`)},
		"arguments":                   {call(`"id":"1","function":{"name":"f","arguments":""}`), call(`"function":{"arguments":"{\"a\":"}`), call(`"function":{"arguments":"1}"}`)},
		"a name again and again":      {call(`"function":{"name":"f","arguments":"{}"}`), call(`"function":{"name":"f","arguments":"{}"}`), call(`"function":{"name":"f","arguments":"{}"}`)},
		"an id again and again":       {call(`"id":"1","function":{"name":"f","arguments":""}`), call(`"id":"1","function":{"arguments":"{"}`), call(`"id":"1","function":{"arguments":"}"}`)},
		"more of a call than that":    {call(`"function":{"name":"f","arguments":""}`), call(`"x":1,"function":{"arguments":"{"}`), call(`"x":2,"function":{"arguments":"}"}`)},
		"two calls in one":            {delta(`{"tool_calls":[{"index":0,"function":{"name":"f","arguments":"a"}},{"index":1,"function":{"name":"g","arguments":"b"}}]}`), delta(`{"tool_calls":[{"index":0,"function":{"arguments":"c"}},{"index":1,"function":{"arguments":"d"}}]}`), delta(`{"tool_calls":[{"index":0,"function":{"arguments":"c"}},{"index":1,"function":{"arguments":"e"}}]}`)},
		"two choices":                 {`{"choices":[{"delta":{"content":"a"}},{"delta":{"content":"b"}}]}`, `{"choices":[{"delta":{"content":"a"}},{"delta":{"content":"c"}}]}`, `{"choices":[{"delta":{"content":"d"}},{"delta":{"content":"c"}}]}`},
		"a choice nobody asked for":   {`{"choices":[{"delta":{"content":"a"}},{"index":1,"delta":{"content":"b"}}]}`, `{"choices":[{"delta":{"content":"a"}},{"index":1,"delta":{"content":"c"}}]}`},
		"deltas in one choice, twice": {`{"choices":[{"delta":{"content":"a"},"delta":{"content":"b"}}]}`, `{"choices":[{"delta":{"content":"a"},"delta":{"content":"c"}}]}`, `{"choices":[{"delta":{"content":"d"},"delta":{"content":"c"}}]}`},
		"what is broken":              {text(`"a"`), text(`"b`), text(`"c"`)},
		"a bracket more":              {text(`"a"`), text(`"b"`) + "}", text(`"c"`)},
		"an error behind a text":      {text(`"a"`), strings.Replace(text(`"b"`), `null}]`, `null}],"error":{"message":"x"}`, 1), text(`"c"`)},
		"an end behind a text":        {text(`"a"`), strings.Replace(text(`"b"`), `null`, `"length"`, 1)},
	} {
		t.Run(name, func(t *testing.T) { alike(t, compatible().stream, events(append(chunks, "[DONE]")...)) })
	}
}

// fuzz wants an error or a reply of any bytes, and of the reply that it can be sent back.
func fuzz(t *testing.T, stream listener, encode func(message.Message) []byte, sse string) {
	h := play(t.Context(), stream, sse)
	if (h.err == nil) == (h.final == nil) {
		t.Fatalf("%+v", h)
	}
	if h.final == nil {
		return
	}
	if b := encode(h.final.Message); len(b) > 0 && !json.Valid(append(append([]byte{'['}, b[1:]...), ']')) {
		t.Fatalf("sent back: %s", b)
	}
}
