package eval

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/pawl-dev/pawl/errdefs"
	"github.com/pawl-dev/pawl/internal/exact"
	"github.com/pawl-dev/pawl/journal"
	"github.com/pawl-dev/pawl/message"
	"github.com/pawl-dev/pawl/pack"
)

// Case is one thing to ask.
type Case struct {
	Name     string            // by which a baseline knows it: unlike that of any other case of the suite
	Prompt   string            // what is asked
	Messages []message.Message // in place of Prompt, for files and for more than one turn: users' messages, each a turn of one session. A turn that does not complete is the last
	Vars     map[string]any    // the run's inputs, of the types of journal.Vars; of a pack, the variables of its templates
	Want     string            // the answer that is wanted, for scorers that compare: text, or JSON as text
	Tags     []string          // for reports
	Scorers  []Scorer          // of this case alone, besides the suite's
}

// turns are what is asked, in order.
func (c Case) turns() []message.Message {
	if len(c.Messages) > 0 {
		return c.Messages
	}
	return []message.Message{message.User(c.Prompt)}
}

func (c Case) check() error {
	var all []error
	wrong := func(format string, args ...any) { all = append(all, errdefs.Validation.Errorf(format, args...)) }
	switch {
	case strings.TrimSpace(c.Name) == "":
		wrong("it has no name: the baseline knows cases by name")
	case strings.TrimSpace(c.Prompt) == "" && len(c.Messages) == 0:
		wrong("nothing is asked: give it a prompt, or messages")
	case c.Prompt != "" && len(c.Messages) > 0:
		wrong("it has a prompt and messages: leave one of them out")
	}
	for i, m := range c.Messages {
		if m.IsZero() || m.Role() != message.RoleUser || m.Blank() {
			wrong("message %d: it is no user's, or says nothing: have what users say, each a turn", i+1)
		}
	}
	if err := journal.Vars(c.Vars).Check(); err != nil {
		all = append(all, err)
	}
	return errors.Join(all...)
}

// hash is of what is asked and wanted: a case in which that changed is another one to a baseline.
func (c Case) hash() (string, error) {
	var b bytes.Buffer
	for _, m := range c.turns() {
		b.Write(m.AppendJSON(nil))
	}
	vars, err := journal.Vars(c.Vars).MarshalJSON()
	if err != nil {
		return "", err
	}
	if len(c.Vars) == 0 {
		vars = nil
	}
	fmt.Fprintf(&b, "\n%s\n%s", vars, c.Want)
	sum := sha256.Sum256(b.Bytes())
	return hex.EncodeToString(sum[:8]), nil
}

// mostOfLine bounds a line of a file of cases.
const mostOfLine = 16 << 20

// LoadCases is [ReadCases] of a file.
func LoadCases(path string, o PackOptions) ([]Case, error) {
	f, err := os.Open(path) //nolint:gosec // the caller's own file
	if err != nil {
		return nil, errdefs.NotFound.Errorf("eval: cases: %w", err)
	}
	defer func() { _ = f.Close() }()
	return ReadCases(f, path, o)
}

// ReadCases reads cases from JSON Lines: an object on each line; blank lines are passed over.
//
//	{"name": "refund", "prompt": "I want my money back.", "vars": {"plan": "paid"}, "want": "…", "tags": ["money"],
//	 "evals": [{"type": "tools_called", "params": {"tool_names": ["refund"]}}]}
//
// (on one line). In place of prompt there may be messages, a list of messages as journals have them. A want that is no string stands for its JSON. evals are scorers of this case, as packs have them: type, and if need be id, params, trigger, when, threshold,
// metric, groups, message, enabled; see [Pack]. A line has at most 16 MiB.
//
// An unknown member, one that is there twice, a wrong value or a name that another line has is errdefs.Validation, with name, which is the file's, and the number of each wrong line.
func ReadCases(r io.Reader, name string, o PackOptions) ([]Case, error) {
	var cases []Case
	var all []error
	at := map[string]int{}
	lines := bufio.NewScanner(r)
	lines.Buffer(make([]byte, 0, 64<<10), mostOfLine)
	n := 0
	for lines.Scan() {
		n++
		if len(bytes.TrimSpace(lines.Bytes())) == 0 {
			continue
		}
		c, err := readCase(lines.Bytes(), o)
		if first, ok := at[c.Name]; err == nil && ok {
			err = errdefs.Validation.Errorf("line %d has the name %q too: give each its own", first, c.Name)
		}
		if err != nil {
			all = append(all, fmt.Errorf("%s, line %d: %w", name, n, err))
			if len(all) == 20 {
				break
			}
			continue
		}
		at[c.Name] = n
		cases = append(cases, c)
	}
	if err := lines.Err(); err != nil {
		if errors.Is(err, bufio.ErrTooLong) {
			err = errdefs.Validation.Errorf("it has more than %d MiB", mostOfLine>>20)
		}
		all = append(all, fmt.Errorf("%s, line %d: %w", name, n+1, err))
	}
	if len(all) == 0 && len(cases) == 0 {
		all = append(all, errdefs.Validation.Errorf("%s: it has no cases: write one on each line", name))
	}
	if len(all) > 0 {
		return nil, fmt.Errorf("eval: cases: %w", errors.Join(all...))
	}
	return cases, nil
}

// line is a case as it is written.
type line struct {
	Name     string            `json:"name"`
	Prompt   string            `json:"prompt"`
	Messages []message.Message `json:"messages"`
	Vars     json.RawMessage   `json:"vars"`
	Want     json.RawMessage   `json:"want"`
	Tags     []string          `json:"tags"`
	Evals    []lineEval        `json:"evals"`
}

// lineEval is a pack.Eval that may leave out what a case has no need of.
type lineEval struct {
	ID               string          `json:"id"`
	Description      string          `json:"description"`
	Type             string          `json:"type"`
	Trigger          string          `json:"trigger"`
	SamplePercentage *float64        `json:"sample_percentage"`
	Enabled          *bool           `json:"enabled"`
	Params           map[string]any  `json:"params"`
	Metric           *lineMetric     `json:"metric"`
	Threshold        *pack.Threshold `json:"threshold"`
	Message          string          `json:"message"`
	When             map[string]any  `json:"when"`
	Groups           []string        `json:"groups"`
}

type lineMetric struct {
	Name  string     `json:"name"`
	Type  string     `json:"type"`
	Range *lineRange `json:"range"`
}

type lineRange struct {
	Min *float64 `json:"min"`
	Max *float64 `json:"max"`
}

func readCase(b []byte, o PackOptions) (Case, error) {
	l, err := strictly[line](b)
	if err != nil {
		return Case{}, err
	}
	c := Case{Name: l.Name, Prompt: l.Prompt, Messages: l.Messages, Tags: l.Tags}
	if len(l.Vars) > 0 && string(l.Vars) != "null" {
		vars := journal.Vars{}
		if err := json.Unmarshal(l.Vars, &vars); err != nil {
			return Case{}, errdefs.Validation.Errorf("vars: %w", err)
		}
		c.Vars = vars
	}
	if len(l.Want) > 0 && json.Unmarshal(l.Want, &c.Want) != nil {
		c.Want = string(l.Want)
	}
	if err := c.check(); err != nil {
		return Case{}, err
	}
	var evals []pack.Eval
	for i, e := range l.Evals {
		evals = append(evals, e.eval(i))
	}
	c.Scorers, err = scorersOf(evals, nil, o)
	return c, err
}

func (e lineEval) eval(i int) pack.Eval {
	out := pack.Eval{ID: e.ID, Description: e.Description, Type: e.Type, Trigger: e.Trigger, SamplePercentage: 5, Enabled: true, Params: e.Params, Threshold: e.Threshold, Message: e.Message, When: e.When, Groups: e.Groups}
	if out.ID == "" {
		out.ID = e.Type
		if i > 0 {
			out.ID = fmt.Sprintf("%s %d", e.Type, i+1)
		}
	}
	if out.Trigger == "" {
		out.Trigger = "on_session_complete"
	}
	if e.SamplePercentage != nil {
		out.SamplePercentage = *e.SamplePercentage
	}
	if e.Enabled != nil {
		out.Enabled = *e.Enabled
	}
	if m := e.Metric; m != nil {
		out.Metric = &pack.Metric{Name: m.Name, Type: m.Type}
		if m.Range != nil {
			out.Metric.Range = &pack.Range{Min: m.Range.Min, Max: m.Range.Max}
		}
	}
	return out
}

// strictly reads one value of JSON: no unknown member, none in another spelling, none twice, nothing behind it.
func strictly[T any](b []byte) (v T, err error) {
	if err = exact.Once(b); err == nil {
		err = exact.Unmarshal(b, &v)
	}
	if err == nil {
		d := json.NewDecoder(bytes.NewReader(b))
		d.DisallowUnknownFields()
		err = d.Decode(new(T))
	}
	if err != nil {
		err = errdefs.Validation.Errorf("%w", err)
	}
	return v, err
}
