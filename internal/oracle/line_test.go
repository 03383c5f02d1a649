package oracle

import (
	"net/http"

	"github.com/pawl-dev/pawl/internal/cassettes"
)

// line leads every call to a server on this machine, so that clients can be asked to call their real addresses.
type line struct {
	*cassettes.Server
	url string // that the last call was for
}

// call is a request as it came, and where it was sent to.
type call struct {
	cassettes.Request
	url string
}

func (l *line) client() *http.Client { return &http.Client{Transport: l} }

// RoundTrip notes where a call is for.
func (l *line) RoundTrip(r *http.Request) (*http.Response, error) {
	l.url = r.URL.String()
	return l.Anywhere().Transport.RoundTrip(r)
}

func (l *line) call() call { return call{l.Requests()[0], l.url} }
