package loop

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/pawl-dev/pawl/engine"
	"github.com/pawl-dev/pawl/internal/wire"
	"github.com/pawl-dev/pawl/message"
	"github.com/pawl-dev/pawl/model"
	"github.com/pawl-dev/pawl/tool"
)

// SearchName is the tool that a loop has when some of its tools are tool.Definition.Deferred: it finds them by words, and from then on the conversation is offered what was found, behind the
// tools that it was offered before. Which ones those are is read from the transcript, so it is the same in every process that goes on with it.
const SearchName = "tool_search"

// How many tools a search finds, unless it asks for more, and at most.
const (
	fewFound  = 5
	mostFound = 20
)

// withSearch adds the tool that searches, if there is something to find.
func (l *Engine) withSearch(tools []tool.Tool) []tool.Tool {
	groups := map[string]struct{}{}
	for _, t := range tools {
		if d := t.Definition(); d.Deferred {
			groups[group(d.Name)] = struct{}{}
		}
	}
	if len(groups) == 0 {
		return tools
	}
	type input struct {
		Query string `json:"query" jsonschema:"words that the tool's name or description may have, or exact names of tools"`
		Limit int    `json:"limit,omitempty" jsonschema:"how many tools to find at most: 5 unless given, 20 at most"`
	}
	about := "Find tools that are there but not shown, by words or by name. What is found is shown with its description and its input, and can be used from then on. There are: " +
		strings.Join(slices.Sorted(maps.Keys(groups)), ", ") // not how many of each: a server's further tool would move what providers have in their caches of the conversation
	search := tool.Func(SearchName, about+".", func(ctx context.Context, in input) (string, error) {
		in.Limit = min(max(cmp.Or(in.Limit, fewFound), 1), mostFound)
		var run engine.Run
		if inside, ok := engine.InsideOf(ctx); ok {
			run = inside.Run
		}
		return l.search(in.Query, in.Limit, l.admitted(&run)), nil
	}, tool.ReadOnly)
	return append(slices.Clip(tools), search)
}

// group is what tools have in common by name: mcp__server, or the tool's own name.
func group(name string) string {
	if i := strings.LastIndex(name, "__"); i > 0 {
		return name[:i]
	}
	return name
}

// found is a line of a search's result.
type found struct {
	Name        string          `json:"name"`
	Description string          `json:"description,omitempty"`
	Input       json.RawMessage `json:"input,omitempty"` // JSON Schema
}

// search gives the deferred tools that fit best, one JSON object a line.
func (l *Engine) search(query string, limit int, allowed func(string) bool) string {
	words := strings.FieldsFunc(strings.ToLower(query), func(r rune) bool { return r == ' ' || r == ',' || r == '\n' || r == '\t' || r == ':' })
	type hit struct {
		model.Tool
		score int
	}
	var hits []hit
	names := map[string]int{}
	for _, t := range l.tools.Models(allowed) {
		if _, d, _ := l.tools.Lookup(t.Name); !d.Deferred {
			continue
		}
		names[group(t.Name)]++
		if n := score(t, words); n > 0 {
			hits = append(hits, hit{t, n})
		}
	}
	slices.SortStableFunc(hits, func(a, b hit) int { return b.score - a.score })
	if len(hits) == 0 {
		var all []string
		for _, g := range slices.Sorted(maps.Keys(names)) {
			all = append(all, fmt.Sprintf("%s (%d)", g, names[g]))
		}
		return "No tool fits. Try other words; there are: " + strings.Join(all, ", ")
	}
	var b strings.Builder
	for _, h := range hits[:min(len(hits), limit)] {
		line, err := json.Marshal(found{h.Name, h.Description, h.Schema})
		if err != nil { // a schema that is no JSON was refused by tool.NewSet
			line, _ = json.Marshal(found{Name: h.Name, Description: h.Description})
		}
		b.Write(line)
		b.WriteByte('\n')
	}
	if more := len(hits) - limit; more > 0 {
		fmt.Fprintf(&b, "%d more fit; say more words, or ask for more.\n", more)
	}
	return b.String()
}

// score is how well a tool fits: each word counts once, most of all when it is the name or a part of it.
func score(t model.Tool, words []string) (n int) {
	name, about := strings.ToLower(t.Name), strings.ToLower(t.Description)
	var members []string
	for m := wire.Object(wire.Get(t.Schema, "properties")); m.Next(); {
		members = append(members, strings.ToLower(string(m.Key)))
	}
	for _, w := range words {
		switch {
		case w == name:
			n += 100
		case strings.Contains(name, w):
			n += 4
		case strings.Contains(about, w):
			n += 2
		case slices.Contains(members, w):
			n++
		}
	}
	return n
}

// finds are the tools that messages say were found: by results of searches, and by summaries of such. The order is that in which they were found.
func finds(h message.History) (names []string) {
	add := func(name string) {
		if name != "" && !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	for _, m := range h.All() {
		switch {
		case m.Role() == message.RoleTool:
			for r := range message.Of[message.ToolResult](m) {
				if r.Name != SearchName || r.IsError {
					continue
				}
				for line := range strings.Lines(r.Content) { // hooks may have put text around them
					if strings.HasPrefix(line, `{"name":`) {
						if name := wire.Get([]byte(line), "name"); len(name) > 2 {
							add(string(name[1 : len(name)-1])) // a tool's name has nothing that is escaped
						}
					}
				}
			}
		case summarized(m):
			for _, name := range summaryOf(m).Tools {
				add(name)
			}
		}
	}
	return names
}

// shown is what a model is told of the tools: all that are not deferred, and behind them those that were found.
func (l *Engine) shown(run *engine.Run, h message.History) []model.Tool {
	all := l.tools.Models(l.admitted(run))
	if !l.defers {
		return all
	}
	out := make([]model.Tool, 0, len(all))
	for _, t := range all {
		if _, d, _ := l.tools.Lookup(t.Name); !d.Deferred {
			out = append(out, t)
		}
	}
	for _, name := range finds(h) {
		if i := slices.IndexFunc(all, func(t model.Tool) bool { return t.Name == name }); i >= 0 && !slices.ContainsFunc(out, func(t model.Tool) bool { return t.Name == name }) {
			out = append(out, all[i])
		}
	}
	return out
}
