package serve_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/pawl-dev/pawl/agent"
	"github.com/pawl-dev/pawl/internal/component"
	"github.com/pawl-dev/pawl/internal/testkit/tier"
	"github.com/pawl-dev/pawl/journal"
	"github.com/pawl-dev/pawl/model/scripted"
	"github.com/pawl-dev/pawl/serve"
)

// Clients of A2A that others wrote find the agent, and do with it what there is to be done.
func TestClientsThatOthersWrote(t *testing.T) {
	tier.SkipQuick(t, "it runs clients from npm")
	dir := os.Getenv("PAWL_NPM")
	if dir == "" {
		component.Absent(t, "PAWL_NPM says nothing", "run scripts/test, which installs the packages and says where")
	}
	for _, name := range []string{"a2a-sdk-1", "a2a-sdk-03"} {
		if _, err := os.Stat(filepath.Join(dir, "node_modules", name)); err != nil {
			component.Absent(t, "the npm package "+name+" is not in PAWL_NPM", "run scripts/test, which installs it")
		}
	}
	node := filepath.Join(dir, "node_modules", "node", "bin", "node")
	if _, err := os.Stat(node); err != nil {
		node = component.Command(t, "node", "install Node 20 or later")
	}
	for _, v := range versions {
		t.Run(string(v), func(t *testing.T) {
			token := strings.Repeat("t", 20)
			o := serve.Options{
				Tokens: []string{token}, PushHosts: []string{"127.0.0.1"},
				Card: agent.AgentCard{Name: "pawl-test", Description: "Adds.", Skills: []agent.Skill{{ID: "sums", Name: "Sums", Description: "Adds numbers.", Tags: []string{"math"}}}},
			}
			plain := serves(t, journal.Memory(), scripted.New(scripted.Text("It is five."), scripted.Text("Six it is, I think.")), o)
			asks := asking(t, o, journal.Memory(),
				scripted.Calls(scripted.Call{Name: "add", Input: `{"A":2,"B":3}`}),
				scripted.Calls(scripted.Call{Name: "ask_user", Input: `{"question":"Which?","options":[{"label":"red"},{"label":"blue"}]}`}),
				scripted.Text("Blue, and 23."))
			g := gate("wait")
			waits := serves(t, journal.Memory(), scripted.New(scripted.Turn{Text: "Let me see.", Calls: call("wait")}, scripted.Text("It waited.")), o, g)
			control := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
				<-g.started
				g.goOn <- struct{}{}
			}))
			defer control.Close()
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			cmd := exec.CommandContext(ctx, node, "testdata/a2a.mjs")
			cmd.Env = append(os.Environ(), "VERSION="+string(v), "PLAIN="+plain.http.URL, "ASKS="+asks.http.URL, "WAITS="+waits.http.URL, "CONTROL="+control.URL, "TOKEN="+token)
			out, err := cmd.CombinedOutput()
			if err != nil || !strings.HasSuffix(strings.TrimSpace(string(out)), "ok") {
				t.Fatalf("%v\n%s", err, out)
			}
			if n := g.runs.Load(); n != 2 {
				t.Errorf("the tool ran %d times", n)
			}
		})
	}
}
