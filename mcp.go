package pawl

import (
	"context"
	"os"
	"slices"
	"strings"

	"github.com/pawl-dev/pawl/engine/loop"
	"github.com/pawl-dev/pawl/sandbox"
	"github.com/pawl-dev/pawl/tool/mcp"
)

// connect connects the MCP servers. Their commands run in the same sandbox as those of bash.
func (r *Runtime) connect(ctx context.Context, o Options) error {
	if len(o.MCP) == 0 {
		return nil
	}
	fence, err := sandbox.Open(r.policy, withoutKeys(os.Environ()))
	if err != nil {
		return err
	}
	r.close = append(r.close, fence.Close)
	if !r.policy.Off {
		ctx = sandbox.With(ctx, r.policy)
	}
	if r.mcp, err = mcp.Connect(ctx, o.MCP, mcp.Options{Command: fence.Command, Dir: r.dir, Logger: o.Logger}); err != nil {
		return err
	}
	client := r.mcp
	r.close = append(r.close, func() error { return client.Close(context.Background()) }) //nolint:contextcheck // ctx was for connecting
	return nil
}

// current is the engine for a run that begins now: with the tools that MCP servers have now. A run under way keeps its own.
func (r *Runtime) current(ctx context.Context) *loop.Engine {
	r.mu.Lock()
	now := r.engine
	r.mu.Unlock()
	if r.mcp == nil || !r.mcp.Changed() {
		return now
	}
	config := r.config
	config.Tools = append(slices.Clip(config.Tools), r.mcp.Tools(ctx)...)
	next, err := loop.New(config)
	if err != nil { // a server's new tool has the name of another one
		if config.Logger != nil {
			config.Logger.Warn("the tools of MCP servers stay as they were", "error", err)
		}
		return now
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.engine = next
	return next
}

// warning is what the host of a run is told: that there is no sandbox, and what went wrong with MCP servers since the last run.
func (r *Runtime) warning() string {
	var all []string
	if r.unfenced != "" {
		all = append(all, r.unfenced)
	}
	if r.mcp != nil {
		w := r.mcp.Warnings()
		r.mu.Lock()
		all = append(all, w[min(r.warned, len(w)):]...)
		r.warned = len(w)
		r.mu.Unlock()
	}
	return strings.Join(all, "\n")
}
