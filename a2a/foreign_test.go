package a2a_test

import (
	"context"
	"errors"
	"io"
	"iter"
	"net/http"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/pawl-dev/pawl/a2a"
	"github.com/pawl-dev/pawl/errdefs"
	"github.com/pawl-dev/pawl/internal/a2apeer"
	"github.com/pawl-dev/pawl/internal/httpapi"
	"github.com/pawl-dev/pawl/internal/traced"
)

func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m, goleak.Cleanup(func(int) { httpapi.CloseIdle() }))
}

func say(text string) a2a.SendRequest {
	return a2a.SendRequest{Message: a2a.Message{ID: "m-" + text, Role: a2a.RoleUser, Parts: []a2a.Part{a2a.Text(text)}}}
}

// told is what a stream tells: states, words and texts of artifacts.
func told(t *testing.T, events iter.Seq2[a2a.Event, error]) (task string, all []string) {
	t.Helper()
	for e, err := range events {
		if err != nil {
			t.Fatal(err)
		}
		if e.TaskID() != "" {
			task = e.TaskID()
		}
		switch {
		case e.Artifact != nil:
			all = append(all, e.Artifact.Artifact.Name+":"+e.Artifact.Artifact.Parts[0].Text)
		case e.Message != nil:
			all = append(all, e.Message.Parts[0].Text)
		case e.State() != "":
			all = append(all, strings.TrimPrefix(string(e.State()), "TASK_STATE_"))
		}
	}
	return task, all
}

// foreign runs f against agents of both SDKs.
func foreign(t *testing.T, f func(t *testing.T, c *a2a.Client, url string)) {
	t.Helper()
	for sdk, v := range map[string]a2a.Version{"1": a2a.V1, "03": a2a.V03} {
		t.Run("sdk "+sdk, func(t *testing.T) {
			url := a2apeer.Start(t, sdk)
			c, err := a2a.Dial(t.Context(), url)
			if err != nil {
				t.Fatal(err)
			}
			if c.Version() != v || c.Card().Name != "foreign" || !c.Card().Capabilities.Streaming || c.Card().Skills[0].ID != "chat" {
				t.Errorf("version %s, card %+v", c.Version(), c.Card())
			}
			f(t, c, url)
		})
	}
}

func TestTheOfficialAgentsAreUnderstood(t *testing.T) {
	foreign(t, func(t *testing.T, c *a2a.Client, url string) {
		ctx := t.Context()
		e, err := c.Send(ctx, say("echo hi there"))
		if err != nil || e.Message == nil || e.Message.Parts[0].Text != "hi there" || e.Message.Role != a2a.RoleAgent {
			t.Errorf("echo: %+v, %v", e, err)
		}
		if e, err = c.Send(ctx, say("story")); err != nil || e.State() != a2a.StateCompleted || e.Task.Artifacts[0].Name != "story" {
			t.Errorf("story: %+v, %v", e, err)
		}
		done := e.TaskID()
		_, all := told(t, c.Stream(ctx, say("story")))
		if got := strings.Join(all, "|"); got != "SUBMITTED|WORKING|story:Once |story:upon |story:a time|COMPLETED" {
			t.Errorf("a stream tells %s", got)
		}
		task, all := told(t, c.Stream(ctx, say("ask")))
		if got := all[len(all)-1]; got != "INPUT_REQUIRED" {
			t.Errorf("it asks: %q", all)
		}
		answer := say("Ada")
		answer.Message.TaskID = task
		_, all = told(t, c.Stream(ctx, answer))
		if got := strings.Join(all, "|"); !strings.HasSuffix(got, "greeting:Hello Ada|COMPLETED") {
			t.Errorf("the answer: %s", got)
		}
		if _, all = told(t, c.Stream(ctx, say("files"))); !strings.HasSuffix(strings.Join(all, "|"), "table:|picture:|COMPLETED") {
			t.Errorf("files: %q", all)
		}
		got, err := c.Get(ctx, a2a.GetTaskRequest{ID: done})
		if err != nil || got.ID != done || got.Status.State != a2a.StateCompleted || time.Since(got.Status.Timestamp).Abs() > time.Hour || c.Version() == a2a.V1 && len(got.History) == 0 {
			t.Errorf("get: %+v, %v", got, err)
		}
		for what, err := range map[string]error{
			"get":    second(c.Get(ctx, a2a.GetTaskRequest{ID: "no such task"})),
			"cancel": second(c.Cancel(ctx, "no such task")),
		} {
			var peer *a2a.Error
			if !errors.As(err, &peer) || peer.Code != a2a.CodeTaskNotFound || !errors.Is(err, errdefs.NotFound) {
				t.Errorf("%s of a task that is not there: %v", what, err)
			}
		}
		if _, err := c.Cancel(ctx, done); !errors.Is(err, errdefs.Conflict) {
			t.Errorf("cancel of a task that has ended: %v", err)
		}
		list, err := c.List(ctx, a2a.ListTasksRequest{ContextID: got.ContextID})
		if c.Version() == a2a.V1 && (err != nil || len(list.Tasks) != 1 || list.Tasks[0].ID != done) || c.Version() == a2a.V03 && !errors.Is(err, errdefs.NotAvailable) {
			t.Errorf("list: %+v, %v", list, err)
		}
	})
}

func second[T any](_ T, err error) error { return err }

func TestAnOfficialAgentsTaskIsSubscribedToAndCanceled(t *testing.T) {
	foreign(t, func(t *testing.T, c *a2a.Client, _ string) {
		ctx := t.Context()
		var task string
		for e, err := range c.Stream(ctx, say("slow")) {
			if err != nil {
				t.Fatal(err)
			}
			if task = e.TaskID(); e.Artifact != nil {
				break // the stream is left, the task goes on
			}
		}
		if _, all := told(t, c.Subscribe(ctx, task)); !strings.HasSuffix(strings.Join(all, "|"), "story:upon |story:a time|COMPLETED") {
			t.Errorf("what a subscription tells: %q", all)
		}
		req := say("wait")
		req.Configuration.ReturnImmediately = true
		e, err := c.Send(ctx, req)
		if err != nil || e.State().Terminal() {
			t.Fatalf("%+v, %v", e, err)
		}
		got, err := c.Cancel(ctx, e.TaskID())
		if err != nil || got.Status.State != a2a.StateCanceled {
			t.Errorf("canceled: %+v, %v", got, err)
		}
	})
}

func TestAnOfficialAgentKeepsPushConfigs(t *testing.T) {
	foreign(t, func(t *testing.T, c *a2a.Client, _ string) {
		ctx := t.Context()
		e, err := c.Send(ctx, say("story"))
		if err != nil {
			t.Fatal(err)
		}
		want := a2a.PushConfig{ID: "p1", TaskID: e.TaskID(), URL: "https://example.com/hook", Token: "tok", Authentication: &a2a.Authentication{Scheme: "Bearer", Credentials: "c"}}
		if got, err := c.CreatePush(ctx, want); err != nil || got.ID != "p1" || got.URL != want.URL {
			t.Errorf("create: %+v, %v", got, err)
		}
		if got, err := c.GetPush(ctx, e.TaskID(), "p1"); err != nil || got.URL != want.URL || got.Authentication.Scheme != "Bearer" {
			t.Errorf("get: %+v, %v", got, err)
		}
		if got, err := c.ListPush(ctx, a2a.ListPushConfigsRequest{TaskID: e.TaskID()}); err != nil || len(got.Configs) != 1 || got.Configs[0].Token != "tok" {
			t.Errorf("list: %+v, %v", got, err)
		}
		if err := c.DeletePush(ctx, e.TaskID(), "p1"); err != nil {
			t.Errorf("delete: %v", err)
		}
		if got, err := c.ListPush(ctx, a2a.ListPushConfigsRequest{TaskID: e.TaskID()}); err != nil || len(got.Configs) != 0 {
			t.Errorf("list of none: %+v, %v", got, err)
		}
	})
}

func TestTheTraceGoesOn(t *testing.T) {
	foreign(t, func(t *testing.T, c *a2a.Client, url string) {
		const parent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
		if _, err := c.Send(traced.Extract(t.Context(), http.Header{"Traceparent": {parent}}.Get), say("echo x")); err != nil {
			t.Fatal(err)
		}
		req, _ := http.NewRequestWithContext(context.Background(), http.MethodGet, url+"/trace", http.NoBody)
		resp, err := (&http.Client{Transport: httpapi.Transport()}).Do(req)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = resp.Body.Close() }()
		if b, _ := io.ReadAll(resp.Body); string(b) != parent {
			t.Errorf("the agent got %q", b)
		}
	})
}
