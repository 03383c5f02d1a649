package model

import (
	"context"
	"net/http"
)

// Endpoint says where a provider's API is and how to reach it. Providers take it as options.
type Endpoint struct {
	Key     string       // API key; "": from the provider's environment variable
	BaseURL string       // "" is the provider's own; a trailing slash doesn't matter
	HTTP    *http.Client // nil: one made for model calls, with a pool of connections and no overall timeout
	Header  http.Header  // added to each call; wins over ours
	// Vendor serves the protocol in its owner's place: "bedrock". It stands in errors and before the model's name in Capabilities.Name, and the
	// owner's key is not looked for in the environment. "": the owner. Package model/cloud sets it.
	Vendor string
}

// Option sets a part of an Endpoint.
type Option func(*Endpoint)

// WithKey sets the API key.
func WithKey(key string) Option { return func(e *Endpoint) { e.Key = key } }

// WithBaseURL sends calls to another server that speaks the same protocol. It gets the same key as the provider itself would; a
// server that needs none, such as one on this machine, may go without.
func WithBaseURL(url string) Option { return func(e *Endpoint) { e.BaseURL = url } }

// WithHTTPClient sets the HTTP client: proxies, TLS, cloud authentication. Unless it has a CheckRedirect, redirects are not followed: they
// would take the key to another server.
func WithHTTPClient(c *http.Client) Option { return func(e *Endpoint) { e.HTTP = c } }

// WithHeader adds a header to each call.
func WithHeader(name, value string) Option {
	return func(e *Endpoint) {
		if e.Header == nil {
			e.Header = http.Header{}
		}
		e.Header.Add(name, value)
	}
}

type attemptKey struct{}

// WithAttempt tells the models below that this call is retry n of the same request (0: the first try). Only whoever retries needs it.
func WithAttempt(ctx context.Context, n int) context.Context {
	return context.WithValue(ctx, attemptKey{}, n)
}

// Attempt gives the number of the retry; 0 for a first try.
func Attempt(ctx context.Context) int { n, _ := ctx.Value(attemptKey{}).(int); return n }
