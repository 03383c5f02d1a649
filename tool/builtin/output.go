package builtin

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"sync"
)

// The limits of a command's output, in bytes.
const (
	outputLimit = 30_000      // up to here it is shown whole
	outputEnds  = 10_000      // beyond, this much of its beginning and of its end
	outputKept  = 100_000_000 // and this much is kept in a file
)

// capture collects what a command writes, in the order of arrival. It holds no more than a few times outputLimit in memory: what is
// longer goes to a file in the output directory.
type capture struct {
	w  *Workspace
	id string
	of string // what it is the output of: "bash"

	mu      sync.Mutex
	total   int64
	head    []byte // everything while total <= outputLimit, then the first outputEnds
	tail    []byte // what came after head was full; at least the last outputEnds of it
	file    *os.File
	kept    int64
	keepErr error
	long    bool
}

// add takes valid UTF-8.
func (c *capture) add(b []byte) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.total += int64(len(b))
	if !c.long {
		c.head = append(c.head, b...)
		if c.total <= outputLimit {
			return
		}
		c.long = true
		c.file, c.keepErr = c.w.out.OpenFile(c.name(), os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
		b = c.head
		c.tail = append(c.tail, c.head[outputEnds:]...)
		c.head = c.head[:outputEnds:outputEnds]
	} else {
		c.tail = append(c.tail, b...)
	}
	if len(c.tail) > 4*outputEnds {
		c.tail = append(c.tail[:0], c.tail[len(c.tail)-outputEnds:]...)
	}
	if keep := min(int64(len(b)), outputKept-c.kept); c.keepErr == nil && keep > 0 {
		n, err := c.file.Write(b[:keep])
		c.kept += int64(n)
		c.keepErr = err
	}
}

func (c *capture) name() string { return c.of + "-" + c.id + ".txt" }

// finish closes the file and gives the text for the model, without a line end at its end.
func (c *capture) finish() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.file != nil {
		if err := c.file.Close(); c.keepErr == nil {
			c.keepErr = err
		}
	}
	if !c.long {
		return string(bytes.TrimSuffix(c.head, []byte("\n")))
	}
	head := upToLine(c.head)
	tail := fromLine(c.tail[max(0, len(c.tail)-outputEnds):])
	left := c.total - int64(len(head)) - int64(len(tail))
	note := fmt.Sprintf("%d bytes are left out; the whole output (%d bytes) is in %s: look into it with grep or read", left, c.total, c.path())
	switch {
	case c.keepErr != nil:
		note = fmt.Sprintf("%d bytes are left out; they could not be kept: %v", left, c.keepErr)
	case c.kept < c.total:
		note = fmt.Sprintf("%d bytes are left out; the first %d of %d bytes of the output are in %s: look into it with grep or read", left, c.kept, c.total, c.path())
	}
	return fmt.Sprintf("%s\n[%s]\n%s", bytes.TrimSuffix(head, []byte("\n")), note, bytes.TrimSuffix(tail, []byte("\n")))
}

func (c *capture) path() string { return filepath.Join(c.w.outDir, c.name()) }

// upToLine cuts the end of b off at a line end if there is one near, or else at a rune.
func upToLine(b []byte) []byte {
	if i := bytes.LastIndexByte(b, '\n'); i >= len(b)*3/4 {
		return b[:i+1]
	}
	return b[:len(b)-unfinished(b)]
}

// fromLine cuts the beginning of b off likewise.
func fromLine(b []byte) []byte {
	if i := bytes.IndexByte(b, '\n'); i >= 0 && i < len(b)/4 {
		return b[i+1:]
	}
	for i := 0; i < 4 && i < len(b); i++ {
		if b[i]&0xC0 != 0x80 {
			return b[i:]
		}
	}
	return b
}

// cleaner makes a byte stream that comes in pieces valid text: what is not UTF-8, and NUL, becomes U+FFFD. A rune that is cut in two
// waits for its other half.
type cleaner struct{ rest []byte }

func (c *cleaner) clean(b []byte) []byte {
	b = append(c.rest, b...)
	n := len(b) - unfinished(b)
	out := []byte(valid(string(b[:n])))
	c.rest = append([]byte(nil), b[n:]...)
	return out
}

// flush gives what still waits.
func (c *cleaner) flush() []byte { return []byte(valid(string(c.rest))) }
