package remote

import (
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/pawl-dev/pawl/a2a"
	"github.com/pawl-dev/pawl/errdefs"
)

func made(id, text string) a2a.Event {
	return a2a.Event{Artifact: &a2a.ArtifactUpdate{TaskID: "t", Artifact: a2a.Artifact{ID: id, Parts: []a2a.Part{a2a.Text(text)}}}}
}

// A long list of artifacts costs as much as it is long: who is told of it can still be canceled.
func TestManyArtifactsAreFoundAtOnce(t *testing.T) {
	k := &tracker{engine: &Engine{}, task: "t"}
	began := time.Now()
	for i := range 100_000 {
		if err := k.take(t.Context(), made(strconv.Itoa(1_000_000+i), "x")); err != nil {
			t.Fatal(err)
		}
	}
	if took := time.Since(began); len(k.artifacts) != 100_000 || took > 10*time.Second {
		t.Errorf("%d artifacts after %v", len(k.artifacts), took)
	}
}

// What an agent makes is bounded by what there is of it: an answer that is told anew again and again counts once.
func TestWhatIsToldAnewCountsOnce(t *testing.T) {
	k := &tracker{engine: &Engine{}, task: "t"}
	whole := strings.Repeat("x", 1<<20)
	for range 2 * maxTask >> 20 {
		if err := k.take(t.Context(), made("1", whole)); err != nil {
			t.Fatal(err)
		}
	}
	var err error
	for i := 0; err == nil && i <= maxTask>>20; i++ {
		e := made("1", whole)
		e.Artifact.Append = true
		err = k.take(t.Context(), e)
	}
	if !errdefs.Internal.Is(err) {
		t.Errorf("there is no limit: %v", err)
	}
}
