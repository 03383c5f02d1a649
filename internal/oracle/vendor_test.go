package oracle

import (
	"net/http"
	"testing"

	"github.com/pawl-dev/pawl/model"
)

// vendor is one wire format and who speaks it beside us.
type vendor struct {
	name  string   // as in message.Origin
	dir   string   // of the provider's fixtures
	lacks []string // cases of the matrix that the wire has no place for: ours refuses them
	// ours makes our client of a server.
	ours func(name string, opts ...model.Option) model.Model
	// ask gives what the vendor's client makes of an answer to c, whole or as a stream.
	ask func(t *testing.T, c *http.Client, stream bool) *reply
	// again reads a body of ours by the vendor's types and sends it with the vendor's client.
	again func(t *testing.T, c *http.Client, body []byte, stream bool) error
	plain func(body object)       // writes what has two spellings in one
	sent  func(body object) []any // what a body has of the first reply of the model
	// byHand has requests that are written in the vendor's types, by the name of a case that says the same.
	byHand map[string]func(t *testing.T, c *http.Client) error
	model  string // the one that is asked, without consequence where the answer is a fixture
}

var vendors = []vendor{anthropicSDK, chatSDK, responsesSDK, geminiSDK}

// cutOff is what is to be made of a reply of an SDK that has no end. None of them calls that an error.
var cutOff = &reply{Failed: &failure{Message: "it doesn't say why it ended"}}

// written makes requests of a vendor's types callable by their names.
func written[R any](send func(t *testing.T, c *http.Client, req R, stream bool) error, requests map[string]R) map[string]func(*testing.T, *http.Client) error {
	byHand := map[string]func(*testing.T, *http.Client) error{}
	for name, req := range requests {
		byHand[name] = func(t *testing.T, c *http.Client) error { return send(t, c, req, false) }
	}
	return byHand
}

// sentBy gives the first message of a role.
func sentBy(messages any, role string) []any {
	for m := range objects(messages) {
		if m["role"] == role {
			return []any{m}
		}
	}
	return nil
}
