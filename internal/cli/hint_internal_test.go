package cli

import "testing"

// Lines to go on with end up in logs: no password is in them.
func TestNoPasswordIsInALineToGoOnWith(t *testing.T) {
	t.Parallel()
	for journal, want := range map[string]string{
		"postgres://pawl:secret@db.example/pawl":                          "postgres://pawl@db.example/pawl",
		"postgres://pawl@db.example/pawl?password=secret&sslmode=disable": "postgres://pawl@db.example/pawl?sslmode=disable",
		"postgres://pawl@db.example/pawl":                                 "postgres://pawl@db.example/pawl",
		"postgres://db.example/pawl?password=secret":                      "postgres://db.example/pawl",
		"sqlite:/home/me/what?key=x.db":                                   "sqlite:/home/me/what?key=x.db",
		"http://u:secret@127.0.0.1:1/v1?api_key=secret&v=2":               "http://u@127.0.0.1:1/v1?v=2",
		"sqlite:/home/me/a b.db":                                          "sqlite:/home/me/a b.db",
	} {
		if got := withoutPassword(journal); got != want {
			t.Errorf("%s: %s, want %s", journal, got, want)
		}
	}
}
