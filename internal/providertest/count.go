package providertest

import (
	"bytes"
	"errors"
	"net/http"
	"testing"

	"github.com/pawl-dev/pawl/errdefs"
	"github.com/pawl-dev/pawl/message"
	"github.com/pawl-dev/pawl/model"
)

// count has a request counted: 42 tokens. What is counted are the bytes that a call sends.
func (p Provider) count(t *testing.T) {
	if _, ok := model.As[model.Counter](p.New()); ok == p.lacks("count") {
		t.Fatalf("a model that counts: %v, and lacks it: %v", ok, !ok)
	}
	p.skip(t, "count")
	counter := func(status int, name string) (model.Counter, *server) {
		body := p.fixture(t, name)
		s := serve(t, func(w http.ResponseWriter, _ *http.Request, _ call) { whole(w, status, body) })
		c, _ := model.As[model.Counter](p.model(s))
		return c, s
	}
	c, s := counter(http.StatusOK, "count.json")
	h := toolRound()
	req := model.Request{System: "Be brief: \"é\".", Tools: tools, Messages: h, Settings: model.Settings{MaxTokens: 77}}
	n, err := c.CountTokens(t.Context(), req)
	if err != nil {
		t.Fatal(err)
	}
	equal(t, "tokens", 42, n)
	m, asked := p.answering(t)
	if _, err := m.Complete(t.Context(), req); err != nil {
		t.Fatal(err)
	}
	counted, called := s.seen()[0], asked.seen()[0]
	if counted.path == called.path {
		t.Errorf("it was asked, not counted: %s", counted.path)
	}
	from := bytes.Index(called.body, []byte("What is in go.mod?"))
	to := bytes.Index(called.body, []byte("Go on.")) + len("Go on.")
	for what, part := range map[string][]byte{"messages": called.body[from:to], "system prompt": []byte(`Be brief: \"é\".`), "tools": []byte(`Read a \"file\".`)} {
		if !bytes.Contains(counted.body, part) {
			t.Errorf("the %s are not counted as they are sent: %s", what, counted.body)
		}
	}
	if _, err := c.CountTokens(t.Context(), model.Request{Messages: message.NewHistory()}); !errors.Is(err, errdefs.Validation) || len(s.seen()) != 1 {
		t.Errorf("nothing to count: %v", err)
	}
	c, _ = counter(http.StatusTooManyRequests, "error_429.json")
	if _, err := c.CountTokens(t.Context(), req); !errors.Is(err, errdefs.RateLimit) {
		t.Errorf("refused: %v", err)
	}
}
