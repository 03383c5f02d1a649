package cloud

import (
	"bytes"
	"encoding/json"
	"math"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pawl-dev/pawl/internal/httpapi"
)

// edited is what a change makes of a body, and what a decoder and an encoder would.
func edited(t *testing.T, body httpapi.Body, e *edit) (got, want map[string]any) {
	t.Helper()
	out, err := e.apply(body)
	if err != nil {
		t.Fatal(err)
	}
	text := bytes.Join(out, nil)
	if err := json.Unmarshal(text, &got); err != nil {
		t.Fatalf("%v: %s", err, text)
	}
	if err := json.Unmarshal(bytes.Join(body, nil), &want); err != nil {
		t.Fatal(err)
	}
	for _, name := range e.drop {
		delete(want, name)
	}
	want["added"] = 1.0
	return got, want
}

func TestMembersAreLeftOutAndAddedWhereverTheyStand(t *testing.T) {
	for _, text := range []string{
		`{"model":"m","stream":true}`,
		`{"model":"m"}`,
		`{"stream":true,"model":"m"}`,
		` { "model" : "m" , "a" : [ 1 , {"model":"inner","stream":false} ] , "stream" : true } `,
		`{"a":"model","model":"m","b":{"stream":1},"stream":true,"c":null}`,
		`{"a":1,"stream":true,"model":"m","b":2}`,
		`{"mod\u0065l":"m","stream":true,"a":"}],{\""}`,
		`{"model":"m","messages":[],"stream":true}`,
		`{"model":"m","stream":true,"stream":true}`,
	} {
		e := edit{add: `"added":1`, drop: []string{"model", "stream"}}
		got, want := edited(t, httpapi.Body{[]byte(text)}, &e)
		if diff := cmp.Diff(want, got); diff != "" || e.model != "m" || e.stream != strings.Contains(text, "stream\" : true") && e.stream != strings.Contains(text, "stream\":true") {
			t.Errorf("%s: %s (%q, %t)", text, diff, e.model, e.stream)
		}
		for i := 1; i < len(text); i++ { // pieces that are not ours
			e := edit{add: `"added":1`, drop: []string{"model", "stream"}}
			got, want := edited(t, httpapi.Body{[]byte(text[:i]), []byte(text[i:])}, &e)
			if diff := cmp.Diff(want, got); diff != "" || e.model != "m" {
				t.Errorf("%s in two at %d: %s", text, i, diff)
			}
		}
	}
}

func TestThePiecesOfABodyAreSentFromWhereTheyLie(t *testing.T) {
	head, one, two := []byte(`{"model":"m","system":"model, stream","tools":[{"stream":1}],"messages":[`), []byte(`{"a":"\"stream\":true"}`), []byte(`,{"b":2}`)
	for tail, stream := range map[string]bool{`]}`: false, `],"stream":true}`: true, `],"x":1,"stream":true,"y":2}`: true, `] , "stream" : true }`: true} {
		body := httpapi.Body{head, one, two, []byte(tail)}
		e := edit{add: `"added":1`, drop: []string{"model", "stream"}}
		got, want := edited(t, body, &e)
		if diff := cmp.Diff(want, got); diff != "" || e.model != "m" || e.stream != stream {
			t.Errorf("%s: %s", tail, diff)
		}
		out, err := (&edit{add: `"added":1`, drop: []string{"model", "stream"}}).apply(body)
		if err != nil {
			t.Fatal(err)
		}
		lies := func(b []byte) (found bool) {
			for _, piece := range out {
				found = found || len(piece) > 0 && &piece[len(piece)-1] == &b[len(b)-1]
			}
			return found
		}
		if tail[1] != ' ' && (!lies(head) || !lies(one) || !lies(two)) {
			t.Errorf("%s: a piece was copied", tail)
		}
	}
	// What a step costs doesn't grow with what was said.
	costs := func(n int) float64 {
		body := httpapi.Body{head}
		for range n {
			body = append(body, one)
		}
		body = append(body, []byte(`],"stream":true}`))
		least := math.Inf(1)
		for range 100 { // with -race pools lose things by chance
			least = min(least, testing.AllocsPerRun(1, func() { _, _ = (&edit{add: `"added":1`, drop: []string{"model", "stream"}}).apply(body) }))
		}
		return least
	}
	if few, many := costs(10), costs(1000); many > few {
		t.Errorf("%v allocations for 10 messages, %v for 1000", few, many)
	}
}

func TestABodyThatIsNoneIsAnError(t *testing.T) {
	for _, text := range []string{``, `[]`, `{"model":"m"`, `{"model":"m"}}`, `{"model":"m",}`} {
		if out, err := (&edit{add: `"added":1`}).apply(httpapi.Body{[]byte(text)}); err == nil {
			t.Errorf("%s: %s", text, bytes.Join(out, nil))
		}
	}
	if _, err := (&edit{}).apply(nil); err == nil {
		t.Error("no body is a body")
	}
}

func FuzzEdit(f *testing.F) {
	f.Add(`{"model":"m","messages":[{"a":1}],"stream":true}`, 28)
	f.Add(`{"a":1,"model":"m" , "stream" : false}`, 3)
	f.Fuzz(func(t *testing.T, text string, cut int) {
		var members map[string]json.RawMessage
		valid := json.Unmarshal([]byte(text), &members) == nil && members != nil
		cut = max(0, min(len(text), cut))
		e := edit{add: `"added":1`, drop: []string{"model", "stream"}}
		out, err := e.apply(httpapi.Body{[]byte(text[:cut]), []byte(text[cut:])})
		if err != nil || !valid {
			return // what is no object, or says nothing of a model
		}
		var got map[string]json.RawMessage
		if err := json.Unmarshal(bytes.Join(out, nil), &got); err != nil {
			t.Fatalf("%q became %q: %v", text, bytes.Join(out, nil), err)
		}
		if _, ok := got["model"]; ok {
			t.Fatalf("%q became %q", text, bytes.Join(out, nil))
		}
	})
}
