//go:build unix

package mcp

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/pawl-dev/pawl/agent"
	"github.com/pawl-dev/pawl/engine"
	"github.com/pawl-dev/pawl/engine/loop"
	"github.com/pawl-dev/pawl/journal"
	"github.com/pawl-dev/pawl/message"
	"github.com/pawl-dev/pawl/model/scripted"
)

// The official runner starts this program once a scenario, as a client of a server of its own.
func TestTheOfficialConformanceRunnerIsContent(t *testing.T) {
	t.Parallel()
	runner, out := installed(t, "conformance"), t.TempDir()
	baseline, err := filepath.Abs("testdata/conformance.yaml")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, node(t), runner, "client", "--command", os.Args[0], "--suite", "all", "--expected-failures", baseline, "--output-dir", out, "--timeout", "60000")
	cmd.Dir = out
	cmd.Env = append(os.Environ(), serves+"=conformance", "PATH="+filepath.Dir(node(t))+string(os.PathListSeparator)+os.Getenv("PATH"))
	said, err := cmd.CombinedOutput()
	if err != nil {
		t.Errorf("%v\n%s", err, said)
	}
	count := func(pattern string) int { return len(regexp.MustCompile(pattern).FindAll(said, -1)) }
	t.Logf("conformance: %d scenarios, %d pass, %d are expected to fail", count(`(?m)^[✓✗] `), count(`(?m)^✓ `), count(`(?m)^✗ `))
	if n := count(`(?m)^✓ `); n < 25 {
		t.Errorf("%d scenarios pass\n%s", n, said)
	}
}

// conformance is the client of one scenario: an agent that uses the server's tools.
func conformance(address string) error {
	ctx, cancel := context.WithTimeout(context.Background(), 50*time.Second)
	defer cancel()
	tokens, err := os.MkdirTemp("", "pawl-conformance-")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(tokens) }()
	var given struct {
		ID     string `json:"client_id"`
		Secret string `json:"client_secret"`
		Key    string `json:"private_key_pem"`
	}
	if text := os.Getenv("MCP_CONFORMANCE_CONTEXT"); text != "" {
		if err := json.Unmarshal([]byte(text), &given); err != nil {
			return err
		}
	}
	s := Server{Name: "s", URL: address, Required: true, OAuth: OAuth{ClientID: given.ID, ClientSecret: given.Secret, PrivateKey: given.Key}}
	if strings.HasPrefix(os.Getenv("MCP_CONFORMANCE_SCENARIO"), "auth/client-credentials-") {
		s.OAuth.Grant = GrantClientCredentials
	}
	if given.ID == "" {
		s.OAuth.ClientID = "https://conformance-test.local/client-metadata.json"
	}
	c, err := Connect(ctx, []Server{s}, Options{Tokens: tokens, Open: visit})
	if err != nil {
		return err
	}
	defer func() { _ = c.Close(ctx) }()
	calls := []scripted.Call{}
	for i, f := range c.Tools(ctx) {
		input := "{}"
		if strings.HasSuffix(f.Definition().Name, "__add_numbers") {
			input = `{"a":5,"b":3}`
		}
		calls = append(calls, scripted.Call{ID: fmt.Sprint(i), Name: f.Definition().Name, Input: input})
	}
	if len(calls) == 0 {
		return nil
	}
	eng, err := loop.New(loop.Config{Model: scripted.New(scripted.Turn{Calls: calls}, scripted.Text("done")), Tools: c.Tools(ctx)})
	if err != nil {
		return err
	}
	person := engine.HostFuncs{AskUserFunc: func(_ context.Context, p engine.Prompt) (engine.Reply, error) {
		return engine.Reply{Answered: journal.Answered{ID: p.ID, Approved: true}}, nil // who takes the defaults
	}}
	res, err := agent.Run(ctx, agent.Agent{ID: "a"}, eng, agent.Request{Message: message.User("go")}, agent.WithEngineHost(person))
	if err != nil {
		return err
	}
	for _, m := range res.Messages {
		for r := range message.Of[message.ToolResult](m) {
			fmt.Println(r.Name, r.IsError, r.Content)
			if r.IsError && strings.Contains(r.Content, "pawl mcp login") { // an agent goes on, but this is a test of logins
				return fmt.Errorf("%s", r.Content)
			}
		}
	}
	return res.Err
}

// visit is a browser with a person who agrees.
func visit(ctx context.Context, address string) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return err
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	_, _ = io.Copy(io.Discard, resp.Body)
	return resp.Body.Close()
}
