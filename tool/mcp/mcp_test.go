//go:build unix

package mcp

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/pawl-dev/pawl/errdefs"
	"github.com/pawl-dev/pawl/message"
	"github.com/pawl-dev/pawl/tool"
)

func toolNames(tools []tool.Tool) (out []string) {
	for _, f := range tools {
		out = append(out, f.Definition().Name)
	}
	return out
}

// each runs a test against the server in a process and over HTTP: with sessions, without, and the older one.
func each(t *testing.T, f func(t *testing.T, s Server)) {
	t.Run("in a process", func(t *testing.T) { f(t, stdioServer("all")) })
	t.Run("over HTTP", func(t *testing.T) { f(t, Server{Name: "s", URL: newHTTPServer(t, nil, nil).URL}) })
	for name, only := range map[string]bool{"in the older way over HTTP": true, "over HTTP with a server that refuses the newer way": false} {
		t.Run(name, func(t *testing.T) {
			server := newSDKServer(nil)
			h := httptest.NewServer(sdk.NewSSEHandler(func(*http.Request) *sdk.Server { return server }, nil))
			t.Cleanup(func() {
				h.CloseClientConnections()
				h.Close()
			})
			f(t, Server{Name: "s", URL: h.URL, SSE: only})
		})
	}
}

func TestWhatAServerGivesIsWhatTheModelIsTold(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, s Server) {
		c := connect(t, s)
		for name, want := range map[string]tool.Result{
			"echo":       {Content: "<hi>\nend"},
			"fail":       {Content: "it went wrong", IsError: true},
			"structured": {Content: `{"a":[1,2],"b":"<1>"}`},
			"parts": {
				Content: "look\n[resource mem://a]\ninside\n[resource mem://b is the file]\n[resource mem://c c (text/plain): the third]",
				Files:   []message.File{{MIME: "image/png", Data: "PNG"}, {MIME: "audio/wav", Data: "WAV"}, {MIME: "application/pdf", Name: "mem://b", Data: "PDF"}},
			},
		} {
			input := `{}`
			if name == "echo" {
				input = `{"text":"<hi>"}`
			}
			got, err := use(t, c, name, input)
			if err != nil {
				t.Errorf("%s: %v", name, err)
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("%s: %s", name, diff)
			}
		}
		if len(c.Warnings()) > 0 {
			t.Error(c.Warnings())
		}
	})
}

func TestALongResultLosesItsMiddle(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, s Server) {
		got, err := use(t, connect(t, s), "long", `{}`)
		if err != nil || len(got.Content) > longestText+100 || !strings.HasPrefix(got.Content, "BEGINxxx") || !strings.HasSuffix(got.Content, "xxxEND") || !strings.Contains(got.Content, "[… 948584 of 1048584 bytes are left out …]") {
			t.Errorf("%d %v %.200s", len(got.Content), err, got.Content)
		}
	})
}

func TestAnnotationsAreHints(t *testing.T) {
	t.Parallel()
	c := connect(t, stdioServer("all"))
	for name, want := range map[string]tool.Annotations{
		"echo":  {ReadOnly: true, OpenWorld: true},
		"fail":  {Destructive: true, OpenWorld: true},
		"steps": {Idempotent: true, OpenWorld: true},
	} {
		if got := find(t, c, name).Definition().Annotations; got != want {
			t.Errorf("%s: %+v", name, got)
		}
	}
	if got := find(t, connect(t, stdioServer("strange")), "both").Definition().Annotations; got.ReadOnly {
		t.Error("a tool that destroys changes nothing")
	}
}

func TestNamesAreThoseThatProvidersTake(t *testing.T) {
	t.Parallel()
	c := connect(t, stdioServer("strange"))
	tools := c.Tools(t.Context())
	if _, err := tool.NewSet(tools...); err != nil {
		t.Fatal(err)
	}
	got := toolNames(tools)
	for i, n := range got {
		got[i] = strings.TrimPrefix(n, "mcp__s__")
	}
	if diff := cmp.Diff([]string{"A_b_2dd2d10b", "a_b_c3b4fb4b", "a_b", "both", "long_long_long_long_long_long_long_long_long_lo_7f1b1d09", "resources"}, got, cmp.Comparer(func(a, b string) bool {
		cut := func(s string) string { // but for the hash
			if i := strings.LastIndexByte(s, '_'); i > 0 && len(s)-i == 9 {
				return s[:i]
			}
			return s
		}
		return cut(a) == cut(b)
	})); diff != "" {
		t.Error(diff)
	}
	set, _ := tool.NewSet(tools...)
	if _, err := set.Check(message.ToolCall{Name: tools[1].Definition().Name, Input: `{"x":1}`}); err != nil {
		t.Error("a schema that does not compile checks nothing:", err)
	}
}

func TestTheListsSayWhichToolsThereAre(t *testing.T) {
	t.Parallel()
	s := stdioServer("all")
	s.Allow, s.Deny = []string{"die*", "echo", "ech", "resources"}, []string{"die_*"}
	c := connect(t, s)
	if diff := cmp.Diff([]string{"mcp__s__die", "mcp__s__echo", "mcp__s__resources"}, toolNames(c.Tools(t.Context()))); diff != "" {
		t.Error(diff)
	}
	if w := c.Warnings(); len(w) != 1 || !strings.Contains(w[0], `"ech"`) {
		t.Errorf("a name that no tool has is a mistake: %q", w)
	}
	if a, b := c.Tools(t.Context()), c.Tools(t.Context()); len(a) == 0 || &a[0] != &b[0] {
		t.Error("another slice without a change")
	}
}

func TestToolsOfAServerThatHasManyAreDeferred(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		tools int
		how   Defer
		want  bool
	}{
		"a few": {10, DeferAuto, false}, "many": {60, DeferAuto, true}, "many that are wanted": {60, DeferNever, false}, "a few that are not": {1, DeferAlways, true},
	} {
		s := stdioServer("many", fmt.Sprintf("MCP_TEST_MANY=%d", c.tools))
		s.Defer = c.how
		tools := connect(t, s).Tools(t.Context())
		if len(tools) != c.tools+1 {
			t.Errorf("%s: %d tools", name, len(tools))
		}
		for _, f := range tools {
			d := f.Definition()
			if want := c.want && !strings.HasSuffix(d.Name, "__resources"); d.Deferred != want {
				t.Errorf("%s: %s is deferred: %v", name, d.Name, d.Deferred)
			}
		}
	}
	if err := (Server{Name: "s", Command: "x", Defer: "sometimes"}).Check(); !errors.Is(err, errdefs.Validation) {
		t.Error(err)
	}
}

func TestAllPagesAreRead(t *testing.T) {
	t.Parallel()
	h := newHTTPServer(t, nil, &sdk.ServerOptions{PageSize: 2})
	c := connect(t, Server{Name: "s", URL: h.URL})
	if n := len(c.Tools(t.Context())); n < 12 {
		t.Error(n, toolNames(c.Tools(t.Context())))
	}
	if r, err := c.Resources(t.Context()); len(r) != 3 || err != nil {
		t.Error(r, err)
	}
	got, err := use(t, c, "resources", `{}`)
	if err != nil || got.Content != "mem://r0 r0 (text/plain)\nmem://r1 r1 (text/plain)\nmem://r2 r2 (text/plain)\ntemplate mem://t/{id} t" {
		t.Error(got, err)
	}
}

func TestAListWithoutAnEndIsAnError(t *testing.T) {
	t.Parallel()
	c := connect(t, stdioServer("endless"))
	if w := c.Warnings(); len(w) != 1 || !strings.Contains(w[0], "has no end") {
		t.Error(w)
	}
}

func TestResourcesAndPromptsCanBeRead(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, s Server) {
		c := connect(t, s)
		want := tool.Result{Content: "[resource mem://r1]\ntext of mem://r1\n[resource mem://blob is the file]", Files: []message.File{{MIME: "image/png", Name: "mem://blob", Data: "PNG"}}}
		got, err := use(t, c, "resources", `{"uri":"mem://r1"}`)
		if diff := cmp.Diff(want, got); diff != "" || err != nil {
			t.Error(diff, err)
		}
		if got, err := c.Resource(t.Context(), "s", "mem://r1"); err != nil || got.Content != want.Content {
			t.Error(got, err)
		}
		if _, err := use(t, c, "resources", `{"uri":"mem://none"}`); !errors.Is(err, errdefs.NotFound) && !errors.Is(err, errdefs.Validation) {
			t.Error(err)
		}
		prompts, err := c.Prompts(t.Context())
		if diff := cmp.Diff([]Prompt{{"s", "greet", "greets", []Argument{{"who", "", true}}}}, prompts); diff != "" || err != nil {
			t.Error(diff, err)
		}
		said, err := c.Prompt(t.Context(), "s", "greet", map[string]string{"who": "you"})
		if err != nil || len(said) != 2 || said[0].Text() != "Hello, you" || said[1].Role() != message.RoleAssistant {
			t.Error(said, err)
		}
		if _, err := c.Prompt(t.Context(), "other", "greet", nil); !errors.Is(err, errdefs.NotFound) {
			t.Error(err)
		}
	})
}

type shown struct {
	mu sync.Mutex
	bytes.Buffer
}

func (s *shown) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.Buffer.Write(p)
}

func (s *shown) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.Buffer.String()
}

func TestProgressIsShown(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, s Server) {
		c := connect(t, s)
		out := &shown{}
		f := find(t, c, "steps")
		res, err := f.Execute(tool.WithCall(t.Context(), tool.Call{ID: "1", Name: f.Definition().Name, Output: out}), json.RawMessage(`{}`))
		if err != nil || res.Content != "done" {
			t.Error(res, err)
		}
		if text := out.String(); !strings.HasPrefix("step (1/3)\nstep (2/3)\nstep (3/3)\n", text) || text == "" { // what comes after the result is not shown
			t.Errorf("%q", text)
		}
	})
}

func TestAListThatChangesCountsFromTheNextTimeItIsAskedFor(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, s Server) {
		c := connect(t, s)
		before := c.Tools(t.Context())
		if _, err := use(t, c, "more", `{}`); err != nil {
			t.Fatal(err)
		}
		eventually(t, "the server says so", c.Changed)
		if diff := cmp.Diff(toolNames(before)[:1], []string{"mcp__s__ask"}); diff != "" {
			t.Error(diff)
		}
		after := c.Tools(t.Context())
		if len(after) != len(before)+1 || after[0].Definition().Name != "mcp__s__added" || before[0].Definition().Name != "mcp__s__ask" {
			t.Error(toolNames(before), toolNames(after))
		}
		if c.Changed() {
			t.Error("there is nothing new")
		}
	})
}

func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(10 * time.Second); !ok(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("not in time: " + what)
		}
	}
}

func TestACallHasItsTime(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, s Server) {
		s.Timeout = 200 * time.Millisecond
		_, err := use(t, connect(t, s), "hang", `{}`)
		if !errors.Is(err, errdefs.Timeout) || !strings.Contains(err.Error(), "no answer within 200ms. Whether it took effect is unknown") {
			t.Error(err)
		}
	})
}

func TestACancelIsToldToTheServer(t *testing.T) {
	file := filepath.Join(t.TempDir(), "cancelled")
	t.Setenv("MCP_TEST_CANCELLED", file)
	each(t, func(t *testing.T, s Server) {
		_ = os.Remove(file)
		if s.Env != nil {
			s.Env["MCP_TEST_CANCELLED"] = file
		}
		c := connect(t, s)
		f := find(t, c, "hang")
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(100*time.Millisecond, cancel)
		began := time.Now()
		if _, err := f.Execute(ctx, json.RawMessage(`{}`)); !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
		if took := time.Since(began); took > 2*time.Second {
			t.Error(took)
		}
		eventually(t, "the server knows", func() bool { _, err := os.Stat(file); return err == nil })
	})
}

func TestCloseEndsWhatIsUnderWay(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, s Server) {
		c := connect(t, s)
		f := find(t, c, "hang")
		done := make(chan error)
		go func() {
			_, err := f.Execute(t.Context(), json.RawMessage(`{}`))
			done <- err
		}()
		time.Sleep(100 * time.Millisecond)
		closeClient(t, c)
		if err := <-done; !errors.Is(err, errdefs.NotAvailable) {
			t.Error(err)
		}
		if _, err := f.Execute(t.Context(), json.RawMessage(`{}`)); !errors.Is(err, errdefs.NotAvailable) {
			t.Error(err)
		}
	})
}

func TestAServerThatDiesIsStartedAgain(t *testing.T) {
	t.Parallel()
	lives := filepath.Join(t.TempDir(), "lives")
	c := connect(t, stdioServer("all", "MCP_TEST_LIVES="+lives))
	_, err := use(t, c, "die", `{}`)
	if !errors.Is(err, errdefs.NotAvailable) || !strings.Contains(err.Error(), "Whether it took effect is unknown") {
		t.Error("a call that may have run is not repeated:", err)
	}
	if got, err := use(t, c, "die", `{}`); err != nil || got.Content != "alive" {
		t.Error(got, err)
	}
	_ = os.Remove(lives)
	if got, err := use(t, c, "die_reading", `{}`); err != nil || got.Content != "alive" {
		t.Error("a call that may run again is repeated:", got, err)
	}
}

func TestAServerThatDiedMeanwhileIsStartedForTheNextCall(t *testing.T) {
	t.Parallel()
	pids := filepath.Join(t.TempDir(), "pids")
	c := connect(t, stdioServer("all", "MCP_TEST_PID="+pids))
	server, child := readPIDs(t, pids)
	if err := syscall.Kill(server, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	eventually(t, "its child is stopped too", func() bool { return !alive(child) })
	if got, err := use(t, c, "fail", `{}`); err != nil || got.Content != "it went wrong" {
		t.Error(got, err)
	}
}

func readPIDs(t *testing.T, file string) (server, child int) {
	t.Helper()
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	f := strings.Fields(string(b))
	server, _ = strconv.Atoi(f[0])
	child, _ = strconv.Atoi(f[1])
	return server, child
}

func alive(pid int) bool {
	b, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return syscall.Kill(pid, 0) == nil && !os.IsNotExist(err)
	}
	return !strings.Contains(string(b), ") Z ")
}

func TestCloseLeavesNoProcess(t *testing.T) {
	t.Parallel()
	for _, kind := range []string{"all", "stubborn", "deaf"} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			pids := filepath.Join(t.TempDir(), "pids")
			c := connect(t, stdioServer(kind, "MCP_TEST_PID="+pids))
			live := c.servers[0].current()
			if live == nil {
				t.Fatal(c.Warnings())
			}
			if kind == "deaf" { // what it doesn't read holds nobody up
				ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
				defer cancel()
				if _, err := find(t, c, "t").Execute(ctx, json.RawMessage(`{"a":"`+strings.Repeat("x", 1<<20)+`"}`)); !errors.Is(err, context.DeadlineExceeded) {
					t.Error(err)
				}
			}
			closeClient(t, c)
			if kind == "all" {
				server, child := readPIDs(t, pids)
				if alive(server) || alive(child) {
					t.Error("somebody lives")
				}
			}
			select {
			case <-live.proc.proc.Exited():
			default:
				t.Error("it lives")
			}
		})
	}
}

func TestAClientThatIsKilledLeavesNoProcess(t *testing.T) {
	t.Parallel()
	pids := filepath.Join(t.TempDir(), "pids")
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), serves+"=client", "MCP_TEST_PID="+pids)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	if line, err := bufio.NewReader(out).ReadString('\n'); err != nil || line != "connected\n" {
		t.Error(line, err)
	}
	server, child := readPIDs(t, pids)
	if !alive(server) || !alive(child) {
		t.Error("they don't live")
	}
	_ = cmd.Process.Kill()
	_ = cmd.Wait()
	eventually(t, "its server and what that started are gone", func() bool { return !alive(server) && !alive(child) })
}

// What one client stops is its own: not another client's server of the same name, nor one whose name begins with it.
func TestCloseLeavesServersOfOthersAlone(t *testing.T) {
	t.Parallel()
	longer := stdioServer("all")
	longer.Name = "s2"
	first, second := connect(t, stdioServer("all")), connect(t, stdioServer("all"), longer)
	before := []*session{second.servers[0].current(), second.servers[1].current()}
	closeClient(t, first)
	for i, s := range second.servers {
		if _, err := before[i].ListTools(t.Context(), nil); err != nil || s.current() != before[i] {
			t.Errorf("%s: %v", s.conf.Name, err)
		}
	}
}

func TestWhatIsNoMessageIsPassedOver(t *testing.T) {
	t.Parallel()
	c := connect(t, stdioServer("stubborn"))
	if w := c.Warnings(); len(w) != 1 || !strings.Contains(w[0], `"I am not JSON"`) || c.servers[0].current() == nil {
		t.Error(w)
	}
}

func TestAMessageThatIsTooLongEndsTheConnectionOnly(t *testing.T) {
	t.Parallel()
	c := connect(t, stdioServer("huge"))
	if _, err := use(t, c, "t", `{}`); err == nil || !strings.Contains(err.Error(), "a message of more than 32 MiB") {
		t.Error(err)
	}
}

func TestAServerThatDoesNotStartIsAWarning(t *testing.T) {
	t.Parallel()
	silent := stdioServer("silent")
	silent.Name, silent.Startup = "silent", 300*time.Millisecond
	gone := stdioServer("gone")
	gone.Name = "gone"
	c := connect(t, silent, stdioServer("all"), gone, Server{Name: "none", Command: "/no/such/program"}, Server{Name: "refused", URL: "http://127.0.0.1:1/mcp"})
	w := strings.Join(c.Warnings(), "\n")
	for _, want := range []string{"server silent: connect: it was not ready within 300ms", "server gone: connect: ", "it said: no such module", "server none: start: ", "server refused: connect: "} {
		if !strings.Contains(w, want) {
			t.Errorf("no %q in\n%s", want, w)
		}
	}
	if got, err := use(t, c, "echo", `{"text":"hi"}`); err != nil || got.Content != "hi\nend" {
		t.Error("the others work:", got, err)
	}
	gone.Required = true
	if _, err := Connect(t.Context(), []Server{stdioServer("all"), gone}, Options{}); !errors.Is(err, errdefs.NotAvailable) || !strings.Contains(err.Error(), "no such module") {
		t.Error(err)
	}
}

func TestAServerThatDidNotStartIsTriedAgainLater(t *testing.T) {
	t.Parallel()
	marker := filepath.Join(t.TempDir(), "program")
	c := connect(t, Server{Name: "s", Command: marker, Env: map[string]string{serves: "all"}})
	if len(c.Tools(t.Context())) != 0 {
		t.Fatal("tools of nothing")
	}
	if err := os.Symlink(os.Args[0], marker); err != nil {
		t.Fatal(err)
	}
	eventually(t, "it is time", c.Changed)
	if len(c.Tools(t.Context())) == 0 {
		t.Error(c.Warnings())
	}
}

func TestAServerThatKnowsNothingNewIsAskedInTheOldWay(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("it waits")
	}
	c := connect(t, stdioServer("mute"))
	if c.servers[0].current() == nil {
		t.Error(c.Warnings())
	}
}

func TestASessionThatExpiredIsMadeAgain(t *testing.T) {
	t.Parallel()
	h := newHTTPServer(t, nil, nil)
	c := connect(t, Server{Name: "s", URL: h.URL})
	first := c.servers[0].current()
	h.restart(nil, nil) // it knows no session any more
	got, err := use(t, c, "fail", `{}`)
	if err != nil || got.Content != "it went wrong" {
		t.Error("the server did not run it, so it is repeated:", got, err)
	}
	if c.servers[0].current() == first {
		t.Error("the same session")
	}
}
