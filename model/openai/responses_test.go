package openai

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pawl-dev/pawl/errdefs"
	"github.com/pawl-dev/pawl/message"
	"github.com/pawl-dev/pawl/model"
)

func stateless() *Responses {
	return NewResponses("m", model.WithBaseURL("http://localhost:1/v1"))
}

func output(items ...string) string {
	return `{"id":"resp_1","model":"m","status":"completed","error":null,"incomplete_details":null,"output":[` + strings.Join(items, ",") + `],"usage":null}`
}

// back decodes a reply of these items and gives the items that are sent for it.
func back(t *testing.T, items ...string) (*model.Response, []any) {
	t.Helper()
	r, err := stateless().decode([]byte(output(items...)))
	if err != nil {
		t.Fatal(err)
	}
	return r, list(t, responsesFormat{}.encode(r.Message))
}

// list parses items as the encoder gives them, each after a comma.
func list(t *testing.T, b []byte) (items []any) {
	t.Helper()
	text := "[" + strings.TrimPrefix(string(b), ",") + "]"
	if err := json.Unmarshal([]byte(text), &items); err != nil {
		t.Fatalf("%v: %s", err, text)
	}
	return items
}

const (
	textItem   = `{"id":"msg_1","type":"message","status":"completed","role":"assistant","phase":"final","content":[{"type":"output_text","text":"ok","annotations":[],"logprobs":[]}]}`
	reasonItem = `{"id":"rs_1","type":"reasoning","summary":[{"type":"summary_text","text":"hm"}],"encrypted_content":"c2ln"}`
)

func TestEveryItemGoesBackAsItCame(t *testing.T) {
	for name, items := range map[string][]string{
		"text":                        {textItem},
		"text with annotations":       {`{"type":"message","id":"msg_1","status":"completed","role":"assistant","content":[{"type":"output_text","text":"see","annotations":[{"type":"url_citation","url":"https://x","start_index":0,"end_index":3}],"logprobs":[{"token":"s","logprob":-0.1}]}]}`},
		"several texts":               {`{"type":"message","id":"msg_1","status":"completed","role":"assistant","content":[{"type":"output_text","text":"a"},{"type":"output_text","text":"b","annotations":[]},{"type":"output_text","text":""}]}`},
		"several messages":            {textItem, strings.Replace(textItem, "msg_1", "msg_2", 1)},
		"a refusal":                   {`{"type":"message","id":"msg_1","status":"completed","role":"assistant","content":[{"type":"refusal","refusal":"no"}]}`},
		"a refusal between texts":     {`{"type":"message","id":"msg_1","status":"completed","role":"assistant","content":[{"type":"output_text","text":"a"},{"type":"refusal","refusal":"no"},{"type":"output_text","text":"b"},{"type":"later","x":[1]}]}`},
		"a refusal before a text":     {`{"type":"message","id":"msg_1","status":"completed","role":"assistant","content":[{"type":"refusal","refusal":"no"},{"type":"output_text","text":"b"}]}`},
		"unknown content alone":       {`{"type":"message","id":"msg_1","role":"assistant","content":[{"type":"later"}]}`},
		"a message of somebody else":  {`{"type":"message","id":"msg_1","role":"critic","content":[{"type":"output_text","text":"a"}]}`},
		"reasoning":                   {reasonItem, textItem},
		"reasoning without a summary": {`{"id":"rs_1","type":"reasoning","summary":[],"encrypted_content":"c2ln","status":null}`, textItem},
		"reasoning in several parts":  {`{"id":"rs_1","type":"reasoning","summary":[{"type":"summary_text","text":"**a**\n\nb"},{"type":"summary_text","text":"c"}],"encrypted_content":"c2ln"}`, textItem},
		"a summary from the future":   {`{"id":"rs_1","type":"reasoning","summary":[{"type":"summary_text","text":"a","x":1}],"encrypted_content":"c2ln"}`, textItem},
		"an empty summary part":       {`{"id":"rs_1","type":"reasoning","summary":[{"type":"summary_text","text":""}],"encrypted_content":"c2ln"}`, textItem},
		"reasoning with content":      {`{"id":"rs_1","type":"reasoning","summary":[],"content":[{"type":"reasoning_text","text":"a"}],"encrypted_content":null,"status":"completed"}`, textItem},
		"reasoning twice":             {reasonItem, strings.Replace(reasonItem, "rs_1", "rs_2", 1), textItem},
		"calls":                       {`{"id":"fc_1","type":"function_call","status":"completed","arguments":"{\"a\":1}","call_id":"call_1","name":"f"}`, `{"id":"fc_2","type":"function_call","status":"completed","arguments":"{ \"a\": [1, 2] }","call_id":"call_2","name":"f"}`},
		"half a call":                 {`{"id":"fc_1","type":"function_call","status":"incomplete","arguments":"{\"a\":","call_id":"call_1","name":"f"}`},
		"a search":                    {`{"id":"ws_1","type":"web_search_call","status":"completed","action":{"type":"search","query":"x y"}}`, textItem},
		"an MCP call that failed":     {`{"id":"mcp_1","type":"mcp_call","arguments":"{}","error":{"type":"http_error","code":500},"name":"f","output":null,"server_label":"s"}`, textItem},
		"a search with sources":       {`{"id":"ws_1","type":"web_search_call","status":"completed","action":{"type":"search","query":"x y","queries":["x y"],"sources":[{"type":"url","url":"https://x"}]}}`, textItem},
		"a page that was opened":      {`{"id":"ws_1","type":"web_search_call","status":"completed","action":{"type":"open_page","url":null}}`, textItem},
		"code":                        {`{"id":"ci_1","type":"code_interpreter_call","status":"completed","code":"1","container_id":"c","outputs":[{"type":"logs","logs":"1"},{"type":"image","url":"https://x"}]}`, textItem},
		"a search in files":           {`{"id":"fs_1","type":"file_search_call","status":"completed","queries":["q"],"results":null}`, textItem},
		"an image":                    {`{"id":"ig_1","type":"image_generation_call","status":"completed","result":"aGk=","revised_prompt":"a cat"}`, textItem},
		"MCP, all of it":              {`{"id":"mcpl_1","type":"mcp_list_tools","server_label":"s","tools":[{"name":"f","input_schema":{}}],"error":null}`, `{"id":"mcpr_1","type":"mcp_approval_request","arguments":"{}","name":"f","server_label":"s"}`, `{"id":"mcp_1","type":"mcp_call","arguments":"{ }","error":null,"name":"f","output":"ok","server_label":"s","approval_request_id":null}`},
		"a tool from the future":      {`{"id":"x_1","type":"teleport_call","status":"completed"}`, textItem},
		"a compaction":                {textItem, `{"id":"cmp_1","type":"compaction","encrypted_content":"x"}`},
		"an item without a type":      {`{"x":1}`, textItem},
		"all in their order":          {reasonItem, `{"type":"web_search_call","id":"ws_1"}`, strings.Replace(reasonItem, "rs_1", "rs_2", 1), textItem, `{"id":"fc_1","type":"function_call","status":"completed","arguments":"{}","call_id":"call_1","name":"f"}`},
	} {
		t.Run(name, func(t *testing.T) {
			_, got := back(t, items...)
			if diff := cmp.Diff(list(t, []byte(strings.Join(items, ","))), got); diff != "" {
				t.Errorf("(-came +goes):\n%s", diff)
			}
		})
	}
}

func TestReasoningThatWouldBeRefusedStaysBehind(t *testing.T) {
	for name, c := range map[string]struct {
		items []string
		want  int // items that go back
	}{
		"without encrypted content": {[]string{`{"id":"rs_1","type":"reasoning","summary":[],"content":[]}`, textItem}, 1},
		"at the end of a message":   {[]string{textItem, reasonItem}, 1},
		"two at the end":            {[]string{textItem, reasonItem, reasonItem}, 1},
		"alone":                     {[]string{reasonItem}, 0},
		"before an empty message":   {[]string{reasonItem, `{"type":"message","id":"msg_1","role":"assistant","content":[]}`}, 0},
	} {
		if _, got := back(t, c.items...); len(got) != c.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}

// A recorded request with such an answer was refused: "reasoning was provided without its required following item".
func TestReasoningStaysBehindWhereSomethingElseIsInThePlaceOfWhatItLedTo(t *testing.T) {
	r, _ := back(t, textItem, reasonItem, textItem)
	thought := parts(r.Message)[1]
	for name, instead := range map[string]message.Part{
		"an answer": message.Text{Text: "42"},
		"a call":    message.ToolCall{ID: "c", Name: "f", Input: "{}"},
	} {
		got := string(responsesFormat{}.encode(message.New(message.RoleAssistant, parts(r.Message)[0], thought, instead)))
		if strings.Contains(got, `"reasoning"`) || strings.Count(got, `"type":"message"`)+strings.Count(got, `"type":"function_call"`) != 2 {
			t.Errorf("%s: %s", name, got)
		}
	}
}

func TestWhatSomebodyChangedGoesBackChanged(t *testing.T) {
	r, _ := back(t,
		`{"id":"rs_1","type":"reasoning","summary":[{"type":"summary_text","text":"a"},{"type":"summary_text","text":"secret"}],"encrypted_content":"c2ln"}`,
		`{"type":"message","id":"msg_1","role":"assistant","content":[{"type":"output_text","text":"a"},{"type":"output_text","text":"secret"}]}`,
		`{"id":"fc_1","type":"function_call","arguments":"{ \"a\": \"secret\" }","call_id":"call_1","name":"f"}`)
	var changed []message.Part
	for _, p := range parts(r.Message) {
		switch p := p.(type) {
		case message.Reasoning:
			p.Text = "gone"
			changed = append(changed, p)
		case message.Text:
			if p.Text == "a" {
				changed = append(changed, p)
			}
		case message.ToolCall:
			p.Input = `{"a":"gone"}`
			changed = append(changed, p)
		}
	}
	got := string(responsesFormat{}.encode(message.New(message.RoleAssistant, changed...)))
	const want = `,{"type":"reasoning","summary":[{"type":"summary_text","text":"gone"}],"encrypted_content":"c2ln","id":"rs_1"}` +
		`,{"type":"message","role":"assistant","id":"msg_1","content":[{"type":"output_text","text":"a"}]}` +
		`,{"type":"function_call","call_id":"call_1","name":"f","arguments":"{\"a\":\"gone\"}","id":"fc_1"}`
	if got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

func TestAReplySaysHowItEnded(t *testing.T) {
	call := `{"id":"fc_1","type":"function_call","arguments":"{}","call_id":"call_1","name":"f"}`
	set := func(body, from, to string) string { return strings.Replace(body, from, to, 1) }
	incomplete := func(body, why string) string {
		return set(set(body, `"completed"`, `"incomplete"`), `"incomplete_details":null`, `"incomplete_details":{"reason":"`+why+`"}`)
	}
	for name, c := range map[string]struct {
		body string
		stop model.StopReason
	}{
		"text":                   {output(textItem), model.StopEnd},
		"a call":                 {output(textItem, call), model.StopTools},
		"only a search":          {output(`{"type":"web_search_call"}`), model.StopEnd},
		"the length":             {incomplete(output(textItem), "max_output_tokens"), model.StopLength},
		"the length in a call":   {incomplete(output(call), "max_output_tokens"), model.StopLength},
		"the filter":             {incomplete(output(), "content_filter"), model.StopFilter},
		"a word from the future": {incomplete(output(), "tired"), "tired"},
		"no word":                {set(output(), `"completed"`, `"incomplete"`), "incomplete"},
		"a refusal":              {output(`{"type":"message","role":"assistant","content":[{"type":"refusal","refusal":"no"}]}`), model.StopRefusal},
		"no status":              {set(output(textItem), `"status":"completed",`, ""), model.StopEnd},
	} {
		r, err := stateless().decode([]byte(c.body))
		if err != nil || r.Stop != c.stop {
			t.Errorf("%s: %v, %v", name, r, err)
		}
	}
}

func TestAReplyThatIsNoneIsAnError(t *testing.T) {
	for name, c := range map[string]struct {
		body  string
		class *errdefs.Class
		code  string
	}{
		"failed":                     {`{"id":"resp_1","status":"failed","error":{"code":"server_error","message":"The model failed"},"output":[]}`, errdefs.NotAvailable, "server_error"},
		"failed: too fast":           {`{"id":"resp_1","status":"failed","error":{"code":"rate_limit_exceeded","message":"slow"},"output":[]}`, errdefs.RateLimit, "rate_limit_exceeded"},
		"failed: an image":           {`{"id":"resp_1","status":"failed","error":{"code":"invalid_image_format","message":"bad"},"output":[]}`, errdefs.Validation, "invalid_image_format"},
		"failed: a base64":           {`{"id":"resp_1","status":"failed","error":{"code":"invalid_base64_image","message":"bad"},"output":[]}`, errdefs.Validation, "invalid_base64_image"},
		"failed: too large":          {`{"id":"resp_1","status":"failed","error":{"code":"image_too_large","message":"bad"},"output":[]}`, errdefs.Validation, "image_too_large"},
		"failed: no image":           {`{"id":"resp_1","status":"failed","error":{"code":"failed_to_download_image","message":"bad"},"output":[]}`, errdefs.Validation, "failed_to_download_image"},
		"failed: an image's content": {`{"id":"resp_1","status":"failed","error":{"code":"image_content_policy_violation","message":"bad"},"output":[]}`, errdefs.Refused, "image_content_policy_violation"},
		"failed: a policy":           {`{"id":"resp_1","status":"failed","error":{"code":"bio_policy","message":"bad"},"output":[]}`, errdefs.Refused, "bio_policy"},
		"failed: a region":           {`{"id":"resp_1","status":"failed","error":{"code":"data_residency_mismatch","message":"bad"},"output":[]}`, errdefs.Validation, "data_residency_mismatch"},
		"failed: a store":            {`{"id":"resp_1","status":"failed","error":{"code":"vector_store_timeout","message":"late"},"output":[]}`, errdefs.Timeout, "vector_store_timeout"},
		"failed silently":            {`{"id":"resp_1","status":"failed","error":null,"output":[]}`, errdefs.NotAvailable, "failed"},
		"queued":                     {`{"id":"resp_1","status":"queued","output":[]}`, errdefs.NotAvailable, "queued"},
		"in progress":                {`{"id":"resp_1","status":"in_progress","output":[]}`, errdefs.NotAvailable, "in_progress"},
		"cancelled":                  {`{"id":"resp_1","status":"cancelled","output":[]}`, errdefs.NotAvailable, "cancelled"},
	} {
		_, err := stateless().decode([]byte(c.body))
		var e *model.Error
		if !errors.As(err, &e) || e.Kind != c.class || e.Code != c.code || e.RequestID != "resp_1" || e.Provider != "openai-responses" {
			t.Errorf("%s: %#v", name, err)
		}
	}
	for _, body := range []string{`{}`, `[]`, `null`, `{"choices":[]}`} {
		if _, err := stateless().decode([]byte(body)); !errors.Is(err, errdefs.NotAvailable) {
			t.Errorf("%s: %v", body, err)
		}
	}
}

func event(kind, members string) string { return `{"type":"` + kind + `",` + members + `}` }

func TestAStreamIsReadFromItsItemsAndItsLastEvent(t *testing.T) {
	done := event("response.output_item.done", `"output_index":0,"item":`+textItem)
	completed := func(body string) string { return event("response.completed", `"response":`+body) }
	for name, c := range map[string][]string{
		"the last event has all":          {done, completed(output(textItem))},
		"the last event has no items":     {done, completed(output())},
		"the last event has no response":  {`{"type":"response.created","response":{"id":"resp_1"}}`, done, `{"type":"response.completed"}`},
		"only the last event says it":     {completed(output(textItem))},
		"something unknown comes between": {event("response.later.delta", `"delta":"no"`), "", "[DONE]", done, completed(output(textItem)), "[DONE]", "{"},
		"an item that is finished twice":  {done, done, completed(output(textItem))},
		"and the last event has none":     {done, done, completed(output())},
		"an error after the end":          {done, completed(output(textItem)), event("error", `"message":"late"`)},
	} {
		h := play(t.Context(), stateless().stream, events(c...))
		if h.err != nil || h.final.Message.Text() != "ok" || h.final.Stop != model.StopEnd {
			t.Errorf("%s: %+v", name, h)
		}
	}
}

func TestItemsThatComeOutOfOrderAndAgainAreEachThereOnce(t *testing.T) {
	done := func(index, id string) string {
		return event("response.output_item.done", `"output_index":`+index+`,"item":{"type":"function_call","call_id":"`+id+`","name":"f","arguments":"{}"}`)
	}
	for name, last := range map[string]string{
		"the last event has none": event("response.completed", `"response":`+output()),
		"and the last event one":  event("response.completed", `"response":`+output(`{"type":"function_call","call_id":"call_1","name":"f","arguments":"{}"}`)),
	} {
		h := play(t.Context(), stateless().stream, events(done("2", "call_3"), done("0", "call_1"), done("2", "call_3"), done("1", "call_2"), last))
		if h.err != nil {
			t.Fatal(h.err)
		}
		var ids []string
		for _, c := range h.final.Message.ToolCalls() {
			ids = append(ids, c.ID)
		}
		if diff := cmp.Diff([]string{"call_1", "call_2", "call_3"}, ids); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

func TestAStreamThatFailsIsAnError(t *testing.T) {
	for name, c := range map[string]struct {
		events []string
		class  *errdefs.Class
		code   string
	}{
		"response.failed":              {[]string{event("response.failed", `"response":{"id":"resp_1","status":"failed","error":{"code":"rate_limit_exceeded","message":"slow"}}`)}, errdefs.RateLimit, "rate_limit_exceeded"},
		"error":                        {[]string{event("error", `"code":"server_error","message":"x","param":null`)}, errdefs.NotAvailable, "server_error"},
		"error, nested":                {[]string{event("error", `"error":{"type":"invalid_request_error","code":"context_length_exceeded","message":"too long"}`)}, errdefs.Overflow, "context_length_exceeded"},
		"no last event":                {[]string{event("response.output_item.done", `"item":`+textItem)}, errdefs.NotAvailable, "truncated_stream"},
		"only done":                    {[]string{"[DONE]"}, errdefs.NotAvailable, "truncated_stream"},
		"not JSON":                     {[]string{"{", "{"}, errdefs.NotAvailable, "malformed_reply"},
		"cut off":                      {[]string{`{"type":"response.compl`}, errdefs.NotAvailable, "truncated_stream"},
		"an empty response":            {[]string{`{"type":"response.completed"}`}, errdefs.NotAvailable, "malformed_reply"},
		"a reply without what it said": {[]string{event("response.output_text.delta", `"delta":"Hello"`), event("response.completed", `"response":`+output())}, errdefs.NotAvailable, "malformed_reply"},
		"half of what it said":         {[]string{event("response.output_text.delta", `"delta":"ok, and more"`), event("response.completed", `"response":`+output(textItem))}, errdefs.NotAvailable, "malformed_reply"},
		"an item that is no object":    {[]string{event("response.completed", `"response":`+output(`"x"`))}, errdefs.NotAvailable, "malformed_reply"},
		"a message without content":    {[]string{event("response.completed", `"response":`+output(`{"type":"message","role":"assistant"}`))}, errdefs.NotAvailable, "malformed_reply"},
		"content without a type":       {[]string{event("response.completed", `"response":`+output(`{"type":"message","role":"assistant","content":[{"text":"ok"}]}`))}, errdefs.NotAvailable, "malformed_reply"},
		"a thought that is no text":    {[]string{event("response.completed", `"response":`+output(`{"type":"reasoning","summary":[{"type":"summary_text","text":1}]}`))}, errdefs.NotAvailable, "malformed_reply"},
	} {
		var e *model.Error
		if h := play(t.Context(), stateless().stream, events(c.events...)); !errors.As(h.err, &e) || e.Kind != c.class || e.Code != c.code {
			t.Errorf("%s: %v", name, h.err)
		}
	}
}

func TestTheEventsNameCountsWhereTheDataHasNone(t *testing.T) {
	sse := "event: response.output_text.delta\ndata: {\"delta\":\"ok\"}\n\nevent: response.completed\ndata: {\"response\":" + output(textItem) + "}\n\n"
	if h := play(t.Context(), stateless().stream, sse); h.err != nil || strings.Join(h.text, "") != "ok" {
		t.Errorf("%+v", h)
	}
}

func TestPartsOfReasoningAreStreamedWithAnEmptyLineBetween(t *testing.T) {
	piece := func(item, part, text string) string {
		return event("response.reasoning_summary_text.delta", `"output_index":`+item+`,"summary_index":`+part+`,"delta":"`+text+`"`)
	}
	content := event("response.reasoning_text.delta", `"output_index":0,"content_index":0,"delta":"d"`)
	one := `{"id":"rs_1","type":"reasoning","summary":[{"type":"summary_text","text":"ab"},{"type":"summary_text","text":""},{"type":"summary_text","text":"c"}],"content":[{"type":"reasoning_text","text":"d"}],"encrypted_content":"c2ln"}`
	two := `{"id":"rs_2","type":"reasoning","summary":[{"type":"summary_text","text":"e"}],"encrypted_content":"c2ln"}`
	h := play(t.Context(), stateless().stream, events(
		piece("0", "0", "a"), piece("0", "0", "b"), piece("0", "1", ""), piece("0", "2", "c"), content, piece("1", "0", "e"),
		event("response.completed", `"response":`+output(one, two, textItem))))
	if h.err != nil {
		t.Fatal(h.err)
	}
	if diff := cmp.Diff([]string{"a", "b", "\n\n", "c", "\n\n", "d", "e"}, h.reasoning); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	var said string
	for r := range message.Of[message.Reasoning](h.final.Message) {
		said += r.Text
	}
	if got := strings.Join(h.reasoning, ""); got != said {
		t.Errorf("streamed %q, said %q", got, said)
	}
}

func TestEncryptedReasoningIsAskedOnlyOfModelsThatReason(t *testing.T) {
	for name, want := range map[string]bool{
		"gpt-5": true, "o3": true, "gpt-5.4-mini": true, "openai/gpt-oss-120b": true, "qwen3": true,
		"gpt-4o": false, "gpt-4.1-mini": false, "openai/gpt-4o-mini": false, "gpt-5-chat-latest": false, "chatgpt-4o-latest": false, "gpt-3.5-turbo": false,
	} {
		m := NewResponses(name)
		if got := strings.Contains(string(m.begin(nil, &model.Request{}, false)), "encrypted_content"); got != want {
			t.Errorf("%s: %v", name, got)
		}
	}
}

func FuzzResponsesStream(f *testing.F) {
	f.Add(events(event("response.output_text.delta", `"delta":"x"`), event("response.completed", `"response":`+output(reasonItem, textItem))))
	f.Add(events(event("response.output_item.done", `"item":{"type":"function_call","arguments":"{"}`), `{"type":"response.incomplete"}`))
	f.Add(events(event("response.completed", `"response":`+output(`{"type":"message","role":"assistant","content":[{"type":"refusal","refusal":"no"},{"type":"output_text","text":"b"}]}`))))
	f.Add(events(event("response.completed", `"response":`+output(`{"id":"ws_1","type":"web_search_call","action":{"type":"search","sources":[{"url":"https://x"}]}}`, `{"id":"mcp_1","type":"mcp_call","error":{"content":[{"text":"x"}]}}`, `{"type":"message","role":"assistant","content":[{"type":"output_text","text":"é👋b","annotations":[{"url":"https://x","start_index":1,"end_index":3}]}]}`))))
	f.Add("event: error\ndata: {}\n\n")
	f.Fuzz(func(t *testing.T, sse string) {
		fuzz(t, stateless().stream, responsesFormat{}.encode, sse)
		alike(t, stateless().stream, sse)
	})
}

func TestEventsThatAreAlikeAreReadAsAnyOthers(t *testing.T) {
	text := func(s string) string { return event("response.output_text.delta", `"output_index":0,"delta":`+s) }
	thought := func(index, s string) string {
		return event("response.reasoning_summary_text.delta", `"output_index":0,"summary_index":`+index+`,"delta":`+s)
	}
	added := func(index string) string {
		return event("response.output_item.added", `"output_index":`+index+`,"item":{"type":"function_call","name":"f`+index+`"}`)
	}
	input := func(index, s string) string {
		return event("response.function_call_arguments.delta", `"output_index":`+index+`,"delta":`+s)
	}
	for name, c := range map[string][]string{
		"texts":                      {text(`"a"`), text(`"b\u00e9"`), text(`""`), text(`null`), text(`"c"`)},
		"two texts in one":           {text(`"a","delta":"b"`), text(`"c","delta":"b"`), text(`"c","delta":"d"`)},
		"thoughts in two pieces":     {thought("0", `"a"`), thought("0", `"b"`), thought("1", `"c"`), thought("1", `"d"`)},
		"thoughts and texts in turn": {thought("0", `"a"`), text(`"b"`), thought("0", `"c"`), text(`"d"`), text(`"e"`)},
		"inputs":                     {added("0"), input("0", `"a"`), input("0", `"b"`), added("1"), input("1", `"c"`), input("1", `"d"`), input("0", `"e"`)},
		"a call that never began":    {input("0", `"a"`), input("0", `"b"`), added("0"), input("0", `"c"`), input("0", `"d"`)},
		"a call of the same index":   {added("0"), input("0", `"a"`), added("0"), input("0", `"b"`), input("0", `"c"`)},
		"what is broken":             {text(`"a"`), text(`"b`), text(`"c"`)},
	} {
		t.Run(name, func(t *testing.T) {
			alike(t, stateless().stream, events(append(c, event("response.completed", `"response":`+output(longItem)))...))
		})
	}
}
