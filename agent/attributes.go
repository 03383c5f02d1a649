package agent

import (
	"maps"
	"strconv"
)

// The attributes that say whose run it is. A caller can't override them.
const (
	attrAgent   = "agent.id"
	attrRun     = "run.id"
	attrTask    = "task.id" // not there when the request has none
	attrContext = "conversation.id"
	attrAttempt = "agent.attempt"
)

// RunInfoFromAttributes gives back the RunInfo of a run from engine.Run.Attributes, for code that has nothing else of it. RunID is the argument (the
// run knows its id); what is not among the attributes is "".
func RunInfoFromAttributes(runID string, attrs map[string]string) RunInfo {
	return RunInfo{AgentID: attrs[attrAgent], RunID: runID, TaskID: attrs[attrTask], ContextID: attrs[attrContext]}
}

// attributes are the caller's with the run's own over them, in a map for this attempt alone.
func (t *turn) attributes(n int) map[string]string {
	attrs := maps.Clone(t.attrs)
	if attrs == nil {
		attrs = make(map[string]string, 5)
	}
	attrs[attrAgent], attrs[attrRun], attrs[attrContext], attrs[attrAttempt] = t.ag.ID, t.info.RunID, t.info.ContextID, strconv.Itoa(n)
	if attrs[attrTask] = t.info.TaskID; t.info.TaskID == "" {
		delete(attrs, attrTask)
	}
	return attrs
}
