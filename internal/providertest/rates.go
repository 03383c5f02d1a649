package providertest

import (
	"net/http"
	"testing"

	"github.com/pawl-dev/pawl/model"
)

// rates: what headers say of the limits of the key is in every reply; httpapi has it in refusals.
func (p Provider) rates(t *testing.T) {
	body, sse := p.fixture(t, "text.json"), p.fixture(t, "text.sse")
	s := serve(t, func(w http.ResponseWriter, _ *http.Request, c call) {
		w.Header().Set("X-RateLimit-Limit-Requests", "60")
		w.Header().Set("X-RateLimit-Remaining-Tokens", "7")
		if p.Read(t, c.path, c.header, c.body).Stream {
			stream(w, [][]byte{sse})
			return
		}
		whole(w, http.StatusOK, body)
	})
	want := model.Rate{Requests: model.Quota{Limit: 60}, Tokens: model.Quota{Remaining: 7}}
	if r, err := p.model(s).Complete(t.Context(), hi()); err != nil || r.Rate != want {
		t.Errorf("a whole reply: %+v, %v", r, err)
	}
	if got, err := listen(t.Context(), t, p.model(s), hi()); err != nil || got.final.Rate != want {
		t.Errorf("a stream: %+v, %v", got, err)
	}
}
