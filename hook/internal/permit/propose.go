package permit

import (
	"path/filepath"
	"slices"
	"strings"

	"github.com/pawl-dev/pawl/internal/shell"
)

// manifold are the programs whose first argument says what they do.
var manifold = strings.Fields("git go npm yarn pnpm bun cargo docker podman kubectl helm make just task pip pip3 uv poetry gh glab terraform bazel gradle mvn dotnet mix composer bundle rake")

// anyPath lets all files be read and written.
var anyPath = Policy{Readable: func(Path) bool { return true }, Writable: func(Path) bool { return true }}

// Propose gives a rule that would permit a call and its like, for a person to agree to; "" when only the call itself can be agreed to.
func (w *World) Propose(c *Call) string {
	rule := w.propose(c)
	if rule == "" || w.Steers(c, Further{}) != "" { // which is asked about whatever a rule says
		return ""
	}
	r, err := w.Parse(rule, "proposed")
	if err != nil {
		return ""
	}
	if by, _ := w.AllowsScript(c, []*Rule{r}, anyPath); by == nil && !r.Allows(c) {
		return ""
	}
	return rule
}

func (w *World) propose(c *Call) string {
	switch kind := c.Kind(); {
	case kind == Command:
		return w.proposeCommand(c)
	case kind == Changing && len(c.writes) == 1:
		return "Edit(" + w.pathRule(c.writes[0]) + ")"
	case kind == Reading && len(c.reads) == 1:
		return "Read(" + w.pathRule(c.reads[0]) + ")"
	case c.tool == fetch && len(c.urls) == 1 && c.urls[0].u != nil:
		return "WebFetch(domain:" + c.urls[0].host + ")"
	case c.tool == fetch:
		return ""
	case c.agent != "":
		return c.tool + "(" + c.agent + ")"
	}
	return c.tool
}

// proposeCommand is about the one program of a script that does more than read; or, if none does, that reads.
func (w *World) proposeCommand(c *Call) string {
	more := slices.DeleteFunc(slices.Clone(c.script.Commands), func(cmd shell.Command) bool { return w.reads(&cmd, anyPath) })
	if len(more) == 0 {
		more = slices.DeleteFunc(slices.Clone(c.script.Commands), func(cmd shell.Command) bool { return !slices.Contains(manifold, cmd.Name) })
	}
	rule := ""
	for _, cmd := range more {
		if !slices.Contains(manifold, cmd.Name) || cmd.Path.Text != cmd.Name || len(cmd.Args) == 0 || !cmd.Args[0].Known || cmd.Args[0].Glob ||
			cmd.Args[0].Text == "" || strings.ContainsAny(cmd.Args[0].Text, "-*:/'\"() ") {
			return ""
		}
		this := "Bash(" + cmd.Name + " " + cmd.Args[0].Text + ":*)"
		if rule != "" && rule != this {
			return ""
		}
		rule = this
	}
	return rule
}

// pathRule says a path as rules do.
func (w *World) pathRule(p Path) string {
	if len(p.names) == 0 {
		return ""
	}
	quoted := strings.NewReplacer(`\`, `\\`, `*`, `\*`, `?`, `\?`, `[`, `\[`, `{`, `\{`)
	if rel, ok := below(w.dir, p.names[0]); ok {
		return "./" + quoted.Replace(rel)
	}
	return "/" + quoted.Replace(filepath.ToSlash(p.names[0]))
}
