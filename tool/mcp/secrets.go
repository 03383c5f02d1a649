package mcp

import (
	"net/url"
	"slices"
	"strings"
	"sync"

	"github.com/pawl-dev/pawl/internal/secret"
)

// secrets are what a server was given that its errors and warnings must not repeat: servers quote what they were sent, and processes print what they began with. What a tool gives as its
// result stays as it is.
type secrets struct {
	mu  sync.Mutex
	all []string // the longest first: one may be a part of another
}

func (s *secrets) add(values ...string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, v := range values {
		if len(v) < secret.Least || slices.Contains(s.all, v) {
			continue
		}
		s.all = append(s.all, v)
		if escaped := url.QueryEscape(v); escaped != v { // as forms and addresses have it
			s.all = append(s.all, escaped)
		}
	}
	slices.SortStableFunc(s.all, func(a, b string) int { return len(b) - len(a) })
}

// of adds those of a configuration with its variables in place: all headers, the query and the user of the address, the client's secret and key, and of the environment what its name says is one.
func (s *secrets) of(c Server) {
	for _, v := range c.Headers {
		s.add(v)
		if _, bare, ok := strings.Cut(v, " "); ok {
			s.add(bare)
		}
	}
	for name, v := range c.Env {
		if secret.Named(name) || secret.Header(name) {
			s.add(v)
		}
	}
	s.add(c.OAuth.ClientSecret, c.OAuth.PrivateKey)
	_, query, _ := strings.Cut(c.URL, "?")
	s.add(query)
	if u, err := url.Parse(c.URL); err == nil {
		for name, values := range u.Query() {
			if secret.Named(name) || secret.Header(name) {
				s.add(values...)
			}
		}
		if password, ok := u.User.Password(); ok {
			s.add(password)
		}
	}
}

// out takes them out of a text.
func (s *secrets) out(text string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, v := range s.all {
		text = strings.ReplaceAll(text, v, secret.Redacted)
	}
	return text
}

// quieted is an error without secrets in its text.
type quieted struct {
	error
	text string
}

func (q quieted) Error() string { return q.text }
func (q quieted) Unwrap() error { return q.error }

func (s *secrets) quiet(err error) error {
	if text := s.out(err.Error()); text != err.Error() {
		return quieted{err, text}
	}
	return err
}
