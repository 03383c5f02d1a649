package pawl

import (
	"context"
	"reflect"
	"slices"
	"sync/atomic"

	"github.com/pawl-dev/pawl/project"
	"github.com/pawl-dev/pawl/sandbox"
	"github.com/pawl-dev/pawl/tool/mcp"
)

// servers are the MCP servers of an assembly.
type servers struct {
	client *mcp.Client // nil: there are none
	list   []mcp.Server
	warned *atomic.Int64 // warnings that were told
}

// connect connects the MCP servers. Their commands run in the same sandbox as those of bash. The same servers in the same sandbox stay connected over a reload; others are closed with the Runtime, since
// runs under way use them.
func (r *Runtime) connect(ctx context.Context, a, before *assembly, s project.Settings) error {
	list := slices.Clone(r.opts.MCP)
	for _, m := range s.MCP {
		list = append(list, mcp.Server{
			Name: m.Name, Command: m.Command, Args: m.Args, Env: m.Env, URL: m.URL, SSE: m.Type == "sse", Headers: m.Headers, Allow: m.EnabledTools, Deny: m.DisabledTools, Timeout: m.Timeout,
		})
	}
	if len(list) == 0 {
		return nil
	}
	if before != nil && before.servers.client != nil && reflect.DeepEqual(before.servers.list, list) && reflect.DeepEqual(before.policy, a.policy) {
		a.servers = before.servers
		return nil
	}
	fence, err := sandbox.Open(a.policy, environment(s.Env))
	if err != nil {
		return err
	}
	r.later(fence.Close)
	if !a.policy.Off {
		ctx = sandbox.With(ctx, a.policy)
	}
	client, err := mcp.Connect(ctx, list, mcp.Options{Command: fence.Command, Dir: r.dir, Logger: r.opts.Logger})
	if err != nil {
		return err
	}
	r.later(func() error { return client.Close(context.Background()) }) //nolint:contextcheck // in Close, which has none
	a.servers = servers{client, list, new(atomic.Int64)}
	return nil
}

// later has f called by Close.
func (r *Runtime) later(f func() error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.close = append(r.close, f)
}

// current is the assembly for a run that begins now: with the tools that MCP servers have now.
func (r *Runtime) current() *assembly {
	a := r.now.Load()
	if a.servers.client == nil || !a.servers.client.Changed() {
		return a
	}
	next, err := r.assemble(r.ctx, a.project, a)
	if err != nil { // a server's new tool has the name of another one
		r.log().Warn("the tools of MCP servers stay as they were", "error", err)
		return a
	}
	r.now.CompareAndSwap(a, next)
	return next
}

// warnings are what went wrong with MCP servers since they were told last.
func (s servers) warnings() string {
	if s.client == nil {
		return ""
	}
	all := s.client.Warnings()
	return join(all[min(int(s.warned.Swap(int64(len(all)))), len(all)):]...)
}
