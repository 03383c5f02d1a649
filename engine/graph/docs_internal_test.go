package graph

import (
	"os"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// sections are those of docs/graphs.md, by their headings.
func sections(t *testing.T) map[string]string {
	t.Helper()
	b, err := os.ReadFile("../../docs/graphs.md")
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]string{}
	for _, s := range regexp.MustCompile(`(?m)^##+ `).Split(string(b), -1)[1:] {
		heading, body, _ := strings.Cut(s, "\n")
		all[heading] = body
	}
	return all
}

// Each type of nodes has a section, with all its fields in a table, and no others; what it shows compiles, behind nodes that set what it uses.
func TestThePageHasEveryTypeWithItsFields(t *testing.T) {
	all := sections(t)
	row := regexp.MustCompile("(?m)^\\| ((?:`[a-z_]+`(?:, )?)+) \\| ")
	name := regexp.MustCompile("`([a-z_]+)`")
	for kind, make := range specs {
		section, ok := all[kind]
		if !ok {
			t.Errorf("docs/graphs.md has no section on %s", kind)
			continue
		}
		var have []string
		for _, m := range row.FindAllStringSubmatch(section, -1) {
			for _, n := range name.FindAllStringSubmatch(m[1], -1) {
				have = append(have, n[1])
			}
		}
		fields := map[string]reflect.Value{}
		fieldsOf(reflect.ValueOf(make()).Elem().FieldByName("is"), fields)
		var want []string
		for f := range fields {
			want = append(want, f)
		}
		slices.Sort(have)
		slices.Sort(want)
		if !slices.Equal(have, want) {
			t.Errorf("%s: the page has the fields %q, the type %q", kind, have, want)
		}
		blocks := regexp.MustCompile("(?s)```yaml\n(.*?)```").FindAllStringSubmatch(section, -1)
		if len(blocks) == 0 {
			t.Errorf("%s: the page shows none", kind)
		}
		for _, b := range blocks {
			d, err := Parse("page", []byte("entry: x\nnodes:\n"+b[1]))
			if err != nil {
				t.Errorf("%s: %v", kind, err)
				continue
			}
			// What it leads to, and what it uses, is there.
			d.Vars = []string{"topic", "draft", "order", "ok", "why", "score", "parts", "summary"}
			d.Entry = "x"
			d.Nodes = append(d.Nodes, Node{ID: "x", Type: "script", Config: map[string]any{"source": "return {}", "outputs": []any{"draft"}}})
			for _, id := range []string{"good", "fair"} {
				if strings.Contains(b[1], id) {
					d.Nodes = append(d.Nodes, Node{ID: id, Type: "template", Config: map[string]any{"template": "x", "output": "y"}})
					d.Edges = append(d.Edges, Edge{From: id, To: End})
				}
			}
			for _, n := range d.Nodes {
				switch {
				case n.ID == "x" || n.ID == "good" || n.ID == "fair":
					continue
				case n.Type != "router":
					d.Edges = append(d.Edges, Edge{From: n.ID, To: End})
				}
				d.Edges = append(d.Edges, Edge{From: "x", To: n.ID})
			}
			if _, err := Compile(d, Kinds{Absent: true}); err != nil {
				t.Errorf("%s: %v", kind, err)
			}
		}
	}
}

// What the page shows of caches compiles, and its table has their fields.
func TestThePageHasCaches(t *testing.T) {
	section := sections(t)["What is done once"]
	m := regexp.MustCompile("(?s)```yaml cache\n(.*?)```").FindStringSubmatch(section)
	if m == nil {
		t.Fatal("the page shows none")
	}
	d, err := Parse("page", []byte("entry: find\nvars: [topic]\nnodes:\n"+m[1]+"edges: [{from: find, to: write}, {from: write, to: own}, {from: own, to: __end__}]\n"))
	if err == nil {
		_, err = Compile(d, Kinds{Absent: true})
	}
	if err != nil {
		t.Error(err)
	}
	fields := map[string]reflect.Value{}
	fieldsOf(reflect.ValueOf(Caching{}), fields)
	for f := range fields {
		if !strings.Contains(section, "\n| `"+f+"` | ") {
			t.Errorf("the page does not have %s", f)
		}
	}
}

// The tables on definitions and nodes have all their fields.
func TestThePageHasEveryFieldOfADefinition(t *testing.T) {
	all := sections(t)
	for heading, of := range map[string]any{"A definition": Definition{}, "What every node may have": Node{}} {
		fields := map[string]reflect.Value{}
		fieldsOf(reflect.ValueOf(of), fields)
		for f := range fields {
			if f == "id" || f == "type" || f == "config" {
				heading = "A definition"
			}
			if !strings.Contains(all[heading], "`"+f+"`") && !strings.Contains(all["What every node may have"], "`"+f+"`") {
				t.Errorf("%q does not have %s", heading, f)
			}
		}
	}
	for _, policy := range []Merge{LastWins, Namespace, ErrorOnConflict} {
		if !strings.Contains(all["Waves and merges"], "- `"+string(policy)+"`: ") {
			t.Error(policy)
		}
	}
}
