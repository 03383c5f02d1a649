package agent_test

import (
	"context"
	"testing"

	"github.com/pawl-dev/pawl/agent"
	"github.com/pawl-dev/pawl/internal/traced"
	"github.com/pawl-dev/pawl/journal"
)

// Where nobody traces, a run belongs to the trace in which it was asked for: on record, for those who do its effects elsewhere, and for its tools.
func TestARunThatNobodyTracesKeepsTheTraceOfItsCaller(t *testing.T) {
	const parent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
	ctx := traced.Extract(t.Context(), func(name string) string { return map[string]string{"traceparent": parent}[name] })
	for want, ctx := range map[string]context.Context{parent: ctx, "": t.Context()} {
		store := journal.Memory()
		if _, err := agent.Run(ctx, agent.Agent{ID: "a"}, saying(t, "hi"), asking("s", "r"), agent.WithJournal(store)); err != nil {
			t.Fatal(err)
		}
		log, err := journal.Open(t.Context(), store, "s")
		if err != nil {
			t.Fatal(err)
		}
		if got := log.State().Trace; got != want {
			t.Errorf("%q is on record, want %q", got, want)
		}
	}
}
