package errdefs_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/pawl-dev/pawl/errdefs"
)

func Example() {
	err := fmt.Errorf("reading the session: %w", errdefs.NotFound.Errorf("journal: no session %q", "s1"))
	fmt.Println(err)
	fmt.Println(errors.Is(err, errdefs.NotFound), errors.Is(err, errdefs.Conflict), errdefs.Of(err))
	// Output:
	// reading the session: journal: no session "s1"
	// true false not_found
}

func TestAClassIsFoundThroughWrapsAndJoins(t *testing.T) {
	inner := errdefs.RateLimit.Errorf("slow down: %w", io.ErrUnexpectedEOF)
	for name, err := range map[string]error{
		"plain":   inner,
		"wrapped": fmt.Errorf("a: %w", fmt.Errorf("b: %w", inner)),
		"joined":  errors.Join(errors.New("other"), inner),
	} {
		if !errdefs.RateLimit.Is(err) || errdefs.Conflict.Is(err) || !errors.Is(err, io.ErrUnexpectedEOF) {
			t.Errorf("%s: %v", name, err)
		}
		if got := errdefs.Of(err); got != errdefs.RateLimit {
			t.Errorf("%s: Of = %v", name, got)
		}
	}
	if outer := errdefs.Internal.Errorf("x: %w", inner); errdefs.Of(outer) != errdefs.Internal {
		t.Error("the outermost class counts")
	}
	if errdefs.Named("budget_exceeded") != errdefs.BudgetExceeded || errdefs.Named("") != nil || errdefs.Named("Budget") != nil {
		t.Error("Named")
	}
	if errdefs.Of(nil) != nil || errdefs.Of(io.EOF) != nil || errdefs.Of(errdefs.Timeout) != errdefs.Timeout {
		t.Error("Of: nil and foreign errors have no class; a class has itself")
	}
}

func TestCanceledKnowsBothWaysAContextEnds(t *testing.T) {
	if !errdefs.Canceled(fmt.Errorf("x: %w", context.Canceled)) || !errdefs.Canceled(context.DeadlineExceeded) || errdefs.Canceled(io.EOF) || errdefs.Canceled(nil) {
		t.Error("Canceled")
	}
}

func TestAPanicIsAnErrorOfOneLineWithItsStackBeside(t *testing.T) {
	err := func() (err error) {
		defer func() { err = errdefs.Recovered("the tool", recover()) }()
		panic(io.ErrNoProgress)
	}()
	var p *errdefs.Panic
	if !errors.As(err, &p) || !errdefs.Internal.Is(err) || errdefs.Of(err) != errdefs.Internal || !errors.Is(err, io.ErrNoProgress) {
		t.Fatal(err)
	}
	if err.Error() != "the tool panicked: "+io.ErrNoProgress.Error() || !strings.Contains(p.Stack, "errdefs_test.go") {
		t.Error(err, p.Stack)
	}
}

func TestAClassHasTheStatusThatAServerAnswersWith(t *testing.T) {
	for class, want := range map[*errdefs.Class]int{
		errdefs.Validation: 400, errdefs.Unauthorized: 401, errdefs.PolicyDenied: 403, errdefs.NotFound: 404, errdefs.Conflict: 409, errdefs.Interrupted: 409, errdefs.Aborted: 409,
		errdefs.Overflow: 413, errdefs.Refused: 422, errdefs.Truncated: 422, errdefs.RateLimit: 429, errdefs.BudgetExceeded: 429, errdefs.Internal: 500, errdefs.NoProgress: 500,
		errdefs.NotAvailable: 503, errdefs.Timeout: 504,
	} {
		if got := class.HTTPStatus(); got != want {
			t.Errorf("%v: %d, want %d", class, got, want)
		}
	}
}
