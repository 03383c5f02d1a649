package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"time"
)

// patience is how long a prompt may take until its run is over, whatever happens meanwhile.
const patience = 2 * time.Minute

// client has a session with the servers: now this one, now that one.
type client struct {
	servers *servers
	http    *http.Client
	did     *tally // what it did besides asking
	on      int    // the agent
	session string
	prompts []*said
	last    int64  // the number of the last entry that it read
	cursor  string // the id of the last event
}

// live has the session, prompt by prompt, as long as there is more to be said. Its error is about the machinery or about what it was told; what became of all of it is checked afterwards.
func (c *client) live(ctx, more context.Context) error {
	for i := range 1 + draw(4) {
		if more.Err() != nil {
			return nil
		}
		s := &said{prompt: randomPrompt(fmt.Sprintf("%s.%d", c.session, i)), run: fmt.Sprintf("%s-%d", c.session, i)}
		c.prompts = append(c.prompts, s)
		ctx, cancel := context.WithTimeout(ctx, patience)
		err := c.have(ctx, s)
		cancel()
		if err != nil {
			return fmt.Errorf("prompt %s: %w", s.id, err)
		}
	}
	return nil
}

// randomPrompt makes a prompt of up to four steps with all that there is in it, sooner or later.
func randomPrompt(id string) prompt {
	p := prompt{id: id}
	words := []string{"note", "note", "pay", "pay", "pay", "slow", "slow", "bash", "sign", "task"}
	for range 1 + draw(4) {
		var step []string
		for range 1 + draw(3)/2*2 { // one, or three
			step = append(step, words[draw(len(words))])
		}
		p.steps = append(p.steps, step)
	}
	return p
}

// have asks a prompt and stays with it until its run is over.
func (c *client) have(ctx context.Context, s *said) error {
	if err := c.begin(ctx, s); err != nil {
		return err
	}
	for {
		over, err := c.step(ctx, s)
		if over || err != nil {
			return err
		}
		if ctx.Err() != nil {
			return errors.New("it was accepted, and its run did not end in time")
		}
		pause(ctx, 10*time.Millisecond, 200*time.Millisecond)
	}
}

// begin asks until some server has accepted the prompt. The run has a name, so that it is begun once. It is asked for in one of three ways, and none is waited for to its end: to be begun, to be waited for, or to be
// told as events.
func (c *client) begin(ctx context.Context, s *said) error {
	for {
		body := map[string]any{"prompt": s.String(), "session": c.session, "run": s.run, "wait": draw(3) == 0}
		var f *follower
		if left := draw(20); draw(3) == 0 {
			f = &follower{each: func(string, event) bool { left--; return left > 0 }}
		}
		status, answer, err := c.do(ctx, http.MethodPost, "/v1/runs", body, f)
		switch {
		case err != nil: // of the connection; it may be begun
			c.did.add("request lost")
		case status == http.StatusOK || status == http.StatusAccepted:
			s.accepted = true
			return nil
		case status == http.StatusConflict || status == http.StatusTooManyRequests || status >= 500: // left by a process that died, say
			c.did.add("asked again")
			if status == http.StatusConflict && c.known(ctx, s) {
				return nil
			}
		default:
			return fmt.Errorf("it was refused: %d: %s", status, answer)
		}
		if ctx.Err() != nil {
			return fmt.Errorf("nobody accepted it: %d: %s: %w", status, answer, err)
		}
		pause(ctx, 50*time.Millisecond, 300*time.Millisecond)
	}
}

// known reports whether the run is begun, although who began it did not get to say so.
func (c *client) known(ctx context.Context, s *said) bool {
	st, ok, _ := c.state(ctx)
	return ok && st.Run == s.run
}

// state is where a session stands.
type state struct {
	Status  string
	Run     string
	Driven  bool
	Pending []struct{ ID string }
}

func (c *client) path(what string) string { return "/v1/sessions/" + url.PathEscape(c.session) + what }

func (c *client) state(ctx context.Context) (st state, ok bool, err error) {
	status, answer, err := c.do(ctx, http.MethodGet, c.path("?messages=false"), nil, nil)
	if err != nil || status >= 500 {
		return st, false, nil // a server that died, or whose store did
	}
	if status != http.StatusOK {
		return st, false, fmt.Errorf("its session is not there: %d: %s", status, answer)
	}
	return st, true, json.Unmarshal(answer, &st)
}

// step looks how a run stands and does what a client would: read, answer, resume; now and then stop it, or get in its way.
func (c *client) step(ctx context.Context, s *said) (over bool, err error) {
	st, ok, err := c.state(ctx)
	if !ok || err != nil {
		return false, err
	}
	chance := draw(100)
	switch {
	case st.Run != s.run: // over, or so it seems: its events say so
		return c.read(ctx, s, false)
	case len(st.Pending) > 0:
		body := map[string]any{"id": st.Pending[0].ID, "approved": chance < 80, "by": "ada", "text": "as I said"}
		return false, c.may(ctx, s, "/answers", "answered", body)
	case !st.Driven:
		return false, c.may(ctx, s, "/resume", "resumed", map[string]any{})
	case chance < 2:
		s.cancelled = true
		return false, c.may(ctx, s, "/cancel", "cancelled", map[string]any{})
	case chance < 4:
		return false, c.may(ctx, s, "/interrupt", "interrupted", map[string]any{"reason": "lunch"})
	case chance < 6:
		return false, c.may(ctx, s, "/steer", "steered", map[string]any{"prompt": "Be quick."})
	case chance < 10: // somebody drives it
		return false, c.may(ctx, s, "/resume", "taken over in vain", map[string]any{})
	case chance < 12:
		return false, c.look(ctx)
	}
	return c.read(ctx, s, chance < 50)
}

// may asks for something that may be refused, because the run has moved on or its server or store is not there.
func (c *client) may(ctx context.Context, s *said, path, what string, body any) error {
	status, answer, err := c.do(ctx, http.MethodPost, c.path(path), body, nil)
	switch {
	case err != nil || status >= 500 || status == http.StatusConflict || status == http.StatusTooManyRequests || status == http.StatusNotFound:
		c.did.add("refused or lost")
	case status >= 300:
		return fmt.Errorf("%s of %s: %d: %s", path, s.run, status, answer)
	default:
		c.did.add(what)
	}
	return nil
}

// look is what a page of all sessions, and of this one, asks for.
func (c *client) look(ctx context.Context) error {
	for _, path := range []string{"/v1/sessions?limit=50", "/v1/sessions?status=waiting", c.path("/entries?limit=100"), c.path("")} {
		status, answer, err := c.do(ctx, http.MethodGet, path, nil, nil)
		if err == nil && status != http.StatusOK && status < 500 {
			return fmt.Errorf("%s: %d: %s", path, status, answer)
		}
	}
	c.did.add("looked around")
	return nil
}

// read reads events from where the client is; with cut, its connection breaks in the middle. What it has read has to be the session's entries, each of them once. over says that the run's end was among them.
func (c *client) read(ctx context.Context, s *said, cut bool) (over bool, err error) {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	left := 1 + draw(30) // events until it is cut
	silent := time.AfterFunc(4*time.Second, stop)
	defer silent.Stop()
	var bad error
	each := func(id string, e event) bool {
		silent.Reset(4 * time.Second)
		c.cursor = id
		if e.Time != "" && e.Session == c.session {
			if e.Seq != c.last+1 {
				bad = fmt.Errorf("its events have entry %d behind entry %d", e.Seq, c.last)
				return false
			}
			c.last = e.Seq
			over = over || e.Kind == "run.finished" && e.Run == s.run
		}
		left--
		return !cut || left > 0
	}
	status, answer, err := c.do(ctx, http.MethodGet, c.path("/events?run="+url.QueryEscape(s.run)), nil, &follower{c.cursor, each})
	switch {
	case bad != nil:
		return false, bad
	case over:
		c.did.add("stream read to its end")
		return true, nil
	case err != nil:
		c.did.add("stream cut off")
		return false, nil
	case cut && left <= 0:
		c.did.add("stream left")
	case status == http.StatusNotFound:
		return false, fmt.Errorf("its run is not there: %s", answer)
	case status >= 400 && status < 500:
		return false, fmt.Errorf("its events are refused: %d: %s", status, answer)
	}
	return false, nil
}

// follower reads an event stream until each has had enough.
type follower struct {
	after string // the id of the last event that it has; "" for none
	each  func(id string, e event) bool
}

// do asks one of the servers.
func (c *client) do(ctx context.Context, method, path string, body any, f *follower) (status int, answer []byte, err error) {
	steady, mayfly := c.servers.pair()
	w := steady
	if mayfly != nil && draw(5) < 2 {
		w = mayfly
	}
	most := 5 * time.Second
	if f != nil {
		most = 20 * time.Second
	}
	ctx, cancel := context.WithTimeout(ctx, most)
	defer cancel()
	var in io.Reader
	if body != nil {
		b, err := json.Marshal(body)
		if err != nil {
			return 0, nil, err
		}
		in = bytes.NewReader(b)
	}
	req, err := http.NewRequestWithContext(ctx, method, w.at.Agents[c.on]+path, in)
	if err != nil {
		return 0, nil, err
	}
	req.Header.Set("Content-Type", "application/json")
	if f != nil {
		req.Header.Set("Accept", "text/event-stream")
		if f.after != "" {
			req.Header.Set("Last-Event-ID", f.after)
		}
	}
	res, err := c.http.Do(req)
	if err != nil {
		return 0, nil, err
	}
	defer func() { _ = res.Body.Close() }()
	if f != nil && res.StatusCode == http.StatusOK {
		return res.StatusCode, nil, readEvents(res.Body, f.after, f.each)
	}
	answer, err = io.ReadAll(res.Body)
	return res.StatusCode, answer, err
}
