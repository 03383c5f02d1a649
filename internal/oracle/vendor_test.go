package oracle

import (
	"net/http"
	"testing"

	"github.com/pawl-dev/pawl/model"
)

// vendor is one wire format and who speaks it beside us.
type vendor struct {
	name string // as in message.Origin
	dir  string // of the provider's fixtures
	// ours makes our client of a server.
	ours func(name string, opts ...model.Option) model.Model
	// ask gives what the vendor's client makes of an answer to c, whole or as a stream.
	ask func(t *testing.T, c *http.Client, stream bool) *reply
	// again reads a body of ours by the vendor's types and sends it with the vendor's client.
	again func(t *testing.T, c *http.Client, body []byte, stream bool)
	plain func(body object) // writes what has two spellings in one
	// byHand has requests that are written in the vendor's types, by the name of a case that says the same.
	byHand map[string]func(t *testing.T, c *http.Client)
	model  string // the one that is asked, without consequence where the answer is a fixture
}

var vendors = []vendor{anthropicSDK, chatSDK, responsesSDK, geminiSDK}

// cutOff is what is to be made of a reply of an SDK that has no end. None of them calls that an error.
var cutOff = &reply{Failed: &failure{Message: "it doesn't say why it ended"}}

// written makes requests of a vendor's types callable by their names.
func written[R any](send func(t *testing.T, c *http.Client, req R, stream bool), requests map[string]R) map[string]func(*testing.T, *http.Client) {
	byHand := map[string]func(*testing.T, *http.Client){}
	for name, req := range requests {
		byHand[name] = func(t *testing.T, c *http.Client) { send(t, c, req, false) }
	}
	return byHand
}
