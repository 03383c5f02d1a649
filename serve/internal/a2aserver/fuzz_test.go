package a2aserver

import (
	"errors"
	"slices"
	"testing"

	"github.com/pawl-dev/pawl/a2a"
	"github.com/pawl-dev/pawl/message"
)

// A page's token is one that a list gave, and leads to the same place again.
func FuzzPage(f *testing.F) {
	for _, s := range []string{"", "e30", page{ID: "t"}.token(), "eyJhdCI6IngifQ", "!", "eyJpZCI6InQiLCJhdCI6bnVsbH0"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, token string) {
		p, err := pageOf(token)
		if err != nil || token == "" {
			if p.ID != "" && err == nil {
				t.Fatal(p)
			}
			return
		}
		if again, err := pageOf(p.token()); err != nil || again.ID != p.ID || !again.At.Equal(p.At) || p.ID == "" {
			t.Fatalf("%q: %+v, then %+v, %v", token, p, again, err)
		}
	})
}

// A task is found by its id: one of the places that it may lead to is where it is.
func FuzzTask(f *testing.F) {
	for _, s := range [][2]string{{"s", "s"}, {"s", "s.1"}, {"a.b", "a"}, {"s/t", "s/t.%2E/x"}, {"", "."}, {"s", "\xff/ä"}, {"s", "s."}} {
		f.Add(s[0], s[1])
	}
	f.Fuzz(func(t *testing.T, session, run string) {
		if session == "" || run == "" {
			return
		}
		id := taskID(session, run)
		if all := places(id); !slices.Contains(all, place{session, run}) {
			t.Fatalf("run %q of session %q is the task %q, which is looked for in %q", run, session, id, all)
		}
	})
}

// What a client says is a user's message that can be kept and given to a model, or an error with a code of the protocol.
func FuzzMessage(f *testing.F) {
	for _, s := range []string{
		`{"messageId":"m","role":"ROLE_USER","parts":[{"text":"a"},{"data":{"x": 1}},{"raw":"AAA=","filename":"a.png"},{"url":"https://h/x","mediaType":"image/png; q=1"}]}`,
		`{"messageId":"m","role":"ROLE_USER","parts":[{"url":"file:///etc/passwd"}]}`, `{"messageId":"m","role":"ROLE_USER","parts":[{"raw":""}]}`, `{"messageId":"m","role":"ROLE_AGENT","parts":[{"text":"a"}]}`, `{"messageId":"m","role":"ROLE_USER","parts":[{"text":" "}]}`,
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		var in a2a.Message
		if a2a.V1.Unmarshal(b, &in) != nil {
			return
		}
		m, err := (&Server{in: modes{"*/*"}}).message(in)
		if err != nil {
			var e *a2a.Error
			if !errors.As(err, &e) || e.Code == 0 {
				t.Fatalf("%q: %v has no code", b, err)
			}
			return
		}
		if m.Role() != message.RoleUser || m.Blank() || m.CheckFiles() != nil {
			t.Fatalf("%q: %v", b, m)
		}
		if _, id := partsOf(m); id != in.ID && slices.ContainsFunc(in.Parts, func(p a2a.Part) bool { return p.Kind == a2a.PartText || p.Kind == a2a.PartData }) {
			t.Fatalf("%q: the client's id is %q, and is told as %q", b, in.ID, id)
		}
	})
}
