package oracle

import (
	"errors"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pawl-dev/pawl/errdefs"
	"github.com/pawl-dev/pawl/internal/cassettes"
	"github.com/pawl-dev/pawl/internal/providertest"
	"github.com/pawl-dev/pawl/model"
)

// answered gives a server that answers one call with the fixture of a short text.
func answered(t *testing.T, v vendor, stream bool) *cassettes.Server {
	t.Helper()
	name, kind := "text.json", "application/json"
	if stream {
		name, kind = "text.sse", "text/event-stream"
	}
	body, err := os.ReadFile(filepath.Join("../../model", v.dir, name)) //nolint:gosec // a fixture of ours
	if err != nil {
		t.Fatal(err)
	}
	return serve(t, cassettes.Exchange{Status: http.StatusOK, ContentType: kind, ResponseBody: body})
}

// asked gives the call that our client makes of a request; false for one that it refuses, because the wire has no place for what it says.
func asked(t *testing.T, v vendor, req model.Request, stream bool) (cassettes.Request, bool) {
	t.Helper()
	s := answered(t, v, stream)
	_, err := complete(t.Context(), v.ours(v.model, model.WithBaseURL(s.URL+v.base), model.WithKey("test-key")), req, stream)
	if err != nil {
		if !errors.Is(err, errdefs.Validation) || len(s.Requests()) > 0 {
			t.Fatal(err)
		}
		return cassettes.Request{}, false
	}
	return s.Requests()[0], true
}

// Nothing of a request of ours is lost on the vendor's types, nor changed: they know each member, and mean by it what we do.
func TestTheVendorsTypesLoseNothingOfARequest(t *testing.T) {
	meant := newAllowances(requestsDiffer)
	all := 0
	for _, v := range vendors {
		for _, c := range cases(t, v) {
			for _, stream := range []bool{false, true} {
				name := c.Name
				if stream {
					name += " as a stream"
				}
				all++
				t.Run(v.name+"/"+name, func(t *testing.T) {
					t.Cleanup(meant.ran)
					own, sent := asked(t, v, c.Request, stream)
					if !sent {
						t.Skip("the wire has no place for it")
					}
					s := answered(t, v, stream)
					v.again(t, s.URL, own.Body, stream)
					theirs := s.Requests()[0]
					for _, ch := range changes("", document(t, theirs.Body), document(t, own.Body)) {
						if !meant.has(v.name, c.Name, ch.pointer) {
							t.Error(ch)
						}
					}
					sameCall(t, theirs, own)
				})
			}
		}
	}
	meant.unused(t, all, true)
}

// sameCall compares what stands around the body: the address, the key, the version.
func sameCall(t *testing.T, theirs, own cassettes.Request) {
	t.Helper()
	if theirs.Path != own.Path {
		t.Errorf("the vendor's client asks at %s, ours at %s", theirs.Path, own.Path)
	}
	for _, name := range []string{"Authorization", "X-Api-Key", "X-Goog-Api-Key", "Anthropic-Version", "Content-Type"} {
		if a, b := theirs.Header.Get(name), own.Header.Get(name); !strings.EqualFold(a, b) {
			t.Errorf("header %s: the vendor's %q, ours %q", name, a, b)
		}
	}
}

// cases are the requests of the providers' matrix, and those that send back what a model said.
func cases(t *testing.T, v vendor) []providertest.Case {
	t.Helper()
	all := providertest.Cases()
	return all
}

// requestsDiffer are the members that the vendor's types or client make something else of.
var requestsDiffer = []allowance{}
