package pack

import (
	"maps"
	"slices"
)

// The tools by which a model leads a workflow on: every state whose prompt may call tools has them, where it has events and artifacts. A pack with a workflow has no other tools of these names; blocklists may name them.
const (
	TransitionTool = "workflow__transition"   // an event, and what the next state should know
	ArtifactTool   = "workflow__set_artifact" // an artifact's name and value
)

// Workflow leads from prompt to prompt by events.
type Workflow struct {
	Version int              `json:"version"`
	Entry   string           `json:"entry"`
	States  map[string]State `json:"states"`
	Engine  *WorkflowEngine  `json:"engine"`
}

// WorkflowEngine is what a Workflow may take, and hints of a runtime's own.
type WorkflowEngine struct {
	Budget *WorkflowBudget `json:"budget"`
	Extra  map[string]any  `json:"*"`
}

// WorkflowBudget are the limits of a Workflow; 0: none.
type WorkflowBudget struct {
	MaxTotalVisits int `json:"max_total_visits"`
	MaxToolCalls   int `json:"max_tool_calls"`
	MaxWallTimeSec int `json:"max_wall_time_sec"`
}

// State is one state of a Workflow.
type State struct {
	PromptTask    string              `json:"prompt_task"` // a prompt's key
	Description   string              `json:"description"`
	OnEvent       map[string]string   `json:"on_event"`
	Persistence   string              `json:"persistence"`   // transient or persistent
	Orchestration string              `json:"orchestration"` // internal, external or hybrid
	Skills        string              `json:"skills"`        // a path, or "none"
	Terminal      bool                `json:"terminal"`
	MaxVisits     int                 `json:"max_visits"` // 0: no limit
	OnMaxVisits   string              `json:"on_max_visits"`
	Artifacts     map[string]Artifact `json:"artifacts"`
}

// Final reports whether the workflow ends here: the state is terminal, or no event leads on.
func (s State) Final() bool { return s.Terminal || len(s.OnEvent) == 0 }

// Leads reports whether the state's model (byModel), or the program, may lead the workflow on from here. Unless orchestration says who, both may.
func (s State) Leads(byModel bool) bool {
	return !s.Final() && (!byModel || s.Orchestration != "external") && (byModel || s.Orchestration != "internal")
}

// Ahead gives the states that can still be come to from one, itself included, in the order of their names.
func (w *Workflow) Ahead(state string) []string {
	known, todo := map[string]bool{state: true}, []string{state}
	for len(todo) > 0 {
		s := w.States[todo[0]]
		todo = todo[1:]
		var next []string
		if !s.Final() {
			next = slices.Collect(maps.Values(s.OnEvent))
		}
		for _, name := range append(next, s.OnMaxVisits) {
			if _, ok := w.States[name]; ok && !known[name] {
				known[name], todo = true, append(todo, name)
			}
		}
	}
	return slices.Sorted(maps.Keys(known))
}

// fills says what a workflow fills of a prompt's template beside its variables: {{workflow_context}} and these {{artifacts}}, if one of the states has the prompt.
func (w *Workflow) fills(prompt string) (artifacts []string, led bool) {
	if w == nil {
		return nil, false
	}
	for _, s := range w.States {
		led = led || s.PromptTask == prompt
		artifacts = slices.AppendSeq(artifacts, maps.Keys(s.Artifacts))
	}
	slices.Sort(artifacts)
	return slices.Compact(artifacts), led
}

// Artifact is a small result that goes on from State to State.
type Artifact struct {
	Type        string `json:"type"` // MIME
	Description string `json:"description"`
	Mode        string `json:"mode"` // replace (default) or append
}

func (a *Artifact) defaults() { a.Mode = "replace" }
