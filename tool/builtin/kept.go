package builtin

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sync"
)

// keptMost is how much of the output of a command in the background is kept, in bytes.
const keptMost = 10 << 20

// kept is that output: the end of it, in a file. What is dropped of its beginning is at least half of keptMost at a time.
type kept struct {
	root      *os.Root
	name, dir string

	mu      sync.Mutex
	file    *os.File // while the command runs
	dropped int64    // bytes of the beginning that are gone
	size    int64    // of the file
	seen    int64    // what was given of the output, from its beginning
	err     error    // of the file, once
}

func (k *kept) path() string { return filepath.Join(k.dir, k.name) }

func (k *kept) open() (err error) {
	k.file, err = k.root.OpenFile(k.name, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
	return err
}

func (k *kept) close() {
	k.mu.Lock()
	defer k.mu.Unlock()
	if err := k.file.Close(); k.err == nil {
		k.err = err
	}
}

// add takes valid UTF-8.
func (k *kept) add(b []byte) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.err != nil || len(b) == 0 {
		return
	}
	if k.size+int64(len(b)) > keptMost {
		k.shift()
	}
	if k.err == nil {
		_, k.err = k.file.WriteAt(b, k.size)
		k.size += int64(len(b))
	}
}

// shift keeps the second half, from the beginning of a line if there is one near.
func (k *kept) shift() {
	half := make([]byte, min(k.size, keptMost/2))
	if _, k.err = k.file.ReadAt(half, k.size-int64(len(half))); k.err != nil {
		return
	}
	half = fromLine(half)
	if k.err = k.file.Truncate(0); k.err != nil {
		return
	}
	_, k.err = k.file.WriteAt(half, 0)
	k.dropped += k.size - int64(len(half))
	k.size = int64(len(half))
}

// next gives what was not given yet, without a line end at its end.
func (k *kept) next() (string, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	f, err := k.root.Open(k.name)
	if err != nil {
		return "", err
	}
	defer func() { _ = f.Close() }()
	note := ""
	if lost := k.dropped - k.seen; lost > 0 {
		note, k.seen = fmt.Sprintf("[%d bytes that were not read are gone: the last %d MB are kept]\n", lost, keptMost>>20), k.dropped
	}
	if k.err != nil {
		note += fmt.Sprintf("[the output could not be kept: %v]\n", k.err)
	}
	from, to := k.seen-k.dropped, k.size
	piece := func(at, n int64) ([]byte, error) {
		b := make([]byte, n)
		_, err := io.ReadFull(io.NewSectionReader(f, at, n), b)
		return b, err
	}
	if to-from <= outputLimit {
		b, err := piece(from, to-from)
		if err != nil {
			return "", err
		}
		k.seen = k.dropped + to
		return note + string(bytes.TrimSuffix(b, []byte("\n"))), nil
	}
	head, err := piece(from, outputEnds)
	if err != nil {
		return "", err
	}
	tail, err := piece(to-outputEnds, outputEnds)
	if err != nil {
		return "", err
	}
	k.seen = k.dropped + to
	head, tail = upToLine(head), fromLine(tail)
	return fmt.Sprintf("%s%s\n[%d bytes are left out; they are in %s: look into it with grep or read]\n%s", note, bytes.TrimSuffix(head, []byte("\n")),
		to-from-int64(len(head)+len(tail)), k.path(), bytes.TrimSuffix(tail, []byte("\n"))), nil
}
