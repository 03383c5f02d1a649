package engine

import (
	"context"

	"github.com/pawl-dev/pawl/event"
	"github.com/pawl-dev/pawl/model"
)

// HostFuncs is a Host made of functions, over another one: what has no function is Inner's, and a nil Inner is a [NoopHost]. It listens when it has a
// PublishFunc, whatever Inner does; else when Inner does. A function that replaces one of Inner's may call Inner itself.
//
// A host that keeps checkpoints and counts tokens:
//
//	engine.HostFuncs{Inner: host, CheckpointFunc: store.Save, ReportUsageFunc: meter.Add}
type HostFuncs struct {
	Inner           Host
	PublishFunc     func(ctx context.Context, e event.Event) error
	InterruptsFunc  func() <-chan Interrupt
	AskUserFunc     func(ctx context.Context, p Prompt) (Reply, error)
	CheckpointFunc  func(ctx context.Context, c Checkpoint) error
	ReportUsageFunc func(ctx context.Context, u model.Usage) error
}

func (h HostFuncs) inner() Host {
	if h.Inner == nil {
		return NoopHost{}
	}
	return h.Inner
}

// Listening reports whether an event reaches anybody.
func (h HostFuncs) Listening() bool { return h.PublishFunc != nil || Listening(h.inner()) }

// Publish calls PublishFunc.
func (h HostFuncs) Publish(ctx context.Context, e event.Event) error {
	if h.PublishFunc != nil {
		return h.PublishFunc(ctx, e)
	}
	return h.inner().Publish(ctx, e)
}

// Interrupts calls InterruptsFunc.
func (h HostFuncs) Interrupts() <-chan Interrupt {
	if h.InterruptsFunc != nil {
		return h.InterruptsFunc()
	}
	return h.inner().Interrupts()
}

// AskUser calls AskUserFunc.
func (h HostFuncs) AskUser(ctx context.Context, p Prompt) (Reply, error) {
	if h.AskUserFunc != nil {
		return h.AskUserFunc(ctx, p)
	}
	return h.inner().AskUser(ctx, p)
}

// Checkpoint calls CheckpointFunc.
func (h HostFuncs) Checkpoint(ctx context.Context, c Checkpoint) error {
	if h.CheckpointFunc != nil {
		return h.CheckpointFunc(ctx, c)
	}
	return h.inner().Checkpoint(ctx, c)
}

// ReportUsage calls ReportUsageFunc.
func (h HostFuncs) ReportUsage(ctx context.Context, u model.Usage) error {
	if h.ReportUsageFunc != nil {
		return h.ReportUsageFunc(ctx, u)
	}
	return h.inner().ReportUsage(ctx, u)
}

// interrupts is the latch of the run above, unless this host has a channel of its own.
func (h HostFuncs) interrupts() *latch {
	if h.InterruptsFunc != nil {
		return nil
	}
	return above(h.inner())
}
