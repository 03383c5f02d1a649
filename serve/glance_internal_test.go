package serve

import (
	"net/http/httptest"
	"testing"

	"github.com/pawl-dev/pawl/agent"
	"github.com/pawl-dev/pawl/engine/loop"
	"github.com/pawl-dev/pawl/journal"
	"github.com/pawl-dev/pawl/message"
	"github.com/pawl-dev/pawl/model/scripted"
)

func TestNothingIsKeptOfASessionThatIsDeleted(t *testing.T) {
	e, err := loop.New(loop.Config{Model: scripted.New(scripted.Text("done"))})
	if err != nil {
		t.Fatal(err)
	}
	store := journal.Memory()
	if err := store.Append(t.Context(), "a", 0, journal.Entry{Data: journal.SessionCreated{}}, journal.Entry{Run: "r", Data: journal.Said{Message: message.User("hello")}}); err != nil {
		t.Fatal(err)
	}
	s, err := New(Of(agent.Agent{ID: "a"}, e, store), Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = s.Close() }()
	for _, c := range []struct {
		method, path string
		status, kept int
	}{{"GET", "/v1/sessions", 200, 1}, {"DELETE", "/v1/sessions/a", 204, 0}} {
		w, r := httptest.NewRecorder(), httptest.NewRequestWithContext(t.Context(), c.method, "http://127.0.0.1"+c.path, nil)
		r.RemoteAddr = "127.0.0.1:1"
		s.ServeHTTP(w, r)
		if w.Code != c.status || len(s.glances.of) != c.kept {
			t.Errorf("%s %s: %d %s; %d are kept, want %d", c.method, c.path, w.Code, w.Body, len(s.glances.of), c.kept)
		}
	}
}
