package oracle

import (
	"errors"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/pawl-dev/pawl/errdefs"
	"github.com/pawl-dev/pawl/internal/cassettes"
	"github.com/pawl-dev/pawl/internal/providertest"
	"github.com/pawl-dev/pawl/model"
)

// answerText is the fixture of a short text.
func answerText(t *testing.T, v vendor, stream bool) cassettes.Exchange {
	t.Helper()
	name, kind := "text.json", "application/json"
	if stream {
		name, kind = "text.sse", "text/event-stream"
	}
	body, err := os.ReadFile(filepath.Join("../../model", v.dir, name))
	if err != nil {
		t.Fatal(err)
	}
	return cassettes.Exchange{Status: http.StatusOK, ContentType: kind, ResponseBody: body}
}

// answered gives a server that answers one call with that.
func answered(t *testing.T, v vendor, stream bool) *line {
	t.Helper()
	return serve(t, answerText(t, v, stream))
}

// asked gives the call that our client makes of a request; false for one that it refuses, because the wire has no place for what it says.
func asked(t *testing.T, v vendor, req model.Request, stream bool) (call, bool) {
	t.Helper()
	s := answered(t, v, stream)
	_, err := complete(t.Context(), v.ours(v.model, model.WithHTTPClient(s.client()), model.WithKey("test-key")), req, stream)
	if err != nil {
		if !errors.Is(err, errdefs.Validation) || len(s.Requests()) > 0 {
			t.Fatal(err)
		}
		return call{}, false
	}
	return s.call(), true
}

// Nothing of a request of ours is lost on the vendor's types, nor changed: they know each member, and mean by it what we do.
func TestTheVendorsTypesLoseNothingOfARequest(t *testing.T) {
	meant := newAllowances(requestsDiffer)
	all := 0
	for _, v := range vendors {
		for _, c := range providertest.Cases() {
			for _, stream := range []bool{false, true} {
				name := c.Name
				if stream {
					name += " as a stream"
				}
				all++
				t.Run(v.name+"/"+name, func(t *testing.T) {
					t.Cleanup(meant.ran)
					own, sent := asked(t, v, c.Request, stream)
					if sent == slices.Contains(v.lacks, c.Name) {
						t.Fatalf("it was sent: %v", sent)
					}
					if !sent {
						return
					}
					s := answered(t, v, stream)
					if err := v.again(t, s.client(), own.Body, stream); err != nil {
						t.Fatal(err)
					}
					theirs := s.call()
					sameCall(t, v, theirs, own, func(pointer string) bool { return meant.has(v.name, c.Name, pointer) })
				})
			}
		}
	}
	meant.check(t, all, true)
}

// sameCall compares two calls: what is asked, at which address, with which key and version.
func sameCall(t *testing.T, v vendor, theirs, own call, meant func(pointer string) bool) {
	t.Helper()
	a, b := document(t, theirs.Body), document(t, own.Body)
	v.plain(a)
	v.plain(b)
	for _, c := range changes("", a, b) {
		if !meant(c.pointer) {
			t.Error(c)
		}
	}
	if theirs.url != own.url {
		t.Errorf("the vendor's client asks at %s, ours at %s", theirs.url, own.url)
	}
	for _, name := range []string{"Authorization", "X-Api-Key", "X-Goog-Api-Key", "Anthropic-Version", "Content-Type"} {
		if a, b := theirs.Header.Get(name), own.Header.Get(name); !strings.EqualFold(a, b) {
			t.Errorf("header %s: the vendor's %q, ours %q", name, a, b)
		}
	}
}
