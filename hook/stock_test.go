package hook_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/pawl-dev/pawl/errdefs"
	"github.com/pawl-dev/pawl/hook"
	"github.com/pawl-dev/pawl/message"
	"github.com/pawl-dev/pawl/model"
	"github.com/pawl-dev/pawl/tool"
)

func said(h message.History) (out []string) {
	for _, m := range h.All() {
		out = append(out, string(m.Role())+": "+m.Text())
	}
	return out
}

// prepared is the transcript that the PreGeneration hooks leave.
func prepared(t *testing.T, h message.History, hooks ...hook.Middleware) message.History {
	t.Helper()
	g := &hook.Generation{Where: hook.Where{Session: "s", Run: "r", User: "ann"}, Messages: h}
	if err := hook.Prepare(t.Context(), hooks, g); err != nil {
		t.Fatal(err)
	}
	return g.Messages
}

func TestInjectPutsContextInFrontOnceASession(t *testing.T) {
	memory := hook.Inject("memory", message.Text{Text: "we use Go", Origin: message.Origin{Provider: "anthropic"}})
	rules := hook.Inject("rules", message.Text{Text: "be brief"}, message.File{MIME: "image/png", Data: "x"})
	one := prepared(t, message.NewHistory(message.User("hi")), memory, rules)
	if diff := cmp.Diff([]string{"user: be brief", "user: we use Go", "user: hi"}, said(one)); diff != "" {
		t.Error(diff)
	}
	two := prepared(t, one.Append(message.Assistant("hello"), message.User("and now?")), memory, rules)
	for i := range one.Len() {
		if one.At(i) != two.At(i) {
			t.Errorf("message %d moved", i)
		}
	}
	if two.Len() != 5 {
		t.Error(said(two))
	}
	changed := prepared(t, two, hook.Inject("memory", message.Text{Text: "we use Rust"}), rules)
	if diff := cmp.Diff([]string{"user: be brief", "user: we use Rust", "user: hi", "assistant: hello", "user: and now?"}, said(changed)); diff != "" {
		t.Error(diff)
	}
	picture := hook.Inject("logo", message.File{MIME: "image/png", Data: "y"})
	with := prepared(t, one, picture)
	if again := prepared(t, with, picture); with.Len() != 4 || again.Len() != 4 {
		t.Error(said(again))
	}
	if mine := prepared(t, message.NewHistory(message.New(message.RoleUser, message.Text{Text: "x", Origin: message.Origin{Provider: "pawl", Extra: `{"why":"continue"}`}})), memory); mine.Len() != 2 {
		t.Error(said(mine))
	}
}

func TestTheUsageLoggerSaysWhatARunTook(t *testing.T) {
	var b bytes.Buffer
	log := hook.UsageLogger(slog.New(slog.NewTextHandler(&b, nil)))
	g := &hook.Generation{
		Where: hook.Where{Agent: "a", Session: "s", Run: "r", User: "ann"}, Usage: model.Usage{Input: 1, Output: 2, CacheRead: 3, CacheWrite: 4, Reasoning: 5},
		Response: &model.Response{Model: "m", Stop: model.StopEnd},
	}
	if again, errs := hook.Finish(t.Context(), []hook.Middleware{log}, g); again != "" || errs != nil {
		t.Error(again, errs)
	}
	want := `msg="generation complete" agent=a session_id=s run_id=r user_id=ann model=m stop=end_turn input_tokens=1 output_tokens=2 cache_read_tokens=3 cache_write_tokens=4 reasoning_tokens=5`
	if !strings.Contains(b.String(), want) {
		t.Error(b.String())
	}
}

func TestSessionsOfACallersOwnStoreHaveInputAndOutput(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "made when it is needed")
	hooks := []hook.Middleware{hook.Sessions(hook.FileSessions(dir))}
	run := func(said, answer string, journal ...message.Message) message.History {
		h := prepared(t, message.NewHistory(append(journal, message.User(said))...), hooks...).Append(message.Assistant(answer))
		g := &hook.Generation{Where: hook.Where{Session: "s", User: "ann"}, Messages: h}
		if _, errs := hook.Finish(t.Context(), hooks, g); errs != nil {
			t.Fatal(errs)
		}
		return h
	}
	first := run("hi", "hello")
	got := run("more", "sure", rest(first)...) // the journal has the first run as well
	if diff := cmp.Diff([]string{"user: hi", "assistant: hello", "user: more", "assistant: sure"}, said(got)); diff != "" {
		t.Error(diff)
	}
	s, err := hook.FileSessions(dir).GetSession(t.Context(), "s")
	if err != nil || s.User != "ann" || s.UpdatedAt.IsZero() {
		t.Fatal(s, err)
	}
	if diff := cmp.Diff(said(got), said(s.Messages)); diff != "" {
		t.Error(diff)
	}
}

func rest(h message.History) (ms []message.Message) {
	for _, m := range h.All() {
		ms = append(ms, m)
	}
	return ms
}

type brokenStore struct{ hook.SessionStore }

func (brokenStore) GetSession(context.Context, string) (*hook.Session, error) {
	return nil, errdefs.NotAvailable.Errorf("the disk is gone")
}

func (brokenStore) PutSession(context.Context, *hook.Session) error {
	return errdefs.NotAvailable.Errorf("the disk is gone")
}

func TestASessionStoreThatFailsEndsTheRunOrLeavesTheReply(t *testing.T) {
	hooks := []hook.Middleware{hook.Sessions(brokenStore{})}
	g := &hook.Generation{Where: hook.Where{Session: "s"}, Messages: message.NewHistory(message.User("hi"))}
	if err := hook.Prepare(t.Context(), hooks, g); !errdefs.Aborted.Is(err) || !strings.Contains(err.Error(), `load the session "s"`) {
		t.Error(err)
	}
	if _, errs := hook.Finish(t.Context(), hooks, g); len(errs) != 1 || !strings.Contains(errs[0].Error(), `save the session "s"`) {
		t.Error(errs)
	}
}

func TestFileSessionsAreWholeAndApart(t *testing.T) {
	dir := t.TempDir()
	store := hook.FileSessions(dir)
	tough := message.NewHistory(message.User("<a> \u2028 \xff"), message.Assistant("", message.ToolCall{ID: "c", Name: "t", Input: `{"a":"<&>"}`}),
		message.Results(message.ToolResult{Call: "c", Name: "t", Content: "x", Files: []message.File{{MIME: "a/b", Data: "\xff\x00"}}}))
	ids := []string{"s", "..", ".", "a/b", "../x", "é \x00", "A%2Fb"}
	var wg sync.WaitGroup
	for _, id := range ids {
		wg.Go(func() {
			for range 20 {
				if err := store.PutSession(t.Context(), &hook.Session{ID: id, Messages: tough, UpdatedAt: time.Unix(1, 0).UTC()}); err != nil {
					t.Error(id, err)
				}
			}
		})
	}
	wg.Wait()
	for _, id := range ids {
		s, err := store.GetSession(t.Context(), id)
		if err != nil || s.ID != id || s.Messages.Len() != 3 || string(s.Messages.At(1).AppendJSON(nil)) != string(tough.At(1).AppendJSON(nil)) {
			t.Errorf("%q: %+v, %v", id, s, err)
		}
	}
	files, _ := os.ReadDir(dir)
	if len(files) != len(ids) {
		t.Errorf("%v: other files are left", files)
	}
	for name, c := range map[string]struct {
		id    string
		class *errdefs.Class
	}{"none": {"nobody", errdefs.NotFound}, "no id": {"", errdefs.Validation}, "a long id": {strings.Repeat("x", 300), errdefs.Validation}, "broken": {"broken", errdefs.Internal}, "another's": {"other", errdefs.Conflict}} {
		_ = os.WriteFile(filepath.Join(dir, "broken.json"), []byte("{"), 0o600)
		_ = os.WriteFile(filepath.Join(dir, "other.json"), []byte(`{"id":"OTHER"}`), 0o600)
		if _, err := store.GetSession(t.Context(), c.id); !c.class.Is(err) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if err := hook.FileSessions(filepath.Join(dir, "s.json")).PutSession(t.Context(), &hook.Session{ID: "x"}); !errdefs.NotAvailable.Is(err) {
		t.Error(err)
	}
}

func TestCompactionShortensWithoutLosingTheNewestMessage(t *testing.T) {
	long := message.NewHistory(message.User(strings.Repeat("word ", 400)), message.Assistant("yes"), message.User("now"))
	summary := message.NewHistory(message.User("in short: words"))
	var b bytes.Buffer
	log := slog.New(slog.NewTextHandler(&b, nil))
	for name, c := range map[string]struct {
		threshold int
		summarize func(context.Context, message.History) (message.History, error)
		want      []string
		warns     string
	}{
		"a summary":           {100, func(context.Context, message.History) (message.History, error) { return summary, nil }, []string{"user: in short: words", "user: now"}, ""},
		"one with the newest": {100, func(_ context.Context, h message.History) (message.History, error) { return h.Slice(1, 3), nil }, []string{"assistant: yes", "user: now"}, ""},
		"not long enough":     {100_000, nil, said(long), ""},
		"an error": {100, func(context.Context, message.History) (message.History, error) {
			return summary, errors.New("no model")
		}, said(long), "no model"},
		"a panic":                {100, func(context.Context, message.History) (message.History, error) { panic("boom") }, said(long), "boom"},
		"one that is no shorter": {100, func(_ context.Context, h message.History) (message.History, error) { return h, nil }, said(long), "the summary takes"},
		"a broken one": {100, func(context.Context, message.History) (message.History, error) {
			return message.NewHistory(message.Assistant("", message.ToolCall{ID: "c", Name: "t", Input: "{}"})), nil
		}, []string{"assistant: ", "tool: ", "user: now"}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			b.Reset()
			got := prepared(t, long, hook.Compaction(c.threshold, c.summarize, log))
			if diff := cmp.Diff(c.want, said(got)); diff != "" {
				t.Error(diff)
			}
			if got.Last() != long.Last() {
				t.Error("the newest message is another one")
			}
			if (b.Len() > 0) != (c.warns != "") || !strings.Contains(b.String(), c.warns) {
				t.Error(b.String())
			}
		})
	}
	ctx, cancel := context.WithCancel(t.Context())
	canceled := hook.Compaction(1, func(ctx context.Context, h message.History) (message.History, error) { cancel(); return h, ctx.Err() }, log)
	if err := hook.Prepare(ctx, []hook.Middleware{canceled}, &hook.Generation{Messages: long}); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}

func TestRedactTakesSecretsOutOfResults(t *testing.T) {
	key := "-----BEGIN OPENSSH PRIVATE KEY-----\nb3Bl\n-----END OPENSSH PRIVATE KEY-----"
	for _, secret := range []string{
		key, "-----BEGIN RSA PRIVATE KEY-----\ncut off", "AKIA" + strings.Repeat("A", 16), "ghp_" + strings.Repeat("a1", 18), "github_pat_" + strings.Repeat("a", 30), "glpat-" + strings.Repeat("a", 20),
		"xoxb-1234567890-abc", "sk-ant-" + strings.Repeat("a", 30), "sk-proj-" + strings.Repeat("a", 30), "sk_live_" + strings.Repeat("a", 20), "AIza" + strings.Repeat("a", 35),
		"npm_" + strings.Repeat("a", 36), "eyJhbGciOiJI.eyJzdWIiOiIx.c2lnbmF0dXJl",
	} {
		files := []message.File{{MIME: "image/png", Data: secret}, {MIME: "text/plain", Data: "x " + secret, Hash: "h"}}
		u := &hook.ToolUse{Result: &tool.Result{Content: "before " + secret + " after", Files: files}}
		if err := hook.After(t.Context(), []hook.Middleware{hook.Redact()}, u); err != nil {
			t.Fatal(err)
		}
		if want := "before " + hook.Redacted + " after"; u.Result.Content != want && !strings.HasPrefix(secret, "-----BEGIN RSA") || strings.Contains(u.Result.Content, secret) {
			t.Errorf("%q is still in %q", secret, u.Result.Content)
		}
		if u.Result.Files[1].Data != "x "+hook.Redacted || u.Result.Files[1].Hash != "" || u.Result.Files[0].Data != secret || files[1].Data == u.Result.Files[1].Data {
			t.Errorf("%+v", u.Result.Files)
		}
	}
	for _, plain := range []string{"sk-short", "go test ./...", "a.b.c", "desk-" + strings.Repeat("a", 30), "AKIA", "-----BEGIN PUBLIC KEY-----"} {
		u := &hook.ToolUse{Result: &tool.Result{Content: plain}}
		if err := hook.After(t.Context(), []hook.Middleware{hook.Redact()}, u); err != nil || u.Result.Content != plain {
			t.Errorf("%q became %q: %v", plain, u.Result.Content, err)
		}
	}
	u := &hook.ToolUse{Result: &tool.Result{Content: "call 555-1234 $1"}}
	if err := hook.After(t.Context(), []hook.Middleware{hook.Redact(regexp.MustCompile(`\d{3}-\d{4}`))}, u); err != nil || u.Result.Content != "call "+hook.Redacted+" $1" {
		t.Error(u.Result.Content, err)
	}
}

func TestAGuardrailStopsTheRunBeforeAndSendsTheModelBackAfter(t *testing.T) {
	no := func(word string) func(context.Context, string) error {
		return func(_ context.Context, text string) error {
			if strings.Contains(text, word) {
				return fmt.Errorf("it speaks of %s", word)
			}
			return nil
		}
	}
	hooks := []hook.Middleware{hook.Guardrail("polite", no("weapons"), no("prices"))}
	g := &hook.Generation{Messages: message.NewHistory(message.User("how do weapons work?"))}
	if err := hook.Prepare(t.Context(), hooks, g); !errdefs.Aborted.Is(err) || err.Error() != "hook polite: it speaks of weapons" {
		t.Error(err)
	}
	g = &hook.Generation{Messages: message.NewHistory(message.User("hi")), Response: &model.Response{Message: message.Assistant("our prices are low")}}
	if err := hook.Prepare(t.Context(), hooks, g); err != nil {
		t.Error(err)
	}
	if again, errs := hook.Finish(t.Context(), hooks, g); again != "Your answer was not accepted: it speaks of prices. Please correct it." || errs != nil {
		t.Error(again, errs)
	}
	g.Response = &model.Response{Message: message.Assistant("we are nice")}
	g = &hook.Generation{Messages: g.Messages, Response: g.Response}
	if again, errs := hook.Finish(t.Context(), append(hooks, hook.Guardrail("none", nil, nil)), g); again != "" || errs != nil {
		t.Error(again, errs)
	}
}
