package crashtest

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"

	"github.com/pawl-dev/pawl/errdefs"
	"github.com/pawl-dev/pawl/journal"
)

// line is one line of a case's record: what its processes did, in order. It has one of Point and those below.
type line struct {
	Life   int        `json:"life"` // of the case: the first process is 1
	Point  string     `json:"point,omitempty"`
	Own    bool       `json:"own,omitempty"`    // with a Point: the scenario's own
	Effect string     `json:"effect,omitempty"` // an effect of the engine begins
	Repeat string     `json:"repeat,omitempty"` // with an Effect: the call that it runs, of a tool that may be repeated
	Gave   string     `json:"gave,omitempty"`   // an effect of the engine had an outcome, which is to be journaled
	Append *appending `json:"append,omitempty"` // an append begins, or ended
	Use    *use       `json:"use,omitempty"`    // a tool's side effect
	Found  *found     `json:"found,omitempty"`  // what this process found when it began
	Answer *answer    `json:"answer,omitempty"` // the parent answered a question
	Result *result    `json:"result,omitempty"` // what a run came to
	Replay *replay    `json:"replay,omitempty"` // a session was replayed
	Fault  string     `json:"fault,omitempty"`  // the store fails from here on: the point
	Failed *failure   `json:"failed,omitempty"` // the process ended with this error, as it should when its store failed
	Ended  int        `json:"ended,omitempty"`  // the life ended in order, with this code, and the process waits for another plan
}

// appending is an append to the journal.
type appending struct {
	Session string   `json:"session"`
	Time    int64    `json:"time"` // that its entries have, and no others: nanoseconds since 1970
	Entries int      `json:"entries"`
	Last    int64    `json:"last"`             // the number of the last of them
	Starts  []string `json:"starts,omitempty"` // the calls that it says begin
	Ended   string   `json:"ended,omitempty"`  // "" when it begins, then reported, or the class of its error
}

// reported is the end of an append that the store says is durable.
const reported = "reported"

// failure is an error that ended a process.
type failure struct {
	Class string `json:"class"`
	Text  string `json:"text"`
}

// use is a side effect of a tool.
type use struct {
	Tool       string `json:"tool"`
	Call       string `json:"call"`
	Key        string `json:"key"`
	Same       string `json:"same"` // the key as it is in every case: with the session in place of a run's id that chance made
	Repeatable bool   `json:"repeatable,omitempty"`
}

// answer is what a person said to a question about a call.
type answer struct {
	Asked    journal.Asked    `json:"asked"`
	Answered journal.Answered `json:"answered"`
}

// replay is what came of the replay of a session.
type replay struct {
	Session    string `json:"session"`
	Difference string `json:"difference,omitempty"` // the first one; "": there was none
}

// result is what agent.Run or agent.Resume gave.
type result struct {
	Run      string `json:"run"`
	Status   string `json:"status"`
	Text     string `json:"text,omitempty"`
	Messages int    `json:"messages"`
}

// record tells the parent, through a pipe: what was written to it is out of reach of whatever becomes of the process, its disk and its limits.
// Safe for concurrent use. Lines are whole if the process dies by way of [record.die]: a kernel may cut a write short between two pages when
// SIGKILL comes.
type record struct {
	life int

	mu    sync.Mutex // held while a line is written
	pipe  *os.File
	ended bool
}

// add writes a line. A process that can't say what it does ends at once, and its case with
// it. So does one that says something after its life ended: it would be taken for the next.
func (r *record) add(l line) {
	l.Life = r.life
	b, err := json.Marshal(l)
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.ended {
		panic(fmt.Sprintf("crashtest: record: after the end of its life: %s", b))
	}
	r.ended = l.Ended != 0
	if err == nil {
		_, err = r.pipe.Write(append(b, '\n'))
	}
	if err != nil {
		panic(fmt.Sprintf("crashtest: record: %v", err))
	}
}

// die ends the process, when nobody is in the middle of a line.
func (r *record) die() {
	r.mu.Lock()
	die()
}

// recordReader reads what a process tells.
type recordReader struct{ lines *bufio.Reader }

func newRecordReader(from io.Reader) *recordReader { return &recordReader{bufio.NewReader(from)} }

// life reads the record of one life. The code is how it ended, and 0 if the process is gone.
func (r *recordReader) life(each func(line) error) (code int, err error) {
	for {
		text, err := r.lines.ReadBytes('\n')
		if errors.Is(err, io.EOF) && len(text) == 0 {
			return 0, nil
		}
		if err != nil {
			return 0, err
		}
		var l line
		if err := json.Unmarshal(text, &l); err != nil {
			return 0, errdefs.Internal.Errorf("crashtest: record: %q: %w", text, err)
		}
		if l.Ended != 0 {
			return l.Ended, nil
		}
		if err := each(l); err != nil {
			return 0, err
		}
	}
}
