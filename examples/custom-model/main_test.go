package main

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/pawl-dev/pawl/errdefs"
	"github.com/pawl-dev/pawl/internal/component"
	"github.com/pawl-dev/pawl/internal/readme"
	"github.com/pawl-dev/pawl/message"
	"github.com/pawl-dev/pawl/model"
)

func TestMain(m *testing.M) { readme.Main(m, main) }

func TestTheHeatingIsSwitched(t *testing.T) {
	component.Command(t, "jq", "install jq")
	page := readme.Open(t, "examples/custom-model")
	page.Run()
	files, err := filepath.Glob(filepath.Join(page.Dir, "tmp/*/heating"))
	if err != nil || len(files) != 1 {
		t.Fatal(files, err)
	}
	if b, err := os.ReadFile(files[0]); err != nil || string(b) != "off\n" {
		t.Errorf("%q %v", b, err)
	}
}

// ask has a model that is a script of the shell.
func ask(ctx context.Context, script string, req model.Request) (*model.Response, error) {
	return Command{"sh", "-c", script}.Complete(ctx, req)
}

var hello = model.Request{System: "Be kind.", Messages: message.NewHistory(message.User("Hello"))}

func TestWhatTheProgramReadsAndWrites(t *testing.T) {
	seen := filepath.Join(t.TempDir(), "seen")
	req := hello
	req.Tools = []model.Tool{{Name: "look", Schema: []byte(`{"type":"object"}`)}}
	req.Messages = req.Messages.Append(
		message.Assistant("I look.", message.ToolCall{ID: "c1", Name: "look", Input: `{"at":1}`}),
		message.Results(message.ToolResult{Call: "c1", Name: "look", Content: "nothing", IsError: true}))
	res, err := ask(t.Context(), `cat > '`+seen+`'; echo '{"text": "Again.", "calls": [{"name": "look", "input": {"at": 2}}]}'`, req)
	if err != nil {
		t.Fatal(err)
	}
	calls := res.Message.ToolCalls()
	if res.Message.Text() != "Again." || res.Stop != model.StopTools || len(calls) != 1 || calls[0].Input != `{"at": 2}` || calls[0].ID == "c1" {
		t.Errorf("%+v %+v", res, calls)
	}
	b, err := os.ReadFile(seen)
	if err != nil {
		t.Fatal(err)
	}
	want := `{"system":"Be kind.","tools":[{"name":"look","schema":{"type":"object"}}],"messages":[{"role":"user","text":"Hello"},{"role":"assistant","text":"I look.","calls":[{"name":"look","input":{"at":1}}]},{"role":"tool","results":[{"name":"look","content":"nothing","error":true}]}]}`
	if diff := cmp.Diff(want, string(b)); diff != "" {
		t.Error(diff)
	}
}

func TestAStreamIsTheWholeReply(t *testing.T) {
	pieces := 0
	err := Command{"echo", `{"text": "Hello!"}`}.CompleteStream(t.Context(), hello, func(r model.StreamResult) error {
		pieces++
		if !r.Final || r.Response.Message.Text() != "Hello!" || r.Response.Stop != model.StopEnd {
			t.Errorf("%+v", r)
		}
		return nil
	})
	if err != nil || pieces != 1 {
		t.Error(pieces, err)
	}
}

func TestWhatGoesWrongHasAClass(t *testing.T) {
	_, err := ask(t.Context(), "echo busy >&2; exit 1", hello)
	if !errdefs.NotAvailable.Is(err) || !strings.Contains(err.Error(), "busy") {
		t.Error(err)
	}
	if _, err := ask(t.Context(), "echo hello", hello); !errdefs.Internal.Is(err) {
		t.Error(err)
	}
	temperature := hello
	temperature.Output = []byte(`{"type":"object"}`)
	if _, err := ask(t.Context(), "echo '{}'", temperature); !errdefs.Validation.Is(err) {
		t.Error(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if _, err := ask(ctx, "exec sleep 60", hello); !errors.Is(err, context.DeadlineExceeded) {
		t.Error(err)
	}
}
