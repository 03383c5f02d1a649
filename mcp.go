package pawl

import (
	"context"
	"errors"
	"maps"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/pawl-dev/pawl/errdefs"
	"github.com/pawl-dev/pawl/project"
	"github.com/pawl-dev/pawl/sandbox"
	"github.com/pawl-dev/pawl/sandbox/fence"
	"github.com/pawl-dev/pawl/tool/mcp"
)

// servers are the MCP servers of an assembly.
type servers struct {
	client *mcp.Client // nil: there are none
	list   []mcp.Server
	env    map[string]string // of the settings: their variables
	warned *atomic.Int64     // warnings that were told
	use    *shared
}

// same reports whether the servers would be connected alike. Where in a file they stand does not matter.
func (s servers) same(list []mcp.Server, env map[string]string) bool {
	return s.client != nil && maps.Equal(s.env, env) && slices.EqualFunc(s.list, list, func(a, b mcp.Server) bool {
		a.Place, b.Place = "", ""
		return reflect.DeepEqual(a, b)
	})
}

// connect connects the MCP servers. Their commands run in the same sandbox as those of bash. The same servers in the same sandbox stay connected over a reload; others are closed when the last run that
// uses them has ended.
func (r *Runtime) connect(ctx context.Context, a, before *assembly, s project.Settings) error {
	list := slices.Clone(r.opts.MCP)
	for _, m := range s.MCP { // what the program says counts more
		if !slices.ContainsFunc(r.opts.MCP, func(own mcp.Server) bool { return strings.EqualFold(own.Name, m.Name) }) {
			list = append(list, m)
		}
	}
	if len(list) == 0 {
		return nil
	}
	if before != nil && before.servers.same(list, s.Env) && reflect.DeepEqual(before.policy, a.policy) {
		a.servers = before.servers
		r.use(a.servers.use)
		return nil
	}
	fence, err := fence.Open(a.policy, environment(s.Env))
	if err != nil {
		return err
	}
	if !a.policy.Off {
		ctx = sandbox.With(ctx, a.policy)
	}
	client, err := mcp.Connect(ctx, list, mcp.Options{Command: fence.Command, Dir: r.dir, Lookup: s.Lookup, Logger: r.opts.Logger})
	if err != nil {
		return errors.Join(err, fence.Close())
	}
	a.servers = servers{client, list, s.Env, new(atomic.Int64), r.own(func() error { //nolint:contextcheck // whoever drops it last has none for it
		return errors.Join(client.Close(context.Background()), fence.Close())
	})}
	return nil
}

// MCPServers connects the MCP servers of a project as a Runtime would, tells how each is, and closes them. Nothing else is started, no model is needed, and a server that is Required
// is told of like any other. Those that wait for approval are not connected, and not told of: see project.Project.Untrusted. What it gives is what it was: the tools can't be used.
func MCPServers(ctx context.Context, o Options) ([]mcp.Status, error) {
	r := &Runtime{opts: o}
	r.opts.MCP = optional(o.MCP)
	defer func() { _ = r.free() }()
	var err error
	if r.dir, err = filepath.Abs(o.ProjectRoot); err != nil {
		return nil, errdefs.Validation.Errorf("pawl: project root %q: %w", o.ProjectRoot, err)
	}
	var settings project.Settings
	if !o.NoProject {
		opts := []project.Option{project.WithOverrides(o.Overrides)}
		if o.Trusted {
			opts = append(opts, project.WithTrusted())
		}
		p, err := project.Load(ctx, r.dir, opts...)
		if err != nil {
			return nil, err
		}
		settings = p.Settings
		settings.MCP = optional(settings.MCP)
	}
	_, fence, err := o.bounds(r.dir, settings)
	if err != nil {
		return nil, err
	}
	a := &assembly{policy: fence.policy}
	if err := r.connect(ctx, a, nil, settings); err != nil || a.servers.client == nil {
		return nil, err
	}
	return a.servers.client.Status(), nil
}

// optional are servers that need not start.
func optional(list []mcp.Server) []mcp.Server {
	list = slices.Clone(list)
	for i := range list {
		list[i].Required = false
	}
	return list
}

// current is the assembly for a run that begins now: with the tools that MCP servers have now. The run holds it: see drop.
func (r *Runtime) current() *assembly {
	a := r.hold()
	if a.servers.client == nil || !a.servers.client.Changed() {
		return a
	}
	next, err := r.assemble(r.ctx, a.read, a)
	if err != nil { // a server's new tool has the name of another one
		r.log().Warn("the tools of MCP servers stay as they were", "error", err)
		return a
	}
	next.broken = a.broken
	r.drop(a)
	r.replace(a, r.share(next))
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
