package cli

import (
	"context"
	"embed"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/pawl-dev/pawl"
	"github.com/pawl-dev/pawl/agent"
	"github.com/pawl-dev/pawl/model"
	"github.com/pawl-dev/pawl/model/scripted"
	"github.com/pawl-dev/pawl/sandbox"
	"github.com/pawl-dev/pawl/sandbox/fence"
)

//go:embed demo
var demoFiles embed.FS

func demoCommand(s streams) *cobra.Command {
	var c common
	var crash bool
	cmd := &cobra.Command{
		Use:   "demo",
		Short: "See an agent work, without a key and without a network",
		Long: `In a fresh temporary Go module with a failing test, the built-in scripted model finds the test, reads the code, edits it and runs the
test again. The model is a script; the loop, the tools, the stream and the journal are the real ones.

With --crash the process is killed while its edit is under way, another process resumes the run, and the journal shows that nothing was
done twice.`,
		Example: "  pawl demo\n  pawl demo --crash",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if crash {
				return demoCrash(cmd.Context(), s, c)
			}
			return demo(cmd.Context(), s, c)
		},
	}
	c.addJournal(cmd)
	cmd.Flags().BoolVar(&crash, "crash", false, "kill the process in the middle of a tool call, and resume")
	return cmd
}

const demoPrompt = "A test in this module fails. Find out why, and fix it."

// stage is where a demo plays.
type stage struct {
	dir   string
	model model.Model
}

func newStage() (*stage, error) {
	if _, err := exec.LookPath("go"); err != nil {
		return nil, usage("the demo tests a Go module: it needs the go command on PATH")
	}
	dir, err := demoProject()
	if err != nil {
		return nil, &exitError{exitFailed, err}
	}
	m, err := demoModel()
	return &stage{dir, m}, err
}

func demoModel() (model.Model, error) {
	script, err := demoFiles.ReadFile("demo/script.yaml")
	if err != nil {
		return nil, err
	}
	play, err := scripted.Parse("demo", script)
	if err != nil {
		return nil, err
	}
	return play.Model(), nil
}

func demo(ctx context.Context, s streams, c common) error {
	on, err := newStage()
	if err != nil {
		return err
	}
	store, closeStore, err := c.store(ctx)
	if err != nil {
		return err
	}
	defer func() { _ = closeStore() }()
	rt, err := pawl.New(ctx, pawl.Options{Model: on.model, ProjectRoot: on.dir, Journal: store, OutputDir: c.outputs(on.dir), Sandbox: demoSandbox()})
	if err != nil {
		return wrongUse(err)
	}
	defer func() { _ = rt.Close() }()

	fmt.Fprintf(s.out, "project  %s\nprompt   %s\n\n", on.dir, demoPrompt)
	show := newProgress(s.out, s.out, coloured(s.out))
	res, err := rt.Run(ctx, pawl.Request{Prompt: demoPrompt}, agent.WithEngineHost(&lineHost{show: show.event}))
	if err != nil {
		return &exitError{codeOf(res, err), err}
	}
	fmt.Fprintf(s.out, "\n%s after %s and %d tokens\n", res.Status, counted(res.Steps, "step"), res.Usage.Total())
	return on.close(ctx, s, c, res.ContextID)
}

// demoSandbox is the ordinary one, with caches that all demos share: their project is a new one each time, and Go would compile its own library for each.
func demoSandbox() *sandbox.Policy {
	dir, err := os.UserCacheDir()
	if err != nil || !fence.Probe().Writes.Holds {
		return nil // what a Runtime makes of that
	}
	p := pawl.DefaultSandbox()
	if p.Cache = filepath.Join(dir, "pawl", "demo"); os.MkdirAll(p.Cache, 0o700) != nil {
		return nil
	}
	if p.Cache, err = filepath.EvalSymlinks(p.Cache); err != nil {
		return nil
	}
	return &p
}

// close checks apart from the agent that the test passes, and says what to look at next.
func (on *stage) close(ctx context.Context, s streams, c common, session string) error {
	if out, err := goTest(ctx, on.dir); err != nil {
		return &exitError{exitFailed, fmt.Errorf("the agent says it is done, but go test says:\n%s%w", out, err)}
	}
	next := c.line("sessions", "show", session)
	if c.journal == "memory" { // it is gone with this process
		next = "pawl sessions list"
	}
	_, err := fmt.Fprintf(s.out, "go test passes: checked apart from the agent\n\nsession  %s\nnext     %s\n         pawl run --help\n", session, next)
	return err
}

// demoProject makes a module with a failing test in a fresh temporary directory, which stays: people want to look at it.
func demoProject() (dir string, err error) {
	if dir, err = os.MkdirTemp("", "pawl-demo-"); err != nil {
		return "", err
	}
	files := map[string]string{"stats.go": "demo/stats.go.txt", "stats_test.go": "demo/stats_test.go.txt"}
	for name, from := range files {
		b, e := demoFiles.ReadFile(from)
		err = errors.Join(err, e, os.WriteFile(filepath.Join(dir, name), b, 0o600))
	}
	return dir, errors.Join(err, os.WriteFile(filepath.Join(dir, "go.mod"), []byte("module example.com/stats\n\ngo 1.24\n"), 0o600))
}

func goTest(ctx context.Context, dir string) (string, error) {
	cmd := exec.CommandContext(ctx, "go", "test", "./...")
	cmd.Dir = dir
	out, err := cmd.CombinedOutput()
	return string(out), err
}
