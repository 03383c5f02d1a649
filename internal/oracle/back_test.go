package oracle

import (
	"encoding/json"
	"testing"

	"github.com/pawl-dev/pawl/message"
	"github.com/pawl-dev/pawl/model"
)

// What a model said goes back as the vendor's SDK would send it: its thoughts, its calls, and what only its provider understands. The vendor's
// types know each member of the request that has it.
func TestWhatAModelSaidGoesBackAsTheVendorSendsIt(t *testing.T) {
	recorded := recordings(t)
	all := append(fixtures(t), recorded...)
	meant := newAllowances(backDiffer)
	for _, a := range all {
		t.Run(a.vendor.name+"/"+a.name, func(t *testing.T) {
			t.Cleanup(meant.ran)
			goesBack(t, a, meant)
		})
	}
	meant.check(t, len(all), recorded != nil)
}

// goesBack compares how the vendor's SDK and ours send a reply back.
func goesBack(t *testing.T, a answer, meant *allowances) {
	t.Helper()
	v, x := a.vendor, a.Exchange
	theirs := v.ask(t, serve(t, x).client(), x.Streamed())
	m := v.ours(v.model, model.WithHTTPClient(serve(t, x).client()), model.WithKey("test-key"))
	r, err := complete(t.Context(), m, model.Request{Messages: message.NewHistory(message.User("Hi"))}, x.Streamed())
	if err != nil || theirs.Failed != nil {
		t.Skip("it is no reply")
	}
	own, ok := asked(t, v, goOn(r.Message), false)
	if !ok {
		t.Fatal("our client refuses its own reply")
	}
	body := document(t, own.Body)
	v.plain(body)
	has := func(pointer string) bool { return meant.has(v.name, a.name, pointer) }
	sameReply(t, v, theirs, body, has)
	s := answered(t, v, false)
	if err := v.again(t, s.client(), own.Body, false); err != nil {
		if !has("again") {
			t.Error(err)
		}
		return
	}
	sameCall(t, v, s.call(), own, func(pointer string) bool { return has("again " + pointer) })
}

// goOn is the request after a reply.
func goOn(said message.Message) model.Request {
	h := message.NewHistory(message.User("Hi"), said)
	var results []message.ToolResult
	for _, c := range said.ToolCalls() {
		results = append(results, message.ToolResult{Call: c.ID, Name: c.Name, Content: "done"})
	}
	if len(results) > 0 {
		h = h.Append(message.Results(results...))
	}
	return model.Request{Messages: h.Append(message.User("Go on"))}
}

// sameReply compares what the SDK made of a reply, for the next request, with what ours has of it.
func sameReply(t *testing.T, v vendor, theirs *reply, body object, meant func(pointer string) bool) {
	t.Helper()
	if theirs.Back == nil {
		return
	}
	raw, err := json.Marshal(theirs.Back)
	if err != nil {
		t.Fatalf("the SDK can't encode the reply: %v", err)
	}
	list := map[string]any{"messages": json.RawMessage(raw), "contents": json.RawMessage(raw)} // so that plain finds it
	whole, err := json.Marshal(list)
	if err != nil {
		t.Fatal(err)
	}
	want := document(t, whole)
	v.plain(want)
	name := "messages"
	if v.name == "gemini" {
		name = "contents"
	}
	sent := v.sent(body)
	if sent == nil {
		sent = []any{}
	}
	for _, c := range changes("", want[name], any(sent)) {
		if !meant(c.pointer) {
			t.Error(c)
		}
	}
}
