package graph_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/pawl-dev/pawl/engine"
	"github.com/pawl-dev/pawl/engine/graph"
	"github.com/pawl-dev/pawl/engine/loop"
	"github.com/pawl-dev/pawl/errdefs"
	"github.com/pawl-dev/pawl/tool"
)

// problemsOf compiles a definition of a file, and gives what is wrong, a line a problem.
func problemsOf(text string, k graph.Kinds) (lines []string) {
	d, err := graph.Parse("x.yaml", []byte(text))
	var warnings []graph.Problem
	if err == nil {
		var g *graph.Engine
		if g, err = graph.Compile(d, k); err == nil {
			warnings = g.Warnings()
		}
	}
	var all *graph.Error
	if errors.As(err, &all) {
		warnings = all.Problems
	} else if err != nil {
		return []string{err.Error()}
	}
	for _, p := range warnings {
		line := p.String()
		if p.Warning {
			line = "warning: " + line
		}
		lines = append(lines, line)
	}
	return lines
}

// What a node with a mistake sets is known all the same: one mistake is one problem.
func TestAMistakeInAConfigIsOneProblem(t *testing.T) {
	got := problemsOf("entry: a\nnodes: [{id: a, type: template, config: {tmplate: x, output: y}}, {id: b, type: script, config: {sauce: x, outputs: [z]}}, {id: c, type: template, config: {template: '${y} ${z}', output: x}}]\nedges: [{from: a, to: b}, {from: b, to: c}, {from: c, to: __end__}]\n", graph.Kinds{})
	if len(got) != 2 || !strings.HasPrefix(got[0], "nodes[0].config.tmplate: ") || !strings.HasPrefix(got[1], "nodes[1].config.sauce: ") {
		t.Errorf("%q", got)
	}
}

func TestEachProblemIsNamedByItsPath(t *testing.T) {
	one := func(node string) string {
		return "entry: a\nnodes:\n- " + node + "\nedges: [{from: a, to: __end__}]\n"
	}
	tmpl := `{id: a, type: template, config: {template: x, output: x}}`
	for name, c := range map[string]struct {
		text string
		want []string // each is in one of the lines
	}{
		"nothing":                      {"", []string{"$: it is empty: write name, entry, nodes and edges"}},
		"no nodes":                     {"entry: a\nnodes: []\n", []string{"nodes: there are no nodes: write at least one (line 2)"}},
		"no entry":                     {"nodes: [" + tmpl + "]\nedges: [{from: a, to: __end__}]\n", []string{"entry: it is missing: write the id of a node"}},
		"an unknown entry":             {"entry: b\nnodes: [" + tmpl + "]\nedges: [{from: a, to: __end__}]\n", []string{`entry: there is no node "b": did you mean a? (line 1)`}},
		"unknown fields":               {"entri: a\nnodes: [{id: a, typ: template, retry: {max: 3}}]\n", []string{`entri: unknown field "entri": did you mean entry? (line 1)`, `nodes[0].typ: unknown field "typ": did you mean type? (line 2)`, `nodes[0].retry.max: unknown field "max": it may have attempts, on, wait`}},
		"a wrong kind":                 {"entry: [a]\nnodes: {}\n", []string{"entry: a list where a text has to stand", "nodes: a mapping where a list has to stand"}},
		"an id twice":                  {"entry: a\nnodes: [" + tmpl + ", " + tmpl + "]\nedges: [{from: a, to: __end__}]\n", []string{"nodes[1].id: the id a is that of nodes[0], too: take another one"}},
		"a wrong id":                   {one(`{id: "a:b", type: template}`), []string{`nodes[0].id: "a:b" is no id of a node`}},
		"the id of the end":            {one(`{id: __end__, type: template}`), []string{"nodes[0].id: __end__ is where edges lead that end the graph"}},
		"an unknown type":              {one(`{id: a, type: templat}`), []string{`nodes[0].type: there is no type of nodes called "templat": did you mean template?`}},
		"an unknown field of a config": {one(`{id: a, type: template, config: {text: x, output: x}}`), []string{`nodes[0].config.text: unknown field "text": it may have channel, output, role, template`}},
		"an edge from nowhere":         {"entry: a\nnodes: [" + tmpl + "]\nedges: [{from: a, to: __end__}, {from: b, to: a}, {from: a, to: c}]\n", []string{`edges[1].from: there is no node "b"`, `edges[2].to: there is no node "c"`}},
		"an edge twice":                {"entry: a\nnodes: [" + tmpl + "]\nedges: [{from: a, to: __end__}, {from: a, to: __end__}]\n", []string{"edges[1]: there is such an edge already"}},
		"an unreachable node":          {"entry: a\nnodes: [" + tmpl + ", {id: b, type: template, config: {template: x, output: x}}]\nedges: [{from: a, to: __end__}, {from: b, to: __end__}]\n", []string{"nodes[1]: nothing leads to the node b"}},
		"a dead end":                   {"entry: a\nnodes: [" + tmpl + "]\n", []string{"nodes[0]: nothing leads on from the node a: add an edge to the next node, or to __end__ (line 2)"}},
		"a circle":                     {"entry: a\nnodes: [" + tmpl + ", {id: b, type: template, config: {template: x, output: x}}]\nedges: [{from: a, to: b}, {from: b, to: a}, {from: b, to: __end__}]\n", []string{"nodes[0]: the nodes a → b → a are a circle that runs without end"}},
		"a circle with a condition":    {"entry: a\nnodes: [" + tmpl + "]\nedges: [{from: a, to: a, condition: len(x) > 1}, {from: a, to: __end__}]\n", nil},
		"no way out":                   {"entry: a\nnodes: [" + tmpl + "]\nedges: [{from: a, to: a, condition: len(x) > 1}]\n", []string{"nodes[0]: no way leads from the node a to __end__"}},
		"no default":                   {"entry: a\nnodes: [" + tmpl + "]\nedges: [{from: a, to: __end__, condition: len(x) > 1}]\n", []string{"warning: nodes[0]: when no condition holds nothing leads on from the node a"}},
		"a bad expression":             {"entry: a\nnodes: [" + tmpl + "]\nedges: [{from: a, to: __end__, condition: len(x}]\n", []string{"edges[0].condition: 1:6: got end of file"}},
		"an unknown name":              {"entry: a\nnodes: [{id: a, type: template, config: {template: 'x ${topc}', output: topic}}]\nedges: [{from: a, to: __end__, condition: y > 1}]\n", []string{"nodes[0].config.template: 1:1: undefined: topc: did you mean topic?", "edges[0].condition: 1:1: undefined: y: "}},
		"no end of an expression":      {one(`{id: a, type: template, config: {template: "${x", output: x}}`), []string{`nodes[0].config.template: "${x" has no end`}},
		"a template that goes nowhere": {one(`{id: a, type: template, config: {template: x}}`), []string{"nodes[0].config: the text goes nowhere"}},
		"a channel of nothing":         {one(`{id: a, type: template, config: {template: x, output: x, channel: y}}`), []string{"nodes[0].config.channel: nothing is said on it"}},
		"a wrong role":                 {one(`{id: a, type: template, config: {template: x, role: tool}}`), []string{`nodes[0].config.role: it is "tool"`}},
		"a wrong name of a var":        {one(`{id: a, type: template, config: {template: x, output: a-b}}`), []string{`nodes[0].config.output: "a-b" is no name of a var`}},
		"a keyword as a var":           {"entry: a\nvars: [last]\nnodes: [" + tmpl + "]\nedges: [{from: a, to: __end__}]\n", []string{"vars[0]: last has a meaning of its own in expressions"}},
		"no model":                     {one(`{id: a, type: model, config: {prompt: x}}`), []string{"nodes[0].config: there is no model"}},
		"another model":                {one(`{id: a, type: model, config: {prompt: x, model: other}}`), []string{"nodes[0].config.model: no other models can be had here"}},
		"a bad schema":                 {one(`{id: a, type: model, config: {schema: {type: 7}}}`), []string{"nodes[0].config.schema: "}},
		"unknown tools":                {one(`{id: a, type: tool, config: {tool: ad}}`), []string{`nodes[0].config.tool: there is no tool "ad": did you mean add?`}},
		"unknown tools of a model":     {one(`{id: a, type: model, config: {tools: [add, sub]}}`), []string{`nodes[0].config.tools[1]: there is no tool "sub"`}},
		"a wrong on_error":             {one(`{id: a, type: tool, config: {tool: add, on_error: ignore}}`), []string{`nodes[0].config.on_error: it is "ignore"`}},
		"json for nobody":              {one(`{id: a, type: tool, config: {tool: add, json: true}}`), []string{"nodes[0].config.json: what the tool gives is read for nobody"}},
		"no agents":                    {one(`{id: a, type: agent, config: {agent: kid, prompt: x}}`), []string{`nodes[0].config.agent: there is no tool "task"`}},
		"an unknown function":          {one(`{id: a, type: func, config: {func: f}}`), []string{`nodes[0].config.func: there is no function "f": add it to Kinds.Funcs`}},
		"an unknown graph":             {one(`{id: a, type: subgraph, config: {graph: g}}`), []string{`nodes[0].config.graph: there is no graph "g"`}},
		"a problem in an inner graph":  {one(`{id: a, type: subgraph, config: {graph: {entry: b, nodes: [{id: b, type: tool, config: {tool: ad}}], edges: [{from: b, to: c}]}}}`), []string{`nodes[0].config.graph.nodes[0].config.tool: there is no tool "ad"`, `nodes[0].config.graph.edges[0].to: there is no node "c"`}},
		"an unknown field of one":      {one(`{id: a, type: map, config: {over: "[1]", as: x, graph: {entree: b}}}`), []string{`nodes[0].config.graph.entree: unknown field "entree": did you mean entry?`}},
		"a result without an output":   {one(`{id: a, type: map, config: {over: "[1]", as: x, result: x, graph: {entry: b, nodes: [{id: b, type: template, config: {template: x, output: x}}], edges: [{from: b, to: __end__}]}}}`), []string{"nodes[0].config: result says what of an item is kept, and output where: write both, or none"}},
		"a graph that contains itself": {one(`{id: a, type: subgraph, config: {graph: self}}`), []string{"nodes[0].config.graph.nodes[0].config.graph: the graph self contains itself: self → self"}},
		"a retry of nothing":           {one(`{id: a, type: template, retry: {attempts: 2}, timeout: 1s, config: {template: x, output: x}}`), []string{"nodes[0].retry: a template node does nothing that another attempt would change", "nodes[0].timeout: a template node does nothing that takes time"}},
		"a retry of a tool":            {one(`{id: a, type: tool, retry: {attempts: 2}, config: {tool: add}}`), []string{"nodes[0].retry: the tool add is neither read-only nor idempotent: a call that failed may have taken effect: declare it so if it is; else leave retry out"}},
		"a retry of a handoff":         {one(`{id: a, type: handoff, retry: {attempts: 2}, config: {tool: add}}`), []string{"nodes[0].retry: what a handoff node fails with may have taken effect"}},
		"a retry of an approval":       {one(`{id: a, type: approval, retry: {attempts: 2}, config: {prompt: x, output: y}}`), []string{"nodes[0].retry: an approval node does nothing that another attempt would change"}},
		"a bad retry":                  {one(`{id: a, type: subgraph, retry: {attempts: 1, on: [validation, nothing], wait: 2m}, config: {graph: self}}`), []string{"nodes[0].retry.attempts: it is 1: write 2 to 10", "nodes[0].retry.on[0]: what fails as validation is not tried again", `nodes[0].retry.on[1]: no error has the class "nothing"`, "nodes[0].retry.wait: it is 2m0s: write one from 0s to 1m"}},
		"caches of what has none": {
			"entry: a\nnodes:\n- {id: a, type: template, cache: {}, config: {template: x, output: x}}\n- {id: b, type: approval, cache: {}, config: {prompt: x, output: x}}\n- {id: c, type: subgraph, cache: {}, config: {graph: {entry: d, nodes: [{id: d, type: func, cache: {}, config: {func: f}}], edges: [{from: d, to: __end__}]}}}\n- {id: e, type: tool, cache: {}, config: {tool: add}}\nedges: [{from: a, to: b}, {from: b, to: c}, {from: c, to: e}, {from: e, to: __end__}]\n",
			[]string{
				"nodes[0].cache: a template node only computes: there is nothing to save: leave it out (line 3)", "nodes[1].cache: what the node does (approval) is asked for each time: leave it out",
				"nodes[2].cache: a subgraph node does nothing but what the nodes in it do: give it to those nodes in it that take time", "nodes[2].config.graph.nodes[0].cache.key: a func node sees the whole board: what counts of it is not known: write an expression",
				"nodes[3].cache: the tool add may change something: a call that is left out would be missing: leave it out, or declare the tool read-only if it is",
			},
		},
		"a bad cache":                   {one(`{id: a, type: model, cache: {key: y, ttl: -1s}, config: {prompt: x}}`), []string{`nodes[0].cache.ttl: "-1s" is no duration`}},
		"a bad key":                     {one(`{id: a, type: tool, cache: {key: y}, config: {tool: none}}`), []string{"nodes[0].cache.key: 1:1: undefined: y"}},
		"a bad duration":                {one(`{id: a, type: tool, timeout: soon, config: {tool: add}}`), []string{`nodes[0].timeout: "soon" is no duration`}},
		"a bad policy":                  {"entry: a\nmerge: mine\nnodes: [" + tmpl + "]\nedges: [{from: a, to: __end__}]\n", []string{`merge: there is no way to merge called "mine"`}},
		"too many at a time":            {"entry: a\nlimits: {concurrency: 17}\nnodes: [" + tmpl + "]\nedges: [{from: a, to: __end__}]\n", []string{"limits.concurrency: it is 17: write a number from 1 to 16 (line 2)"}},
		"bad limits":                    {"entry: a\nlimits: {nodes: -1}\nnodes: [" + tmpl + "]\nedges: [{from: a, to: __end__}]\n", []string{"limits.nodes: it is -1"}},
		"a router without routes":       {one(`{id: a, type: router}`), []string{"nodes[0].config.routes: it is missing"}},
		"an edge of a router":           {"entry: a\nnodes: [{id: a, type: router, config: {routes: [{when: '1 < 2', to: __end__}]}}]\nedges: [{from: a, to: __end__}]\n", []string{"edges[0].from: the node a is a router"}},
		"a gate that tells nobody":      {one(`{id: a, type: gate, config: {condition: 1 < 2, message: x, else: a}}`), []string{"nodes[0].config.message: the way goes on by else"}},
		"an approval that nobody knows": {one(`{id: a, type: approval, config: {}}`), []string{"nodes[0].config.prompt: it is missing", "nodes[0].config.output: nobody would know the answer"}},
		"choices that are none":         {one(`{id: a, type: approval, config: {prompt: x, output: y, choices: [a]}}`), []string{"nodes[0].config.choices: want two or more, or none", "nodes[0].config.text: nobody would know it: name a var that has the choice"}},
		"choices that are the same":     {one(`{id: a, type: approval, config: {prompt: x, output: y, text: z, choices: [a, A]}}`), []string{`nodes[0].config.choices: "A": want each its own`}},
		"a handoff that goes on":        {"entry: b\nnodes: [{id: b, type: handoff, config: {tool: add}}, " + tmpl + "]\nedges: [{from: b, to: a}, {from: a, to: __end__}]\n", []string{"edges[0].to: who has handed over does nothing more"}},
		"a script that sets nothing":    {one(`{id: a, type: script, config: {source: "return {}"}}`), []string{"nodes[0].config.outputs: it is missing"}},
		"an anchor":                     {"entry: &e a\nnodes: [" + tmpl + "]\n", []string{"entry: anchors, aliases and tags are not for graphs"}},
		"a field twice":                 {"entry: a\nentry: b\n", []string{`$: neither YAML nor JSON: mapping key "entry" already defined`}},
		"two documents":                 {"entry: a\n---\nentry: b\n", []string{"$: there is a second document"}},
		"no YAML":                       {"entry: [a\n", []string{"$: neither YAML nor JSON: "}},
	} {
		t.Run(name, func(t *testing.T) {
			k := graph.Kinds{Loop: loop.Config{Tools: []tool.Tool{adds}}, Graphs: map[string]graph.Definition{"self": {
				Entry: "a", Nodes: []graph.Node{{ID: "a", Type: "subgraph", Config: map[string]any{"graph": "self"}}}, Edges: []graph.Edge{{From: "a", To: graph.End}},
			}}}
			got := problemsOf(c.text, k)
			for _, want := range c.want {
				found := false
				for _, line := range got {
					found = found || strings.HasPrefix(line, want)
				}
				if !found {
					t.Errorf("%q lacks %q", got, want)
				}
			}
			if (len(c.want) == 0) != (len(got) == 0) {
				t.Errorf("%q", got)
			}
		})
	}
}

// To look at a definition, what the program would bring need not be there; what is wrong in itself is.
func TestWithoutWhatAProgramBringsTheRestIsChecked(t *testing.T) {
	text := `
entry: a
nodes:
- {id: a, type: model, config: {model: other, tools: [none], prompt: x}}
- {id: b, type: tool, config: {tool: none}}
- {id: c, type: func, config: {func: f}}
- {id: d, type: agent, config: {agent: kid, prompt: x}}
- {id: e, type: subgraph, config: {graph: g}}
- {id: f, type: owntype, config: {any: thing}}
edges: [{from: a, to: b}, {from: b, to: c}, {from: c, to: d}, {from: d, to: e}, {from: e, to: f}, {from: f, to: %s}]
`
	if got := problemsOf(strings.Replace(text, "%s", "__end__", 1), graph.Kinds{Absent: true}); len(got) != 1 || !strings.HasPrefix(got[0], `warning: nodes[5].type: there is no type of nodes called "owntype" here`) {
		t.Error(got)
	}
	if got := problemsOf(strings.Replace(text, "%s", "x", 1), graph.Kinds{Absent: true}); len(got) != 2 {
		t.Error(got)
	}
	d := parse(t, `
entry: c
nodes: [{id: c, type: func, config: {func: f}}]
edges: [{from: c, to: __end__}]
`)
	g, err := graph.Compile(d, graph.Kinds{Absent: true})
	if err != nil {
		t.Fatal(err)
	}
	if res := run(t, g, nil, nil); !errdefs.NotAvailable.Is(res.Err) {
		t.Error(res.Err)
	}
}

func TestADefinitionIsReadFromJSONAndYAMLAlike(t *testing.T) {
	yaml := parse(t, `
name: one
entry: a
vars: [x]
merge: namespace
limits: {nodes: 5, branches: 2, concurrency: 2}
nodes:
- {id: a, type: tool, timeout: 1m30s, skip_condition: x > 1, retry: {attempts: 2, on: [timeout], wait: 1s}, config: {tool: t, args: {n: 1, f: 1.5, l: [true, null, text]}}}
edges:
- {from: a, to: __end__, condition: x < 1}
`)
	b, err := json.Marshal(yaml)
	if err != nil {
		t.Fatal(err)
	}
	again, err := graph.Parse("x.json", b)
	if err != nil {
		t.Fatal(err)
	}
	c, err := json.Marshal(again)
	if err != nil || string(b) != string(c) {
		t.Errorf("%s\n%s\n%v", b, c, err)
	}
	if !reflect.DeepEqual(yaml.Nodes, again.Nodes) || again.Nodes[0].Config["args"].(map[string]any)["n"] != 1 {
		t.Errorf("%+v", again)
	}
}

func TestAFileHasToBeThereAndOrdinary(t *testing.T) {
	dir := t.TempDir()
	if _, err := graph.Load(filepath.Join(dir, "none.yaml")); !errdefs.NotFound.Is(err) {
		t.Error(err)
	}
	if _, err := graph.Load(dir); !errdefs.Validation.Is(err) {
		t.Error(err)
	}
	path := filepath.Join(dir, "flow.graph.yaml")
	if err := os.WriteFile(path, []byte("entry: a\nnodes: []\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if d, err := graph.Load(path); err != nil || d.Name != "flow" {
		t.Error(d, err)
	}
	if err := os.WriteFile(path, make([]byte, 1<<20+1), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := graph.Load(path); !errdefs.Validation.Is(err) || !strings.Contains(err.Error(), "over 1 MiB") {
		t.Error(err)
	}
}

// A run goes on with the definition that it began with, or not at all.
func TestAnEngineIsNamedByItsDefinition(t *testing.T) {
	one := "name: n\nentry: a\nnodes: [{id: a, type: template, config: {template: %s, output: x}}]\nedges: [{from: a, to: __end__}]\n"
	names := map[string]bool{}
	for _, text := range []string{"x", "x", "y"} {
		g := compile(t, strings.Replace(one, "%s", text, 1), graph.Kinds{})
		can := g.Capabilities()
		if names[can.Version] = true; can.Name != "graph:n" {
			t.Error(can)
		}
		if err := g.CanResume(engine.Checkpoint{SpecVersion: can.Version}); err != nil {
			t.Error(err)
		}
		other := engine.Checkpoint{ExecID: "r", SpecVersion: "other"}
		if _, err := g.Execute(t.Context(), engine.Run{ID: "r", ResumeFrom: &other}, engine.NoopHost{}, engine.NewBoard(engine.Snapshot{})); !errdefs.NotAvailable.Is(g.CanResume(other)) || !errdefs.NotAvailable.Is(err) {
			t.Error(err)
		}
	}
	if len(names) != 2 {
		t.Error(names)
	}
}

// Graphs that use each other several times multiply: what is too much is found before it is compiled, and at once.
func TestGraphsThatMultiplyAreRefused(t *testing.T) {
	uses := func(to string, times int) graph.Definition {
		d := graph.Definition{Entry: "n0"}
		for i := range times {
			next := fmt.Sprint("n", i+1)
			if i == times-1 {
				next = graph.End
			}
			d.Nodes = append(d.Nodes, graph.Node{ID: fmt.Sprint("n", i), Type: "subgraph", Config: map[string]any{"graph": to}})
			d.Edges = append(d.Edges, graph.Edge{From: fmt.Sprint("n", i), To: next})
		}
		return d
	}
	k := graph.Kinds{Graphs: map[string]graph.Definition{"self": uses("self", 30)}}
	for i := range 8 {
		k.Graphs[fmt.Sprint("g", i)] = uses(fmt.Sprint("g", i+1), 10)
	}
	k.Graphs["g8"] = parse(t, "entry: a\nnodes: [{id: a, type: template, config: {template: x, output: x}}]\nedges: [{from: a, to: __end__}]\n")
	if _, err := graph.Compile(uses("self", 1), k); err == nil || !strings.Contains(err.Error(), "the graph self contains itself: self → self") {
		t.Error(err)
	}
	if _, err := graph.Compile(uses("g0", 1), k); err == nil || !strings.Contains(err.Error(), "there are more than 100000 nodes, each counted as often as its graph is used") || strings.Count(err.Error(), "\n") != 1 {
		t.Error(err)
	}
	if _, err := graph.Compile(uses("g5", 1), k); err != nil {
		t.Error(err)
	}
}

// A definition that a program reads by encoding/json has floats for numbers.
func TestNumbersOfEncodingJSONAreNumbers(t *testing.T) {
	var d graph.Definition
	text := `{"entry": "a", "nodes": [{"id": "a", "type": "model", "config": {"prompt": "x", "max_steps": %s}}], "edges": [{"from": "a", "to": "__end__"}]}`
	if err := json.Unmarshal([]byte(strings.Replace(text, "%s", "5", 1)), &d); err != nil {
		t.Fatal(err)
	}
	if _, err := graph.Compile(d, talks()); err != nil {
		t.Error(err)
	}
	for _, wrong := range []string{"1.5", "1e300"} {
		if err := json.Unmarshal([]byte(strings.Replace(text, "%s", wrong, 1)), &d); err != nil {
			t.Fatal(err)
		}
		if _, err := graph.Compile(d, talks()); err == nil || !strings.Contains(err.Error(), "nodes[0].config.max_steps: a number where a whole number has to stand") {
			t.Error(wrong, err)
		}
	}
}
