package permission

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/pawl-dev/pawl/errdefs"
	"github.com/pawl-dev/pawl/hook"
	"github.com/pawl-dev/pawl/internal/shell"
	"github.com/pawl-dev/pawl/tool"
)

// SafetyHook looks at a tool call before it runs. nil lets it through, an [*AskError] asks a person, any other error denies: its text is what the model is told.
// It may be called from several goroutines.
type SafetyHook func(ctx context.Context, toolName string, params map[string]any) error

// AskError is the error of a [SafetyHook] that wants a person to decide.
type AskError struct{ Reason string }

// Error gives the reason.
func (e *AskError) Error() string { return e.Reason }

// Safety is the middleware that asks check before each tool call; nil is [DefaultSafetyHook]. A panic of check denies, and so does input that is no JSON object.
// Safety never allows: a call that it lets through is still the others' to judge.
func Safety(check SafetyHook) hook.Middleware {
	if check == nil {
		check = DefaultSafetyHook
	}
	return hook.Middleware{Name: "safety", PreToolUse: func(ctx context.Context, u *hook.ToolUse) (d hook.Decision, _ error) {
		defer func() {
			if p := recover(); p != nil {
				d = hook.Denied(fmt.Sprintf("the safety check panicked: %v", p))
			}
		}()
		params := map[string]any{}
		if u.Call.Input != "" {
			if err := json.Unmarshal([]byte(u.Call.Input), &params); err != nil {
				return hook.Denied(fmt.Sprintf("the safety check can't read the input of %s: %v", u.Call.Name, err)), nil
			}
		}
		err := check(context.WithValue(ctx, definitionKey{}, u.Tool), u.Call.Name, params)
		var ask *AskError
		switch {
		case err == nil:
			return hook.Decision{}, nil
		case errors.As(err, &ask):
			return hook.Asking(ask.Reason), nil
		}
		return hook.Denied(err.Error()), nil
	}}
}

type definitionKey struct{}

// DefaultSafetyHook is [SafetyIn] the working directory of the process.
func DefaultSafetyHook(ctx context.Context, toolName string, params map[string]any) error {
	dir, err := os.Getwd()
	if err != nil {
		return errdefs.PolicyDenied.Errorf("safety: the working directory is not known: %w", err)
	}
	return SafetyIn(dir)(ctx, toolName, params)
}

// SafetyIn is the safety check of a project that lies in dir. It judges what a call would do, not the words in it.
//
// further are more directories that may be written, absolute: what lies in them is judged as the project is, also by other names that they have now.
//
// It denies what would destroy or lastingly change things outside of these and of the directories for temporary files: files, devices, accounts, other processes, power. It
// asks about more privileges, code that comes from elsewhere, publishing, the project as a whole, history or changes that would be lost, and about what can't be told: a
// command or a path that is not known. Everything else passes.
//
// A program that it doesn't know may start another one: words of it that name one which may do harm are judged as a command, too. Programs that only speak of others (man, grep,
// echo, apt) are known.
//
// Judged are the command of a tool named bash in any case, which starts in its workdir, and the path or file_path of tools that write: write and edit, and inside
// [Safety] every tool that doesn't say that it only reads. Programs that are started (make, npm run, ./script.sh) are not looked into, nor are links that are there already:
// that is the sandbox's business, which this check does not replace.
func SafetyIn(dir string, further ...string) SafetyHook {
	f := newFence(dir, further)
	return func(ctx context.Context, toolName string, params map[string]any) error {
		name := strings.ToLower(toolName)
		if name == "bash" {
			return f.command(params)
		}
		def, known := ctx.Value(definitionKey{}).(tool.Definition)
		if name != "write" && name != "edit" && (!known || def.ReadOnly) {
			return nil
		}
		j := &examiner{fence: f}
		for _, key := range []string{"path", "file_path"} {
			p, ok := params[key].(string)
			if !ok || p == "" {
				continue
			}
			if rest, ok := strings.CutPrefix(p, "~/"); ok {
				p = filepath.Join(f.home, rest)
			}
			j.path(toolName, overwrites, shell.Word{Text: p, Known: true}, shell.Word{Text: f.dir, Known: true})
		}
		return j.verdict()
	}
}

// command judges the command of bash.
func (f *fence) command(params map[string]any) error {
	command, ok := params["command"].(string)
	if !ok {
		if params["command"] == nil {
			return nil // there is nothing that could run
		}
		return errdefs.PolicyDenied.Errorf("safety: the command is no text")
	}
	dir := f.dir
	for _, key := range []string{"workdir", "working_directory"} {
		if w, ok := params[key].(string); ok && w != "" {
			if dir = w; !filepath.IsAbs(w) {
				dir = filepath.Join(f.dir, w)
			}
		}
	}
	s, err := shell.Read(command, shell.Options{Dir: dir, Env: f.env, Plain: func(name string) bool { return rules()[name] != nil }})
	j := &examiner{fence: f}
	j.script(s)
	if err != nil {
		j.ask("the command can't be read: %v", err)
	}
	return j.verdict()
}

// An examiner gathers what speaks against a call. The gravest counts, and of these the first.
type examiner struct {
	*fence
	denied, asked string
	remote        bool
	read          *shell.Script
	links         map[string]string // links that the script makes
}

func (j *examiner) deny(format string, args ...any) {
	if j.remote {
		j.ask(format, args...)
		return
	}
	if j.denied == "" {
		j.denied = fmt.Sprintf(format, args...)
	}
}

func (j *examiner) ask(format string, args ...any) {
	if j.asked == "" {
		j.asked = fmt.Sprintf(format, args...)
	}
}

func (j *examiner) verdict() error {
	switch {
	case j.denied != "":
		return errdefs.PolicyDenied.Errorf("safety: %s", j.denied)
	case j.asked != "":
		return &AskError{Reason: j.asked}
	}
	return nil
}

// script judges all that a command would execute.
func (j *examiner) script(s *shell.Script) {
	j.read = s
	for i := range s.Commands {
		c := &s.Commands[i]
		j.remote = slices.ContainsFunc(c.By, shell.Elsewhere)
		j.environment(c.Env)
		for _, r := range c.Redirects {
			if r.Write {
				j.path("a redirection", overwrites, r.Path, c.Dir)
			} else if strings.HasPrefix(r.Path.Text, "/dev/tcp/") || strings.HasPrefix(r.Path.Text, "/dev/udp/") {
				j.ask("it reads from the network: %s", r.Path.Text)
			}
		}
		switch {
		case c.Func:
			if c.Async && c.Again {
				j.deny("the function %s starts itself again and again: a fork bomb", c.Name)
			}
		case slices.Contains(c.By, "sftp"):
			j.transfer(c)
		case c.Name != "":
			j.program(c)
		}
	}
	j.remote = false
	j.environment(s.Assigns)
	if len(s.Doubts) > 0 {
		j.ask("it can't be told all that would run: %s", strings.Join(s.Doubts, "; "))
	}
}

// environment judges variables that make other programs run something.
func (j *examiner) environment(env []shell.Assign) {
	for _, a := range env {
		v := a.Value.Text
		switch a.Name {
		case "LD_PRELOAD", "LD_AUDIT", "DYLD_INSERT_LIBRARIES", "BASH_ENV", "ENV", "PYTHONSTARTUP", "PERL5OPT", "RUBYOPT", "GIT_EXEC_PATH", "GIT_CONFIG_GLOBAL", "GIT_CONFIG_SYSTEM", "PS1", "PS4", "LD_LIBRARY_PATH":
			if a.Name == "LD_LIBRARY_PATH" && !j.isTemp(v) || v == "" && a.Value.Known || v == "/dev/null" || strings.HasPrefix(a.Name, "PS") && len(a.Name) == 3 && !strings.ContainsAny(v, "$`") || a.Name == "ENV" && !strings.Contains(v, "/") || strings.HasSuffix(a.Name, "OPT") && !strings.Contains(v, "-r") && !strings.Contains(v, "-M") && !strings.Contains(v, "-e") {
				continue
			}
			j.ask("%s=%s makes programs load code", a.Name, v)
		case "NODE_OPTIONS":
			if loads(v) {
				j.ask("NODE_OPTIONS=%s makes node load code", v)
			}
		case "PATH":
			first, _, _ := strings.Cut(v, ":")
			if first == "." || j.isTemp(first) || first == "" && a.Value.Known {
				j.ask("PATH=%s changes which programs the names stand for", v)
			}
		}
		key, ok := strings.CutPrefix(strings.ReplaceAll(strings.ToLower(a.Name), "_", "-"), "npm-config-")
		switch {
		case !ok || !slices.Contains(runningConfig, key) || v == "" && a.Value.Known || v == "/dev/null":
		case key == "node-options" && a.Value.Known && !loads(v):
		default:
			j.ask("%s=%s makes npm run another program", a.Name, v)
		}
	}
}

// loads reports whether options of node make it load code.
func loads(options string) bool {
	return strings.Contains(options, "-r ") || strings.Contains(options, "--require") || strings.Contains(options, "--import") || strings.Contains(options, "loader")
}
