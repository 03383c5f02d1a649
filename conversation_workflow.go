package pawl

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/pawl-dev/pawl/agent"
	"github.com/pawl-dev/pawl/engine"
	"github.com/pawl-dev/pawl/engine/graph"
	"github.com/pawl-dev/pawl/engine/loop"
	"github.com/pawl-dev/pawl/errdefs"
	"github.com/pawl-dev/pawl/journal"
	"github.com/pawl-dev/pawl/message"
	"github.com/pawl-dev/pawl/pack"
)

// WorkflowState says where a conversation stands in its pack's workflow. It is a reading of the journal: any process has the same.
type WorkflowState struct {
	State     string            `json:"state"`               // whose prompt answers
	Events    []string          `json:"-"`                   // that lead on from there, sorted; none when it ends there
	Visits    map[string]int    `json:"visits"`              // how often each state was entered; the first one was when it was opened
	Artifacts map[string]string `json:"artifacts,omitempty"` // that were set, by name
	Context   string            `json:"context,omitempty"`   // what was said with the last transition
	ToolCalls int               `json:"-"`                   // that were made or refused, besides those that lead the workflow on
	Started   time.Time         `json:"started"`             // when the first message came, or the first event; zero: not yet
	Ended     WorkflowEnd       `json:"ended,omitempty"`     // "": it goes on
}

// WorkflowEnd is how a workflow ended.
type WorkflowEnd string

// The ends.
const (
	WorkflowCompleted WorkflowEnd = "completed"        // a state from where nothing leads on has answered. Whoever says more is answered by it
	WorkflowExhausted WorkflowEnd = "budget_exhausted" // its budget, or the visits of a state, are used up. It answers no more: errdefs.BudgetExceeded
)

// mostMoves is how often a workflow may move on in one turn; what circles longer fails the turn.
const mostMoves = 100

// placeNode is the node of the graph that says where the workflow stands.
const placeNode = "place"

// mostOfArtifact bounds an artifact, in bytes: of one that is appended to, the oldest goes.
const mostOfArtifact = 64 << 10

// OpenWorkflow opens a conversation that goes by the pack's workflow: the prompt of the state that it is in answers, with its own tools, policy and validators, and an event moves it on. The model says so by the tool
// workflow__transition: then the next state's prompt goes on in the same turn. The program says so by [Conversation.Transition]. Which state it is in is on record: with a store of [WithJournal] and [WithSession], it goes on
// where it was. Everything else is as with [Open], which has the same errors; a pack without a workflow is errdefs.Validation.
func OpenWorkflow(path string, opts ...Option) (*Conversation, error) {
	p, m, o, err := prepare(path, opts)
	if err != nil {
		return nil, err
	}
	if p.Workflow == nil {
		return nil, errdefs.Validation.Errorf("pawl: %s has no workflow: open one of its prompts with Open: %s", path, strings.Join(slices.Sorted(maps.Keys(p.Prompts)), ", "))
	}
	return begin(p, nil, m, o)
}

// ResumeWorkflow is [Resume] for a conversation that OpenWorkflow began.
func ResumeWorkflow(ctx context.Context, session, path string, opts ...Option) (*Conversation, error) {
	return resume(ctx, session, opts, func(opts ...Option) (*Conversation, error) { return OpenWorkflow(path, opts...) })
}

// Workflow says where the conversation stands in its workflow. Without one it is errdefs.NotFound.
func (c *Conversation) Workflow(ctx context.Context) (WorkflowState, error) {
	if c.flow == nil {
		return WorkflowState{}, c.hasNoWorkflow()
	}
	now, err := c.flow.read(ctx)
	if err != nil {
		return WorkflowState{}, err
	}
	out := now.at.clone()
	if s := c.flow.def.States[out.State]; !s.Final() && out.Ended == "" {
		out.Events = slices.Sorted(maps.Keys(s.OnEvent))
	}
	return out, nil
}

// Transition moves the workflow on by an event from outside; note is what the next state's prompt has as {{workflow_context}}. No model is called: the next Send is answered by the state that it is in then. It waits for the turn.
//
// Nothing is moved, and nothing on record, with errdefs.Validation for an event that does not lead on from there, or where orchestration internal leaves that to the model; with Conflict where the workflow has ended, or a turn is not over.
// Where the budget or the visits of a state are used up, the workflow ends with errdefs.BudgetExceeded.
func (c *Conversation) Transition(ctx context.Context, event, note string) error {
	if c.flow == nil {
		return c.hasNoWorkflow()
	}
	ctx, leave, err := c.enter(ctx)
	if err != nil {
		return err
	}
	defer leave()
	if len(note) > mostOfArtifact {
		return errdefs.Validation.Errorf("pawl: transition: the note has %d bytes, the limit is %d: it stands in the prompt of the next state", len(note), mostOfArtifact)
	}
	if _, err := c.over(ctx, "transition"); err != nil {
		return err
	}
	now, err := c.flow.read(ctx)
	if err != nil {
		return err
	}
	if s := c.flow.def.States[now.at.State]; !s.Final() && !s.Leads(false) {
		return errdefs.Validation.Errorf("pawl: transition: the state %s leaves events to its model (orchestration internal): write hybrid or external in the pack", now.at.State)
	}
	if _, _, err := c.flow.next(now.at.clone(), event, time.Now()); err != nil && !errdefs.BudgetExceeded.Is(err) {
		return fmt.Errorf("pawl: transition: %w", err)
	}
	_, err = c.drive(ctx, nil, func(ctx context.Context, d driver, opts ...agent.RunOption) (*agent.Result, error) {
		req := agent.Request{ContextID: c.session, Message: engine.Tell{Text: "(the event " + event + ")", Why: engine.WhyHandoff}.Message(), Inputs: map[string]any{"event": event, "note": note}}
		res, err := d.run(ctx, req, append(opts, unsaid(nil))...)
		if err == nil {
			err = res.Err
		}
		return res, err
	})
	return err
}

func (c *Conversation) hasNoWorkflow() error {
	return errdefs.NotFound.Errorf("pawl: this conversation has no workflow: open it with OpenWorkflow")
}

// flow is the workflow of a conversation.
//
// It runs on a graph: a function, place, says where the workflow stands; an edge leads from there to the model of that state, and from that back, until nothing moved it on. What place found is on record as the vars of its board, and
// what it looks at are the entries behind that: transitions and artifacts are calls of tools that do nothing but be on record.
type flow struct {
	conv *Conversation
	def  *pack.Workflow

	mu   sync.Mutex // guards what follows
	seen standing
}

func (s WorkflowState) clone() WorkflowState {
	s.Visits, s.Artifacts = maps.Clone(s.Visits), maps.Clone(s.Artifacts)
	return s
}

// record is the state as a var of a board.
func (s WorkflowState) record() (v map[string]any, err error) {
	b, err := json.Marshal(s)
	if err == nil {
		err = json.Unmarshal(b, &v)
	}
	return v, err
}

// next is where an event leads, and whether that is another state than the pack says because that one was visited as often as it may be. The order of what is looked at is the format's: the budget, the end, the event, the visits.
func (f *flow) next(at WorkflowState, event string, now time.Time) (to string, redirected bool, err error) {
	if at.Ended == WorkflowExhausted {
		return "", false, f.exhausted()
	}
	if e := f.def.Engine; e != nil && e.Budget != nil {
		total := 0
		for _, n := range at.Visits {
			total += n
		}
		for _, used := range []struct {
			of            string
			taken, budget int
		}{
			{"max_total_visits", total, e.Budget.MaxTotalVisits}, {"max_tool_calls", at.ToolCalls, e.Budget.MaxToolCalls}, {"max_wall_time_sec", int(now.Sub(cmp.Or(at.Started, now)).Seconds()), e.Budget.MaxWallTimeSec},
		} {
			if used.budget > 0 && used.taken >= used.budget {
				return "", false, errdefs.BudgetExceeded.Errorf("the workflow's budget is used up: %s is %d", used.of, used.budget)
			}
		}
	}
	s, ok := f.def.States[at.State]
	switch {
	case !ok:
		return "", false, errdefs.Conflict.Errorf("the workflow is in the state %s, which the pack has not any more", at.State)
	case s.Final():
		return "", false, errdefs.Conflict.Errorf("the workflow ends in the state %s: no event leads on", at.State)
	}
	to, ok = s.OnEvent[event]
	if !ok {
		return "", false, errdefs.Validation.Errorf("no event %s leads on from the state %s: want one of %s", strconv.Quote(event), at.State, strings.Join(slices.Sorted(maps.Keys(s.OnEvent)), ", "))
	}
	for been := map[string]bool{}; ; redirected = true {
		s := f.def.States[to]
		if s.MaxVisits == 0 || at.Visits[to] < s.MaxVisits {
			return to, redirected, nil
		}
		if been[to] = true; s.OnMaxVisits == "" || been[s.OnMaxVisits] {
			return "", false, errdefs.BudgetExceeded.Errorf("the workflow's state %s was visited %d times, as often as it may be", to, s.MaxVisits)
		}
		to = s.OnMaxVisits
	}
}

func (f *flow) exhausted() error {
	return errdefs.BudgetExceeded.Errorf("the workflow has ended: its budget, or the visits of a state, are used up")
}

// place says where the workflow stands: once when a turn begins, and once whenever a state's model is done. Vars: workflow is the WorkflowState; state and system are for the model, which answers if speak; over says why there is nothing more
// to be had; moved is what happened, and moves how often in this turn.
func (f *flow) place(ctx context.Context, b engine.Snapshot) (journal.Board, error) {
	now, err := f.read(ctx)
	if err != nil {
		return journal.Board{}, err
	}
	first := b.Vars["speak"] == nil
	event, outside := b.Vars["event"].(string)
	outside = outside && first
	at := now.at.clone()
	if at.Started.IsZero() {
		at.Started = time.Now().UTC().Truncate(time.Second)
	}
	if at.Ended == WorkflowExhausted {
		return journal.Board{}, f.exhausted()
	}
	note, _ := b.Vars["note"].(string)
	said := outside
	if asked, about, ok := f.heed(&at, now.calls); ok && !said {
		event, note, said = asked, about, true
	}
	board := engine.NewBoard(b)
	speak, over := first && !outside, ""
	board.SetVar("moved", nil)
	moves, _ := b.Vars["moves"].(int)
	if said {
		from := at.State
		to, redirected, err := f.next(at, event, time.Now())
		if moves++; err == nil && moves > mostMoves {
			return journal.Board{}, errdefs.BudgetExceeded.Errorf("the workflow moved on %d times in this turn: it goes in circles; give its states max_visits", mostMoves)
		}
		switch {
		case err == nil:
			at.State, at.Context, at.Ended = to, note, ""
			at.Visits[to]++
			speak = !outside
			board.SetVar("moved", map[string]any{"from": from, "to": to, "event": event, "redirected": redirected})
			if err := f.enter(ctx, board, from, event, at, speak); err != nil {
				return journal.Board{}, err
			}
		case errdefs.BudgetExceeded.Is(err):
			at.Ended, over, speak = WorkflowExhausted, err.Error(), false
		case outside: // somebody else moved it since Transition looked
			return journal.Board{}, err
		default: // the pack was changed meanwhile: it stays where it is, and whoever is there answers
			speak = true
		}
	}
	if !first && !speak && at.Ended == "" && f.def.States[at.State].Final() {
		at.Ended = WorkflowCompleted
	}
	if speak {
		system, err := f.system(ctx, at)
		if err != nil {
			return journal.Board{}, err
		}
		board.SetVar("system", system)
	}
	rec, err := at.record()
	if err != nil {
		return journal.Board{}, err
	}
	for name, v := range map[string]any{"workflow": rec, "state": at.State, "speak": speak, "over": over, "moves": moves} {
		board.SetVar(name, v)
	}
	return journal.Diff(b, board.Snapshot()), nil
}

// heed sets the artifacts that the model's calls set, and gives the first event that they say.
func (f *flow) heed(at *WorkflowState, calls []saying) (event, note string, said bool) {
	for _, s := range calls {
		var in struct{ Name, Value, Event, Context string }
		if json.Unmarshal([]byte(s.input), &in) != nil {
			continue // it was checked, against the schema of another pack
		}
		switch {
		case s.tool == pack.ArtifactTool:
			f.artifact(at, in.Name, in.Value)
		case !said:
			event, note, said = in.Event, in.Context, true
		}
	}
	return event, note, said
}

// enter prepares the transcript for a state. One that is transient begins with what this turn's user said. Of an event that comes within a turn the model is told, as of a handoff.
func (f *flow) enter(ctx context.Context, board *engine.Board, from, event string, at WorkflowState, speak bool) error {
	if f.def.States[at.State].Persistence == "transient" {
		kept := message.History{}
		if speak {
			st, err := f.conv.state(ctx)
			if err != nil {
				return err
			}
			kept = kept.Append(st.Prompt)
		}
		board.SetChannel(engine.MainChannel, kept)
	}
	if speak {
		text := fmt.Sprintf("The event %s moved this conversation on from the state %s to the state %s.", event, from, at.State)
		if at.Context != "" {
			text += "\nWhat was said with it: " + at.Context
		}
		board.Append(engine.MainChannel, engine.Tell{Text: text + "\nGo on from here, and answer the person.", Why: engine.WhyHandoff}.Message())
	}
	return nil
}

// artifact sets one, as its state declares it.
func (f *flow) artifact(at *WorkflowState, name, value string) {
	if at.Artifacts == nil {
		at.Artifacts = map[string]string{}
	}
	if f.def.States[at.State].Artifacts[name].Mode == "append" {
		if before := at.Artifacts[name]; before != "" {
			value = before + "\n" + value
		}
		if n := len(value) - mostOfArtifact; n > 0 {
			value = strings.ToValidUTF8(value[n:], "")
		}
	}
	at.Artifacts[name] = value
}

// system renders the prompt of a state.
func (f *flow) system(ctx context.Context, at WorkflowState) (string, error) {
	turn, ok := ctx.Value(turnKey{f.conv}).(*found)
	if !ok {
		return "", errdefs.Internal.Errorf("pawl: the workflow is asked outside of a turn")
	}
	m, ok := turn.crew.of(at.State)
	if !ok {
		return "", errdefs.Conflict.Errorf("the pack has no state %s any more, and the workflow is in it: open it with the pack that it had", at.State)
	}
	return f.conv.render(m, f.vars(turn.vars, at))
}

// due are the states that this turn may come to, and what their prompts are rendered with, to know before the first call what is missing.
func (f *flow) due(ctx context.Context, all *crew, own map[string]any) (due []member, vars map[string]any, err error) {
	now, err := f.read(ctx)
	if err != nil {
		return nil, nil, err
	}
	ahead := f.def.Ahead(now.at.State)
	for _, m := range all.members {
		if slices.Contains(ahead, m.state) {
			due = append(due, m)
		}
	}
	return due, f.vars(own, now.at), nil
}

// vars are the conversation's, with what templates have of the workflow.
func (f *flow) vars(own map[string]any, at WorkflowState) map[string]any {
	vars := maps.Clone(own)
	if vars == nil {
		vars = map[string]any{}
	}
	artifacts := map[string]any{}
	for _, s := range f.def.States {
		for name := range s.Artifacts {
			artifacts[name] = at.Artifacts[name]
		}
	}
	vars["workflow_context"], vars["artifacts"] = at.Context, artifacts
	return vars
}

// scopes are those of the skills that the states may have.
func (f *flow) scopes() (all []string) {
	for _, s := range f.def.States {
		all = append(all, s.Skills)
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// compile makes the graph of the states' loops.
func (f *flow) compile(loops map[string]loop.Config) (*graph.Engine, error) {
	def := graph.Definition{
		Name: f.conv.pack.ID, Entry: placeNode, Vars: []string{"workflow", "state", "system", "speak", "over", "moved", "moves", "event", "note"}, Limits: graph.Limits{Nodes: 2*mostMoves + 4},
		Nodes: []graph.Node{{ID: placeNode, Type: "func", Config: map[string]any{"func": "place"}}, {ID: "over", Type: "func", Config: map[string]any{"func": "over"}}},
		Edges: []graph.Edge{{From: placeNode, To: "over", Condition: `over != ""`}, {From: placeNode, To: graph.End}, {From: "over", To: graph.End}},
	}
	for i, name := range slices.Sorted(maps.Keys(f.def.States)) {
		id := nodeName(name, i)
		def.Nodes = append(def.Nodes, graph.Node{ID: id, Type: "model", Config: map[string]any{"system": "${system}", "loop": name}})
		def.Edges = append(def.Edges, graph.Edge{From: placeNode, To: id, Condition: "speak and state == " + literal(name)}, graph.Edge{From: id, To: placeNode})
	}
	return graph.Compile(def, graph.Kinds{Loop: loop.Config{Model: f.conv.model}, Loops: loops, Funcs: map[string]graph.NodeFunc{
		"place": f.place,
		"over": func(_ context.Context, b engine.Snapshot) (journal.Board, error) {
			why, _ := b.Vars["over"].(string)
			return journal.Board{}, errdefs.BudgetExceeded.Errorf("%s", why)
		},
	}})
}

// nodeName is the id of a state's node: its own name where that can be one.
func nodeName(state string, i int) string {
	ok := state != placeNode && state != "over" && len(state) <= 60
	for k, r := range state {
		letter := 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z'
		ok = ok && (letter || k > 0 && ('0' <= r && r <= '9' || r == '-' || r == '_'))
	}
	if !ok || state == "" || strings.HasPrefix(state, "state-") {
		return "state-" + strconv.Itoa(i+1)
	}
	return state
}

// literal writes a text as Starlark has it.
func literal(s string) string {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	_ = enc.Encode(s) // a string can be
	return strings.TrimSpace(b.String())
}
