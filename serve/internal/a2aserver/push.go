package a2aserver

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/pawl-dev/pawl/a2a"
	"github.com/pawl-dev/pawl/errdefs"
	"github.com/pawl-dev/pawl/sandbox"
	"github.com/pawl-dev/pawl/sandbox/fence"
)

// The limits of push notifications.
const (
	mostPushes     = 1000             // configs, of all tasks
	mostOfTask     = 10               // of one
	pushesAtOnce   = 64               // that are being sent
	pushesToHost   = 4                // of them to one host
	pushTries      = 5                // of one notification
	pushTime       = 10 * time.Second // of a try
	firstPause     = time.Second      // before the second try, twice as long before each further one
	mostOfResponse = 4 << 10          // bytes that are read of what a receiver says
)

// notifier tells those who asked for it of tasks: each config is followed by itself, so that a receiver which doesn't answer holds up no other one.
type notifier struct {
	s      *Server
	store  PushStore
	named  sandbox.Network // hosts that are not public, and allowed
	dialer *fence.Dialer
	client *http.Client
	sends  *slots
	pause  time.Duration

	begin sync.Once
	ctx   context.Context
	stop  context.CancelFunc
	done  sync.WaitGroup

	mu     sync.Mutex
	all    map[pushKey]*pushing
	closed bool

	keep sync.Mutex // while the store is written: what was deleted, or replaced, does not come back, and there are no more than may be
}

type pushing struct {
	Push
	stop context.CancelFunc
}

func newNotifier(s *Server) *notifier {
	n := &notifier{s: s, store: s.opts.Push, named: sandbox.Network{Hosts: s.opts.PushHosts}, sends: newSlots(pushesAtOnce, pushesToHost), pause: firstPause, all: map[pushKey]*pushing{}}
	if n.store == nil {
		n.store = MemoryPushes()
	}
	n.ctx, n.stop = context.WithCancel(context.Background())
	// Where a name leads is looked at when the connection is made, and the connection goes to the address that was looked at.
	n.dialer = fence.Dial(sandbox.Policy{Network: sandbox.Network{All: true, Hosts: s.opts.PushHosts}})
	transport := n.dialer.Transport()
	transport.DisableKeepAlives = true
	n.client = &http.Client{Transport: transport, Timeout: pushTime, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	return n
}

// start goes on with what was asked for before the process began.
func (n *notifier) start() {
	n.begin.Do(func() {
		all, err := n.store.All(n.ctx)
		if err != nil {
			n.s.opts.Logger.Error("push notifications that were asked for before can't be gone on with", "error", err)
		}
		for _, p := range all {
			n.watch(p)
		}
	})
}

func (n *notifier) close() {
	n.mu.Lock()
	n.closed = true
	n.mu.Unlock()
	n.stop()
	n.done.Wait()
}

// check refuses what can't be sent to.
func (n *notifier) check(p *a2a.PushConfig) error {
	bad := func(format string, args ...any) error {
		return a2a.Errorf(a2a.CodeInvalidParams, "push notification config: "+format, args...)
	}
	u, err := url.Parse(p.URL)
	switch {
	case err != nil || u.Hostname() == "" || len(p.URL) > 2048:
		return bad("url: want one such as https://client.example/notify")
	case u.User != nil:
		return bad("url: credentials go into authentication, not into the address")
	case u.Scheme == "http" && !n.named.Allows(u.Hostname()), u.Scheme != "https" && u.Scheme != "http":
		return bad("url: notifications are sent by https, but to hosts that this server was given (--push-host)")
	case len(p.ID) > 256 || len(p.Token) > 4096:
		return bad("id, token: at most 256 and 4096 bytes")
	case !visible(p.Token):
		return bad("token: it can't stand in a header")
	}
	if a := p.Authentication; a != nil && (a.Scheme == "" || strings.ContainsAny(a.Scheme, " \t") || !visible(a.Scheme) || !visible(a.Credentials) || len(a.Credentials) > 8192) {
		return bad("authentication: want a scheme, such as Bearer, and credentials that can stand in a header")
	}
	if err := n.dialer.Refuses(u.Hostname()); err != nil {
		return bad("url: %.200q is not an address of the public network", u.Hostname())
	}
	return nil
}

func visible(text string) bool {
	return !strings.ContainsFunc(text, func(r rune) bool { return r < ' ' || r >= 0x7f })
}

// set keeps a config, and begins to tell.
func (n *notifier) set(ctx context.Context, v a2a.Version, c a2a.PushConfig) (Push, error) {
	if err := n.check(&c); err != nil {
		return Push{}, err
	}
	p := Push{Task: c.TaskID, ID: c.ID, URL: c.URL, Token: c.Token, Version: string(v)}
	if c.Authentication != nil {
		p.Scheme, p.Credentials = c.Authentication.Scheme, c.Authentication.Credentials
	}
	switch {
	case p.ID != "":
	case v == a2a.V03: // what it gets when it names none
		p.ID = p.Task
	default: // the same one, asked for again
		sum := sha256.Sum256([]byte(p.URL + "\x00" + p.Token + "\x00" + p.Credentials))
		p.ID = "push-" + hex.EncodeToString(sum[:8])
	}
	n.keep.Lock()
	defer n.keep.Unlock()
	n.mu.Lock()
	of := 0
	for k := range n.all {
		if k.task == p.Task {
			of++
		}
	}
	old, again := n.all[pushKey{p.Task, p.ID}]
	full := !again && (len(n.all) >= mostPushes || of >= mostOfTask)
	n.mu.Unlock()
	if full {
		return p, a2a.Errorf(a2a.CodeUnsupportedOperation, "there are as many push notification configs as may be: %d, %d of them of one task", mostPushes, mostOfTask)
	}
	if again {
		same := old.Push
		if same.Told = ""; same == p {
			return p, nil
		}
	}
	if err := n.store.Put(ctx, p); err != nil {
		return p, err
	}
	n.watch(p) //nolint:contextcheck // it goes on behind the call
	return p, nil
}

// watch begins to tell of a task, in the place of who did so before.
func (n *notifier) watch(p Push) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.closed {
		return
	}
	key := pushKey{p.Task, p.ID}
	if old := n.all[key]; old != nil {
		old.stop()
	}
	ctx, cancel := context.WithCancel(n.ctx)
	w := &pushing{p, cancel}
	n.all[key] = w
	n.done.Go(func() {
		defer cancel()
		n.tellAll(ctx, p)
		n.mu.Lock()
		defer n.mu.Unlock()
		if n.all[key] == w && n.ctx.Err() == nil {
			delete(n.all, key)
		}
	})
}

// drop ends a config.
func (n *notifier) drop(ctx context.Context, task, id string) error {
	n.mu.Lock()
	if w := n.all[pushKey{task, id}]; w != nil {
		w.stop()
		delete(n.all, pushKey{task, id})
	}
	n.mu.Unlock()
	n.keep.Lock()
	defer n.keep.Unlock()
	return n.store.Delete(ctx, task, id)
}

// of gives the configs of a task.
func (n *notifier) of(ctx context.Context, task string) ([]Push, error) {
	all, err := n.store.All(ctx)
	if err != nil {
		return nil, err
	}
	all = slices.DeleteFunc(all, func(p Push) bool { return p.Task != task })
	slices.SortFunc(all, func(a, b Push) int { return strings.Compare(a.ID, b.ID) })
	return all, nil
}

// tellAll tells a receiver of a task, from what it was told last on until the task is over.
func (n *notifier) tellAll(ctx context.Context, p Push) {
	tell := func(r *reading, st a2a.TaskStatus) error {
		if name := named(st); name != p.Told {
			n.tell(ctx, p, r, st)
			n.keep.Lock()
			defer n.keep.Unlock()
			if p.Told = name; ctx.Err() != nil {
				return ctx.Err()
			}
			if err := n.store.Put(ctx, p); err != nil {
				n.s.opts.Logger.Warn("how far a receiver of push notifications was told can't be kept", "task", p.Task, "error", err)
			}
		}
		return nil
	}
	for pause := n.pause; ctx.Err() == nil; {
		r, err := n.s.find(ctx, p.Task)
		if errdefs.NotFound.Is(err) {
			_ = n.forget(ctx, p)
			return
		}
		var st a2a.TaskStatus
		if err == nil {
			r, st, _, err = n.s.look(ctx, r)
		}
		if err == nil {
			err = tell(r, st)
		}
		if err == nil && st.State.Terminal() {
			if err := n.forget(ctx, p); err != nil && ctx.Err() == nil {
				n.s.opts.Logger.Warn("a push notification config of a task that is over can't be deleted", "task", p.Task, "error", err)
			}
			return
		}
		if err == nil {
			err = n.s.follow(ctx, r, rests(st.State), func(e a2a.Event) error {
				if e.Status == nil {
					return nil
				}
				return tell(r, e.Status.Status)
			})
		}
		if err == nil {
			pause = n.pause
			continue
		}
		select { // the journal can't be read
		case <-time.After(pause):
		case <-ctx.Done():
		}
		pause = min(2*pause, time.Minute)
	}
}

// forget deletes a config whose task is over, unless another one took its place.
func (n *notifier) forget(ctx context.Context, p Push) error {
	n.keep.Lock()
	defer n.keep.Unlock()
	if ctx.Err() != nil {
		return ctx.Err()
	}
	return n.store.Delete(ctx, p.Task, p.ID)
}

// named names a status, among those of its task.
func named(st a2a.TaskStatus) string {
	name := string(st.State)
	if st.Message != nil {
		return name + " " + st.Message.ID
	}
	return name + " " + st.Timestamp.UTC().Format(time.RFC3339Nano)
}

// tell sends what a status is about: in 1.0 as events, what came of the task before its end; in 0.3 as the task.
func (n *notifier) tell(ctx context.Context, p Push, r *reading, st a2a.TaskStatus) {
	var all []any
	if v := a2a.Version(p.Version); v == a2a.V03 {
		all = append(all, r.task(st, nil))
	} else {
		if st.State.Terminal() {
			for _, a := range r.artifacts() {
				all = append(all, a2a.Event{Artifact: &a2a.ArtifactUpdate{TaskID: r.id(), ContextID: r.session, Artifact: a, LastChunk: true}})
			}
		}
		all = append(all, a2a.Event{Status: &a2a.StatusUpdate{TaskID: r.id(), ContextID: r.session, Status: st}})
	}
	for _, what := range all {
		body, err := a2a.Version(p.Version).Marshal(what)
		if err == nil {
			err = n.deliver(ctx, p, body)
		}
		if err != nil && ctx.Err() == nil {
			n.s.opts.Logger.Warn("a push notification did not get through, and is given up", "task", p.Task, "config", p.ID, "error", err)
		}
	}
}

// deliver sends a notification, several times if need be.
func (n *notifier) deliver(ctx context.Context, p Push, body []byte) (err error) {
	for try, pause := 1, n.pause; ; try, pause = try+1, 2*pause {
		again, err := n.post(ctx, p, body)
		if err == nil || !again || try == pushTries {
			return err
		}
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// post sends a notification once. again says that it may get through later.
func (n *notifier) post(ctx context.Context, p Push, body []byte) (again bool, err error) {
	give, err := n.sends.take(ctx, hostOf(p.URL))
	if err != nil {
		return false, err
	}
	defer give()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, p.URL, bytes.NewReader(body))
	if err != nil {
		return false, errdefs.Validation.Errorf("serve: %w", err)
	}
	req.Header.Set("Content-Type", a2a.MediaType)
	if p.Version == string(a2a.V03) {
		req.Header.Set("Content-Type", "application/json")
	}
	req.Header.Set(a2a.HeaderVersion, p.Version)
	req.Header.Set("User-Agent", "Pawl (+https://github.com/pawl-dev/pawl)")
	if p.Token != "" {
		req.Header.Set(a2a.HeaderNotification, p.Token)
	}
	if p.Scheme != "" {
		req.Header.Set("Authorization", strings.TrimSpace(p.Scheme+" "+p.Credentials))
	}
	resp, err := n.client.Do(req)
	if err != nil {
		var wrapped *url.Error
		if errors.As(err, &wrapped) { // without the address, which may have a secret in it
			err = wrapped.Err
		}
		return !errdefs.PolicyDenied.Is(err), err
	}
	defer func() { _ = resp.Body.Close() }()
	_, _ = io.Copy(io.Discard, io.LimitReader(resp.Body, mostOfResponse))
	if resp.StatusCode >= 200 && resp.StatusCode < 300 {
		return false, nil
	}
	again = resp.StatusCode >= 500 || resp.StatusCode == http.StatusTooManyRequests || resp.StatusCode == http.StatusRequestTimeout
	return again, fmt.Errorf("the receiver answered with status %d", resp.StatusCode)
}

func hostOf(address string) string {
	u, err := url.Parse(address)
	if err != nil {
		return address
	}
	return strings.ToLower(u.Hostname())
}

// config is what a client is told of what he asked for. Its secrets are his own.
func (p Push) config() a2a.PushConfig {
	out := a2a.PushConfig{ID: p.ID, TaskID: p.Task, URL: p.URL, Token: p.Token}
	if p.Scheme != "" {
		out.Authentication = &a2a.Authentication{Scheme: p.Scheme, Credentials: p.Credentials}
	}
	return out
}

func (c *call) createPush() (any, error) {
	var in a2a.PushConfig
	if err := c.read(&in, &in.Tenant); err != nil {
		return nil, err
	}
	if _, err := c.s.find(c.context(), in.TaskID); err != nil {
		return nil, err
	}
	p, err := c.s.push.set(c.context(), c.version, in)
	return p.config(), err
}

func (c *call) getPush() (any, error) {
	var in a2a.PushConfigRequest
	if err := c.read(&in, &in.Tenant); err != nil {
		return nil, err
	}
	all, err := c.s.push.of(c.context(), in.TaskID)
	if err != nil {
		return nil, err
	}
	for _, p := range all {
		if p.ID == in.ID {
			return p.config(), nil
		}
	}
	return nil, a2a.Errorf(a2a.CodeTaskNotFound, "task %.200q has no push notification config %.200q", in.TaskID, in.ID)
}

func (c *call) listPush() (any, error) {
	var in a2a.ListPushConfigsRequest
	if err := c.read(&in, &in.Tenant); err != nil {
		return nil, err
	}
	if _, err := c.s.find(c.context(), in.TaskID); err != nil {
		return nil, err
	}
	all, err := c.s.push.of(c.context(), in.TaskID)
	if err != nil {
		return nil, err
	}
	var out a2a.ListPushConfigsResponse
	for _, p := range all { // there are no more than a page has
		if p.ID > in.PageToken {
			if in.PageSize > 0 && len(out.Configs) == in.PageSize {
				out.NextPageToken = out.Configs[len(out.Configs)-1].ID
				break
			}
			out.Configs = append(out.Configs, p.config())
		}
	}
	return out, nil
}

func (c *call) deletePush() (any, error) {
	var in a2a.PushConfigRequest
	if err := c.read(&in, &in.Tenant); err != nil {
		return nil, err
	}
	if _, err := c.s.find(c.context(), in.TaskID); err != nil {
		return nil, err
	}
	return nil, c.s.push.drop(c.context(), in.TaskID, in.ID)
}
