package main

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

func TestPackRunAnswersByAPromptOfAPack(t *testing.T) {
	w := newWorld(t)
	files(t, page(t, "docs/packs.md"), w.dir)
	pack := w.dir + "/support.pack.json"
	asked := make(chan string, 1)
	shop := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked <- r.URL.Path
		_, _ = w.Write([]byte("shipped"))
	}))
	defer shop.Close()
	good := w.file("good.yaml", "turns: [{tool_calls: [{name: lookup_order, input: {order_id: \"7\"}}]}, {text: \"It is on its way.\", when: {contains: shipped}}]")
	bad := w.file("bad.yaml", "turns: [{text: \"You will get a refund.\"}]")
	tool := []string{"--tool", "lookup_order=" + shop.URL + "/orders/{order_id}"}
	for name, c := range map[string]struct {
		stdin string
		args  []string
		want  ran
	}{
		"an answer":      {"Where is it?", append([]string{"--allow", "127.0.0.1", "--var", "name=Ada", "--model", "scripted/" + good, pack, "chat", "-"}, tool...), ran{0, "It is on its way.\n", ""}},
		"blocked":        {"", append([]string{"--var", "name=Ada", "--model", "scripted/" + bad, pack, "chat", "Hello"}, tool...), ran{1, "You will get a I can't promise that.\n", "banned_words"}},
		"no variable":    {"", append([]string{"--model", "scripted/" + bad, pack, "chat", "Hello"}, tool...), ran{2, "", "name is required"}},
		"no handler":     {"", []string{"--var", "name=Ada", "--model", "scripted/" + bad, pack, "chat", "Hello"}, ran{2, "", "lookup_order"}},
		"no model":       {"", []string{"--var", "name=Ada", pack, "chat", "Hello"}, ran{2, "", "OPENAI_API_KEY"}},
		"no such prompt": {"", []string{"--model", "scripted/" + bad, pack, "chap", "Hello"}, ran{2, "", "did you mean chat?"}},
		"a variable":     {"", []string{"--var", "name", pack, "chat", "Hello"}, ran{2, "", "NAME=TEXT"}},
		"too few":        {"", []string{pack, "chat"}, ran{2, "", "want a file, a prompt of it and a text"}},
	} {
		r := w.pawlIn(c.stdin, append([]string{"pack", "run"}, c.args...)...)
		if r.code != c.want.code || r.out != c.want.out || !strings.Contains(r.err, c.want.err) || (r.err == "") != (c.want.err == "") {
			t.Errorf("%s: exit %d, %q, %q", name, r.code, r.out, r.err)
		}
	}
	select {
	case got := <-asked:
		if got != "/orders/7" {
			t.Errorf("the shop was asked for %s", got)
		}
	default:
		t.Error("the shop was not asked")
	}
}
