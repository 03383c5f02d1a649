//go:build unix

package pawl_test

import (
	"context"
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/pawl-dev/pawl"
	"github.com/pawl-dev/pawl/agent"
	"github.com/pawl-dev/pawl/engine/loop"
	"github.com/pawl-dev/pawl/journal"
	"github.com/pawl-dev/pawl/journal/sqlite"
	"github.com/pawl-dev/pawl/message"
	"github.com/pawl-dev/pawl/model"
	"github.com/pawl-dev/pawl/sandbox"
	"github.com/pawl-dev/pawl/tool"
	"github.com/pawl-dev/pawl/tool/builtin"
)

// thinking is a model that looks at what it is asked.
type thinking func(req model.Request) message.Message

func (f thinking) Complete(_ context.Context, req model.Request) (*model.Response, error) {
	return &model.Response{Message: f(req)}, nil
}

func (f thinking) CompleteStream(ctx context.Context, req model.Request, cb model.StreamHandler) error {
	resp, err := f.Complete(ctx, req)
	if err != nil {
		return err
	}
	return cb(model.StreamResult{Final: true, Response: resp})
}

var commandID = regexp.MustCompile(`bg-[0-9a-zA-Z_-]+`)

// told is the texts of a request that no person and no model wrote.
func told(req model.Request) (texts []string) {
	for _, m := range req.Messages.All() {
		if m.Role() == message.RoleUser && strings.HasPrefix(m.Text(), "[") {
			texts = append(texts, commandID.ReplaceAllString(m.Text(), "ID"))
		}
	}
	return texts
}

// background is a call that starts a command.
func background(id, command string) message.Message {
	return message.Assistant("", call(id, "bash", fmt.Sprintf(`{"command":%q,"background":true}`, command)))
}

// replies is how often the model has spoken.
func replies(req model.Request) (n int) {
	for _, m := range req.Messages.All() {
		if m.Role() == message.RoleAssistant {
			n++
		}
	}
	return n
}

// last is the result of the last call.
func last(req model.Request) string {
	for i := req.Messages.Len() - 1; i >= 0; i-- {
		for r := range message.Of[message.ToolResult](req.Messages.At(i)) {
			return r.Content
		}
	}
	return ""
}

// inProject is a Runtime with the built-in tools over a fresh directory, and with no questions.
func inProject(t *testing.T, store journal.Store, m model.Model, more ...tool.Tool) *pawl.Runtime {
	t.Helper()
	o := pawl.Options{Model: m, ProjectRoot: t.TempDir(), Journal: store, Sandbox: &sandbox.Policy{Off: true}, Tools: more}
	o.Permissions.Mode = "bypassPermissions"
	rt, err := pawl.New(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = rt.Close() })
	return rt
}

func kinds(t *testing.T, store journal.Store, session, prefix string) (all []string) {
	t.Helper()
	for e, err := range store.Read(t.Context(), session, 0) {
		if err != nil {
			t.Fatal(err)
		}
		if k := string(e.Data.Kind()); strings.HasPrefix(k, prefix) {
			all = append(all, k)
		}
		if d, ok := e.Data.(journal.CommandEnded); ok {
			all[len(all)-1] += " " + d.Reason
		}
	}
	return all
}

func TestABackgroundCommandIsOnRecordAndItsEndIsTold(t *testing.T) {
	store := journal.Memory()
	var heard []string
	rt := inProject(t, store, thinking(func(req model.Request) message.Message {
		switch replies(req) { // the end may be told at any of them
		case 0:
			return background("c1", "echo hello; exit 7")
		case 1:
			return message.Assistant("", call("c2", "bash_output", fmt.Sprintf(`{"id":%q,"wait":"1m"}`, commandID.FindString(last(req)))))
		}
		if !strings.Contains(last(req), "hello\n[bg-") || !strings.Contains(last(req), "ended with exit code 7") {
			t.Error(last(req))
		}
		heard = told(req)
		return message.Assistant("done")
	}))
	var events []string
	for e, err := range rt.RunStream(t.Context(), pawl.Request{Prompt: "go", SessionID: "s"}) {
		if err != nil {
			t.Fatal(err)
		}
		if typ := e.Type(); strings.HasPrefix(typ, "command") {
			events = append(events, typ)
		}
	}
	if d := cmp.Diff([]string{"[The background command ID (echo hello; exit 7) ended by itself with exit code 7. bash_output has its output.]"}, heard); d != "" {
		t.Error(d)
	}
	want := []string{"command.started", "command.ended exited"}
	if d := cmp.Diff(want, kinds(t, store, "s", "command")); d != "" {
		t.Error(d)
	}
	if d := cmp.Diff([]string{"command.started", "command.ended"}, events); d != "" {
		t.Error(d)
	}
	all := kinds(t, store, "s", "")
	if i := slices.Index(all, "command.started"); all[i-1] != "tool.started" {
		t.Error("it was not on record before it ran:", all)
	}
	if replayed, err := rt.Replay(t.Context(), "s"); err != nil || len(replayed) != 1 {
		t.Error(replayed, err)
	}
}

func TestARunThatIsAboutToEndHearsThatItsServerHasDied(t *testing.T) {
	store := journal.Memory()
	var heard []string
	rt := inProject(t, store, thinking(func(req model.Request) message.Message {
		switch req.Messages.Len() {
		case 1:
			return background("c1", "exit 1")
		case 3:
			for len(kinds(t, store, "s", "command.ended")) == 0 {
				time.Sleep(5 * time.Millisecond)
			}
			return message.Assistant("The server runs.")
		}
		heard = told(req)
		return message.Assistant("The server has died.")
	}))
	res, err := rt.Run(t.Context(), pawl.Request{Prompt: "go", SessionID: "s"})
	if err != nil || res.Text() != "The server has died." || len(heard) != 1 {
		t.Error(res, err, heard)
	}
}

func TestTheNextRunHearsWhatWasStoppedWithTheProgram(t *testing.T) {
	path := filepath.Join(t.TempDir(), "journal.db")
	serve := func(m model.Model) *pawl.Runtime {
		store, err := sqlite.Open(path)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = store.Close() })
		return inProject(t, store, m)
	}
	rt := serve(stub{background("c1", "sleep 300"), message.Assistant("It runs.")})
	if _, err := rt.Run(t.Context(), pawl.Request{Prompt: "go", SessionID: "s"}); err != nil {
		t.Fatal(err)
	}
	var heard []string
	looks := thinking(func(req model.Request) message.Message {
		heard = told(req)
		return message.Assistant("done")
	})
	if err := rt.Close(); err != nil {
		t.Fatal(err)
	}
	rt = serve(looks)
	for range 2 { // once
		if _, err := rt.Run(t.Context(), pawl.Request{Prompt: "and now?", SessionID: "s"}); err != nil {
			t.Fatal(err)
		}
		want := []string{"[The background command ID (sleep 300) was stopped with the program that ran it, or with its session. Start it again if it is needed.]"}
		if d := cmp.Diff(want, heard); d != "" {
			t.Error(d)
		}
	}
	if d := cmp.Diff([]string{"command.started", "command.ended stopped"}, kinds(t, rt.Journal(), "s", "command")); d != "" {
		t.Error(d)
	}
}

func TestAfterACrashTheModelIsToldOfTheBackgroundCommandsThatAreGone(t *testing.T) {
	store := journal.Memory()
	log, err := journal.Open(t.Context(), store, "s")
	if err != nil {
		t.Fatal(err)
	}
	// As a process leaves it that was killed while the model thought about its next step.
	reply := background("c1", "npm run dev")
	begin := []journal.Entry{
		{Data: journal.SessionCreated{}},
		{Run: "r", Data: journal.RunStarted{Agent: "pawl", Owner: "dead", Attempt: 1, Engine: "loop"}},
		{Run: "r", Data: journal.Said{Message: message.User("go")}},
	}
	rest := []journal.Entry{
		{Run: "r", Key: journal.Key{Op: "prepare"}, Data: journal.Prepared{System: pawl.DefaultSystem, Edit: message.Edit{To: 1}}},
		{Run: "r", Key: journal.Key{Op: "model", ID: "1"}, Data: journal.ModelStarted{}},
		{Run: "r", Key: journal.Key{Op: "model", ID: "1"}, Data: journal.ModelFinished{Message: reply, Stop: model.StopTools}},
		{Run: "r", Key: journal.Key{Op: "judge", ID: "c1"}, Data: journal.ToolJudged{Call: "c1", Verdict: "allow"}},
		{Run: "r", Key: journal.Key{Op: "tool", ID: "c1"}, Data: journal.ToolStarted{Call: journal.Called{ID: "c1", Name: "bash", Input: reply.ToolCalls()[0].Input}}},
		{Run: "r", Key: journal.CommandKey("bg-1"), Data: journal.CommandStarted{ID: "bg-1", Call: "c1", Command: "npm run dev"}},
		{Run: "r", Key: journal.Key{Op: "tool", ID: "c1"}, Data: journal.ToolFinished{Call: "c1", Name: "bash", Content: "bg-1 runs in the background.", Outcome: journal.OutcomeOK}},
		{Run: "r", Key: journal.Key{Op: "model", ID: "2"}, Data: journal.ModelStarted{}},
	}
	if err := log.Drive(t.Context(), "dead", begin...); err != nil {
		t.Fatal(err)
	}
	if err := log.Append(t.Context(), rest...); err != nil {
		t.Fatal(err)
	}
	var heard []string
	rt := inProject(t, store, thinking(func(req model.Request) message.Message {
		heard = told(req)
		if req.Messages.Len() < 5 {
			return message.Assistant("", call("c2", "bash_output", `{"id":"bg-1"}`))
		}
		return message.Assistant("It is gone: " + last(req))
	}))
	res, err := rt.Resume(t.Context(), "s")
	if err != nil || !strings.Contains(res.Text(), "there is no background command bg-1 in this session") {
		t.Error(res, err)
	}
	want := []string{"[The background command ID (npm run dev) is out of reach: the process that ran it has ended, and it with that, or this is another process. Start it again if it is needed.]"}
	if d := cmp.Diff(want, heard); d != "" {
		t.Error(d)
	}
	if d := cmp.Diff([]string{"command.started", "command.ended lost"}, kinds(t, store, "s", "command")); d != "" {
		t.Error(d)
	}
	if _, err := log.EndCommand(t.Context(), journal.CommandEnded{ID: "bg-1", Reason: "exited"}, message.Message{}); err == nil {
		t.Error("it ended twice")
	}
}

func TestTheBackgroundCommandsOfATaskEndWithIt(t *testing.T) {
	store := journal.Memory()
	ws, err := builtin.Open(t.TempDir(), builtin.WithSandbox(sandbox.Policy{Off: true}))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = ws.Close() }()
	below, err := loop.New(loop.Config{Model: stub{background("b1", "sleep 300"), message.Assistant("It runs.")}, Tools: ws.Tools()})
	if err != nil {
		t.Fatal(err)
	}
	task, err := agent.Task(agent.Subagents{{Agent: agent.Agent{ID: "helper"}, Engine: below, Description: "helps"}})
	if err != nil {
		t.Fatal(err)
	}
	rt := inProject(t, store, stub{message.Assistant("", call("c1", "task", `{"agent":"helper","prompt":"start it"}`))}, task)
	res, err := rt.Run(t.Context(), pawl.Request{Prompt: "go", SessionID: "s"})
	if err != nil || res.Text() != "done" {
		t.Fatal(res, err)
	}
	if err := ws.Close(); err != nil { // whose end comes after that of the command
		t.Fatal(err)
	}
	if d := cmp.Diff([]string{"command.started", "command.ended stopped"}, kinds(t, store, "s/c1", "command")); d != "" {
		t.Error(d)
	}
	log, err := journal.Open(t.Context(), store, "s/c1")
	if err != nil || len(log.State().Steering) != 0 || len(log.Commands()) != 0 {
		t.Error(log.State().Steering, err)
	}
}

func TestAForkHasNoneOfItsParentsBackgroundCommands(t *testing.T) {
	store := journal.Memory()
	rt := inProject(t, store, stub{background("c1", "sleep 300"), message.Assistant("It runs.")})
	if _, err := rt.Run(t.Context(), pawl.Request{Prompt: "go", SessionID: "s"}); err != nil {
		t.Fatal(err)
	}
	log, err := journal.Open(t.Context(), store, "s")
	if err != nil || len(log.Commands()) != 1 {
		t.Fatal(log.Commands(), err)
	}
	if _, err := journal.Fork(t.Context(), store, "s", log.Seq(), "fork"); err != nil {
		t.Fatal(err)
	}
	if fork, err := journal.Open(t.Context(), store, "fork"); err != nil || len(fork.Commands()) != 0 {
		t.Error(fork.Commands(), err)
	}
}

func TestASessionsBackgroundCommandsEndWithIt(t *testing.T) {
	rt := inProject(t, journal.Memory(), stub{background("c1", "sleep 300"), message.Assistant("It runs.")})
	for _, session := range []string{"a", "b"} {
		if _, err := rt.Run(t.Context(), pawl.Request{Prompt: "go", SessionID: session}); err != nil {
			t.Fatal(err)
		}
	}
	if err := rt.EndSession(t.Context(), "a"); err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff([]string{"command.started", "command.ended stopped"}, kinds(t, rt.Journal(), "a", "command")); d != "" {
		t.Error(d)
	}
	if d := cmp.Diff([]string{"command.started"}, kinds(t, rt.Journal(), "b", "command")); d != "" {
		t.Error(d)
	}
}
