package pawl_test

import (
	"context"
	"iter"
	"testing"

	"github.com/pawl-dev/pawl"
	"github.com/pawl-dev/pawl/journal"
	"github.com/pawl-dev/pawl/model/scripted"
)

// readCounter is a journal that counts the entries that are read.
type readCounter struct {
	journal.Store
	read int
}

func (s *readCounter) Read(ctx context.Context, session string, after int64) iter.Seq2[journal.Entry, error] {
	return func(yield func(journal.Entry, error) bool) {
		for e, err := range s.Store.Read(ctx, session, after) {
			if s.read++; !yield(e, err) {
				return
			}
		}
	}
}

// A turn reads what came since the turn before, and not the session: else long conversations get slower with every turn.
func TestATurnReadsOnlyWhatIsNew(t *testing.T) {
	const turns = 30
	script := func() *scripted.Model {
		var all []scripted.Turn
		for range turns {
			all = append(all, scripted.Text("ok"))
		}
		return scripted.New(all...)
	}
	team := packOf(t, plain+`}, "other": {"id": "other", "name": "Other", "version": "1.0.0", "system_template": "Be long."`,
		`"agents": {"entry": "chat", "members": {"chat": {"description": "Chats."}, "other": {"description": "Others."}}},`)
	for name, begin := range map[string]func(journal.Store) func() error{
		"a conversation": func(s journal.Store) func() error {
			c := converse(t, packOf(t, plain), script(), pawl.WithJournal(s))
			return func() error { _, err := c.Send(t.Context(), "go"); return err }
		},
		"a conversation that may be handed over": func(s journal.Store) func() error {
			c := converse(t, team, script(), pawl.WithJournal(s))
			return func() error { _, err := c.Send(t.Context(), "go"); return err }
		},
		"a Runtime": func(s journal.Store) func() error {
			rt := open(t, pawl.Options{Model: script(), Journal: s, NoBuiltins: true})
			return func() error { _, err := rt.Run(t.Context(), pawl.Request{Prompt: "go", SessionID: "a"}); return err }
		},
	} {
		s := &readCounter{Store: journal.Memory()}
		turn := begin(s)
		var reads []int
		for range turns {
			s.read = 0
			if err := turn(); err != nil {
				t.Fatal(name, err)
			}
			reads = append(reads, s.read)
		}
		if reads[turns-1] > reads[2] || reads[turns-1] > 10 {
			t.Errorf("%s: entries read, turn by turn: %v", name, reads)
		}
	}
}
