package cli

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"github.com/pawl-dev/pawl"
	"github.com/pawl-dev/pawl/agent"
	"github.com/pawl-dev/pawl/agent/askuser"
	"github.com/pawl-dev/pawl/internal/cli/otlp"
	"github.com/pawl-dev/pawl/message"
	"github.com/pawl-dev/pawl/model"
)

// maxFile is the largest attached file, in bytes; it is what providers take at most in a request.
const maxFile = 20 << 20

func runCommand(s streams, p Program) *cobra.Command {
	c := common{program: p}
	var files, vars []string
	cmd := &cobra.Command{
		Use:   "run [flags] PROMPT",
		Short: "One run, from a prompt to its answer",
		Long: `Runs an agent in a project directory from one prompt to its answer, with tools to read, write and search files and to run
commands. The prompt - is read from standard input. Standard output has the answer alone, or with --json one event a line.

Commands run in a sandbox that writes only the project and a temporary directory: nothing is asked there, and what would be a catastrophe
outside of it is refused. Where there is no sandbox (see pawl doctor), and with --no-sandbox, commands that do more than read, and edits, are
asked about: at a terminal there, elsewhere they wait for pawl approve.`,
		Example: `  pawl run "Why does the build fail?"
  git diff | pawl run --model anthropic/claude-sonnet-5-5 -
  pawl run --file shot.png --session ui "What is wrong in this picture?"`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) != 1 {
				return usage("want one prompt, got %d arguments: put it in quotes, or give - to read it from standard input", len(args))
			}
			return nil
		},
	}
	c.add(cmd)
	cmd.Flags().StringArrayVar(&files, "file", nil, "attach an image or a document from `PATH` (repeat)")
	cmd.Flags().StringArrayVar(&vars, "var", nil, "set a var of a graph or a script to a text: `NAME=TEXT` (repeat)")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		inputs, err := inputsOf(vars)
		if err != nil {
			return err
		}
		if c.engine == "loop" && len(vars) > 0 {
			return usage("--var: the loop has no vars: leave it out, or say with --engine what has")
		}
		c.begins = true
		code, err := run(cmd.Context(), s, c, args[0], files, inputs)
		if code == exitCompleted && err == nil {
			return nil
		}
		return &exitError{code, err}
	}
	return cmd
}

// run asks the agent something. With --json the last line is written whatever happens.
func run(ctx context.Context, s streams, c common, prompt string, files []string, inputs map[string]any) (code int, err error) {
	ctx = otlp.Caller(ctx)
	return c.command(s, func(lines *jsonl) (*agent.Result, error) {
		if err := c.handOver(); err != nil {
			return nil, err
		}
		o, err := c.options(ctx)
		if err != nil {
			return nil, err
		}
		if c.person = !c.json && prompt != "-" && s.attended(); c.person {
			o.Tools = append(o.Tools, askuser.New(nil))
		}
		m, err := request(ctx, s, prompt, files)
		if err != nil {
			return nil, err
		}
		if err := admitted(o.Model, m); err != nil {
			return nil, err
		}
		store, closeStore, err := c.store(ctx)
		if err != nil {
			return nil, err
		}
		defer func() { _ = closeStore() }()
		o.Journal = store
		leave, err := c.atTemporal(ctx, s, &o)
		if err != nil {
			return nil, err
		}
		defer leave()
		return c.drive(ctx, s, lines, o, func(ctx context.Context, rt *pawl.Runtime, opts ...agent.RunOption) (*agent.Result, error) {
			req := pawl.Request{SessionID: c.session}
			req.Message, req.Inputs = m, inputs
			return rt.Run(ctx, req, opts...)
		})
	})
}

// admitted reports what keeps a model from taking a message.
func admitted(to model.Model, m message.Message) error {
	if can, ok := model.CapabilitiesOf(to); ok {
		return wrongUse(can.Admit(model.Request{Messages: message.NewHistory(m)}))
	}
	return nil
}

// request makes the user's message of a prompt and files.
func request(ctx context.Context, s streams, prompt string, files []string) (message.Message, error) {
	if prompt == "-" {
		var err error
		if prompt, err = readInput(ctx, s.in); err != nil {
			return message.Message{}, err
		}
	}
	return said(prompt, "--file ", files)
}

// said makes a user's message of a text and files, which are named behind a mark.
func said(prompt, mark string, files []string) (message.Message, error) {
	if strings.TrimSpace(prompt) == "" {
		return message.Message{}, usage("the prompt is empty")
	}
	if len(prompt) > maxPrompt {
		return message.Message{}, usage("the prompt is over the limit of %d MiB", maxPrompt>>20)
	}
	var parts []message.Part
	for _, path := range files {
		f, err := attach(path)
		if err != nil {
			return message.Message{}, usage("%s%s: %v", mark, path, err)
		}
		parts = append(parts, f)
	}
	return message.New(message.RoleUser, append(parts, message.Text{Text: strings.ToValidUTF8(prompt, "\uFFFD")})...), nil
}

// readInput reads standard input, unless ctx ends first: a person may have forgotten to type.
func readInput(ctx context.Context, in io.Reader) (text string, err error) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		text, err = readText("standard input", in)
	}()
	select {
	case <-done:
		return text, err
	case <-ctx.Done():
		return "", ctx.Err() // the read goes on to the end of the process: there is no way to stop it
	}
}

// attach reads a file that goes along with a prompt.
func attach(path string) (message.File, error) {
	info, err := os.Stat(path)
	switch {
	case err != nil:
		return message.File{}, reason(err)
	case !info.Mode().IsRegular():
		return message.File{}, errors.New("it is not a file")
	case info.Size() > maxFile:
		return message.File{}, fmt.Errorf("it has %d bytes; the limit is %d MiB", info.Size(), maxFile>>20)
	case info.Size() == 0:
		return message.File{}, errors.New("it is empty")
	}
	b, err := os.ReadFile(path) //nolint:gosec // the user names the file
	if err != nil {
		return message.File{}, reason(err)
	}
	kind := http.DetectContentType(b)
	if named := mime.TypeByExtension(filepath.Ext(path)); strings.HasPrefix(kind, "text/plain") && strings.HasPrefix(named, "text/") {
		kind = named
	}
	kind, _, _ = strings.Cut(kind, ";")
	switch {
	case strings.HasPrefix(kind, "image/"), strings.HasPrefix(kind, "audio/"), strings.HasPrefix(kind, "text/"), kind == "application/pdf":
	case utf8.Valid(b) && bytes.IndexByte(b, 0) < 0: // whatever it is called: YAML, SQL, a script
		kind = "text/plain"
	default:
		return message.File{}, fmt.Errorf("models take images, PDF, sound and text; this is %s", kind)
	}
	return message.File{MIME: kind, Name: filepath.Base(path), Data: string(b)}, nil
}
