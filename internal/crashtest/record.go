package crashtest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"sync"

	"github.com/pawl-dev/pawl/errdefs"
)

// line is one line of a case's record, a file beside the journal: what its processes did, in order. It has one of Point and those below.
type line struct {
	Life   int     `json:"life"` // of the case: the first process is 1
	Point  string  `json:"point,omitempty"`
	Seq    int64   `json:"seq,omitempty"`    // with a Point behind an append: the last entry that was reported durable
	Effect string  `json:"effect,omitempty"` // an effect of the engine begins
	Gave   string  `json:"gave,omitempty"`   // an effect of the engine had an outcome, which is to be journaled
	Use    *use    `json:"use,omitempty"`    // a tool's side effect
	Found  *found  `json:"found,omitempty"`  // what this process found when it began
	Result *result `json:"result,omitempty"` // what a run came to
}

// use is a side effect of a tool.
type use struct {
	Tool       string `json:"tool"`
	Call       string `json:"call"`
	Key        string `json:"key"`
	Repeatable bool   `json:"repeatable,omitempty"`
}

// result is what agent.Run or agent.Resume gave.
type result struct {
	Run      string `json:"run"`
	Status   string `json:"status"`
	Text     string `json:"text,omitempty"`
	Messages int    `json:"messages"`
}

// record appends to the file. Safe for concurrent use. Lines are whole if the process dies by way of [record.die]: a kernel may cut a
// write short between two pages when SIGKILL comes.
type record struct {
	mu   sync.Mutex // held while a line is written
	file *os.File
}

func recordPath(dir string) string { return filepath.Join(dir, "record.jsonl") }

func openRecord(dir string) (*record, error) {
	f, err := os.OpenFile(recordPath(dir), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	return &record{file: f}, err
}

// add writes a line; durable is for what must outlive the machine as well.
func (r *record) add(l line, durable bool) error {
	b, err := json.Marshal(l)
	if err != nil {
		return err
	}
	r.mu.Lock()
	_, err = r.file.Write(append(b, '\n'))
	r.mu.Unlock()
	if err != nil || !durable {
		return err
	}
	return r.file.Sync()
}

// die ends the process, when nobody is in the middle of a line.
func (r *record) die() {
	r.mu.Lock()
	die()
}

func readRecord(dir string) (lines []line, err error) {
	b, err := os.ReadFile(recordPath(dir))
	if err != nil {
		return nil, err
	}
	for text := range bytes.Lines(b) {
		var l line
		if err := json.Unmarshal(text, &l); err != nil {
			return nil, errdefs.Internal.Errorf("crashtest: record: %q: %w", text, err)
		}
		lines = append(lines, l)
	}
	return lines, nil
}

// must is for the child's record: a process that can't say what it does ends at once, and its case with it.
func must(err error) {
	if err != nil {
		panic(fmt.Sprintf("crashtest: record: %v", err))
	}
}
