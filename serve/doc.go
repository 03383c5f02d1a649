// Package serve opens an agent's doors over HTTP.
//
//	s, err := serve.New(rt, serve.Options{})
//	…
//	l, err := net.Listen("tcp", "127.0.0.1:7295")
//	…
//	err = s.Serve(ctx, l) // until ctx ends
//
// A run that was begun here goes on when its client is gone: what it does is on record, and whoever comes back reads it from where he left. See docs/serve.md.
package serve
