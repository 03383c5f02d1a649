package cloud_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/pawl-dev/pawl/errdefs"
	"github.com/pawl-dev/pawl/message"
	"github.com/pawl-dev/pawl/model"
	"github.com/pawl-dev/pawl/model/anthropic"
	"github.com/pawl-dev/pawl/model/cloud"
	"github.com/pawl-dev/pawl/model/gemini"
)

// A session that moves to a cloud has files that its model's owner keeps. The cloud knows none of their IDs: it is sent what they are, and what nobody has is refused before a call.
func TestACloudIsSentNoIDsOfFilesThatItDoesNotKeep(t *testing.T) {
	alone(t)
	s := serve(t, func(w http.ResponseWriter, r seen) {
		if strings.Contains(r.URL.Path, "publishers/google") {
			speak(w, r)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write([]byte(claude))
	})
	on := cloud.Vertex(cloud.GCP{Project: "p", Location: "europe-west1", Token: access, BaseURL: s.URL})
	for name, m := range map[string]model.Model{
		"anthropic bedrock": anthropic.New(sonnet, cloud.Bedrock(cloud.AWS{Region: "eu-central-1", Credentials: keys, BaseURL: s.URL})),
		"anthropic vertex":  anthropic.New("claude-haiku-4-5@20251001", on),
		"gemini vertex":     gemini.New("gemini-x", on),
	} {
		owner, _, _ := strings.Cut(name, " ")
		f := message.File{MIME: "image/png", Provider: owner, ID: "the-id", Data: "x"}
		inResult := message.Results(message.ToolResult{Call: "c", Name: "look", Files: []message.File{f}})
		h := message.NewHistory(message.New(message.RoleUser, message.Text{Text: "hi"}, f), message.Assistant("", message.ToolCall{ID: "c", Name: "look", Input: "{}"}), inResult)
		// what is kept for the owner itself must not be what the cloud is sent
		own := map[string]model.Model{"anthropic": anthropic.New(sonnet, model.WithKey("k"), model.WithBaseURL(s.URL)), "gemini": gemini.New("gemini-x", model.WithKey("k"), model.WithBaseURL(s.URL))}[owner]
		_, _ = own.Complete(t.Context(), model.Request{Messages: h})
		if body := s.last().body; strings.Count(body, "the-id") != 2 {
			t.Errorf("%s: the owner is sent %s", name, body)
		}
		for range 2 {
			if _, err := m.Complete(t.Context(), model.Request{Messages: h}); err != nil {
				t.Fatal(name, err)
			}
			if body := s.last().body; strings.Contains(body, "the-id") || strings.Count(body, `"eA=="`) != 2 {
				t.Errorf("%s: %s", name, body)
			}
		}
		n := len(s.requests())
		f.Data = ""
		_, err := m.Complete(t.Context(), model.Request{Messages: message.NewHistory(message.New(message.RoleUser, f))})
		if !errdefs.Validation.Is(err) || !strings.Contains(err.Error(), "only "+owner+" keeps") {
			t.Error(name, err)
		}
		u, _ := model.As[model.Uploader](m)
		_, up := u.Upload(t.Context(), message.File{MIME: "image/png", Data: "x"})
		for _, err := range []error{up, u.Discard(t.Context(), f)} {
			if !errdefs.Validation.Is(err) || !strings.Contains(err.Error(), "keeps no files") {
				t.Error(name, err)
			}
		}
		if got := len(s.requests()); got != n {
			t.Errorf("%s: %d calls were made for nothing", name, got-n)
		}
	}
}
