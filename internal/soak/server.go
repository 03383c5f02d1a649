package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"os"
	"runtime/pprof"
	"slices"
	"sync"
	"time"

	"github.com/pawl-dev/pawl"
	"github.com/pawl-dev/pawl/agent"
	"github.com/pawl-dev/pawl/errdefs"
	"github.com/pawl-dev/pawl/hook/permission"
	"github.com/pawl-dev/pawl/internal/httpapi"
	"github.com/pawl-dev/pawl/journal"
	"github.com/pawl-dev/pawl/journal/postgres"
	"github.com/pawl-dev/pawl/journal/sqlite"
	"github.com/pawl-dev/pawl/model"
	"github.com/pawl-dev/pawl/model/anthropic"
	"github.com/pawl-dev/pawl/model/openai"
	"github.com/pawl-dev/pawl/model/resilience"
	"github.com/pawl-dev/pawl/serve"
	"github.com/pawl-dev/pawl/stream"
	streampg "github.com/pawl-dev/pawl/stream/postgres"
	"github.com/pawl-dev/pawl/tool"
)

// world is what a server is told of where it is.
type world struct {
	Project  string // the directory that it works in
	SQLite   string // a file
	Postgres string // a DSN
	Model    string // the provider's URL
	Effects  string // where tools act
}

// The agents of a server: one on each journal, with a provider's client of its own.
const (
	onSQLite = iota
	onPostgres
	agents
)

// storeNames are for people.
var storeNames = [agents]string{"SQLite", "PostgreSQL"}

// addresses is what a server says when it is there.
type addresses struct {
	Agents  [agents]string
	Control string // readings
}

// keep is how many sessions a server holds in memory beside those in use. It is few, so that a soak of a minute has it full by its first reading, too.
const keep = 16

// serveAgents is a server's whole life: until its standard input ends.
func serveAgents(raw string) (err error) {
	var w world
	if err := json.Unmarshal([]byte(raw), &w); err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	stores, streams, closeStores, err := open(ctx, w)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, closeStores()) }()

	var at addresses
	var wg sync.WaitGroup
	failed := make(chan error, agents)
	for i := range agents {
		rt, err := newRuntime(ctx, w, i, stores[i])
		if err != nil {
			return err
		}
		defer func() { _ = rt.Close() }()
		s, err := serve.New(rt, serve.Options{Stream: streams[i], Grace: 3 * time.Second})
		if err != nil {
			return err
		}
		l, err := new(net.ListenConfig).Listen(ctx, "tcp", "127.0.0.1:0")
		if err != nil {
			return err
		}
		at.Agents[i] = "http://" + l.Addr().String()
		wg.Go(func() { failed <- s.Serve(ctx, l) })
	}
	control, stop, err := listen(controls())
	if err != nil {
		return err
	}
	defer stop()
	at.Control = control
	if err := json.NewEncoder(os.Stdout).Encode(at); err != nil {
		return err
	}
	_, _ = io.Copy(io.Discard, os.Stdin)
	cancel()
	wg.Wait()
	return errors.Join(<-failed, <-failed)
}

// open opens the journals, and what streams are kept in: in memory, where the other processes don't see it, and in the database.
func open(ctx context.Context, w world) (stores [agents]journal.Store, streams [agents]stream.Store, closeAll func() error, err error) {
	file, err := sqlite.Open(w.SQLite, sqlite.WithPatience(5*time.Second)) //nolint:contextcheck // it takes none
	if err != nil {
		return stores, streams, nil, err
	}
	database, err := postgres.Open(ctx, w.Postgres, postgres.WithPatience(5*time.Second))
	if err != nil {
		return stores, streams, nil, errors.Join(err, file.Close())
	}
	shared, err := streampg.Open(ctx, w.Postgres)
	if err != nil {
		return stores, streams, nil, errors.Join(err, file.Close(), database.Close())
	}
	own := stream.Memory(stream.Retention{Ended: time.Second, Names: 5 * time.Second})
	closeAll = func() error { return errors.Join(shared.Close(), database.Close(), file.Close()) }
	return [agents]journal.Store{file, database}, [agents]stream.Store{own, shared}, closeAll, nil
}

func newRuntime(ctx context.Context, w world, on int, store journal.Store) (*pawl.Runtime, error) {
	key, base := model.WithKey("soak"), model.WithBaseURL(w.Model)
	var m model.Model = anthropic.New("soak", key, base)
	if on == onPostgres {
		m = openai.New("soak", key, model.WithBaseURL(w.Model+"/v1"))
	}
	m = model.Wrap(m, resilience.Retry(resilience.RetryPolicy{Attempts: 6, Wait: 50 * time.Millisecond, MaxWait: time.Second, Restart: true}),
		resilience.Timeouts(resilience.TimeoutPolicy{First: 3 * time.Second, Idle: time.Second}))
	return pawl.New(ctx, pawl.Options{
		Model: m, ProjectRoot: w.Project, NoProject: true, Journal: store, MaxSessions: keep, Tools: tools(w),
		Permissions: permission.Config{Allow: []string{"bash(echo:*)"}},
		Subagents:   []agent.Subagent{{Agent: agent.Agent{ID: "clerk", Instructions: "You note and pay.", Tools: []string{"note", "pay", "sign"}}, Description: "notes and pays"}},
	})
}

type input struct {
	What string `json:"what"`
}

// tools are those that act by requests: see [kinds].
func tools(w world) (all []tool.Tool) {
	for _, name := range slices.Sorted(maps.Keys(kinds)) { // each server tells the model of them in the same order
		k := kinds[name]
		if k.lines {
			continue
		}
		var opts []tool.Option
		if k.repeatable {
			opts = append(opts, tool.Idempotent)
		}
		if k.asks {
			opts = append(opts, tool.RequiresApproval)
		}
		all = append(all, tool.Func(name, "Does what it is called for.", func(ctx context.Context, in input) (string, error) {
			if name == "slow" {
				c := tool.FromContext(ctx)
				for range 3 {
					_, _ = fmt.Fprintf(c.Output, "still at %s\n", in.What)
					pause(ctx, 50*time.Millisecond, 500*time.Millisecond)
				}
			}
			pause(ctx, 0, 20*time.Millisecond)
			if err := ctx.Err(); err != nil {
				return "", err
			}
			return act(ctx, w.Effects, effect{What: in.What, Tool: name, Key: tool.FromContext(ctx).Key})
		}, opts...))
	}
	return all
}

// times is how often an effect is had: once. Tests of the soak have others, and servers that leak.
var times = func(effect) int { return 1 }

// act has an effect. When ctx ends meanwhile nobody knows whether it has.
func act(ctx context.Context, url string, x effect) (string, error) {
	body, err := json.Marshal(x)
	if err != nil {
		return "", err
	}
	for range times(x) {
		if err := post(ctx, url, body); err != nil {
			return "", err
		}
	}
	return "It is done: " + x.What, nil
}

func post(ctx context.Context, url string, body []byte) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, url, bytes.NewReader(body))
	if err != nil {
		return err
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return errors.Join(tool.ErrUnknown, err)
	}
	defer func() { _ = res.Body.Close() }()
	answer, err := io.ReadAll(res.Body)
	if err == nil && res.StatusCode != http.StatusOK {
		err = errdefs.NotAvailable.Errorf("%s: %s", res.Status, answer)
	}
	return err
}

// controls are for who soaks.
func controls() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /reading", func(w http.ResponseWriter, _ *http.Request) {
		httpapi.CloseIdle()
		http.DefaultClient.CloseIdleConnections()
		_ = json.NewEncoder(w).Encode(read())
	})
	mux.HandleFunc("GET /profile/{name}", func(w http.ResponseWriter, r *http.Request) {
		debug := 0
		if r.PathValue("name") == "goroutine" {
			debug = 1
		}
		_ = pprof.Lookup(r.PathValue("name")).WriteTo(w, debug)
	})
	return mux
}

// listen serves at a free port of this machine.
func listen(h http.Handler) (url string, stop func(), err error) {
	l, err := new(net.ListenConfig).Listen(context.Background(), "tcp", "127.0.0.1:0")
	if err != nil {
		return "", nil, err
	}
	s := &http.Server{Handler: h, ReadHeaderTimeout: time.Minute}
	var wg sync.WaitGroup
	wg.Go(func() { _ = s.Serve(l) })
	return "http://" + l.Addr().String(), func() {
		_ = s.Close()
		wg.Wait()
	}, nil
}
