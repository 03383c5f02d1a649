package journal

import (
	"cmp"
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/pawl-dev/pawl/errdefs"
	"github.com/pawl-dev/pawl/message"
	"github.com/pawl-dev/pawl/model"
)

// State is a session, folded. Folding is pure: the same entries give the same State in every process and version.
type State struct {
	Seq              int64
	Created, Updated time.Time
	Messages         message.History // the transcript: always valid for a provider; calls still open are answered by NotRun, or by Unknown when they had begun
	Seed             message.History // the transcript that the unfinished run began with: where resuming and revising start
	Prompt           message.Message // what the last run was asked
	Inputs           Vars            // of the unfinished run
	Seeded           Board           // how the unfinished run's board differed, when it began, from that of Seed and Inputs
	Run              string          // the unfinished run, or ""
	Agent, User      string          // of the last run
	Task, Engine     string          // likewise
	Dir              string          // likewise: that it works in
	Version          string          // likewise: of what the engine goes by
	Started          time.Time       // when the last run began
	Trace            string          // the span of its last attempt: see RunStarted
	ParentRun        string          // likewise: the run that started it
	Terms            json.RawMessage // likewise: what it may do, in the words of the program that drives it; read-only
	Closed           Closed          // the unfinished run whose place the last one took
	Handoff          json.RawMessage // of the last run, when it handed the conversation over and nobody has begun a run since; read-only
	Driver           string
	Attempt          int    // of the last run
	Status           string // of the last run that finished, or "interrupted"; "" while one runs
	Class, Error     string // of the last run, when it failed
	Spent            Spent  // over the session
	RunSpent         Spent  // over the last run, all its attempts
	Context          int    // tokens that the transcript took of the model's window, up to and with the last reply; 0: not known
	Pending          []Pending
	Steering         []Steering       // that no model call has heard yet
	Background       []Called         // calls of the unfinished run that go on, and whose result has not come
	Commands         []CommandStarted // that go on in the background, whichever run started them
	Granted          []Granted        // in the session so far, by its Answered entries; a fork has those that it shares
	// Untrusted is what first brought what strangers wrote into the session, as people read it: a tool call ("web_fetch (call c1)"), a tool that the provider ran, a task, an agent of somebody else's. It stays, whatever is cut off or dropped later; "" for
	// nothing. Tools mark their results (tool.Result.Untrusted), and permission.Config.Taint has them marked.
	Untrusted string

	live     *sync.Mutex // of the Log that the State was taken of, which goes on to write to the four below; nil: nobody does
	effects  effects     // of the unfinished run's attempt
	calls    map[string]bool
	runs     map[string]bool
	moves    map[string]int    // by scope: how often the beginning of what is said there was changed on purpose
	open     openCalls         // the calls of the last reply, until all have a result
	shown    bool              // Messages end with the results of the open calls, for whoever reads
	expected message.Message   // see Log.Expect
	heard    []Steering        // by the attempt under way: a further one hears it again
	aside    []Steering        // those of them that were heard in a scope, and the transcript has not got yet
	own      int               // where the attempt's own messages begin in Messages
	gone     []message.Message // those of them that compactions, and edits of a board, took away; nil: there was none
}

// Closed is a run that was unfinished when a prompt began another one.
type Closed struct {
	Run     string
	Pending []Pending // what it waited for
}

// Spent is what model calls took.
type Spent struct {
	Steps      int // model calls that gave a reply
	Usage      model.Usage
	CostMicros int64
	Unpriced   int // calls whose price is not known
}

// Plus is both together.
func (s Spent) Plus(o Spent) Spent {
	return Spent{s.Steps + o.Steps, s.Usage.Add(o.Usage), s.CostMicros + o.CostMicros, s.Unpriced + o.Unpriced}
}

// Cost is the price in millionths of a dollar; nil when the price of a call is not known.
func (s Spent) Cost() *int64 {
	if s.Unpriced > 0 {
		return nil
	}
	return &s.CostMicros
}

// SpentBy is what one model call took. One that did not fit gave no reply.
func SpentBy(d ModelFinished) Spent {
	if d.Stop == model.StopWindow && d.Message.Blank() && d.Usage.Total() == 0 {
		return Spent{}
	}
	if d.CostMicros == nil {
		return Spent{1, d.Usage, 0, 1}
	}
	return Spent{1, d.Usage, *d.CostMicros, 0}
}

// Pending is a question without an answer.
type Pending struct {
	Key Key       `json:"key"`
	At  time.Time `json:"at"` // when it was asked
	Asked
}

// Deadline is when the time for an answer is over; zero for never.
func (p Pending) Deadline() time.Time {
	if p.TTL <= 0 {
		return time.Time{}
	}
	return p.At.Add(time.Duration(p.TTL) * time.Millisecond)
}

// Expired reports whether the time for an answer is over. It is no answer yet: a run that is resumed takes it for a no.
func (p Pending) Expired(now time.Time) bool {
	return p.TTL > 0 && !now.Before(p.Deadline())
}

// Fold folds entries from the beginning of a session: for readings at a position in the past, stop feeding it there.
func Fold(entries ...Entry) State {
	var s State
	for i := range entries {
		s.apply(&entries[i])
	}
	s.show()
	return s
}

// With is the state after further entries; s stays as it is.
func (s State) With(entries ...Entry) State {
	s = s.apart()
	s.open = s.open.clone()
	s.hide()
	s.clip()
	for _, e := range entries {
		e.Seq = s.Seq + 1
		s.apply(&e)
	}
	s.show()
	return s
}

// apart is s with an index of its own.
func (s State) apart() State {
	if s.live != nil {
		s.live.Lock()
		defer s.live.Unlock()
	}
	s.live, s.effects, s.calls, s.runs, s.moves = nil, s.effects.clone(), maps.Clone(s.calls), maps.Clone(s.runs), maps.Clone(s.moves)
	return s
}

// clip keeps what is appended to a copy of s, or to s, from being seen in the other.
func (s *State) clip() {
	s.Pending, s.Steering, s.Background, s.heard = slices.Clip(s.Pending), slices.Clip(s.Steering), slices.Clip(s.Background), slices.Clip(s.heard)
	s.Commands = slices.Clip(s.Commands)
	s.Granted = slices.Clip(s.Granted)
}

// free fails with Conflict when a key among entries has such an entry already, on record or among them.
func (s *State) free(entries []Entry) error {
	old, attempt := &s.effects, 0 // where the attempt's own begin
	for i := range entries {
		e := &entries[i]
		if err := known(e.Data); err != nil {
			return err
		}
		if d, created := e.Data.(SessionCreated); created && d.Parent == "" && s.Seq > 0 {
			return errdefs.Conflict.Errorf("journal: the session is there already")
		}
		if _, fresh := e.Data.(RunStarted); fresh { // an attempt has its own keys
			old, attempt = new(effects), i
		}
		if e.Key == (Key{}) {
			continue
		}
		r, part := old.of(e.Key), roleOf(e.Data)
		taken := part == intent && r.begun > 0 || part == outcome && r.outcome != nil
		for k := attempt; k < i && !taken; k++ { // there are few
			taken = part != note && entries[k].Key == e.Key && roleOf(entries[k].Data) == part
		}
		if taken {
			return errdefs.Conflict.Errorf("journal: %v has a %s already", e.Key, e.Data.Kind())
		}
	}
	return nil
}

// apply folds an entry in. What kinds of entries do is in functions of their own: this one stands deep in stacks, and would have room for the data of each.
func (s *State) apply(e *Entry) {
	if s.Seq == 0 {
		s.Created = e.Time
	}
	s.Seq, s.Updated = e.Seq, e.Time
	if e.Key != (Key{}) && s.effects.table != nil {
		s.record(e)
	}
	switch e.Data.(type) {
	case ModelFinished, Compacted:
		s.applyModel(e)
	case ToolJudged, ToolStarted, ToolFinished:
		s.applyTool(e)
	case Asked, Answered:
		s.applyQuestion(e)
	case Said, Stopped, Prepared:
		s.applySaid(e)
	case Seeded, Board:
		s.applyBoard(e)
	case CommandStarted, CommandEnded:
		s.applyCommand(e)
	case SessionCreated, RunStarted, Resumed, Parked, RunFinished:
		s.applyRun(e)
	}
}

// record notes what an entry is to the effect of its key.
func (s *State) record(e *Entry) {
	r := s.effects.put(e.Key)
	switch roleOf(e.Data) {
	case intent:
		r.begun = cmp.Or(r.begun, e.Seq)
	case outcome:
		if r.outcome == nil { // the first counts
			r.outcome = e.Data
		}
	case note:
	}
}

// main reports whether an entry is of the session's own conversation: that of a graph's node is not.
func (e *Entry) main() bool { return e.Key.Scope == "" }

func (s *State) applyRun(e *Entry) {
	switch d := e.Data.(type) {
	case SessionCreated:
		if d.Parent != "" { // the parent's run is not the fork's
			s.join()
			s.end("", "", "")
			s.Created, s.Driver, s.Seed, s.Commands = e.Time, "", s.Messages, nil
		}
	case RunStarted:
		if d.Attempt <= 1 {
			s.Started = e.Time
		}
		s.start(e.Run, &d)
		s.own, s.gone = s.Messages.Len(), nil
	case Resumed:
		if s.Driver = d.Owner; s.Run != "" {
			s.Status = ""
			if d.Terms != nil {
				s.Terms = d.Terms
			}
		}
	case Parked:
		s.Status = "interrupted"
	case RunFinished:
		if s.join(); d.Discarded {
			s.Messages, s.Context = s.Seed, 0
			s.move("")
		}
		s.end(d.Status, d.Class, d.Error)
		s.Handoff = d.Handoff
	}
}

func (s *State) applySaid(e *Entry) {
	switch d := e.Data.(type) {
	case Said:
		if d.Untrusted && s.Untrusted == "" {
			id, name := strings.TrimPrefix(e.Key.ID, resultID), "a call in the background"
			for _, c := range s.Background {
				if c.ID == id {
					name = c.Name
				}
			}
			s.Untrusted = brought(name, id)
		}
		if e.Key.Op == steerOp {
			s.Background = slices.DeleteFunc(slices.Clone(s.Background), func(c Called) bool { return e.Key == resultKey(c.ID) })
			if !d.Message.Blank() { // else a call in the background has nothing to say
				s.Steering = append(s.Steering, Steering{e.Seq, d.Message, strings.HasPrefix(e.Key.ID, resultID)})
			}
			return
		}
		if e.main() {
			s.say(d.Message)
		}
		if e.Key == (Key{}) {
			s.Seed, s.Prompt, s.own = s.Messages, d.Message, s.Messages.Len()
		}
	case Stopped:
		if d.Again != "" && e.main() {
			s.say(message.User(d.Again))
		}
	case Prepared:
		if d.Moved {
			s.move(e.Key.Scope)
		}
		if s.edit(e.main(), d.Edit); e.main() {
			s.own = s.Messages.Len()
		}
	}
}

func (s *State) applyBoard(e *Entry) {
	switch d := e.Data.(type) {
	case Seeded:
		if !s.grows(d.Edit) {
			s.move("")
		}
		s.edit(true, d.Edit)
		s.Seed, s.Seeded, s.own = s.Messages, d.Board, s.Messages.Len()
	case Board:
		if e.main() {
			s.aside = nil
		}
		s.say(d.Append["main"]...)
		if e, ok := d.Edit["main"]; ok {
			s.move("")
			s.cut(e)
			s.edit(true, e)
		}
	}
}

func (s *State) applyModel(e *Entry) {
	switch d := e.Data.(type) {
	case ModelFinished:
		spent := SpentBy(d)
		s.Spent, s.RunSpent = s.Spent.Plus(spent), s.RunSpent.Plus(spent)
		s.hear(e.main(), &d)
		if s.reply(e.main(), &d); e.main() {
			s.Context = d.Usage.Context()
		}
	case Compacted:
		if d.Usage.Total() > 0 {
			s.Spent, s.RunSpent = s.Spent.Plus(d.spent()), s.RunSpent.Plus(d.spent())
		}
		if d.Error == "" {
			s.move(e.Key.Scope)
		}
		s.compact(e.main(), d)
	}
}

func (s *State) applyTool(e *Entry) {
	switch d := e.Data.(type) {
	case ToolJudged:
		if d.Refused() {
			told := d.Result
			if c := s.open.find(d.Call); c != nil && c.begun { // it is as a person changed it, to run again
				told = d.ResultAgain
			}
			s.answer(e.main(), d.Call, told)
		}
	case ToolStarted:
		if c := s.open.find(d.Call.ID); e.main() && c != nil {
			c.begun = true
		}
	case ToolFinished:
		if d.Untrusted && s.Untrusted == "" {
			s.Untrusted = brought(d.Name, d.Call)
		}
		if d.Background != nil {
			s.Background = append(slices.Clip(s.Background), *d.Background)
		}
		if !d.Ask { // else a person has the last word; until then it had begun, no more
			s.answer(e.main(), d.Call, func(message.ToolCall) message.ToolResult { return d.Result() })
		}
		if !d.Ask && d.Background == nil && len(s.Pending) > 0 { // nobody is left to hear the answer to what the call asked
			s.Pending = slices.DeleteFunc(slices.Clone(s.Pending), func(p Pending) bool {
				call, _, _ := strings.Cut(p.ID, "/")
				return p.Key.Op == questionOp && p.Key.Scope == e.Key.Scope && call == d.Call
			})
		}
	}
}

// brought names a call that brought what strangers wrote.
func brought(name, call string) string { return name + " (call " + call + ")" }

// questionOp is the Op of the keys of what a tool asks while it runs. The ID is the call's, or begins with it and a slash.
const questionOp = "question"

func (s *State) applyQuestion(e *Entry) {
	switch d := e.Data.(type) {
	case Asked:
		s.Pending = append(s.Pending, Pending{e.Key, e.Time, d}) // what was handed out is clipped
	case Answered:
		s.answered(e.main(), d)
	}
}

func (s *State) applyCommand(e *Entry) {
	switch d := e.Data.(type) {
	case CommandStarted:
		s.Commands = append(slices.Clip(s.Commands), d)
	case CommandEnded:
		s.Commands = slices.DeleteFunc(slices.Clone(s.Commands), func(c CommandStarted) bool { return c.ID == d.ID })
	}
}

func (s *State) start(run string, d *RunStarted) {
	maps.DeleteFunc(s.moves, func(scope string, _ int) bool { return scope != "" }) // a scope is the attempt's
	for _, p := range s.Pending {                                                   // a tool that waits for a person has not lost its way
		if call, _, _ := strings.Cut(p.ID, "/"); p.Key.Op == questionOp {
			s.answer(p.Key.Scope == "", call, unanswered)
		}
	}
	s.join()
	if d.Attempt > 1 {
		s.Messages, s.Context, s.Steering = s.Seed, 0, people(slices.Concat(s.heard, s.Steering)) // a revise starts over
		s.move("")
	} else {
		s.RunSpent, s.Closed = Spent{}, Closed{s.Run, s.Pending}
		s.Steering = slices.Concat(people(s.aside), s.Steering) // what the transcript did not get is not lost with the run
	}
	s.Run, s.Agent, s.User, s.ParentRun, s.Driver, s.Attempt, s.Engine, s.Dir = run, d.Agent, d.User, d.ParentRun, d.Owner, d.Attempt, d.Engine, d.Dir
	s.Version, s.Trace = d.Version, d.Trace
	s.Untrusted = cmp.Or(s.Untrusted, d.Untrusted)
	s.Task, s.Terms, s.Handoff = d.Task, d.Terms, nil
	if s.runs == nil {
		s.runs = map[string]bool{}
	}
	s.runs[run] = true
	s.Seed, s.Inputs, s.Seeded = s.Messages, d.Inputs, Board{}
	s.Status, s.Class, s.Error = "", "", ""
	s.effects, s.Pending, s.heard, s.aside, s.Background = newEffects(), nil, nil, nil, nil
}

func (s *State) end(status, class, err string) {
	s.Run, s.Status, s.Class, s.Error = "", status, class, err
	s.effects, s.Pending, s.Background = effects{}, nil, nil
	s.Inputs, s.Seeded = nil, Board{}
}

// say appends what came from outside. Open calls are answered first: nothing stands between a call and its result. What a provider
// would not take is mended; the messages before are valid already and not looked at.
func (s *State) say(ms ...message.Message) {
	s.join()
	n := s.Messages.Len()
	all := s.Messages.Append(ms...)
	said := all.Slice(n, all.Len())
	if mended := message.Repair(said); !same(said, mended) {
		all = s.Messages
		for _, m := range mended.All() {
			all = all.Append(m)
		}
	}
	s.Messages = all
}

func same(a, b message.History) bool {
	if a.Len() != b.Len() {
		return false
	}
	for i, m := range a.All() {
		if m != b.At(i) {
			return false
		}
	}
	return true
}

// edit changes the transcript. An edit that only adds costs what it adds; any other may have cut calls from their results, and is mended.
func (s *State) edit(main bool, e message.Edit) {
	switch {
	case !main:
	case s.grows(e):
		s.say(e.Tail...)
	default:
		s.join()
		s.Messages = message.Repair(s.Messages.Edit(e))
	}
}

// move notes that the beginning of what is said in a scope is another one from here on, because somebody wanted it so.
func (s *State) move(scope string) {
	if s.moves == nil {
		s.moves = map[string]int{}
	}
	s.moves[scope]++
}

// grows reports whether an edit leaves the transcript as it is, and puts something behind it at most.
func (s *State) grows(e message.Edit) bool {
	return len(e.Head) == 0 && e.From <= 0 && e.To >= s.settled()
}

// settled is the length of the transcript once open calls are answered.
func (s *State) settled() int {
	s.join()
	return s.Messages.Len()
}

// answered settles a question, and the call that it was about when a person refused it.
func (s *State) answered(main bool, d Answered) {
	i := slices.IndexFunc(s.Pending, func(p Pending) bool { return p.ID == d.ID })
	if i < 0 {
		return
	}
	asked := s.Pending[i].Asked
	s.Pending = slices.Delete(slices.Clone(s.Pending), i, i+1)
	if d.Approved && d.Session && asked.Call != nil && !asked.Unknown { // to run something again is said of that once
		g := Granted{asked.Call.Name, cmp.Or(d.Input, asked.Call.Input), d.Rule}
		if !slices.Contains(s.Granted, g) {
			s.Granted = append(slices.Clip(s.Granted), g)
		}
	}
	if !d.Approved && asked.Call != nil {
		s.answer(main, asked.Call.ID, func(c message.ToolCall) message.ToolResult { return asked.Result(c, d) })
	}
}

// reply appends a model's reply. One that says nothing is not part of the transcript: providers refuse it.
func (s *State) reply(main bool, d *ModelFinished) {
	n := 0
	for i := range d.Message.Len() {
		c, ok := d.Message.Part(i).(message.ToolCall)
		if !ok {
			switch p := d.Message.Part(i).(type) {
			case message.ProviderCall:
				if s.Untrusted == "" {
					s.Untrusted = brought(p.Name+", run by the provider", p.Call)
				}
			case message.Text: // some providers search without a word of it
				if s.Untrusted == "" && slices.ContainsFunc(p.Citations, func(c message.Citation) bool { return c.URL != "" }) {
					s.Untrusted = "pages that the provider read"
				}
			}
			continue
		}
		if s.calls == nil {
			s.calls = map[string]bool{}
		}
		s.calls[c.ID] = true
		n++
	}
	if !main || d.Message.Blank() || d.Message.Role() == message.RoleTool {
		return
	}
	s.join()
	m := d.Message
	if n > 1 {
		m = distinct(m)
	}
	s.Messages = s.Messages.Append(m)
	if n == 0 {
		return
	}
	s.open = open(m, n)
	if d.Cut() {
		for _, c := range m.ToolCalls() {
			s.answer(main, c.ID, CutOff)
		}
	}
}

// distinct leaves out calls whose id an earlier call of the same message has: they can't be answered apart.
func distinct(m message.Message) message.Message {
	if m.Len() <= few && apart(m) { // for nothing
		return m
	}
	calls := m.ToolCalls()
	seen := make(map[string]bool, len(calls))
	for _, c := range calls {
		seen[c.ID] = true
	}
	if len(seen) == len(calls) {
		return m
	}
	return message.Repair(message.NewHistory(m)).At(0)
}

// apart reports whether all calls have ids of their own. It looks at each pair.
func apart(m message.Message) bool {
	for i := range m.Len() {
		a, ok := m.Part(i).(message.ToolCall)
		for k := 0; ok && k < i; k++ {
			if b, is := m.Part(k).(message.ToolCall); is && a.ID == b.ID {
				return false
			}
		}
	}
	return true
}

// Cut reports whether the reply ended before the model was done, so that none of its calls may run.
func (d ModelFinished) Cut() bool { return d.Partial || d.Stop == model.StopLength }

// Unfinished gives the keys of the tool calls that have begun and go on: those without an outcome, and those in the background, in the order in which they began.
func (s State) Unfinished() (keys []Key) {
	var on []effect
	if s.live != nil {
		s.live.Lock()
		defer s.live.Unlock()
	}
	for _, e := range s.effects.all {
		if e.op == "tool" && e.begun > 0 && (e.outcome == nil || slices.ContainsFunc(s.Background, func(c Called) bool { return c.ID == e.id })) {
			on = append(on, e)
		}
	}
	slices.SortFunc(on, func(a, b effect) int { return cmp.Compare(a.begun, b.begun) })
	for _, e := range on {
		keys = append(keys, e.key())
	}
	return keys
}
