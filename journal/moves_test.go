package journal_test

import (
	"testing"

	"github.com/pawl-dev/pawl/journal"
	"github.com/pawl-dev/pawl/message"
)

// Requests of one conversation begin with the ones before them, up to what somebody changed on purpose.
func TestMovesAreWhatWasChangedOnPurpose(t *testing.T) {
	front, behind := message.Edit{Head: []message.Message{message.User("before")}, To: 9}, message.Edit{To: 9, Tail: []message.Message{message.User("behind")}}
	scoped := journal.Key{Scope: "review", Op: "compact", ID: "1"}
	store := journal.Memory()
	log, err := journal.Open(t.Context(), store, "s")
	if err != nil {
		t.Fatal(err)
	}
	if err := log.Drive(t.Context(), "me", journal.Entry{Data: journal.SessionCreated{}}, journal.Entry{Run: "r", Data: journal.RunStarted{Owner: "me", Attempt: 1}}, journal.Entry{Run: "r", Data: journal.Said{Message: message.User("go")}}); err != nil {
		t.Fatal(err)
	}
	main, review := 0, 0
	for _, c := range []struct {
		name         string
		key          journal.Key
		data         journal.Data
		main, review int // by how much
	}{
		{"a hook that says nothing", journal.Key{Op: "prepare"}, journal.Prepared{Edit: front}, 0, 0},
		{"a hook that says so", journal.Key{Op: "prepare", ID: "2"}, journal.Prepared{Edit: front, Moved: true}, 1, 0},
		{"a seeder that puts something behind", journal.Key{Op: "seed"}, journal.Seeded{Edit: behind}, 0, 0},
		{"a seeder that puts something in front", journal.Key{Op: "seed", ID: "2"}, journal.Seeded{Edit: front}, 1, 0},
		{"a compaction that failed", journal.Key{Op: "compact", ID: "1"}, journal.Compacted{Edit: message.Edit{To: 9}, Error: "no"}, 0, 0},
		{"a compaction", journal.Key{Op: "compact", ID: "2"}, journal.Compacted{Edit: front}, 1, 0},
		{"one in a scope", scoped, journal.Compacted{Edit: front}, 0, 1},
		{"a board that grows", journal.Key{Op: "node"}, journal.Board{Append: map[string][]message.Message{"main": {message.User("x")}}}, 0, 0},
		{"a board that was edited", journal.Key{Op: "node", ID: "2"}, journal.Board{Edit: map[string]message.Edit{"main": front}}, 1, 0},
		{"another channel of it", journal.Key{Op: "node", ID: "3"}, journal.Board{Edit: map[string]message.Edit{"other": front}}, 0, 0},
		{"a further attempt, which has scopes of its own", journal.Key{}, journal.RunStarted{Owner: "me", Attempt: 2}, 1, -1},
		{"a run that was discarded", journal.Key{}, journal.RunFinished{Status: "completed", Discarded: true}, 1, 0},
	} {
		if err := log.Append(t.Context(), journal.Entry{Run: "r", Key: c.key, Data: c.data}); err != nil {
			t.Fatal(c.name, err)
		}
		main, review = main+c.main, review+c.review
		if log.Moves("") != main || log.Moves("review") != review {
			t.Errorf("%s: %d moves and %d in the scope, want %d and %d", c.name, log.Moves(""), log.Moves("review"), main, review)
		}
	}
	again, err := journal.Open(t.Context(), store, "s")
	if err != nil || again.Moves("") != main {
		t.Errorf("in another process: %d moves, %v; want %d", again.Moves(""), err, main)
	}
}
