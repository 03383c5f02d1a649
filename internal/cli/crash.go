package cli

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/pawl-dev/pawl"
	"github.com/pawl-dev/pawl/agent"
	"github.com/pawl-dev/pawl/journal"
	"github.com/pawl-dev/pawl/tool"
	"github.com/pawl-dev/pawl/tool/builtin"
)

// The demo that dies: a process is killed after its edit took effect and before the result is on record, and another one resumes.

// fatalCall is the call in whose middle the process dies.
const fatalCall = "fix"

// act is what a process of the crash demo is told, as JSON in its only argument.
type act struct {
	Dir, Journal, Session, Ledger string
	Dies                          bool
}

func demoCrash(ctx context.Context, s streams, c common) error {
	if c.journal == "memory" {
		return usage("--crash --journal memory: what is only in memory dies with the process; leave the journal out, or name a file")
	}
	on, err := newStage()
	if err != nil {
		return err
	}
	where := c.journal
	if where == "" {
		where = "sqlite:" + pawl.DefaultJournal()
	}
	a := act{Dir: on.dir, Journal: where, Session: "demo-" + strings.ToLower(rand.Text()[:10]), Ledger: on.dir + ".ledger", Dies: true}
	defer func() { _ = os.Remove(a.Ledger) }()

	fmt.Fprintf(s.out, "project  %s\nprompt   %s\n\n", on.dir, demoPrompt)
	if err := a.play(ctx, s); !killed(err) {
		return &exitError{exitFailed, fmt.Errorf("the first process was to be killed, but: %w", err)}
	}
	fmt.Fprintf(s.out, "\n✗ the process was killed (SIGKILL): the edit was made, its result is not on record\n\nanother process: pawl resume %s\n\n", a.Session)
	a.Dies = false
	if err := a.play(ctx, s); err != nil {
		return &exitError{exitFailed, fmt.Errorf("the second process was to finish the run, but: %w", err)}
	}
	if err := a.account(ctx, s); err != nil {
		return err
	}
	return on.close(ctx, s, c, a.Session)
}

// play runs a process to its end.
func (a act) play(ctx context.Context, s streams) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	arg, err := json.Marshal(a)
	if err != nil {
		return err
	}
	cmd := exec.CommandContext(ctx, self, "demo-act", string(arg)) //nolint:gosec // this very program
	cmd.Stdout, cmd.Stderr = s.out, s.err
	return cmd.Run()
}

func killed(err error) bool {
	var exit *exec.ExitError
	return errors.As(err, &exit) && exit.ExitCode() == -1
}

// account shows from the journal, and from what the tools themselves wrote down, that nothing was done twice.
func (a act) account(ctx context.Context, s streams) error {
	store, closeStore, err := (&common{journal: a.Journal}).store(ctx)
	if err != nil {
		return err
	}
	defer func() { _ = closeStore() }()
	ledger, err := os.ReadFile(a.Ledger)
	if err != nil {
		return err
	}
	ran := map[string]int{}
	for call := range strings.FieldsSeq(string(ledger)) {
		ran[call]++
	}
	replies, calls, repeated, lost := 0, 0, 0, 0
	fmt.Fprintln(s.out, "\nthe journal says:")
	for e, err := range store.Read(ctx, a.Session, 0) {
		if err != nil {
			return err
		}
		switch d := e.Data.(type) {
		case journal.Resumed:
			fmt.Fprintf(s.out, "  #%-3d resumed by another process\n", e.Seq)
		case journal.ModelFinished:
			replies++
			fmt.Fprintf(s.out, "  #%-3d reply %d\n", e.Seq, replies)
		case journal.ToolFinished:
			calls++
			fmt.Fprintf(s.out, "  #%-3d %s %s: %s, ran %d time\n", e.Seq, d.Name, d.Call, d.Outcome, ran[d.Call])
			if ran[d.Call] > 1 {
				repeated++
			} else if ran[d.Call] == 0 {
				lost++
			}
		}
	}
	fmt.Fprintf(s.out, "replies: %d, tool calls: %d, repeated: %d, lost: %d\n", replies, calls, repeated, lost)
	if repeated+lost > 0 || calls != len(ran) {
		return &exitError{exitFailed, fmt.Errorf("the tools were called %v, which is not what the journal says", ran)}
	}
	return nil
}

// demoActCommand is one of the crash demo's processes. It is not for people.
func demoActCommand(s streams) *cobra.Command {
	return &cobra.Command{
		Use: "demo-act", Hidden: true, Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			var a act
			if err := json.Unmarshal([]byte(args[0]), &a); err != nil {
				return usage("demo-act: %v", err)
			}
			return a.run(cmd.Context(), s)
		},
	}
}

func (a act) run(ctx context.Context, s streams) error {
	m, err := demoModel()
	if err != nil {
		return err
	}
	ws, err := builtin.Open(a.Dir)
	if err != nil {
		return wrongUse(err)
	}
	defer func() { _ = ws.Close() }()
	var tools []tool.Tool
	for _, t := range ws.Tools() {
		tools = append(tools, witness{t, a})
	}
	store, closeStore, err := (&common{journal: a.Journal}).store(ctx)
	if err != nil {
		return err
	}
	defer func() { _ = closeStore() }()
	rt, err := pawl.New(ctx, pawl.Options{Model: m, ProjectRoot: a.Dir, NoBuiltins: true, Tools: tools, Journal: store, Sandbox: demoSandbox()})
	if err != nil {
		return wrongUse(err)
	}
	defer func() { _ = rt.Close() }()
	host := agent.WithEngineHost(&lineHost{show: newProgress(s.out, s.out, coloured(s.out)).event})
	var res *agent.Result
	if a.Dies {
		res, err = rt.Run(ctx, pawl.Request{Prompt: demoPrompt, SessionID: a.Session}, host)
	} else {
		res, err = rt.Resume(ctx, a.Session, host)
	}
	if err != nil {
		return &exitError{codeOf(res, err), err}
	}
	return nil
}

// witness is a tool that writes down each time that it runs, apart from the journal, and that dies when it is its time.
type witness struct {
	tool.Tool
	act act
}

func (w witness) Execute(ctx context.Context, input json.RawMessage) (tool.Result, error) {
	call := tool.FromContext(ctx).ID
	f, err := os.OpenFile(filepath.Clean(w.act.Ledger), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return tool.Result{}, err
	}
	_, err = fmt.Fprintln(f, call)
	if err = errors.Join(err, f.Sync(), f.Close()); err != nil {
		return tool.Result{}, err
	}
	res, err := w.Tool.Execute(ctx, input)
	if w.act.Dies && call == fatalCall {
		if self, e := os.FindProcess(os.Getpid()); e == nil {
			_ = self.Kill()
			select {}
		}
	}
	return res, err
}
