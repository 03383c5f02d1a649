package shell

import (
	"strings"

	"github.com/pawl-dev/pawl/internal/lazy"
)

// Programs that run commands of their own settings: fzf and hg.

// finderMark is what fzf replaces by what was chosen, or typed.
var finderMark = lazy.Regexp(`\{[+fsnr]*(q|\d*|-\d+)?(\.\.-?\d*)?\}`)

// finderAction are actions of fzf that run a command, which stands in brackets of any kind or, behind a colon, up to the end.
var finderAction = lazy.Regexp(`(?s)\b(?:execute|execute-silent|execute-multi|become|reload|reload-sync|preview|transform(?:-[a-z]+)*|change-preview)(?:\((.*?)\)|\[(.*?)\]|\{(.*?)\}|<(.*?)>|~(.*?)~|!(.*?)!|@(.*?)@|#(.*?)#|\$(.*?)\$|%(.*?)%|\^(.*?)\^|&(.*?)&|\*(.*?)\*|;(.*?);|/(.*?)/|\|(.*?)\||:(.*))(?:[+,]|$)`)

// finder reads the commands that fzf runs: for its preview, and those of keys and events.
func (r *reader) finder(f frame, c Command) {
	f = f.fork()
	f.marked = true
	run := func(w Word) {
		w.Text = finderMark.Get().ReplaceAllString(w.Text, "{}")
		r.text(f, w)
	}
	for i := range c.Args {
		name, w, ok := valueOf(c.Args, i)
		switch {
		case !ok:
		case name == "--preview", name == "-c" && c.Name == "sk", name == "--cmd", name == "-i" && c.Name == "sk":
			run(w)
		case name == "--with-shell":
			r.doubt("%s runs its commands by %s", c.Name, short(w, w.Text))
		case name == "--bind":
			found := finderAction.Get().FindAllStringSubmatch(w.Text, -1)
			for _, m := range found {
				run(Word{Text: strings.Join(m[1:], ""), Known: w.Known}) // one of them matched
			}
			if !w.Known && len(found) == 0 {
				r.doubt("%s binds a key to %s, which is not known", c.Name, short(w, w.Text))
			}
		}
	}
}

// valueOf gives the option at i with its value: --name=value, --name value, -n value. false when it has none.
func valueOf(args []Word, i int) (name string, value Word, ok bool) {
	a := args[i]
	if name, v, eq := strings.Cut(a.Text, "="); eq && strings.HasPrefix(a.Text, "--") {
		return name, Word{Text: v, Known: a.Known, Glob: a.Glob, Source: a.Source}, true
	}
	if !a.Known || !strings.HasPrefix(a.Text, "-") || i+1 >= len(args) {
		return "", Word{}, false
	}
	return a.Text, args[i+1], true
}

// mercurial reads the settings of hg that are commands, or load code.
func (r *reader) mercurial(f frame, c Command) {
	for i := range c.Args {
		name, w, ok := valueOf(c.Args, i)
		switch {
		case !ok:
		case name == "--config":
			key, v, _ := strings.Cut(w.Text, "=")
			r.mercurialSetting(f, strings.ToLower(strings.TrimSpace(key)), Word{Text: strings.TrimSpace(v), Known: w.Known, Source: w.Source})
		case name == "--ssh" || name == "-e", name == "--remotecmd", name == "--tool" && strings.Contains(w.Text, "/"):
			r.text(f, w)
		}
	}
}

func (r *reader) mercurialSetting(f frame, key string, v Word) {
	section, name, _ := strings.Cut(key, ".")
	bang := strings.HasPrefix(v.Text, "!")
	switch {
	case v.Known && v.Text == "":
	case section == "alias" && (bang || !v.Known), section == "hooks", section == "pager" && name == "pager", section == "extdiff", section == "merge-tools" && strings.HasSuffix(name, ".executable"),
		section == "ui" && (name == "editor" || name == "ssh" || name == "merge"), section == "editor", section == "diff-tools":
		if strings.HasPrefix(v.Text, "python:") {
			r.doubt("hg runs code in %s", clip(v.Text))
			return
		}
		r.text(f.relabel("hg "+key), Word{Text: strings.TrimPrefix(v.Text, "!"), Known: v.Known, Source: v.Source})
	case section == "extensions":
		r.doubt("hg loads code from %s", short(v, v.Text))
	}
}
