package mcp_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
	"go.uber.org/goleak"

	"github.com/pawl-dev/pawl"
	"github.com/pawl-dev/pawl/hook/permission"
	"github.com/pawl-dev/pawl/journal"
	"github.com/pawl-dev/pawl/model"
	"github.com/pawl-dev/pawl/model/scripted"
	"github.com/pawl-dev/pawl/serve/mcp"
	"github.com/pawl-dev/pawl/tool"
)

func TestMain(m *testing.M) {
	code := m.Run()
	http.DefaultTransport.(*http.Transport).CloseIdleConnections()
	if err := goleak.Find(); err != nil && code == 0 {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

// place is a Runtime with a server around it.
type place struct {
	t     *testing.T
	rt    *pawl.Runtime
	s     *mcp.Server
	store journal.Store
	dir   string
}

func newPlace(t *testing.T, o pawl.Options, so mcp.Options) *place {
	t.Helper()
	p := &place{t: t, store: journal.Memory(), dir: t.TempDir()}
	if o.Journal != nil {
		p.store = o.Journal
	}
	if o.Model == nil {
		o.Model = scripted.New(scripted.Text("Hello there."), scripted.Text("Again."))
	}
	if o.ProjectRoot == "" {
		o.ProjectRoot = p.dir
	}
	p.dir = o.ProjectRoot
	o.Journal, o.NoSubagents = p.store, true
	var err error
	if p.rt, err = pawl.New(t.Context(), o); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := p.rt.Close(); err != nil {
			t.Error(err)
		}
	})
	if p.s, err = mcp.New(p.rt, so); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := p.s.Close(); err != nil {
			t.Error(err)
		}
	})
	return p
}

// noProject has the tools that are given, and nothing else.
func noProject(m model.Model, mode permission.Mode, tools ...tool.Tool) pawl.Options {
	return pawl.Options{NoProject: true, NoBuiltins: true, Model: m, Tools: tools, Permissions: permission.Config{Mode: mode}}
}

// wire is a client of lines, which sends what it likes.
type wire struct {
	t     *testing.T
	in    *io.PipeWriter
	lines chan string
	ended chan error
	out   *io.PipeReader
}

func (p *place) wire(ctx context.Context) *wire {
	inR, inW := io.Pipe()
	outR, outW := io.Pipe()
	w := &wire{t: p.t, in: inW, out: outR, lines: make(chan string, 1000), ended: make(chan error, 1)}
	var wg sync.WaitGroup
	wg.Go(func() {
		w.ended <- p.s.Stdio(ctx, inR, outW)
		_ = outW.Close()
	})
	wg.Go(func() {
		r := bufio.NewScanner(outR)
		r.Buffer(nil, 64<<20)
		for r.Scan() {
			w.lines <- r.Text()
		}
		close(w.lines)
	})
	p.t.Cleanup(func() {
		_, _ = inW.Close(), outR.Close()
		wg.Wait()
	})
	return w
}

func (w *wire) send(text string) {
	w.t.Helper()
	if _, err := io.WriteString(w.in, text+"\n"); err != nil {
		w.t.Fatal(err)
	}
}

// next is the next message that says what is wanted.
func (w *wire) next(want string) map[string]any {
	w.t.Helper()
	for {
		select {
		case line, ok := <-w.lines:
			if !ok {
				w.t.Fatalf("the connection ended before %s", want)
			}
			if strings.Contains(line, want) {
				var m map[string]any
				if err := json.Unmarshal([]byte(line), &m); err != nil {
					w.t.Fatal(err, line)
				}
				return m
			}
		case <-time.After(20 * time.Second):
			w.t.Fatalf("no %s came", want)
		}
	}
}

func (w *wire) hello(capabilities string) {
	w.t.Helper()
	w.send(`{"jsonrpc":"2.0","id":"hello","method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":` + capabilities + `,"clientInfo":{"name":"t","version":"1"}}}`)
	w.next(`"id":"hello"`)
	w.send(`{"jsonrpc":"2.0","method":"notifications/initialized"}`)
}

func (w *wire) call(id int, name, arguments string, meta ...string) {
	w.t.Helper()
	m := ""
	if len(meta) > 0 {
		m = `,"_meta":` + meta[0]
	}
	w.send(fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":%q,"arguments":%s%s}}`, id, name, arguments, m))
}

func (w *wire) result(id int) map[string]any {
	w.t.Helper()
	m := w.next(fmt.Sprintf(`"id":%d,`, id))
	res, ok := m["result"].(map[string]any)
	if !ok {
		w.t.Fatalf("call %d: %v", id, m)
	}
	return res
}

// text is the first text of a result.
func text(res map[string]any) string {
	all, _ := res["content"].([]any)
	if len(all) == 0 {
		return ""
	}
	first, _ := all[0].(map[string]any)
	s, _ := first["text"].(string)
	return s
}

func structured(t *testing.T, res map[string]any) map[string]any {
	t.Helper()
	m, ok := res["structuredContent"].(map[string]any)
	if !ok {
		t.Fatalf("no structured content: %v", res)
	}
	return m
}

// connect is a client by the library, in one process.
func (p *place) connect(o *sdk.ClientOptions) *sdk.ClientSession {
	p.t.Helper()
	return p.connectAs(o, true)
}

// connectAs is connect, with the newest version of the protocol or the last one with sessions.
func (p *place) connectAs(o *sdk.ClientOptions, newest bool) *sdk.ClientSession {
	p.t.Helper()
	version := &sdk.ClientSessionOptions{ProtocolVersion: "2026-07-28"}
	if !newest {
		version.ProtocolVersion = "2025-11-25"
	}
	inR, inW := io.Pipe()
	outR, outW := io.Pipe()
	done := make(chan error, 1)
	go func() {
		err := p.s.Stdio(p.t.Context(), inR, outW)
		_ = outW.Close()
		done <- err
	}()
	c, err := sdk.NewClient(&sdk.Implementation{Name: "c", Version: "1"}, o).Connect(p.t.Context(), &sdk.IOTransport{Reader: outR, Writer: inW}, version)
	if err != nil {
		p.t.Fatal(err)
	}
	p.t.Cleanup(func() {
		_ = c.Close()
		if err := <-done; err != nil && !errors.Is(err, io.ErrClosedPipe) {
			p.t.Error(err)
		}
	})
	return c
}

func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(15 * time.Second); !ok(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("not in time:", what)
		}
	}
}

// state is a session as it is on record.
func (p *place) state(session string) journal.State {
	p.t.Helper()
	log, err := journal.Open(context.Background(), p.store, session)
	if err != nil {
		p.t.Fatal(err)
	}
	return log.State()
}
