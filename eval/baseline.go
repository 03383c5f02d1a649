package eval

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/pawl-dev/pawl/errdefs"
)

// Version is the version of the formats of baselines and reports that this package writes. Of baselines it reads all up to it.
const Version = 1

// Baseline is how a suite did: what a later run is held to. Its file is JSON, with names in order, so that a change of it can be read in review.
type Baseline struct {
	Version int                     `json:"version"`
	Suite   string                  `json:"suite"`
	Cases   map[string]BaselineCase `json:"cases"` // by name
}

// BaselineCase is how a case did.
type BaselineCase struct {
	Hash   string           `json:"hash"` // of its words: SHA-256, shortened
	Scores map[string]Tally `json:"scores"`
}

// Tally is what a scorer said of a case's repeats.
type Tally struct {
	Passed int     `json:"passed"`
	Of     int     `json:"of"`   // that were scored
	Mean   float64 `json:"mean"` // of their values
}

// ReadBaseline reads a baseline's file. errdefs.NotFound where there is none; Validation where it can't be understood.
func ReadBaseline(path string) (*Baseline, error) {
	b, err := os.ReadFile(path) //nolint:gosec // the caller's own file
	if errors.Is(err, fs.ErrNotExist) {
		return nil, errdefs.NotFound.Errorf("eval: baseline: %s is not there: write it with %s=1", path, UpdateEnv)
	}
	if err != nil {
		return nil, fmt.Errorf("eval: baseline: %w", err)
	}
	base, err := parseBaseline(b)
	if err != nil {
		return nil, fmt.Errorf("eval: baseline: %s: %w: correct it, or write it anew with %s=1", path, err, UpdateEnv)
	}
	return base, nil
}

func parseBaseline(b []byte) (*Baseline, error) {
	var head struct {
		Version int `json:"version"`
	}
	if err := json.Unmarshal(b, &head); err != nil {
		return nil, errdefs.Validation.Errorf("%w", err)
	}
	if head.Version < 1 || head.Version > Version {
		return nil, errdefs.Validation.Errorf("it has version %d, and this program reads 1 to %d", head.Version, Version)
	}
	base, err := strictly[Baseline](b)
	if err != nil {
		return nil, err
	}
	for name, c := range base.Cases {
		for scorer, t := range c.Scores {
			if t.Passed < 0 || t.Of < t.Passed || t.Of > 1e9 || !(t.Mean >= 0 && t.Mean <= 1) {
				return nil, errdefs.Validation.Errorf("case %q, scorer %q: %d of %d passed, mean %v: that can't be", name, scorer, t.Passed, t.Of, t.Mean)
			}
		}
	}
	return &base, nil
}

// write writes the file, whole or not at all.
func (b *Baseline) write(path string) error {
	text, err := json.MarshalIndent(b, "", "  ")
	if err == nil {
		err = os.MkdirAll(filepath.Dir(path), 0o750)
	}
	if err == nil {
		err = replace(path, append(text, '\n'))
	}
	if err != nil {
		return fmt.Errorf("eval: baseline: %w", err)
	}
	return nil
}

// replace writes a file whole or not at all, whoever else does.
func replace(path string, text []byte) error {
	f, err := os.CreateTemp(filepath.Dir(path), ".eval-*") // new, for its owner alone
	if err != nil {
		return err
	}
	_, err = f.Write(text)
	if err = errors.Join(err, f.Close()); err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		_ = os.Remove(f.Name())
	}
	return err
}
