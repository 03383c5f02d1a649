package providertest

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"net/http"
	"runtime"
	"strings"
	"testing"

	"github.com/pawl-dev/pawl/internal/httpapi"
	"github.com/pawl-dev/pawl/message"
	"github.com/pawl-dev/pawl/model"
)

// long holds requests of long conversations: that they say what they would say message by message, and that a turn costs what is new.
func (p Provider) long(t *testing.T) {
	t.Run("same", p.longSame)
	t.Run("cost", p.longCost)
}

// errAsked is what a call comes to that is only looked at.
var errAsked = errors.New("asked")

// onlooker looks at what is sent, and sends nothing.
type onlooker struct {
	pieces int
	body   []byte
	keep   bool // read the body
}

func (o *onlooker) RoundTrip(r *http.Request) (*http.Response, error) {
	pieces, _ := httpapi.Pieces(r.Body)
	o.pieces, o.body = len(pieces), nil
	if o.keep {
		o.body, _ = io.ReadAll(r.Body)
	}
	return nil, errAsked
}

func (p Provider) looked(o *onlooker) model.Model {
	return p.New(model.WithBaseURL("http://127.0.0.1:1"), model.WithKey(Key), model.WithHTTPClient(&http.Client{Transport: o}))
}

// longSame says the same messages in a history as it came to be, by appends, forks and edits, with a call after each, and in a part of one, of which each message is looked at by itself.
func (p Provider) longSame(t *testing.T) {
	for seed := range uint64(20) {
		random := rand.New(rand.NewPCG(seed, 1)) //nolint:gosec // a test has to be the same again
		o := &onlooker{keep: true}
		m := p.looked(o)
		said := 0
		var h message.History
		for step := range 12 {
			switch from := random.IntN(h.Len() + 1); random.IntN(6) {
			case 0:
				h = h.Edit(message.Edit{Head: anything(random, 2, &said), From: from, To: h.Len()})
			case 1:
				h = h.Edit(message.Edit{To: from})
			default:
				h = h.Append(anything(random, 40, &said)...)
			}
			_ = h.Append(anything(random, 2, &said)...) // h is forked by whatever comes next
			ask := func(h message.History) (body []byte, failed string) {
				o.body = nil
				_, err := m.Complete(t.Context(), model.Request{System: "Be brief.", Messages: h})
				if err == nil {
					t.Fatal("nobody answered")
				}
				return o.body, err.Error()
			}
			got, err := ask(h)
			want, wantErr := ask(h.Slice(0, h.Len()))
			if !bytes.Equal(got, want) || err != wantErr {
				t.Fatalf("seed %d, step %d: %d messages give %d bytes (%s), and %d (%s) each by itself", seed, step, h.Len(), len(got), err, len(want), wantErr)
			}
		}
	}
}

// anything is up to so many messages, valid or not.
func anything(random *rand.Rand, most int, said *int) (ms []message.Message) {
	for range random.IntN(most + 1) {
		*said++
		text := fmt.Sprint("message ", *said, " ", strings.Repeat("x", random.IntN(600)))
		switch random.IntN(60) {
		case 0:
			ms = append(ms, message.New(message.RoleUser, message.Text{Text: text}, message.File{MIME: "image/png", Data: png}))
		case 1:
			ms = append(ms, message.Assistant("")) // nothing on most wires
		case 2:
			ms = append(ms, message.User(strings.Repeat(text, 50)))
		case 3:
			ms = append(ms, message.Assistant(text), message.Assistant(text))
		case 4:
			ms = append(ms, message.New(message.RoleUser, message.Text{Text: text, Origin: message.Origin{Provider: "anthropic", Extra: `{"cache_control":{"type":"ephemeral","ttl":"1h"}}`}}))
		case 5:
			if *said%10 == 0 {
				ms = append(ms, message.Message{})
			}
		case 6, 7, 8, 9:
			ms = append(ms, message.User(text))
		default:
			id := fmt.Sprint("call_", *said)
			ms = append(ms, message.Assistant(text, message.ToolCall{ID: id, Name: "read", Input: `{"a":1}`}), message.Results(message.ToolResult{Call: id, Name: "read", Content: text}))
		}
	}
	return ms
}

// longCost holds what a turn costs that adds nothing but a call and its result.
func (p Provider) longCost(t *testing.T) {
	o := &onlooker{}
	m := p.looked(o)
	cost := func(n int) (pieces, allocs int, bytes uint64) {
		req := model.Request{System: "Be brief.", Messages: message.NewHistory(message.User("Go."))}
		ask := func() {
			if _, err := m.Complete(t.Context(), req); err == nil {
				t.Fatal("nobody answered")
			}
		}
		for i := 0; req.Messages.Len() < n; i++ {
			id := fmt.Sprint("call_", i)
			req.Messages = req.Messages.Append(
				message.Assistant("Let me look.", message.ToolCall{ID: id, Name: "read", Input: `{"file_path":"go.mod"}`}),
				message.Results(message.ToolResult{Call: id, Name: "read", Content: strings.Repeat("x", 700)}))
			ask()
		}
		bytes = math.MaxUint64
		allocs = math.MaxInt
		for range 10 {
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			ask()
			runtime.ReadMemStats(&after)
			bytes, allocs = min(bytes, after.TotalAlloc-before.TotalAlloc), min(allocs, int(after.Mallocs-before.Mallocs)) //nolint:gosec // small
		}
		return o.pieces, allocs, bytes
	}
	_, allocs, bytes := cost(21)
	for n, most := range map[int]int{101: 15, 401: 20, 4001: 90} {
		pieces, more, larger := cost(n)
		if pieces > most || pieces == 0 {
			t.Errorf("%d messages are sent in %d pieces, want at most %d", n, pieces, most)
		}
		if more > allocs || larger > bytes+3<<10 {
			t.Errorf("a request of %d messages takes %d allocations and %d bytes, one of 21 %d and %d", n, more, larger, allocs, bytes)
		}
	}
}
