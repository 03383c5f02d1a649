package graph

import (
	"fmt"
	"strings"
)

// line is an arrow of a drawing.
type line struct{ from, to, label string }

// arrows are those of a definition: edges, routes, and where a gate diverts.
func (d Definition) arrows() (all []line) {
	for _, e := range d.Edges {
		all = append(all, line{e.From, e.To, e.Condition})
	}
	for _, n := range d.Nodes {
		text := func(v any) string { s, _ := v.(string); return s }
		if routes, ok := n.Config["routes"].([]any); ok && n.Type == "router" {
			for _, r := range routes {
				if r, ok := r.(map[string]any); ok {
					all = append(all, line{n.ID, text(r["to"]), text(r["when"])})
				}
			}
		}
		if to := text(n.Config["else"]); to != "" && (n.Type == "router" || n.Type == "gate") {
			all = append(all, line{n.ID, to, "else"})
		}
	}
	return all
}

// Mermaid draws the definition as a Mermaid flowchart. It need not be one that compiles.
func (d Definition) Mermaid() string {
	var b strings.Builder
	names := d.handles()
	b.WriteString("flowchart TD\n")
	text := strings.NewReplacer("\"", "#quot;", "\n", " ", "\r", " ", "<", "#lt;", ">", "#gt;").Replace
	for _, n := range d.Nodes {
		open, shut := "[", "]"
		switch n.Type {
		case "router", "gate":
			open, shut = "{", "}"
		case "approval":
			open, shut = "([", "])"
		case "subgraph", "map":
			open, shut = "[[", "]]"
		}
		fmt.Fprintf(&b, "  %s%s\"%s\"%s\n", names[n.ID], open, text(n.ID+": "+n.Type), shut)
	}
	if d.ends() {
		b.WriteString("  end_((end))\n")
	}
	for _, l := range d.arrows() {
		if names[l.from] == "" || names[l.to] == "" {
			continue
		}
		if l.label == "" {
			fmt.Fprintf(&b, "  %s --> %s\n", names[l.from], names[l.to])
		} else {
			fmt.Fprintf(&b, "  %s -->|\"%s\"| %s\n", names[l.from], text(l.label), names[l.to])
		}
	}
	return b.String()
}

// Dot draws the definition for Graphviz. It need not be one that compiles.
func (d Definition) Dot() string {
	var b strings.Builder
	names := d.handles()
	fmt.Fprintf(&b, "digraph %s {\n", dotText(d.Name))
	for _, n := range d.Nodes {
		shape := "box"
		switch n.Type {
		case "router", "gate":
			shape = "diamond"
		case "approval":
			shape = "oval"
		case "subgraph", "map":
			shape = "component"
		}
		fmt.Fprintf(&b, "  %s [label=%s, shape=%s];\n", names[n.ID], dotText(n.ID+": "+n.Type), shape)
	}
	if d.ends() {
		b.WriteString("  end_ [label=\"end\", shape=doublecircle];\n")
	}
	for _, l := range d.arrows() {
		if names[l.from] == "" || names[l.to] == "" {
			continue
		}
		label := ""
		if l.label != "" {
			label = " [label=" + dotText(l.label) + "]"
		}
		fmt.Fprintf(&b, "  %s -> %s%s;\n", names[l.from], names[l.to], label)
	}
	b.WriteString("}\n")
	return b.String()
}

// dotText is a text in quotes as Graphviz reads it.
func dotText(s string) string {
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", " ", "\r", " ").Replace(s) + `"`
}

func (d Definition) ends() bool {
	for _, l := range d.arrows() {
		if l.to == End {
			return true
		}
	}
	return false
}

// handles are names that every drawing takes, by the ids of nodes.
func (d Definition) handles() map[string]string {
	all := map[string]string{End: "end_"}
	for i, n := range d.Nodes {
		if _, twice := all[n.ID]; !twice {
			all[n.ID] = fmt.Sprintf("n%d", i+1)
		}
	}
	return all
}
