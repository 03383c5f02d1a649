package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pawl-dev/pawl"
	"github.com/pawl-dev/pawl/agent/askuser"
	"github.com/pawl-dev/pawl/hook"
	"github.com/pawl-dev/pawl/hook/permission"
	"github.com/pawl-dev/pawl/journal"
	"github.com/pawl-dev/pawl/message"
	"github.com/pawl-dev/pawl/model"
	"github.com/pawl-dev/pawl/sandbox"
	"github.com/pawl-dev/pawl/tool"
)

// built is a tool as a page describes it, or as a Runtime has it.
type built struct {
	Marks  []string // sorted
	Fields map[string]field
	Asked  [2]string // "allow" or "ask": in a sandbox, and without one
}

type field struct {
	Type string
	Also []string // sorted
}

var (
	marks    = regexp.MustCompile(`(?m)^\*([a-z ,-]+)\*$`)
	toolRow  = regexp.MustCompile("(?m)^\\| (`[^|]+`) \\| ([a-z ,]+) \\| (.+?) \\|(?: (`.+`))? \\|$")
	inTicks  = regexp.MustCompile("`([^`]+)`")
	toolLine = regexp.MustCompile("(?m)^\\| \\[`([a-z_]+)`\\]\\(#([a-z_]+)\\) \\| .+ \\| ([^|]+) \\| ([^|]+) \\|$")
)

// onPage reads docs/tools.md. about is what the page says of each field, by "tool.field".
func onPage(t *testing.T) (tools map[string]built, about map[string]string) {
	t.Helper()
	text := page(t, "docs/tools.md")
	tools, about = map[string]built{}, map[string]string{}
	for _, m := range toolLine.FindAllStringSubmatch(text, -1) {
		b := built{Fields: map[string]field{}}
		for i := range b.Asked {
			b.Asked[i] = "ask"
			if m[3+i] == "no" {
				b.Asked[i] = "allow"
			}
		}
		if m[1] != m[2] {
			t.Errorf("the row of %s links to %s", m[1], m[2])
		}
		tools[m[1]] = b
	}
	for _, section := range strings.Split(text, "\n## ")[1:] {
		name, body, _ := strings.Cut(section, "\n")
		b, ok := tools[name]
		if !ok {
			t.Errorf("%s has a section and no row", name)
			continue
		}
		if m := marks.FindStringSubmatch(body); m != nil {
			b.Marks = slices.Sorted(slices.Values(strings.Split(m[1], ", ")))
		}
		for _, m := range toolRow.FindAllStringSubmatch(body, -1) {
			var also []string
			for _, a := range inTicks.FindAllStringSubmatch(m[4], -1) {
				also = append(also, a[1])
			}
			slices.Sort(also)
			for _, f := range inTicks.FindAllStringSubmatch(m[1], -1) {
				b.Fields[f[1]], about[name+"."+f[1]] = field{m[2], also}, m[3]
			}
		}
		tools[name] = b
	}
	return tools, about
}

// asks is a model that makes calls, once, and keeps what it is offered.
type asks struct {
	mu      sync.Mutex
	offered []model.Tool
	calls   func([]model.Tool) []message.ToolCall
}

func (a *asks) Complete(_ context.Context, req model.Request) (*model.Response, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.offered != nil {
		return &model.Response{Message: message.Assistant("done")}, nil
	}
	a.offered = req.Tools
	return &model.Response{Message: message.Assistant("", a.calls(req.Tools)...)}, nil
}

func (a *asks) CompleteStream(ctx context.Context, req model.Request, cb model.StreamHandler) error {
	resp, err := a.Complete(ctx, req)
	if err != nil {
		return err
	}
	return cb(model.StreamResult{Final: true, Response: resp})
}

type schema struct {
	Type       string
	Enum       []string
	Required   []string
	AnyOf      []schema
	Properties map[string]schema

	Description string
}

func (s schema) name() string {
	var names []string
	for _, a := range s.AnyOf {
		names = append(names, a.Type)
	}
	if s.AnyOf == nil {
		names = append(names, s.Type)
	}
	return strings.Join(names, " or ")
}

// example is a value that the schema admits.
func (s schema) example() any {
	switch {
	case len(s.Enum) > 0:
		return s.Enum[0]
	case s.Type == "string":
		return "make"
	case s.Type == "boolean":
		return true
	case s.Type == "array":
		return []any{}
	}
	return 1
}

func schemaOf(t *testing.T, tl model.Tool) (s schema) {
	t.Helper()
	if err := json.Unmarshal(tl.Schema, &s); err != nil {
		t.Fatalf("%s: %v", tl.Name, err)
	}
	return s
}

// otherNames are all other names that some tool in this module has for some field.
func otherNames(t *testing.T) []string {
	t.Helper()
	names := map[string]bool{}
	err := filepath.WalkDir("../..", func(path string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return err
		}
		f, err := parser.ParseFile(token.NewFileSet(), path, nil, 0)
		if err != nil {
			return err
		}
		ast.Inspect(f, func(n ast.Node) bool {
			call, ok := n.(*ast.CallExpr)
			if !ok {
				return true
			}
			if sel, ok := call.Fun.(*ast.SelectorExpr); !ok || sel.Sel.Name != "WithAliases" {
				return true
			}
			lit, ok := call.Args[0].(*ast.CompositeLit)
			if !ok {
				t.Errorf("%s: WithAliases is given something that is not written out there: this test can't read it", path)
				return true
			}
			for _, e := range lit.Elts {
				name, err := strconv.Unquote(e.(*ast.KeyValueExpr).Key.(*ast.BasicLit).Value)
				if err != nil {
					t.Error(err)
				}
				names[name] = true
			}
			return true
		})
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return slices.Sorted(maps.Keys(names))
}

// inRuntime is what a Runtime has, found out by calls of every tool: hooks are told of it, and refuse.
func inRuntime(t *testing.T) (tools map[string]built, schemas map[string]schema) {
	t.Helper()
	dir, other := t.TempDir(), otherNames(t)
	for name, text := range map[string]string{".agents/skills/x/SKILL.md": "---\nname: x\ndescription: y\n---\nz"} {
		if err := os.MkdirAll(filepath.Join(dir, filepath.Dir(name)), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	deferred := tool.Func("deferred", "", func(context.Context, struct{}) (string, error) { return "", nil }, tool.Deferred)
	tools, schemas = map[string]built{}, map[string]schema{}
	for i, policy := range []*sandbox.Policy{nil, {Off: true}} {
		calls := func(offered []model.Tool) (calls []message.ToolCall) {
			add := func(id, name string, input map[string]any) {
				b, err := json.Marshal(input)
				if err != nil {
					t.Error(err)
				}
				calls = append(calls, message.ToolCall{ID: id, Name: name, Input: string(b)})
			}
			for _, tl := range offered {
				s, plain := schemaOf(t, tl), map[string]any{}
				schemas[tl.Name] = s
				for _, name := range s.Required {
					plain[name] = s.Properties[name].example()
				}
				add(tl.Name+" plain", tl.Name, plain)
				for name, p := range s.Properties {
					for _, o := range other {
						if _, own := s.Properties[o]; !own {
							input := maps.Clone(plain)
							delete(input, name)
							input[o] = p.example()
							add(fmt.Sprintf("%s also %s %s", tl.Name, name, o), tl.Name, input)
						}
					}
				}
			}
			return calls
		}
		var mu sync.Mutex
		verdicts, definitions, also := map[string]hook.Verdict{}, map[string]tool.Definition{}, map[string][]string{}
		m := &asks{calls: calls}
		rt, err := pawl.New(t.Context(), pawl.Options{
			Model: m, ProjectRoot: dir, Journal: journal.Memory(), Sandbox: policy, Tools: []tool.Tool{deferred, askuser.New(nil)},
			Permissions: permission.Config{Audit: func(_ context.Context, j permission.Judgment) {
				mu.Lock()
				defer mu.Unlock()
				if strings.HasSuffix(j.Call, " plain") {
					verdicts[j.Tool] = j.Verdict
				}
			}},
			Middleware: []hook.Middleware{{Name: "refuse", PreToolUse: func(_ context.Context, u *hook.ToolUse) (hook.Decision, error) {
				mu.Lock()
				defer mu.Unlock()
				definitions[u.Call.Name] = u.Tool
				if words := strings.Fields(u.Call.ID); words[1] == "also" {
					var input map[string]any
					if err := json.Unmarshal([]byte(u.Call.Input), &input); err != nil {
						t.Error(err)
					}
					if _, there := input[words[2]]; there {
						also[words[0]+"."+words[2]] = append(also[words[0]+"."+words[2]], words[3])
					}
				}
				return hook.Denied("nothing runs"), nil
			}}},
		})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := rt.Run(t.Context(), pawl.Request{Prompt: "Use every tool."}); err != nil {
			t.Fatal(err)
		}
		if err := rt.Close(); err != nil {
			t.Fatal(err)
		}
		for _, tl := range m.offered {
			b := tools[tl.Name]
			b.Asked[i] = verdicts[tl.Name].String()
			b.Marks, b.Fields = marksOf(definitions[tl.Name]), map[string]field{}
			for name, p := range schemas[tl.Name].Properties {
				f := field{Type: p.name(), Also: slices.Sorted(slices.Values(also[tl.Name+"."+name]))}
				if slices.Contains(schemas[tl.Name].Required, name) {
					f.Type += ", needed"
				}
				b.Fields[name] = f
			}
			tools[tl.Name] = b
		}
	}
	return tools, schemas
}

func marksOf(d tool.Definition) (out []string) {
	for name, on := range map[string]bool{
		"read-only": d.ReadOnly, "idempotent": d.Idempotent, "destructive": d.Destructive, "open world": d.OpenWorld,
		"sequential": d.Sequential, "requires approval": d.RequiresApproval,
	} {
		if on {
			out = append(out, name)
		}
	}
	slices.Sort(out)
	return out
}

// The page of the built-in tools has the tools that a Runtime offers, with their fields, other names and marks, and what is asked about.
func TestThePageOfTheToolsIsWhatARuntimeHas(t *testing.T) {
	t.Parallel()
	fenced(t)
	page, about := onPage(t)
	real, schemas := inRuntime(t)
	if diff := cmp.Diff(real, page); diff != "" {
		t.Errorf("docs/tools.md (+) is not what a Runtime has (-):\n%s", diff)
	}
	number := regexp.MustCompile(`\d[\d,]*`)
	plain := func(s string) string { return strings.ReplaceAll(s, ",", "") }
	for name, s := range schemas {
		for member, p := range s.Properties {
			row := about[name+"."+member]
			for _, v := range p.Enum {
				if name != "task" && !strings.Contains(row, "`"+v+"`") {
					t.Errorf("docs/tools.md: %s of %s has no %q", member, name, v)
				}
			}
			have := number.FindAllString(plain(row), -1)
			for _, n := range number.FindAllString(plain(inTicks.ReplaceAllString(unquoted(p.Description), "")), -1) {
				if !slices.Contains(have, n) {
					t.Errorf("docs/tools.md: %s of %s does not say %s: %s", member, name, n, p.Description)
				}
			}
		}
	}
}

// unquoted is a description without its examples.
func unquoted(s string) string { return regexp.MustCompile(`"[^"]*"`).ReplaceAllString(s, "") }
