package openai

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pawl-dev/pawl/internal/wire"
	"github.com/pawl-dev/pawl/model"
)

// OpenAI's own servers refuse a schema that is not of an object.
func TestAnAnswerThatIsNoObjectIsAskedForInOne(t *testing.T) {
	const list = `{"type":"array","items":{"$ref":"#/$defs/n"},"$defs":{"n":{"type":"integer"}}}`
	for name, c := range map[string]struct {
		pieces []string // of the model's text
		want   []string // that are shown
		text   string
	}{
		"in an object":            {[]string{`{"val`, `ue": [1`, `,2] `, `}`}, []string{` [1`, `,2] `}, ` [1,2] `},
		"in none, all the same":   {[]string{`[1`, `,2]`}, []string{`[1,2]`}, `[1,2]`},
		"in words":                {[]string{`I can`, `'t`}, []string{`I can't`}, `I can't`},
		"cut off":                 {[]string{`{"value":[1`}, []string{`[1`}, `[1`},
		"in an object of another": {[]string{`{"list":[1]}`}, []string{`{"list":[1]}`}, `{"list":[1]}`},
	} {
		t.Run(name, func(t *testing.T) {
			for _, protocol := range []string{"chat", "responses"} {
				for _, stream := range []bool{false, true} {
					var asked []byte
					s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
						asked, _ = io.ReadAll(r.Body)
						_, _ = w.Write([]byte(answered(w, protocol, stream, c.pieces)))
					}))
					opts := []model.Option{model.WithBaseURL(s.URL), model.WithKey("k")}
					var m model.Model = New("m", opts...)
					if protocol == "responses" {
						m = NewResponses("m", opts...)
					}
					req := hi()
					req.Output = json.RawMessage(list)
					var shown []string
					var resp *model.Response
					var err error
					if stream {
						err = m.CompleteStream(t.Context(), req, func(r model.StreamResult) error {
							if r.Text != "" {
								shown = append(shown, r.Text)
							}
							resp = r.Response
							return nil
						})
					} else {
						shown = c.want
						resp, err = m.Complete(t.Context(), req)
					}
					s.Close()
					if err != nil {
						t.Fatal(err)
					}
					if d := cmp.Diff(c.want, shown); d != "" || resp.Message.Text() != c.text {
						t.Errorf("%s, stream %v: %q %s", protocol, stream, resp.Message.Text(), d)
					}
					format := wire.Get(asked, "response_format", "json_schema")
					if protocol == "responses" {
						format = wire.Get(asked, "text", "format")
					}
					want := `{"type":"object","properties":{"value":{"type":"array","items":{"$ref":"#/$defs/n"}}},"required":["value"],"additionalProperties":false,"$defs":{"n":{"type":"integer"}}}`
					if got := string(wire.Get(format, "schema")); got != want || !wire.Bool(wire.Get(format, "strict")) {
						t.Errorf("asked for %s", format)
					}
				}
			}
		})
	}
}

// answered is a reply whose text is these pieces.
func answered(w http.ResponseWriter, protocol string, stream bool, pieces []string) string {
	whole := string(wire.AppendString(nil, strings.Join(pieces, "")))
	item := `{"type":"message","role":"assistant","content":[{"type":"output_text","text":` + whole + `}]}`
	switch {
	case !stream && protocol == "chat":
		w.Header().Set("Content-Type", "application/json")
		return `{"id":"1","choices":[{"message":{"role":"assistant","content":` + whole + `},"finish_reason":"stop"}]}`
	case !stream:
		w.Header().Set("Content-Type", "application/json")
		return output(item)
	}
	w.Header().Set("Content-Type", "text/event-stream")
	var all []string
	for _, p := range pieces {
		text := string(wire.AppendString(nil, p))
		if protocol == "chat" {
			all = append(all, delta(`{"content":`+text+`}`))
		} else {
			all = append(all, event("response.output_text.delta", `"output_index":0,"content_index":0,"delta":`+text))
		}
	}
	if protocol == "chat" {
		return events(append(all, finish("stop"), "[DONE]")...)
	}
	return events(append(all, event("response.completed", `"response":`+output(item)))...)
}
