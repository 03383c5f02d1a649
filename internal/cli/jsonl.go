package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"slices"
	"time"

	"github.com/pawl-dev/pawl/agent"
	"github.com/pawl-dev/pawl/engine"
	"github.com/pawl-dev/pawl/errdefs"
	"github.com/pawl-dev/pawl/event"
	"github.com/pawl-dev/pawl/journal"
	"github.com/pawl-dev/pawl/message"
	"github.com/pawl-dev/pawl/model"
)

// jsonl writes a run as one JSON object a line: the contract that other programs read. Not for concurrent use.
type jsonl struct {
	w     io.Writer
	names map[string]string // tool names by call id, for lines about calls that never ran
	asked map[asked]bool    // calls that a person was asked about, whose no is their end
	told  map[string][]journal.Entry
	open  map[asked]event.Event // commands in the background that have not ended, as they began
	apart map[string]int        // what models said apart from the transcript, in a node of a graph, and did not come into it yet
	head  line                  // of the last event, for the last line
	err   error                 // the first error of writing; then nothing is written any more
}

type asked struct{ session, id string }

func newJSONL(w io.Writer) *jsonl {
	return &jsonl{w: w, names: map[string]string{}, asked: map[asked]bool{}, told: map[string][]journal.Entry{}, open: map[asked]event.Event{}, apart: map[string]int{}}
}

// recall reads what lines about an unfinished run need of its record, and of the tasks below it: which calls it asked about, and who was answered by another process since it was left. These answers are
// written when the run goes on.
func (j *jsonl) recall(ctx context.Context, store journal.Store, session string) error {
	below, err := journal.Tasks(ctx, store, session)
	if err != nil {
		return err
	}
	for _, s := range append(below, session) {
		for e, err := range store.Read(ctx, s, 0) {
			if err != nil {
				return err
			}
			switch d := e.Data.(type) {
			case journal.ModelFinished:
				j.name(d.Message)
				j.aside(e.Key, d.Message)
			case journal.Board:
				j.joins(d, func(message.Message) {})
			case journal.Asked:
				j.ask(s, d)
			case journal.RunStarted, journal.Resumed, journal.Parked: // what was answered before was told then
				delete(j.told, s)
			case journal.Answered:
				j.told[s] = append(j.told[s], e)
			}
		}
	}
	return nil
}

func (j *jsonl) name(m message.Message) {
	for c := range message.Of[message.ToolCall](m) {
		j.names[c.ID] = c.Name
	}
}

// aside notes what a model said apart from the transcript.
func (j *jsonl) aside(key journal.Key, m message.Message) {
	if key.Scope != "" && !m.Blank() {
		j.apart[string(m.AppendJSON(nil))]++
	}
}

// joins tells of what comes into the transcript and was not told yet. Results of tools have lines of their own.
func (j *jsonl) joins(d journal.Board, tell func(message.Message)) {
	for _, m := range slices.Concat(d.Append[engine.MainChannel], d.Edit[engine.MainChannel].Tail) {
		text := string(m.AppendJSON(nil))
		switch {
		case j.apart[text] > 1:
			j.apart[text]--
		case j.apart[text] == 1:
			delete(j.apart, text)
		case m.Role() != message.RoleTool:
			tell(m)
		}
	}
}

func (j *jsonl) ask(session string, d journal.Asked) {
	if d.Call != nil && !d.Unknown {
		j.asked[asked{session, d.ID}] = true
	}
}

// line is what every line has.
type line struct {
	Type      string    `json:"type"`
	Session   string    `json:"session"`
	Run       string    `json:"run"`
	Seq       int64     `json:"seq"`
	Time      time.Time `json:"time"`
	ParentRun string    `json:"parent_run,omitempty"`
}

func (j *jsonl) write(v any) {
	if j.err != nil {
		return
	}
	enc := json.NewEncoder(j.w)
	enc.SetEscapeHTML(false)
	j.err = enc.Encode(v)
}

// event writes what an event means to a reader of lines; some mean nothing to him.
func (j *jsonl) event(e event.Event) {
	at := line{e.Type(), e.Session, e.Run, e.Seq, e.Time, e.ParentRun}
	if at.Time.IsZero() {
		at.Time = time.Now().UTC()
	}
	if e.ParentRun == "" {
		j.head = at
	}
	as := func(kind string) line { at.Type = kind; return at }
	switch d := e.Data.(type) {
	case nil:
		j.delta(at, e)
	case journal.RunStarted:
		j.write(struct {
			line
			Model  string `json:"model"`
			Engine string `json:"engine"`
			Dir    string `json:"dir"`
		}{at, d.Model, d.Engine, d.Dir})
	case journal.Said:
		j.message(as("message"), d.Message)
	case journal.ModelFinished:
		for _, m := range d.Heard {
			j.message(as("message"), m)
		}
		j.aside(e.Key, d.Message)
		if j.name(d.Message); !d.Message.Blank() {
			j.message(as("message"), d.Message)
		}
		j.write(struct {
			line
			Usage model.Usage `json:"usage"`
			Cost  *float64    `json:"cost_usd"`
		}{as("usage"), d.Usage, dollars(d.CostMicros)})
	case journal.Board:
		j.joins(d, func(m message.Message) { j.message(as("message"), m) })
	case journal.ToolStarted:
		j.names[d.Call.ID] = d.Call.Name
		j.write(struct {
			line
			Call  string `json:"call_id"`
			Name  string `json:"name"`
			Input any    `json:"input"`
		}{at, d.Call.ID, d.Call.Name, input(d.Call.Input)})
	case journal.CommandStarted:
		j.open[asked{e.Session, d.ID}] = e
		j.write(struct {
			line
			ID      string `json:"id"`
			Call    string `json:"call_id"`
			Command string `json:"command"`
		}{at, d.ID, d.Call, d.Command})
	case journal.CommandEnded:
		delete(j.open, asked{e.Session, d.ID})
		j.write(struct {
			line
			ID     string `json:"id"`
			Reason string `json:"reason"`
			Code   int    `json:"code"`
			Signal string `json:"signal,omitempty"`
		}{at, d.ID, d.Reason, d.Code, d.Signal})
	case journal.ToolFinished:
		if d.Ask { // not the last word: a person is asked next
			return
		}
		j.toolFinished(at, d.Call, d.Name, d.IsError, d.Outcome, d.Content)
		j.warning(as("warning"), d.Warning)
	case journal.ToolJudged:
		if d.Refused() {
			outcome := journal.OutcomeDenied
			if d.Verdict == "invalid" { // the model's mistake, no gate's doing
				outcome = journal.OutcomeError
			}
			j.toolFinished(as("tool.finished"), d.Call, j.names[d.Call], true, outcome, d.Reason)
		}
	case journal.Resumed:
		for _, answer := range j.told[e.Session] {
			j.event(event.Event{Entry: answer, ParentRun: e.ParentRun})
		}
		delete(j.told, e.Session)
	case journal.Answered:
		if !d.Approved && j.asked[asked{e.Session, d.ID}] {
			j.toolFinished(as("tool.finished"), d.ID, j.names[d.ID], true, journal.OutcomeRejected, d.Text)
		}
	case journal.Asked:
		j.ask(e.Session, d)
		j.approval(as("approval.requested"), d)
	case journal.Compacted:
		if d.Error != "" {
			j.warning(as("warning"), "the transcript could not be compacted: "+d.Error)
			return
		}
		j.write(struct {
			line
			Before    int `json:"tokens_before"`
			After     int `json:"tokens_after"`
			Preserved int `json:"preserved_count"`
			Summary   int `json:"summary_size"`
		}{at, d.TokensBefore, d.TokensAfter, d.Preserved, d.SummarySize})
	case journal.Stopped:
		for _, text := range d.Errors {
			j.warning(as("warning"), text)
		}
	}
}

// ends writes what became of the commands that went on when their run was over. They have ended: their ends are on record, and nobody published them.
func (j *jsonl) ends(ctx context.Context, store journal.Store) error {
	from := map[string]int64{} // by session: where its first one began
	for of, e := range j.open {
		if first, ok := from[of.session]; !ok || e.Seq < first {
			from[of.session] = e.Seq
		}
	}
	for _, session := range slices.Sorted(maps.Keys(from)) {
		for e, err := range store.Read(ctx, session, from[session]) {
			if err != nil {
				return err
			}
			if d, ok := e.Data.(journal.CommandEnded); ok {
				if began, ok := j.open[asked{session, d.ID}]; ok {
					e.Run = began.Run // on record it is of none, since that was over
					j.event(event.Event{Entry: e, ParentRun: began.ParentRun})
				}
			}
		}
	}
	return nil
}

func (j *jsonl) delta(at line, e event.Event) {
	type attempt struct {
		line
		Attempt int    `json:"attempt"`
		Text    string `json:"text"`
	}
	switch e.Delta {
	case event.TextDelta, event.ReasoningDelta:
		j.write(attempt{at, e.Attempt, e.Text})
	case event.Retry:
		j.write(struct {
			line
			Attempt int    `json:"attempt"`
			Reason  string `json:"reason"`
		}{at, e.Attempt, e.Text})
	case event.Warning:
		j.warning(at, e.Text)
	case event.ToolOutput:
		j.write(struct {
			line
			Call   string `json:"call_id"`
			Text   string `json:"text"`
			Stream string `json:"stream"`
		}{at, e.Key.ID, e.Text, e.Stream})
	}
}

func (j *jsonl) message(at line, m message.Message) {
	j.write(struct {
		line
		Message message.Message `json:"message"`
	}{at, m})
}

func (j *jsonl) toolFinished(at line, call, name string, isError bool, outcome journal.Outcome, content string) {
	j.write(struct {
		line
		Call    string          `json:"call_id"`
		Name    string          `json:"name"`
		IsError bool            `json:"is_error"`
		Outcome journal.Outcome `json:"outcome"`
		Content string          `json:"content"`
	}{at, call, name, isError, outcome, content})
}

func (j *jsonl) approval(at line, d journal.Asked) {
	j.write(struct {
		line
		question
	}{at, questionOf(d)})
}

// question is what a person is asked.
type question struct {
	Call    string `json:"call_id"` // what pawl approve, reject and answer take
	Name    string `json:"name,omitempty"`
	Input   any    `json:"input,omitempty"`
	Reason  string `json:"reason"`
	Unknown bool   `json:"unknown,omitempty"` // the call had begun: approving runs it again
	Confirm bool   `json:"confirm,omitempty"` // no call: pawl approve is yes, pawl reject no
	Once    bool   `json:"once,omitempty"`    // it is asked each time: pawl approve --session is refused
}

func questionOf(d journal.Asked) question {
	q := question{Call: d.ID, Reason: d.Prompt, Unknown: d.Unknown, Confirm: d.Confirm, Once: d.Once}
	if d.Call != nil {
		q.Name, q.Input = d.Call.Name, input(d.Call.Input)
	}
	return q
}

func (j *jsonl) warning(at line, text string) {
	if text != "" {
		j.write(struct {
			line
			Text string `json:"text"`
		}{at, text})
	}
}

// failure says why a run did not complete.
type failure struct {
	Class string `json:"class"`
	Text  string `json:"text"`
}

// finished writes the last line there is, whatever happened.
func (j *jsonl) finished(res *agent.Result, err error) {
	at := j.head
	at.Type, at.Time = "run.finished", time.Now().UTC()
	l := struct {
		line
		Status  string      `json:"status"`
		Text    string      `json:"text"`
		Steps   int         `json:"steps"`
		Usage   model.Usage `json:"usage"`
		Cost    *float64    `json:"cost_usd"`
		Pending []question  `json:"pending"`
		Error   *failure    `json:"error,omitempty"`
	}{line: at, Status: string(agent.StatusFailed), Pending: []question{}}
	if res != nil {
		l.Session, l.Run = res.ContextID, res.RunID
		l.Status, l.Text, l.Steps, l.Usage, l.Cost = string(res.Status), res.Text(), res.Steps, res.Usage, dollars(res.Cost)
		for _, p := range res.Pending {
			l.Pending = append(l.Pending, questionOf(p.Asked))
		}
		if err == nil {
			err = res.Err
		}
	} else if errdefs.Canceled(err) {
		l.Status = string(agent.StatusCanceled)
	}
	if err != nil {
		l.Error = &failure{classOf(err), err.Error()}
	}
	j.write(l)
}

func classOf(err error) string {
	if c := errdefs.Of(err); c != nil {
		return c.Error()
	}
	if errdefs.Canceled(err) {
		return "canceled"
	}
	return errdefs.Internal.Error()
}

// input is a call's input as JSON when it is, else as text.
func input(text string) any {
	if json.Valid([]byte(text)) {
		return json.RawMessage(text)
	}
	return text
}

func dollars(micros *int64) *float64 {
	if micros == nil {
		return nil
	}
	usd := float64(*micros) / 1e6
	return &usd
}

// money writes an amount for people; unknown is not zero.
func money(micros *int64) string {
	if micros == nil {
		return "unknown"
	}
	return fmt.Sprintf("$%.4f", float64(*micros)/1e6)
}
