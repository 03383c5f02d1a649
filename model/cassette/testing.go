package cassette

import (
	"errors"
	"io/fs"
	"net/http"
	"os"

	"github.com/pawl-dev/pawl/errdefs"
	"github.com/pawl-dev/pawl/model"
)

// RecordVariable is the environment variable that makes [New] and [NewHTTP] record, when it is "1".
const RecordVariable = "PAWL_RECORD"

// TB is what New and NewHTTP need of a *testing.T.
type TB interface {
	Helper()
	Failed() bool
	Errorf(format string, args ...any)
	Fatalf(format string, args ...any)
	Cleanup(f func())
}

// New gives a test a model that says what file has, and nothing else. The test fails when a request is none of the recorded ones, even if the
// program goes on after that, and when an exchange is left over at its end. Fails at once when there is no such file.
//
// With PAWL_RECORD=1 it records instead, from what live gives: into file with ".part" behind its name, which takes the file's place if
// the test passes, and stays beside it for a look if it fails.
func New(t TB, file string, live func() model.Model, opts ...Option) model.Model {
	t.Helper()
	if os.Getenv(RecordVariable) != "1" {
		p, err := Open(file, opts...)
		return played(t, p, err)
	}
	r, err := Record(live(), part(t, file), opts...)
	return kept(t, file, r, err)
}

// NewHTTP is New for an HTTP client, as model.WithHTTPClient takes one. It records from live, nil for [http.DefaultTransport].
func NewHTTP(t TB, file string, live http.RoundTripper, opts ...Option) *http.Client {
	t.Helper()
	if os.Getenv(RecordVariable) != "1" {
		p, err := OpenHTTP(file, opts...)
		return &http.Client{Transport: played(t, p, err)}
	}
	r, err := RecordHTTP(live, part(t, file), opts...)
	return &http.Client{Transport: kept(t, file, r, err)}
}

func played[P interface{ Done() error }](t TB, p P, err error) P {
	t.Helper()
	if errdefs.NotFound.Is(err) {
		t.Fatalf("%v: record it with %s=1 in the environment", err, RecordVariable)
	}
	if err != nil {
		t.Fatalf("%v", err)
	}
	t.Cleanup(func() {
		if err := p.Done(); err != nil {
			t.Errorf("%v", err)
		}
	})
	return p
}

// part makes way for a new recording and says where it goes.
func part(t TB, file string) string {
	t.Helper()
	if err := os.Remove(file + ".part"); err != nil && !errors.Is(err, fs.ErrNotExist) {
		t.Fatalf("cassette: record: %v", err)
	}
	return file + ".part"
}

func kept[R interface{ Close() error }](t TB, file string, r R, err error) R {
	t.Helper()
	if err != nil {
		t.Fatalf("%v", err)
	}
	t.Cleanup(func() {
		if err := r.Close(); err != nil {
			t.Errorf("%v", err)
		}
		if t.Failed() {
			return
		}
		if err := os.Rename(file+".part", file); err != nil {
			t.Errorf("cassette: record: %v", err)
		}
	})
	return r
}
