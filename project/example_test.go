package project_test

import (
	"context"
	"fmt"
	"log"
	"os"
	"path/filepath"

	"github.com/pawl-dev/pawl/agent"
	"github.com/pawl-dev/pawl/hook"
	"github.com/pawl-dev/pawl/hook/permission"
	"github.com/pawl-dev/pawl/project"
)

func Example() {
	dir, err := os.MkdirTemp("", "project")
	if err != nil {
		log.Fatal(err)
	}
	defer func() { _ = os.RemoveAll(dir) }()
	write := func(name, text string) {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			log.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			log.Fatal(err)
		}
	}
	write("work/AGENTS.md", "Tests run with make check.")
	write("work/.agents/settings.json", `{"permissions": {"deny": ["Read(.env)"], "allow": ["Bash(make:*)"]}, "colour": "red"}`)

	opts := []project.Option{project.WithHome(filepath.Join(dir, "home")), project.WithTrustFile(filepath.Join(dir, "trust.json"))}
	p, err := project.Load(context.Background(), filepath.Join(dir, "work"), opts...)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(p.Prompt())
	for _, r := range p.Settings.Permissions.Rules {
		fmt.Println("counts:", r.Verdict, r.Text)
	}
	for _, v := range p.Untrusted() {
		fmt.Println("waits:", v.Key, v.Text)
	}
	for _, problem := range p.Problems {
		fmt.Println(problem)
	}

	if err := project.Approve(p); err != nil { // a person has seen what waits
		log.Fatal(err)
	}
	if p, err = project.Load(context.Background(), filepath.Join(dir, "work"), opts...); err != nil {
		log.Fatal(err)
	}
	fmt.Println("waiting now:", len(p.Untrusted()))
	// Output:
	// ## Memory
	//
	// Tests run with make check.
	// counts: deny Read(.env)
	// waits: permissions.allow "Bash(make:*)"
	// .agents/settings.json:1:70: there is no key "colour": it has no effect: remove it
	// waiting now: 0
}

// A program that has no Runtime hands on what it needs.
func ExampleLoad() {
	ctx := context.Background()
	home := project.WithHome("testdata") // without it ~/.agents counts, too
	p, err := project.Load(ctx, "testdata/example", home)
	if err != nil {
		fmt.Println(err) // a settings file that can't be understood: nothing it forbids may be lost
		return
	}
	for _, problem := range p.Problems {
		fmt.Println(problem) // of what has no effect: read on without it
	}
	judged, err := permission.New(p.Settings.Permissions)
	if err != nil {
		fmt.Println(err)
		return
	}
	a := agent.Agent{ID: "mine", Instructions: p.Prompt(), Hooks: []hook.Middleware{judged}}
	fmt.Println(a.Instructions)
	// Output:
	// .agents/settings.json:3:3: there is no key "colour": it has no effect: remove it
	// ## Memory
	//
	// Tests run with make check.
}
