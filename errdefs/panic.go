package errdefs

import (
	"fmt"
	"runtime/debug"
)

// Panic is a panic that was caught where it could have taken a run with it; its class is Internal. The text is one line, the stack beside it.
type Panic struct {
	Who   string // what panicked: "the engine", "a decider"
	Value any
	Stack string
}

// Recovered makes an error of what recover gave. It must be called from the deferred function, so that the stack is the panic's.
func Recovered(who string, value any) error {
	return &Panic{who, value, string(debug.Stack())}
}

// Error gives who and what.
func (p *Panic) Error() string { return fmt.Sprintf("%s panicked: %v", p.Who, p.Value) }

// Class is Internal.
func (p *Panic) Class() *Class { return Internal }

// Is makes errors.Is(err, errdefs.Internal) true.
func (p *Panic) Is(target error) bool { return target == error(Internal) }

// Unwrap gives the value when it was an error.
func (p *Panic) Unwrap() error {
	err, _ := p.Value.(error)
	return err
}
