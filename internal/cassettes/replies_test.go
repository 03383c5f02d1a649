package cassettes_test

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pawl-dev/pawl/errdefs"
	"github.com/pawl-dev/pawl/internal/cassettes"
	"github.com/pawl-dev/pawl/message"
	"github.com/pawl-dev/pawl/model"
)

var update = flag.Bool("update", false, "rewrite golden files")

func keys(o object) []string { return slices.Sorted(maps.Keys(o)) }

// leftOut says why an exchange is none that a provider of ours has; "" when it is one.
func leftOut(x cassettes.Exchange) string {
	for _, e := range []struct{ method, part, why string }{
		{http.MethodPost, "oauth2.googleapis.com/token", "it fetches the token for Vertex AI, which is the HTTP client's business here"},
		{http.MethodPost, "/v1beta/cachedContents", "it stores a prefix at Google; no provider of ours does"},
		{http.MethodDelete, "/v1beta/cachedContents/", "it deletes that prefix"},
		{http.MethodGet, "/v1/responses/", "it asks how far a reply is that is made in the background; no provider of ours asks for one"},
	} {
		if x.Method == e.method && strings.Contains(x.URL, e.part) {
			return e.why
		}
	}
	return ""
}

func TestRecordedRepliesSurvive(t *testing.T) {
	all := cassettes.All(t)
	var mu sync.Mutex
	used, replies := map[string]bool{}, 0
	t.Run("recording", func(t *testing.T) {
		for _, c := range all {
			for i, x := range c.Exchanges {
				t.Run(fmt.Sprintf("%s/%d", c.Name, i+1), func(t *testing.T) {
					t.Parallel()
					switch outcome(t, x) {
					case "unknown":
						t.Errorf("%s %s: no wire format that is known: teach the test to read it, or say in leftOut why not", x.Method, x.URL)
					case "error":
						checkError(t, x)
					case "reply":
						took := checkReply(t, x)
						mu.Lock()
						defer mu.Unlock()
						maps.Copy(used, took)
						replies++
					}
				})
			}
		}
	})
	exchanges, total, list := 0, map[string]int{}, ""
	for _, c := range all {
		var outcomes []string
		for _, x := range c.Exchanges {
			what := outcome(t, x)
			outcomes = append(outcomes, what)
			total[what]++
			exchanges++
		}
		list += c.Name + ": " + strings.Join(outcomes, ", ") + "\n"
	}
	t.Logf("%d recordings of %d exchanges: %d replies, %d errors, %d left out", len(all), exchanges, total["reply"], total["error"], total["left out"])
	for _, a := range allowances {
		if replies == total["reply"] && !used[a.why] { // all of them were looked at
			t.Errorf("no recording needs this allowance any more: %s %s %s: %s", a.api, a.kind, a.member, a.why)
		}
	}
	golden(t, "recordings.txt", list) // so that a recording that is new, or gone, is noticed
}

// outcome says what is to be expected of an exchange.
func outcome(t *testing.T, x cassettes.Exchange) string {
	t.Helper()
	switch {
	case leftOut(x) != "":
		return "left out"
	case x.API() == "":
		return "unknown"
	case failed(t, x):
		return "error"
	}
	return "reply"
}

func golden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update && !t.Failed() {
		if err := os.WriteFile(path, []byte(got), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("%s says otherwise; look at what is new, then run with -update:\n%s", path, diff)
	}
}

var hi = message.User("Hi")

// checkReply demands that a recorded reply is understood, that nothing of it is lost on its way back to the provider, and that the
// journal changes nothing about that. It gives the allowances that were needed.
func checkReply(t *testing.T, x cassettes.Exchange) (used map[string]bool) {
	want := replyOf(t, x)
	said := want.Content
	want.Content = nil
	s := cassettes.Serve(t, []cassettes.Exchange{x, x, x, x})
	m := open(t, x, s)
	got, listened, err := ask(t.Context(), m, x.Streamed(), message.NewHistory(hi))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, reply{ID: got.ID, Model: got.Model, Stop: got.Stop, Usage: got.Usage}); diff != "" {
		t.Errorf("the reply (-recorded +decoded):\n%s", diff)
	}
	if all := (heard{got.Message.Text(), thoughts(got.Message)}); x.Streamed() && listened != all {
		t.Errorf("what was streamed isn't what was said:\n%s", cmp.Diff(all, listened))
	}
	if path := s.Requests()[0].Path; path != pathOf(t, x) {
		t.Errorf("asked at %s, recorded at %s", path, pathOf(t, x))
	}
	body := sendBack(t, m, s, x, got.Message)
	used = map[string]bool{}
	if diff := cmp.Diff(forgive(x.API(), said, used), append([]any{}, dialects[x.API()].sent(parse(t, body))...)); diff != "" {
		t.Errorf("the reply on its way back (-recorded +sent):\n%s", diff)
	}
	var restored message.Message
	if err := json.Unmarshal(got.Message.AppendJSON(nil), &restored); err != nil {
		t.Fatal(err)
	}
	if again := sendBack(t, m, s, x, restored); string(again) != string(body) {
		t.Errorf("the journal changed what is sent:\n%s", cmp.Diff(string(body), string(again)))
	}
	if !x.Streamed() { // asked for a stream, a server may answer as a whole
		whole, _, err := ask(t.Context(), m, true, message.NewHistory(hi))
		if err != nil || string(whole.Message.AppendJSON(nil)) != string(got.Message.AppendJSON(nil)) {
			t.Errorf("in answer to a request for a stream it is another reply: %v", err)
		}
	}
	return used
}

func thoughts(m message.Message) string {
	var b strings.Builder
	for r := range message.Of[message.Reasoning](m) {
		b.WriteString(r.Text)
	}
	return b.String()
}

// sendBack goes on with the conversation and gives the body of that request.
func sendBack(t *testing.T, m model.Model, s *cassettes.Server, x cassettes.Exchange, said message.Message) []byte {
	t.Helper()
	h := message.NewHistory(hi, said)
	var results []message.ToolResult
	for _, c := range said.ToolCalls() {
		results = append(results, message.ToolResult{Call: c.ID, Name: c.Name, Content: "done"})
	}
	if len(results) > 0 {
		h = h.Append(message.Results(results...))
	}
	if _, _, err := ask(context.Background(), m, x.Streamed(), h.Append(message.User("Go on"))); err != nil {
		t.Fatal(err)
	}
	all := s.Requests()
	return all[len(all)-1].Body
}

// failed reports whether the provider refused, at once or in the middle of a stream, or gave a reply that isn't there yet.
func failed(t *testing.T, x cassettes.Exchange) bool {
	t.Helper()
	return x.Status != http.StatusOK || failure(t, x) != nil || truth(parse(t, x.RequestBody)["background"])
}

// failure gives the error object in an answer; nil when there is none.
func failure(t *testing.T, x cassettes.Exchange) object {
	t.Helper()
	if !x.Streamed() {
		return member(parse(t, x.ResponseBody)["error"])
	}
	for _, e := range eventsOf(t, x) {
		if e["error"] != nil {
			return member(e["error"])
		}
	}
	return nil
}

// checkError demands the error that was recorded, with a class to branch on.
func checkError(t *testing.T, x cassettes.Exchange) {
	f := failure(t, x)
	want := &model.Error{Provider: x.API(), Status: x.Status, Kind: errdefs.Validation, Code: text(f["type"]), Message: text(f["message"])}
	if code := text(f["code"]); code != "" {
		want.Code = code
	}
	switch {
	case x.Status == http.StatusNotFound:
		want.Kind = errdefs.NotFound
	case x.Streamed(): // it came after a 200, with a status for its code
		want.Status, want.Code = 0, fmt.Sprint(number(f["code"]))
	case x.Status == http.StatusOK: // there will be a reply some time: nobody waits for it here
		d := parse(t, x.ResponseBody)
		want.Status, want.Kind, want.Code, want.RequestID = 0, errdefs.NotAvailable, text(d["status"]), text(d["id"])
		want.Message = "the reply is made in the background, and isn't waited for"
	default:
		want.RequestID = text(parse(t, x.ResponseBody)["request_id"])
	}
	s := cassettes.Serve(t, []cassettes.Exchange{x})
	_, _, err := ask(t.Context(), open(t, x, s), x.Streamed(), message.NewHistory(hi))
	var got *model.Error
	if !errors.As(err, &got) {
		t.Fatalf("got %v, want a *model.Error", err)
	}
	if diff := cmp.Diff(want, got, cmp.Comparer(func(a, b *errdefs.Class) bool { return a == b })); diff != "" {
		t.Errorf("the error (-recorded +decoded):\n%s", diff)
	}
	if !errors.Is(err, want.Kind) {
		t.Errorf("%v is not of class %v", err, want.Kind)
	}
}
