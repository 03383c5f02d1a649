package providertest

import (
	"fmt"
	"slices"
	"testing"

	"github.com/pawl-dev/pawl/model"
)

// again wants a reply to be the same whatever was read before it, and to stay so whatever is read behind it: one may use the room of another.
func (p Provider) again(t *testing.T) {
	said := func(r *model.Response) string {
		return fmt.Sprintf("%q %q %q %q %+v %+v", r.ID, r.Model, r.Stop, r.Reason, r.Usage, slices.Collect(r.Message.Parts()))
	}
	all, first := map[string]*model.Response{}, map[string]string{}
	for range 2 {
		for _, want := range replies {
			if p.lacks(want.name) {
				continue
			}
			got := p.play(t, [][]byte{p.fixture(t, want.name+".sse")}).final
			if all[want.name] == nil {
				all[want.name], first[want.name] = got, said(got)
			} else if said(got) != first[want.name] {
				t.Errorf("%s after others: %s, want %s", want.name, said(got), first[want.name])
			}
		}
	}
	for name, r := range all {
		if said(r) != first[name] {
			t.Errorf("%s became %s, was %s", name, said(r), first[name])
		}
	}
}
