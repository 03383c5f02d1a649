package oracle

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"strings"
	"testing"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/pawl-dev/pawl/internal/cassettes"
)

// generated is how many replies of each vendor are made up.
const generated = 25

// maker makes a reply up, whole and as the events of a stream that say the same.
type maker func(g *generator) (whole any, events []any)

// Replies that nobody thought of mean the same, too: any blocks in any order, with any texts, spelled and cut in any way.
func TestRepliesThatAreMadeUpMeanTheSame(t *testing.T) {
	for _, m := range []struct {
		vendor vendor
		make   maker
	}{{anthropicSDK, makeAnthropic}, {chatSDK, makeChat}, {responsesSDK, makeResponses}, {geminiSDK, makeGemini}} {
		for seed := range uint64(generated) {
			g := &generator{Rand: rand.New(rand.NewPCG(seed, 1))}
			ascii := g.maybe()
			whole, events := m.make(g)
			body := spelled(t, whole, ascii)
			var sse strings.Builder
			for _, e := range events {
				if e, ok := e.(object); ok && e["type"] != nil {
					fmt.Fprintf(&sse, "event: %s\n", e["type"])
				}
				fmt.Fprintf(&sse, "data: %s\n\n", spelled(t, e, ascii))
			}
			if m.vendor.name == "openai" {
				sse.WriteString("data: [DONE]\n\n")
			}
			for name, x := range map[string]cassettes.Exchange{
				"whole":  {Status: http.StatusOK, ContentType: "application/json", ResponseBody: []byte(body)},
				"stream": {Status: http.StatusOK, ContentType: "text/event-stream", ResponseBody: []byte(sse.String())},
			} {
				t.Run(fmt.Sprintf("%s/%d/%s", m.vendor.name, seed, name), func(t *testing.T) {
					a := answer{m.vendor, name, x}
					meansTheSame(t, a, newAllowances(nil))
					goesBack(t, a, newAllowances(madeUpDiffer))
					if t.Failed() {
						t.Logf("%s", x.ResponseBody)
					}
				})
			}
		}
	}
}

// spelled gives JSON, all of it in ASCII as some servers write it, or in UTF-8.
func spelled(t *testing.T, v any, ascii bool) string {
	t.Helper()
	raw, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	if !ascii {
		return string(raw)
	}
	var b strings.Builder
	for _, r := range string(raw) {
		switch {
		case r < utf8.RuneSelf:
			b.WriteRune(r)
		case r < 0x10000:
			fmt.Fprintf(&b, `\u%04x`, r)
		default:
			high, low := utf16.EncodeRune(r)
			fmt.Fprintf(&b, `\u%04x\u%04x`, high, low)
		}
	}
	return b.String()
}

// generator makes things up.
type generator struct {
	*rand.Rand
	n int // of ids so far
}

func (g *generator) maybe() bool { return g.IntN(2) == 0 }

func (g *generator) id(prefix string) string {
	g.n++
	return fmt.Sprintf("%s_%d", prefix, g.n)
}

func pick[T any](g *generator, of ...T) T { return of[g.IntN(len(of))] }

// several makes up to most things, least at least.
func several[T any](g *generator, least, most int, one func() T) []T {
	list := make([]T, least+g.IntN(most-least+1))
	for i := range list {
		list[i] = one()
	}
	return list
}

// text is one that is not empty.
func (g *generator) text() string {
	pieces := []string{"a", " ", "\n", "\r\n", "\t", `"`, `\`, "/", "<b>&", "é", "世", "👋🏽", "\u2028", "\ufeff", "\u0000", "\u001f", "\u007f", `\u0041`, "data: x", "\n\nevent: y", "{", "}", "[DONE]", "null"}
	return strings.Join(several(g, 1, 8, func() string { return pick(g, pieces...) }), "")
}

// cut cuts a text into pieces.
func (g *generator) cut(text string) (pieces []string) {
	for runes := []rune(text); len(runes) > 0; {
		n := 1 + g.IntN(len(runes))
		pieces, runes = append(pieces, string(runes[:n])), runes[n:]
	}
	return pieces
}

// input is the input of a call.
func (g *generator) input() object {
	input := object{}
	for range g.IntN(4) {
		input[g.text()] = pick[any](g, g.text(), g.IntN(1000), 1.5, true, nil, []any{}, object{}, []any{g.text(), object{"a": 1}})
	}
	return input
}

func (g *generator) inputText() string {
	raw, _ := json.Marshal(g.input())
	return string(raw)
}
