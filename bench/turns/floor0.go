package main

import (
	"bytes"
	"context"
	"encoding/base64"
	"fmt"
	"io"
	"net/http"

	"github.com/pawl-dev/pawl/bench/internal/load"
)

// f0 is no agent. It sends the bytes that f3 would send, made before, and throws the replies away: what is left is the transport.
type f0 struct {
	t      *load.Task
	bodies [][]byte // by turn
}

func newF0(t *load.Task) (load.System, error) {
	f := &f0{t: t}
	s := &f3session{t: t, history: openF3(t, "Please do it: "+t.Workload.Asks.String())}
	for n := range t.Workload.Asks.Turns {
		f.bodies = append(f.bodies, bytes.Clone(s.body()))
		var r f3reply
		r.text = append(r.text, "Let me look at that, it takes one call."...)
		for i := range t.Workload.Asks.Par {
			r.calls = append(r.calls, f3call{id: fmt.Appendf(nil, "toolu_%06d_%d", n, i), name: []byte(load.Tool), input: fmt.Appendf(nil, `{"value":"item %06d"}`, n)})
		}
		s.take(&r)
	}
	return f, nil
}

func (f *f0) Open(int) load.Session { return f }
func (f *f0) Close() error          { return nil }

// Ask implements [load.Session].
func (f *f0) Ask(ctx context.Context, _ string, _ func(string)) (load.Answer, error) {
	for i, body := range f.bodies {
		resp, err := post(ctx, f.t.Upstream, body)
		if err != nil {
			return load.Answer{}, err
		}
		if _, err := io.Copy(io.Discard, resp.Body); err != nil {
			return load.Answer{}, err
		}
		if err := resp.Body.Close(); err != nil {
			return load.Answer{}, err
		}
		if f.t.OnTool != nil && i < len(f.bodies)-1 {
			f.t.OnTool()
		}
	}
	return load.Answer{Unread: true}, nil
}

// post is how all floors speak to Anthropic's wire.
func post(ctx context.Context, url string, body []byte) (*http.Response, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, url+"/v1/messages", bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	return send(req)
}

func send(req *http.Request) (*http.Response, error) {
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("X-Api-Key", "none")
	req.Header.Set("Anthropic-Version", "2023-06-01")
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return nil, err
	}
	if resp.StatusCode != http.StatusOK {
		defer resp.Body.Close() //nolint:errcheck // it is given up
		said, _ := io.ReadAll(io.LimitReader(resp.Body, 1000))
		return nil, fmt.Errorf("%s: %s", resp.Status, said)
	}
	return resp, nil
}

func base64Of(image string) string { return base64.StdEncoding.EncodeToString([]byte(image)) }
