package graph

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/pawl-dev/pawl/engine"
	"github.com/pawl-dev/pawl/errdefs"
	"github.com/pawl-dev/pawl/journal"
	"github.com/pawl-dev/pawl/message"
	"github.com/pawl-dev/pawl/tool"
)

// Caching has a node take the outcome of an earlier visit with the same key, instead of doing its work again. What failed is never kept, and neither is what a model came to by calling tools, nor a
// call that somebody was asked about: hooks and people judge each one. Whether there was something is on record. Of visits side by side each does its work.
type Caching struct {
	// Key is an expression whose value says what the outcome depends on. Unless given it is what the work is given: of a model node the system prompt, the prompt, what stands on the channel, the model and
	// its tools; of a tool node the call's input. A function sees the whole board, so its node has to have one. The node's definition always counts, too.
	Key string   `json:"key,omitempty"`
	TTL Duration `json:"ttl,omitempty"` // how long an outcome is of use; 0: for ever
}

// Cache keeps what visits came to beyond the run, by keys that tell the graphs' names, definitions of nodes and inputs apart, and nothing else: those who must not see each other's answers have caches of
// their own, and so have programs whose hooks differ. What fails is warned of, and costs the run no more than the work. Safe for concurrent use.
type Cache interface {
	// Get gives what was put under key last, or false.
	Get(ctx context.Context, key string) (value []byte, ok bool, err error)
	// Put keeps value, which must not change any more. It need not be there for longer than ttl; 0 is for ever. A cache may forget it sooner.
	Put(ctx context.Context, key string, value []byte, ttl time.Duration) error
}

// cache is that of a node.
type cache struct {
	node string // tells it from others: the graph's name, its definition, its model
	key  *expr  // nil: what the work is given
	ttl  time.Duration
}

// cache compiles that of a node, whose work is compiled.
func (s *scope) cache(n *node, def Node) {
	if def.Cache == nil {
		return
	}
	path := n.path + ".cache"
	_, known := specs[def.Type]
	switch {
	case slices.Contains(pure, def.Type):
		s.add(path, "leave it out", "%s only computes: there is nothing to save", aNode(def.Type))
	case def.Type == "subgraph" || def.Type == "map":
		s.add(path, "give it to those nodes in it that take time", "%s does nothing but what the nodes in it do", aNode(def.Type))
	case def.Type == "approval" || def.Type == "agent" || def.Type == "handoff":
		s.add(path, "leave it out", "what the node does (%s) is asked for each time", def.Type)
	case def.Type == "tool":
		if d, ok := s.toolOf(def); ok && !d.ReadOnly {
			s.add(path, "leave it out, or declare the tool read-only if it is", "the tool %s may change something: a call that is left out would be missing", d.Name)
		}
	case def.Cache.Key == "" && (!known || def.Type == "func"):
		s.add(path+".key", "write an expression of all that its outcome depends on", "%s sees the whole board: what counts of it is not known", aNode(def.Type))
	}
	if def.Cache.TTL < 0 {
		s.add(path+".ttl", "write one such as 10m", "it is negative")
	}
	n.cache = &cache{ttl: time.Duration(def.Cache.TTL)}
	if def.Cache.Key != "" {
		n.cache.key = s.expr(path+".key", def.Cache.Key)
	}
	def.Retry, def.Timeout, def.SkipCondition, def.Cache = nil, 0, "", &Caching{Key: def.Cache.Key} // they change no outcome
	is, err := marshal(def)
	if err != nil {
		is = fmt.Appendf(nil, "%+v", def) // a config in Go's own types
	}
	n.cache.node = fmt.Sprintf("%s\n%s\n%s", s.root, is, n.given)
}

// toolOf is the tool of a tool node, if it is here.
func (s *scope) toolOf(def Node) (tool.Definition, bool) {
	name, _ := def.Config["tool"].(string)
	_, d, ok := s.set.Lookup(name)
	return d, ok
}

// id is the key of a visit: whatever has the same one has the same outcome.
func (c *cache) id(v view, given []any) (_ string, err error) {
	by := journal.Vars{"node": c.node, "given": given}
	if c.key != nil {
		if by["given"], err = c.key.value(v); err != nil {
			return "", err
		}
	}
	b, err := by.MarshalJSON()
	if err != nil {
		return "", errdefs.Validation.Errorf("the key of the cache: %w", err)
	}
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:]), nil
}

// kept is what a visit came to, and when that was put on record.
type kept struct {
	board journal.Board
	at    time.Time
}

// memory is what the visits of a run came to, by their keys. How much another branch has put there is chance: what is found is put on record before anything depends on it.
type memory struct {
	mu sync.Mutex
	of map[string]kept
}

func (m *memory) get(id string) kept {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.of[id]
}

func (m *memory) put(id string, k kept) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.of == nil {
		m.of = map[string]kept{}
	}
	m.of[id] = k
}

// cached does the work of a node with a cache, unless what it comes to is kept already. The work gives what it changed, nil when that is not to be kept. tool is the tool that it runs, given what it depends on.
func (v *visit) cached(ctx context.Context, tool string, given []any, work func() (*journal.Board, error)) error {
	c := v.node.cache
	if c == nil {
		_, err := work()
		return err
	}
	id, err := c.id(v.seen, given)
	if err != nil {
		return err
	}
	found, err := engine.Do[journal.Visited](ctx, v.do, look{Node: v.node.id, ID: id, Tool: tool, TTL: c.ttl, had: v.memory.get(id)})
	if err != nil {
		return err
	}
	if found.Cached {
		v.board.Apply(found.Board)
		return nil
	}
	out, err := work()
	if err != nil || out == nil {
		return err
	}
	said, ok := plain(*out)
	if !ok {
		return nil
	}
	at, err := engine.Do[journal.Timed](ctx, v.do, store{ID: id, TTL: c.ttl, Board: said})
	if err == nil {
		v.memory.put(id, kept{said, at.At})
	}
	return err
}

// plain is a change as it can be made again: of messages the texts and files. What a provider attached to them it may take once in a transcript only, and so it is with calls: what was come to by these is not
// made again, nor a change of what stood on a channel.
func plain(b journal.Board) (journal.Board, bool) {
	if len(b.Edit) > 0 {
		return b, false
	}
	said := map[string][]message.Message{}
	for name, ms := range b.Append {
		for _, m := range ms {
			var parts []message.Part
			for p := range m.Parts() {
				switch p := p.(type) {
				case message.Text:
					if p.Provider != "pawl" {
						p.Origin = message.Origin{}
					}
					parts = append(parts, p)
				case message.File:
					parts = append(parts, p)
				case message.ToolCall, message.ToolResult:
					return b, false
				}
			}
			if m = message.New(m.Role(), parts...); !m.Blank() {
				said[name] = append(said[name], m)
			}
		}
	}
	b.Append = said
	return b, true
}

// look asks for what a visit with the same key came to. Outcome: journal.Visited, with Cached when there is something.
type look struct {
	simple
	Node string
	ID   string // the visit's key
	Tool string // the tool that would run, if any
	TTL  time.Duration
	had  kept // by this run
}

// store keeps what a visit came to. Outcome: journal.Timed.
type store struct {
	simple
	ID    string
	TTL   time.Duration
	Board journal.Board
}

// Key is "cache/look"; the scope names the visit.
func (look) Key() journal.Key { return journal.Key{Op: "cache", ID: "look"} }

// Key is "cache/keep".
func (store) Key() journal.Key { return journal.Key{Op: "cache", ID: "keep"} }

// look finds what is fresh, in the run or in the cache of the program.
func (g *Engine) look(ctx context.Context, run engine.Run, l look) (journal.Data, error) {
	out := journal.Visited{Node: l.Node}
	if l.Tool != "" && !g.tools.Admits(run, l.Tool) { // a gate holds where the tool would run
		return out, nil
	}
	k, ok := l.had, l.fresh(l.had)
	if !ok && g.cache != nil {
		value, found, err := g.cache.Get(ctx, l.ID)
		if err == nil && found {
			k, err = readKept(value)
		}
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		if err != nil {
			engine.Warn(ctx, fmt.Sprintf("graph: node %s: the cache can't be read, so the work is done: %v", l.Node, err))
		}
		ok = err == nil && found && l.fresh(k)
	}
	if ok {
		out.Cached, out.Board = true, k.board
	}
	return out, nil
}

func (l look) fresh(k kept) bool {
	return !k.at.IsZero() && (l.TTL == 0 || time.Since(k.at) < l.TTL)
}

// keep puts what a visit came to into the cache of the program.
func (g *Engine) keep(ctx context.Context, s store) journal.Data {
	now := time.Now().UTC()
	if g.cache != nil {
		value, err := kept{s.Board, now}.write()
		if err == nil {
			err = g.cache.Put(ctx, s.ID, value, s.TTL)
		}
		if err != nil {
			engine.Warn(ctx, fmt.Sprintf("graph: an outcome can't be put into the cache: %v", err))
		}
	}
	return journal.Timed{At: now}
}

// write gives a line with the time, and the change as the journal has it.
func (k kept) write() ([]byte, error) {
	b, err := journal.EncodeData(k.board)
	return append(append([]byte(k.at.Format(time.RFC3339Nano)), '\n'), b...), err
}

func readKept(value []byte) (k kept, err error) {
	at, rest, _ := bytes.Cut(value, []byte("\n"))
	if k.at, err = time.Parse(time.RFC3339Nano, string(at)); err != nil {
		return k, err
	}
	d, err := journal.DecodeData(journal.Board{}.Kind(), rest)
	if err != nil {
		return k, err
	}
	k.board, _ = d.(journal.Board)
	if len(k.board.Edit) > 0 {
		return k, errdefs.Validation.Errorf("graph: it changes what stands on a channel")
	}
	return k, k.board.Check()
}
