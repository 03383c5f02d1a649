package message_test

import (
	"fmt"
	"slices"
	"sync"
	"testing"

	"github.com/pawl-dev/pawl/message"
	"pgregory.net/rapid"
)

func Example() {
	h := message.NewHistory(message.User("What is in go.mod?"))
	h = h.Append(
		message.Assistant("Let me look.", message.ToolCall{ID: "c1", Name: "read", Input: `{"file_path":"go.mod"}`}),
		message.Results(message.ToolResult{Call: "c1", Name: "read", Content: "module example"}),
		message.Assistant("It is called example."),
	)
	for _, m := range h.All() {
		fmt.Println(m.Role(), m.Text(), len(m.ToolCalls()))
	}
	// Output:
	// user What is in go.mod? 0
	// assistant Let me look. 1
	// tool  0
	// assistant It is called example. 0
}

func texts(h message.History) (out []string) {
	for _, m := range h.All() {
		out = append(out, m.Text())
	}
	return out
}

func TestTheZeroMessageAndHistoryAreEmptyAndSafeToAsk(t *testing.T) {
	var m message.Message
	var h message.History
	if !m.IsZero() || m.Role() != "" || m.Len() != 0 || m.Text() != "" || m.ToolCalls() != nil || !m.Blank() {
		t.Error("zero message")
	}
	for range m.Parts() {
		t.Error("a part of nothing")
	}
	if h.Len() != 0 || !h.Last().IsZero() || h.Append().Len() != 0 {
		t.Error("zero history")
	}
}

func TestBlankIsWhatAProviderWouldNotTakeBack(t *testing.T) {
	for name, c := range map[string]struct {
		m    message.Message
		want bool
	}{
		"no parts":        {message.New(message.RoleAssistant), true},
		"white space":     {message.Assistant(" \n"), true},
		"only reasoning":  {message.New(message.RoleAssistant, message.Reasoning{Text: "hm"}), true},
		"text":            {message.Assistant("x"), false},
		"a call":          {message.Assistant("", message.ToolCall{ID: "a"}), false},
		"a provider part": {message.New(message.RoleAssistant, message.Opaque{Provider: "p", JSON: "{}"}), false},
	} {
		if c.m.Blank() != c.want {
			t.Errorf("%s: blank = %v", name, !c.want)
		}
	}
}

func TestAppendingToAHistoryNeverDisturbsWhoSharesIt(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		type version struct {
			h    message.History
			want []string
		}
		all := []version{{}}
		for i := range rapid.IntRange(1, 40).Draw(t, "steps") {
			from := all[rapid.IntRange(0, len(all)-1).Draw(t, "from")]
			if n := from.h.Len(); n > 0 && rapid.Bool().Draw(t, "slice") {
				to := rapid.IntRange(0, n).Draw(t, "to")
				all = append(all, version{from.h.Slice(0, to), slices.Clone(from.want[:to])})
				continue
			}
			text := fmt.Sprint(i)
			all = append(all, version{from.h.Append(message.User(text)), append(slices.Clone(from.want), text)})
		}
		for _, v := range all {
			if !slices.Equal(texts(v.h), v.want) {
				t.Fatalf("got %v, want %v", texts(v.h), v.want)
			}
		}
	})
}

func TestConcurrentAppendsToOneHistoryEachGetTheirOwn(t *testing.T) {
	base := message.NewHistory(message.User("a"), message.User("b"))
	var wg sync.WaitGroup
	got := make([]message.History, 16)
	for i := range got {
		wg.Go(func() { got[i] = base.Append(message.User(fmt.Sprint(i))) })
	}
	wg.Wait()
	for i, h := range got {
		if h.Len() != 3 || h.Last().Text() != fmt.Sprint(i) {
			t.Errorf("%d: %v", i, texts(h))
		}
	}
}

func TestAppendingIsAmortised(t *testing.T) {
	base := message.NewHistory(message.User("1"))
	if n := testing.AllocsPerRun(100, func() {
		h := base
		for range 1000 {
			h = h.Append(message.Message{})
		}
	}); n > 25 {
		t.Fatalf("1000 appends cost %.0f allocations", n)
	}
}

func TestDiffFindsTheEditThatEditApplies(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		msgs := func(name string, max int) (out []message.Message) {
			for i := range rapid.IntRange(0, max).Draw(t, name) {
				out = append(out, message.User(fmt.Sprint(name, i)))
			}
			return out
		}
		before := message.NewHistory(msgs("old", 10)...)
		from := rapid.IntRange(0, before.Len()).Draw(t, "from")
		to := rapid.IntRange(from, before.Len()).Draw(t, "to")
		after := before.Edit(message.Edit{Head: msgs("head", 3), From: from, To: to, Tail: msgs("tail", 3)})
		again := before.Edit(message.Diff(before, after))
		if !slices.Equal(texts(again), texts(after)) {
			t.Fatalf("diff of %v and %v gave %v", texts(before), texts(after), texts(again))
		}
		for i, m := range after.All() {
			if again.At(i) != m {
				t.Fatal("a kept message is another one")
			}
		}
	})
}

func TestEditIsClampedToTheHistory(t *testing.T) {
	h := message.NewHistory(message.User("a"), message.User("b"))
	if got := texts(h.Edit(message.Edit{From: -3, To: 99})); !slices.Equal(got, []string{"a", "b"}) {
		t.Error(got)
	}
	if got := texts(h.Edit(message.Edit{From: 5, To: 1})); len(got) != 1 && len(got) != 0 {
		t.Error(got)
	}
}

func TestAMessageIsEncodedOncePerFormatWhoeverSharesIt(t *testing.T) {
	type wireA struct{}
	type wireB struct{}
	encoded := 0
	bytes := func(h message.History, format any) (out string) {
		for _, m := range h.All() {
			out += string(m.Encoded(format, func(m message.Message) []byte { encoded++; return fmt.Appendf(nil, "%s;", m.Text()) }))
		}
		return out
	}
	base := message.NewHistory(message.User("1"), message.User("2"), message.User("3"))
	fork1, fork2 := base.Append(message.User("a")), base.Append(message.User("b"))
	compacted := fork1.Edit(message.Edit{Head: []message.Message{message.User("sum")}, From: 2, To: 4})
	if got := bytes(base, wireA{}) + bytes(fork1, wireA{}) + bytes(fork2, wireA{}) + bytes(compacted, wireA{}); got != "1;2;3;1;2;3;a;1;2;3;b;sum;3;a;" || encoded != 6 {
		t.Fatal(got, encoded)
	}
	if bytes(base, wireB{}); encoded != 9 {
		t.Fatal("another format is another encoding:", encoded)
	}
	if n := testing.AllocsPerRun(100, func() { base.At(0).Encoded(wireA{}, nil) }); n != 0 {
		t.Fatal("looking an encoding up allocates:", n)
	}
	var fresh []message.Message
	for range 101 {
		fresh = append(fresh, message.User("x"))
	}
	encoding := []byte("x;")
	if n := testing.AllocsPerRun(100, func() {
		fresh[0].Encoded(wireA{}, func(message.Message) []byte { return encoding })
		fresh = fresh[1:]
	}); n != 0 {
		t.Fatal("the first encoding of a message is not kept in its own room:", n)
	}
}

func TestAMessageKnowsWhetherATextHasSomethingOfItsProvider(t *testing.T) {
	extra := message.Text{Text: "a", Origin: message.Origin{Provider: "p", Extra: `{"x":1}`}}
	for name, tc := range map[string]struct {
		m    message.Message
		want bool
	}{
		"nothing":           {message.Message{}, false},
		"a text":            {message.User("a"), false},
		"a call with some":  {message.New(message.RoleAssistant, message.ToolCall{ID: "c", Origin: extra.Origin}), false},
		"the second text":   {message.New(message.RoleUser, message.Text{Text: "b"}, extra), true},
		"the result of one": {message.Results(message.ToolResult{Call: "c"}), false},
	} {
		if got := tc.m.HasExtra(); got != tc.want {
			t.Errorf("%s: %t, want %t", name, got, tc.want)
		}
	}
	one := message.Results(message.ToolResult{Call: "c", Files: []message.File{{MIME: "a/b", URL: "u"}}})
	if one.Len() != 1 || one.Role() != message.RoleTool || !one.HasFiles() || one.Part(0).(message.ToolResult).Call != "c" {
		t.Errorf("%v", one)
	}
}
