package cassettes_test

import (
	"fmt"
	"net/http"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pawl-dev/pawl/internal/cassettes"
	"github.com/pawl-dev/pawl/message"
	"github.com/pawl-dev/pawl/model"
	"github.com/pawl-dev/pawl/model/cassette"
)

// What real providers said, recorded again by the public package at both floors, is understood as it was the first time.
func TestWhatProvidersSaidSurvivesThePublicRecorder(t *testing.T) {
	for _, c := range cassettes.All(t) {
		for i, x := range c.Exchanges {
			if x.API() == "" {
				continue
			}
			t.Run(fmt.Sprintf("%s/%d", c.Name, i+1), func(t *testing.T) {
				t.Parallel()
				h := message.NewHistory(hi)
				hear := func(m model.Model) string {
					r, said, err := ask(t.Context(), m, x.Streamed(), h)
					if err != nil {
						return fmt.Sprintf("%+v %v", said, err)
					}
					text := string(r.Message.AppendJSON(nil))
					r.Message = message.Message{}
					return fmt.Sprintf("%+v %s %+v", said, text, *r)
				}
				dir := t.TempDir()
				wire, talk := filepath.Join(dir, "wire.cassette"), filepath.Join(dir, "model.cassette")
				over, err := cassette.RecordHTTP(cassettes.Serve(t, []cassettes.Exchange{x}).Anywhere().Transport, wire)
				if err != nil {
					t.Fatal(err)
				}
				r, err := cassette.Record(openOver(t, x, &http.Client{Transport: over}), talk)
				if err != nil {
					t.Fatal(err)
				}
				want := hear(r)
				for _, close := range []func() error{r.Close, over.Close} {
					if err := close(); err != nil {
						t.Fatal(err)
					}
				}

				played, err := cassette.OpenHTTP(wire)
				if err != nil {
					t.Fatal(err)
				}
				said, err := cassette.Open(talk)
				if err != nil {
					t.Fatal(err)
				}
				for what, m := range map[string]model.Model{"the wire": openOver(t, x, &http.Client{Transport: played}), "the model": said} {
					if d := cmp.Diff(want, hear(m)); d != "" {
						t.Errorf("%s (-recorded +played):\n%s", what, d)
					}
				}
				if err := played.Done(); err != nil {
					t.Error(err)
				}
				if err := said.Done(); err != nil {
					t.Error(err)
				}
			})
		}
	}
}
