package crashtest

import (
	"fmt"
	"io"
	"os"
)

// Fault is a way for a store to fail while its process lives on: another death for a case. It begins at a point and lasts as long as the process.
// What is nil does nothing. Build one in every process alike, as a Scenario.
type Fault struct {
	Name string
	// Before and After stand around a case, in the parent.
	Before, After func(dir string) error
	Open          Opener                 // opens the store where Begin can reach it; nil: as the scenario does
	Begin         func(dir string) error // in the child, at the point: the store fails from now on
	// Break does what the child can't do itself: the parent calls it at the point, before Begin, while the child waits.
	Break func() error
	Mend  func(dir string) error // in the parent, when the child has ended
	// Names is what the error that ends the child has to contain: which store it is, and where.
	Names func(dir string) []string
	Every int  // of so many points the whole suite tries one; 0: all
	Turn  int  // says which scenarios the middle tier plays, so that faults have different ones
	Alone bool // one case at a time: they share what breaks
}

// begin makes the store fail, in the child.
func (f *Fault) begin(dir string) {
	if f.Break != nil {
		if _, err := os.Stdin.Read(make([]byte, 1)); err != nil {
			panic(fmt.Sprintf("crashtest: fault %s: the parent is gone: %v", f.Name, err))
		}
	}
	if f.Begin != nil {
		if err := f.Begin(dir); err != nil {
			panic(fmt.Sprintf("crashtest: fault %s: %v", f.Name, err))
		}
	}
}

// happen is the parent's part at the point; then it lets the child go on.
func (f *Fault) happen(child io.Writer) error {
	if f.Break == nil {
		return nil
	}
	if err := f.Break(); err != nil {
		return fmt.Errorf("fault %s: %w", f.Name, err)
	}
	_, err := child.Write([]byte{'\n'})
	return err
}

func (f *Fault) opener(s *Scenario) Opener {
	switch {
	case f != nil && f.Open != nil:
		return f.Open
	case s.Open != nil:
		return s.Open
	}
	return SQLite
}

func (f *Fault) before(dir string) error {
	if f == nil || f.Before == nil {
		return nil
	}
	return f.Before(dir)
}

func (f *Fault) after(dir string) error {
	if f == nil || f.After == nil {
		return nil
	}
	return f.After(dir)
}

func (f *Fault) mend(dir string) error {
	if f.Mend == nil {
		return nil
	}
	return f.Mend(dir)
}

// every is how many points of a scenario there are for one that is tried in the whole suite.
func (f *Fault) every() int {
	if f == nil {
		return 1
	}
	return max(1, f.Every)
}

// all reports whether all points are tried. Else, of points between which nothing is done that outlives the process, the first is.
func (f *Fault) all(s *Scenario) bool { return f == nil && s.Open == nil }

func (f *Fault) names(dir string) []string {
	if f == nil || f.Names == nil {
		return nil
	}
	return f.Names(dir)
}
