package web

import (
	"net/http"
	"time"
)

// Patience is how long a reader may take none of what is sent before it is cut off. It can come back.
const Patience = 15 * time.Second

// Patient has a handler write to clients that read, however slowly: who takes nothing for as long as [Patience] holds no connection longer. The server that it is in needs a WriteTimeout of as long, for what it answers by itself.
func Patient(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		p := &patient{w, http.NewResponseController(w)}
		h.ServeHTTP(p, r)
		p.wait() // the server has still to say that this is all
	})
}

// patient gives each piece of an answer its own time, so that an answer takes as long as it needs.
type patient struct {
	http.ResponseWriter
	rc *http.ResponseController
}

// piece is how much a reader has to take in time.
const piece = 64 << 10

func (p *patient) wait() { _ = p.rc.SetWriteDeadline(time.Now().Add(Patience)) } // a recorder in a test has none

func (p *patient) WriteHeader(status int) {
	p.wait()
	p.ResponseWriter.WriteHeader(status)
}

func (p *patient) Write(b []byte) (n int, err error) {
	for {
		p.wait()
		m, err := p.ResponseWriter.Write(b[n:min(len(b), n+piece)])
		if n += m; err != nil || n == len(b) {
			return n, err
		}
	}
}

// FlushError is for streams.
func (p *patient) FlushError() error {
	p.wait()
	return p.rc.Flush()
}

// Flush is for those who know no other.
func (p *patient) Flush() { _ = p.FlushError() }

// Unwrap is for http.ResponseController.
func (p *patient) Unwrap() http.ResponseWriter { return p.ResponseWriter }
