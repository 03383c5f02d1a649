package gemini

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/pawl-dev/pawl/errdefs"
	"github.com/pawl-dev/pawl/internal/raced"
	"github.com/pawl-dev/pawl/message"
	"github.com/pawl-dev/pawl/model"
)

// play decodes a stream of chunks, framed as Google does.
func play(t *testing.T, chunks ...string) (*model.Response, string, error) {
	t.Helper()
	var b, said strings.Builder
	for _, c := range chunks {
		b.WriteString("data: " + c + "\r\n\r\n")
	}
	r, err := New("m").stream(t.Context(), nil, strings.NewReader(b.String()), func(r model.StreamResult) error {
		said.WriteString(r.Text)
		if r.Reasoning != "" {
			said.WriteString("(" + r.Reasoning + ")")
		}
		return nil
	})
	return r, said.String(), err
}

func parts(list ...string) string {
	return `{"candidates": [{"content": {"parts": [` + strings.Join(list, ",") + `],"role": "model"},"index": 0}]}`
}

const stop = `{"candidates":[{"content":{"parts":[{"text":""}],"role":"model"},"finishReason":"STOP","index":0}]}`

func own(extra string) message.Origin { return message.Origin{Provider: provider, Extra: extra} }

func TestPartsOfAStreamMergeUnlessTheyAreSigned(t *testing.T) {
	for name, c := range map[string]struct {
		chunks []string
		want   []message.Part
		said   string
	}{
		"texts of one kind merge": {
			[]string{parts(`{"text":"a","thought":true}`), parts(`{"text":"b","thought":true}`), parts(`{"text":"c"}`, `{"text":"d"}`), parts(`{"text":"e"}`)},
			[]message.Part{message.Reasoning{Text: "ab", Origin: own("")}, message.Text{Text: "cde", Origin: own("")}},
			"(a)(b)cde",
		},
		"a signed text stands alone": {
			[]string{parts(`{"text":"a"}`), parts(`{"text":"b","thoughtSignature":"c2\/n=="}`), parts(`{"text":"c"}`), parts(`{"text":"","thoughtSignature":"ZQ=="}`)},
			[]message.Part{
				message.Text{Text: "a", Origin: own("")},
				message.Text{Text: "b", Origin: own(`{"thoughtSignature":"c2\/n=="}`)},
				message.Text{Text: "c", Origin: own("")},
				message.Text{Origin: own(`{"thoughtSignature":"ZQ=="}`)},
			},
			"abc",
		},
		"a signature without a text": {
			[]string{parts(`{"text":"a"}`), parts(`{"thoughtSignature":"ZQ=="}`)},
			[]message.Part{message.Text{Text: "a", Origin: own("")}, message.Text{Origin: own(`{"thoughtSignature":"ZQ=="}`)}},
			"a",
		},
		"a thought's signature": {
			[]string{parts(`{"text":"a","thought":true}`), parts(`{"thought":true,"thoughtSignature":"ZQ\u003d\u003d","text":"b"}`), parts(`{"text":"c"}`)},
			[]message.Part{message.Reasoning{Text: "a", Origin: own("")}, message.Reasoning{Text: "b", Signature: "ZQ==", Origin: own("")}, message.Text{Text: "c", Origin: own("")}},
			"(a)(b)c",
		},
		"calls without ids get names, others keep theirs": {
			[]string{parts(`{"functionCall":{"name":"x","args":{ "a" : [1, 2.50] }},"thoughtSignature":"ZQ=="}`), parts(`{"functionCall":{"name":"y","id":"own"}}`, `{"functionCall":{"name":"z","args":null,"willContinue":true}}`)},
			[]message.Part{
				message.ToolCall{ID: "gemini_call_1", Name: "x", Input: `{"a":[1,2.50]}`, Origin: own(`{"thoughtSignature":"ZQ=="}`)},
				message.ToolCall{ID: "own", Name: "y", Input: `{}`, Origin: own("")},
				message.ToolCall{ID: "gemini_call_3", Name: "z", Input: `{}`, Origin: own(`{"functionCall":{"willContinue":true}}`)},
			},
			"",
		},
		"files and what is unknown": {
			[]string{
				parts(`{"inlineData":{"mimeType":"image/png","data":"UE5H"}}`, `{"fileData":{"mimeType":"image/png","fileUri":"https://x"}}`),
				parts(`{"inlineData":{"mimeType":"image/png","data":"UE5H"},"thoughtSignature":"ZQ=="}`, `{"executableCode": {"code": "1 + 1"}}`, `{"inlineData":{"mimeType":"image/png","data":"%"}}`, `{}`),
			},
			[]message.Part{
				message.File{MIME: "image/png", Data: "PNG"},
				message.File{MIME: "image/png", URL: "https://x"},
				message.Opaque{Provider: provider, JSON: `{"inlineData":{"mimeType":"image/png","data":"UE5H"},"thoughtSignature":"ZQ=="}`},
				message.ProviderCall{Opaque: message.Opaque{Provider: provider, JSON: `{"executableCode":{"code":"1 + 1"}}`}, Name: model.CodeExecution, Input: "1 + 1"},
				message.Opaque{Provider: provider, JSON: `{"inlineData":{"mimeType":"image/png","data":"%"}}`},
				message.Opaque{Provider: provider, JSON: `{}`},
			},
			"",
		},
		"members that are new": {
			[]string{parts(`{"text":"a","partMetadata":{"k": 1}}`)},
			[]message.Part{message.Text{Text: "a", Origin: own(`{"partMetadata":{"k":1}}`)}},
			"a",
		},
	} {
		t.Run(name, func(t *testing.T) {
			r, said, err := play(t, append(c.chunks, stop)...)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(c.want, slices.Collect(r.Message.Parts())); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
			if said != c.said {
				t.Errorf("streamed %q, want %q", said, c.said)
			}
		})
	}
}

func TestWhatGeminiSignedGoesBackAsItCame(t *testing.T) {
	came := []string{
		`{"text":"Hm.","thought":true,"thoughtSignature":"AA+/=="}`,
		`{"text":"So:","thoughtSignature":"BB=="}`,
		`{"functionCall":{"name":"x","args":{"b":3,"a":2},"id":"8hd01vsf"},"thoughtSignature":"CC=="}`,
		`{"functionCall":{"name":"y","args":{}}}`,
		`{"text":"","thoughtSignature":"DD=="}`,
		`{"executableCode":{"code":"1"},"thoughtSignature":"EE=="}`,
		`{"inlineData":{"mimeType":"image/png","data":"UE5H"},"thoughtSignature":"FF=="}`,
	}
	r, _, err := play(t, parts(came[:3]...), parts(came[3:]...), stop)
	if err != nil {
		t.Fatal(err)
	}
	want := `,{"role":"model","parts":[` + strings.Join(came, ",") + `]}`
	if got := string(encodePlain(r.Message)); got != want {
		t.Errorf("went back as\n%s\nwant\n%s", got, want)
	}
	result := string(encodePlain(message.Results(message.ToolResult{Call: "8hd01vsf", Name: "x"}, message.ToolResult{Call: "gemini_call_2", Name: "y"})))
	if strings.Contains(result, noID) || !strings.Contains(result, `"id":"8hd01vsf"`) {
		t.Errorf("results: %s", result)
	}
}

func TestFinishReasons(t *testing.T) {
	call := `{"functionCall":{"name":"x","args":{}}}`
	for _, c := range []struct {
		finish, parts string
		stop          model.StopReason
		reason        string
	}{
		{"STOP", `{"text":"a"}`, model.StopEnd, ""},
		{"STOP", call, model.StopTools, ""},
		{"MAX_TOKENS", call, model.StopLength, ""},
		{"CONTINUATION", `{"text":"half of"}`, model.StopLength, ""},
		{"SAFETY", ``, model.StopFilter, "note"},
		{"RECITATION", ``, model.StopFilter, "note"},
		{"BLOCKLIST", ``, model.StopFilter, "note"},
		{"PROHIBITED_CONTENT", ``, model.StopFilter, "note"},
		{"SPII", ``, model.StopFilter, "note"},
		{"LANGUAGE", ``, model.StopFilter, "note"},
		{"IMAGE_SAFETY", ``, model.StopFilter, "note"},
		{"MALFORMED_FUNCTION_CALL", ``, model.StopBadCall, "note"},
		{"UNEXPECTED_TOOL_CALL", ``, model.StopBadCall, "note"},
		{"TOO_MANY_TOOL_CALLS", ``, "TOO_MANY_TOOL_CALLS", "note"},
	} {
		r, _, err := play(t, `{"candidates":[{"content":{"parts":[`+c.parts+`]},"finishReason":"`+c.finish+`","finishMessage":"note"}]}`)
		if err != nil {
			t.Fatal(err)
		}
		if r.Stop != c.stop || r.Reason != c.reason {
			t.Errorf("%s: stop %q, reason %q", c.finish, r.Stop, r.Reason)
		}
	}
}

func TestABlockedPromptIsAReplyThatTheFilterStopped(t *testing.T) {
	for chunk, reason := range map[string]string{
		`{"promptFeedback":{"blockReason":"SAFETY"},"usageMetadata":{"promptTokenCount":4},"modelVersion":"v"}`:              "SAFETY",
		`{"promptFeedback":{"blockReason":"MODEL_ARMOR","blockReasonMessage":"No."},"usageMetadata":{"promptTokenCount":4}}`: "No.",
	} {
		streamed, _, err := play(t, chunk)
		if err != nil {
			t.Fatal(err)
		}
		whole, err := New("m").decode([]byte(chunk))
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range []*model.Response{streamed, whole} {
			if r.Stop != model.StopFilter || r.Reason != reason || !r.Message.Blank() || r.Usage.Input != 4 {
				t.Errorf("%+v", r)
			}
		}
	}
}

func TestTheLastUsageWinsAndItsKindsDoNotOverlap(t *testing.T) {
	r, _, err := play(t,
		`{"usageMetadata":{"promptTokenCount":1,"thoughtsTokenCount":99}}`, stop,
		`{"usageMetadata":{"promptTokenCount":100,"cachedContentTokenCount":60,"toolUsePromptTokenCount":5,"candidatesTokenCount":7,"thoughtsTokenCount":3}}`)
	if err != nil {
		t.Fatal(err)
	}
	if want := (model.Usage{Input: 45, CacheRead: 60, Output: 10, Reasoning: 3}); r.Usage != want {
		t.Errorf("%+v, want %+v", r.Usage, want)
	}
}

func TestAnArrayOfChunksIsAReplyToo(t *testing.T) {
	r, err := New("m").decode([]byte(`[` + parts(`{"text":"a"}`) + `, ` + parts(`{"text":"b"}`) + `,` + stop + `]`))
	if err != nil || r.Message.Text() != "ab" || r.Model != "m" {
		t.Errorf("%+v, %v", r, err)
	}
}

func TestBrokenRepliesAreErrors(t *testing.T) {
	for name, c := range map[string]struct {
		chunk string
		class *errdefs.Class
		code  string
	}{
		"no finishReason":         {parts(`{"text":"a"}`), errdefs.NotAvailable, "truncated_stream"},
		"an unset finishReason":   {`{"candidates":[{"finishReason":"FINISH_REASON_UNSPECIFIED"}]}`, errdefs.NotAvailable, "truncated_stream"},
		"no JSON":                 {`{"candidates":`, errdefs.NotAvailable, "malformed_reply"},
		"not an object":           {`7`, errdefs.NotAvailable, "malformed_reply"},
		"a broken array":          {`[{},`, errdefs.NotAvailable, "malformed_reply"},
		"overload":                {`{"error":{"code":503,"message":"m","status":"UNAVAILABLE"}}`, errdefs.NotAvailable, "UNAVAILABLE"},
		"rate limit, in an array": {`[{"error":{"code":429,"message":"m","status":"RESOURCE_EXHAUSTED"}}]`, errdefs.RateLimit, "RESOURCE_EXHAUSTED"},
		"a code only":             {`{"error":{"code":401,"message":"m"}}`, errdefs.Unauthorized, ""},
	} {
		_, _, err := play(t, c.chunk)
		e, ok := err.(*model.Error) //nolint:errorlint // the type itself is promised
		if !ok || e.Kind != c.class || e.Code != c.code {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := New("m").decode([]byte(parts(`{"text":"a"}`))); !errdefs.NotAvailable.Is(err) {
		t.Errorf("a whole reply without finishReason: %v", err)
	}
}

func TestPartsThatCanNotBeSentBackAreErrors(t *testing.T) {
	for name, part := range map[string]string{"a text": `"lost"`, "a list": `[{"text":"lost"}]`, "a signature that is no text": `{"text":"a","thoughtSignature":1}`} {
		if r, _, err := play(t, parts(part), stop); !errors.Is(err, errdefs.NotAvailable) {
			t.Errorf("%s: %v, %v", name, r, err)
		}
	}
	r, _, err := play(t, parts(`null`, `{"inlineData":{"mimeType":"picture","data":"eA=="}}`, `{"functionCall":{"name":"f"},"thoughtSignature":null}`), stop)
	if err != nil {
		t.Fatal(err)
	}
	want := []message.Part{
		message.Opaque{Provider: provider, JSON: `{"inlineData":{"mimeType":"picture","data":"eA=="}}`}, // a File has a type that is one
		message.ToolCall{ID: "gemini_call_1", Name: "f", Input: "{}", Origin: own("")},
	}
	if diff := cmp.Diff(want, slices.Collect(r.Message.Parts())); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestErrorsAreExplained(t *testing.T) {
	const details = `{"error":{"code":%d,"message":"m","status":"%s","details":[%s]}}`
	for name, c := range map[string]struct {
		status int
		body   string
		class  *errdefs.Class
		wait   time.Duration
	}{
		"a wrong key": {400, fmt.Sprintf(details, 400, "INVALID_ARGUMENT", `{"@type":"type.googleapis.com/google.rpc.ErrorInfo","reason":"API_KEY_INVALID","domain":"googleapis.com"}`), errdefs.Unauthorized, 0},
		"a quota": {429, fmt.Sprintf(details, 429, "RESOURCE_EXHAUSTED",
			`{"@type":"type.googleapis.com/google.rpc.QuotaFailure"},{"@type":"type.googleapis.com/google.rpc.RetryInfo","retryDelay":"47.5s"}`), errdefs.RateLimit, 47500 * time.Millisecond},
		"a quota in an array":      {429, "[" + fmt.Sprintf(details, 429, "RESOURCE_EXHAUSTED", `{"@type":"type.googleapis.com/google.rpc.RetryInfo","retryDelay":"7s"}`) + "]", errdefs.RateLimit, 7 * time.Second},
		"too many tokens":          {400, `{"error":{"code":400,"message":"The input token count exceeds the maximum number of tokens allowed 1048576.","status":"INVALID_ARGUMENT"}}`, errdefs.Overflow, 0},
		"a country without access": {400, fmt.Sprintf(details, 400, "FAILED_PRECONDITION", ``), errdefs.Validation, 0},
		"no permission":            {403, fmt.Sprintf(details, 403, "PERMISSION_DENIED", ``), errdefs.Unauthorized, 0},
		"a deadline":               {504, fmt.Sprintf(details, 504, "DEADLINE_EXCEEDED", ``), errdefs.Timeout, 0},
		"not JSON":                 {502, "<html>Bad gateway</html>", errdefs.NotAvailable, 0},
	} {
		e := New("m").api.Failed(c.status, nil, []byte(c.body))
		if e.Kind != c.class || e.RetryAfter != c.wait || e.Message == "" || e.Status != c.status {
			t.Errorf("%s: %#v", name, e)
		}
	}
}

func TestARefusalSaysWhichLimitWasReached(t *testing.T) {
	const body = `{"error":{"code":429,"message":"Quota exceeded","status":"RESOURCE_EXHAUSTED","details":[{"@type":"type.googleapis.com/google.rpc.QuotaFailure","violations":[%s]}]}}`
	for violation, want := range map[string]model.Rate{
		`{"quotaId":"GenerateRequestsPerMinutePerProjectPerModel-FreeTier","quotaValue":"15"}`:     {Requests: model.Quota{Limit: 15, Spent: true}},
		`{"quotaId":"GenerateContentInputTokensPerModelPerMinute-FreeTier","quotaValue":"250000"}`: {Tokens: model.Quota{Limit: 250000, Spent: true}},
		`{"quotaId":"GenerateRequestsPerDayPerProjectPerModel-FreeTier","quotaValue":"250"}`:       {},
		`{"quotaId":"GenerateRequestsPerMinutePerProjectPerModel","quotaValue":"-5"}`:              {},
		`{"quotaId":"GenerateRequestsPerMinutePerProjectPerModel"}`:                                {},
	} {
		if e := New("m").api.Failed(429, nil, fmt.Appendf(nil, body, violation)); e.Rate != want || e.Kind != errdefs.RateLimit {
			t.Errorf("%s: %+v", violation, e.Rate)
		}
	}
}

func TestADeltaCostsNoAllocation(t *testing.T) {
	if raced.Enabled {
		t.Skip("the race detector allocates by itself")
	}
	const n = 2000
	for name, part := range map[string]string{
		"text":      `{"text": "some words of a reply\n"}`,
		"a thought": `{"text": "some words of a thought","thought": true}`,
	} {
		event := "data: " + `{"candidates": [{"content": {"parts": [` + part + `],"role": "model"},"index": 0}],"usageMetadata": {"promptTokenCount": 211,"candidatesTokenCount": 18,"totalTokenCount": 249,"promptTokensDetails": [{"modality": "TEXT","tokenCount": 211}],"thoughtsTokenCount": 20},"modelVersion": "gemini","responseId": "x"}` + "\r\n\r\n"
		cost := func(n int) float64 {
			sse := strings.Repeat(event, n) + "data: " + stop + "\r\n\r\n"
			m := New("gemini")
			least := math.Inf(1)
			for range 20 { // with -race pools lose things by chance, which is no delta's cost
				least = min(least, testing.AllocsPerRun(1, func() {
					if _, err := m.stream(context.Background(), nil, strings.NewReader(sse), func(model.StreamResult) error { return nil }); err != nil {
						t.Fatal(err)
					}
				}))
			}
			return least
		}
		if more := cost(2*n) - cost(n); more > 3 { // for more room
			t.Errorf("%s: %d further deltas cost %.0f allocations", name, n, more)
		}
		if all := cost(1); all > 6 {
			t.Errorf("%s: a small reply costs %.0f allocations", name, all)
		}
	}
}

// alike wants chunks that are like the one before to say what they say with others between.
func alike(t *testing.T, sse string) {
	t.Helper()
	read := func(sse string) (heard []string, parts []message.Part, err error) {
		resp, err := New("m").stream(context.Background(), nil, strings.NewReader(sse), func(r model.StreamResult) error {
			heard = append(heard, r.Text+"|"+r.Reasoning+"|"+r.Input)
			return nil
		})
		if err == nil {
			parts = slices.Collect(resp.Message.Parts())
		}
		return heard, parts, err
	}
	heard, parts, err := read(sse)
	want, wantParts, wantErr := read(strings.ReplaceAll(sse, "\n\n", "\n\ndata: {}\n\n"))
	if !slices.Equal(heard, want) || (err == nil) != (wantErr == nil) {
		t.Fatalf("heard %q, %v, and with others between %q, %v", heard, err, want, wantErr)
	}
	if diff := cmp.Diff(wantParts, parts); diff != "" {
		t.Fatalf("(-with others between +without):\n%s", diff)
	}
}

func TestChunksThatAreAlikeAreReadAsAnyOthers(t *testing.T) {
	for name, chunks := range map[string][]string{
		"texts":                   {parts(`{"text":"a"}`), parts(`{"text":"b\u00e9"}`), parts(`{"text":""}`), parts(`{"text":"c"}`)},
		"thoughts and texts":      {parts(`{"text":"a","thought":true}`), parts(`{"text":"b","thought":true}`), parts(`{"text":"c"}`), parts(`{"text":"d"}`)},
		"nothing first":           {parts(`{"text":""}`), parts(`{"text":"a"}`), parts(`{"text":"b"}`)},
		"signed ones":             {parts(`{"text":"a","thoughtSignature":"x"}`), parts(`{"text":"b","thoughtSignature":"x"}`)},
		"two parts in one":        {parts(`{"text":"a"}`, `{"text":"b"}`), parts(`{"text":"a"}`, `{"text":"c"}`), parts(`{"text":"d"}`, `{"text":"c"}`)},
		"calls":                   {parts(`{"functionCall":{"name":"f"},"text":"a"}`), parts(`{"functionCall":{"name":"f"},"text":"b"}`)},
		"members of another kind": {parts(`{"text":"a","x":1}`), parts(`{"text":"b","x":1}`)},
		"no text for once":        {parts(`{"text":"a"}`), parts(`{"text":null}`), parts(`{"text":1}`), parts(`{"text":"b"}`)},
		"a candidate more":        {`{"candidates":[{"content":{"parts":[{"text":"a"}]}},{"content":{"parts":[{"text":"b"}]}}]}`, `{"candidates":[{"content":{"parts":[{"text":"a"}]}},{"content":{"parts":[{"text":"c"}]}}]}`},
		"lists":                   {"[" + parts(`{"text":"a"}`) + "," + parts(`{"text":"b"}`) + "]", "[" + parts(`{"text":"a"}`) + "," + parts(`{"text":"c"}`) + "]"},
	} {
		t.Run(name, func(t *testing.T) {
			var sse strings.Builder
			for _, c := range append(chunks, stop) {
				sse.WriteString("data: " + c + "\n\n")
			}
			alike(t, sse.String())
		})
	}
}

func FuzzStream(f *testing.F) {
	f.Add([]byte("data: " + parts(`{"text":"a","thoughtSignature":"x"}`, `{"functionCall":{"name":"x"}}`) + "\r\n\r\ndata: " + stop + "\r\n\r\n"))
	f.Add([]byte("data: [" + stop + "]\n\ndata: {\"error\":{}}\n\n"))
	f.Add([]byte("data: " + parts(`{"executableCode":{}}`, `{"inlineData":{"mimeType":"a","data":"eA=="}}`) + "\n\ndata: " + stop))
	f.Add([]byte("data: {\"promptFeedback\":{\"blockReason\":\"x\"}}\n\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		var said strings.Builder
		m := New("m")
		r, err := m.stream(context.Background(), nil, bytes.NewReader(data), func(r model.StreamResult) error {
			said.WriteString(r.Text)
			return nil
		})
		if (r == nil) == (err == nil) {
			t.Fatalf("response %v, error %v", r, err)
		}
		alike(t, string(data))
		if err != nil {
			return
		}
		if r.Message.Text() != said.String() {
			t.Errorf("streamed %q, response %q", said.String(), r.Message.Text())
		}
		bodyOf(t, m, model.Request{Messages: message.NewHistory(message.User("Hi"), r.Message)})
	})
}
