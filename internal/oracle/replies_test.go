package oracle

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/pawl-dev/pawl/internal/cassettes"
	"github.com/pawl-dev/pawl/message"
	"github.com/pawl-dev/pawl/model"
)

// patience is how long a client waits for a server on this machine, which answers at once.
const patience = 30 * time.Second

// answer is one answer of a provider.
type answer struct {
	vendor vendor
	name   string // as a difference is listed by
	cassettes.Exchange
}

// fixtures are the answers that the providers' own tests have.
func fixtures(t *testing.T) (all []answer) {
	t.Helper()
	for _, v := range vendors {
		dir := filepath.Join("../../model", v.dir)
		files, err := os.ReadDir(dir)
		if err != nil {
			t.Fatal(err)
		}
		n := len(all)
		for _, f := range files {
			name, ext := f.Name(), filepath.Ext(f.Name())
			if ext != ".json" && ext != ".sse" || strings.HasPrefix(name, "request_") || name == "count.json" || name == "upload.json" {
				continue
			}
			body, err := os.ReadFile(filepath.Join(dir, name))
			if err != nil {
				t.Fatal(err)
			}
			x := cassettes.Exchange{Status: http.StatusOK, ContentType: "application/json", ResponseBody: body}
			if ext == ".sse" {
				x.ContentType = "text/event-stream"
			}
			if code, isError := strings.CutPrefix(strings.TrimSuffix(name, ".json"), "error_"); isError && ext == ".json" {
				if x.Status, err = strconv.Atoi(code); err != nil {
					x.Status = http.StatusBadRequest // error_overflow
				}
			}
			all = append(all, answer{v, name, x})
		}
		if len(all)-n < 20 {
			t.Fatalf("%s has %d answers: want as many as providertest has cases", dir, len(all)-n)
		}
	}
	return all
}

// recordings are the answers that others recorded of real providers; none where PAWL_FIXTURES is not set.
func recordings(t *testing.T) (all []answer) {
	t.Helper()
	if os.Getenv("PAWL_FIXTURES") == "" {
		return nil
	}
	for _, c := range cassettes.All(t) {
		for i, x := range c.Exchanges {
			for _, v := range vendors {
				if x.API() == v.name {
					all = append(all, answer{v, fmt.Sprintf("%s/%d", c.Name, i+1), x})
				}
			}
		}
	}
	return all
}

// The same answer means the same to the vendor's SDK and to us.
func TestAnswersMeanTheSame(t *testing.T) {
	recorded := recordings(t)
	all := append(fixtures(t), recorded...)
	meant := newAllowances(answersDiffer)
	for _, a := range all {
		t.Run(a.vendor.name+"/"+a.name, func(t *testing.T) {
			t.Cleanup(meant.ran)
			meansTheSame(t, a, meant)
		})
	}
	meant.check(t, len(all), recorded != nil)
}

// meansTheSame compares what the vendor's SDK and ours make of an answer.
func meansTheSame(t *testing.T, a answer, meant *allowances) {
	t.Helper()
	x := a.Exchange
	theirs := a.vendor.ask(t, serve(t, x).client(), x.Streamed()).fields()
	own := askOurs(t, a.vendor, serve(t, x).client(), x.Streamed()).fields()
	for i, want := range theirs {
		if diff := cmp.Diff(want.value, own[i].value); diff != "" && !meant.has(a.vendor.name, a.name, want.name) {
			t.Errorf("%s (-the vendor's +ours):\n%s", want.name, diff)
		}
	}
}

// serve answers one call, with what a provider said.
func serve(t *testing.T, x cassettes.Exchange) *line {
	t.Helper()
	return &line{Server: cassettes.Serve(t, []cassettes.Exchange{x})}
}

// askOurs gives what our client makes of an answer.
func askOurs(t *testing.T, v vendor, c *http.Client, stream bool) *reply {
	t.Helper()
	m := v.ours(v.model, model.WithHTTPClient(c), model.WithKey("test-key"))
	r, err := complete(t.Context(), m, model.Request{Messages: message.NewHistory(message.User("Hi"))}, stream)
	if err == nil {
		return ours(t, r)
	}
	var e *model.Error
	if !errors.As(err, &e) {
		t.Fatalf("an error of type %T: %v", err, err)
	}
	return &reply{Failed: &failure{Status: e.Status, Code: e.Code, Message: e.Message, Request: e.RequestID}}
}

// complete asks for a reply, whole or as a stream.
func complete(ctx context.Context, m model.Model, req model.Request, stream bool) (r *model.Response, err error) {
	if !stream {
		return m.Complete(ctx, req)
	}
	err = m.CompleteStream(ctx, req, func(s model.StreamResult) error {
		if s.Final {
			r = s.Response
		}
		return nil
	})
	return r, err
}
