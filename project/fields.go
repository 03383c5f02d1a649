package project

import (
	"cmp"
	"encoding/json"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/pawl-dev/pawl/hook"
	"github.com/pawl-dev/pawl/hook/permission"
	"github.com/pawl-dev/pawl/internal/steady"
	"github.com/pawl-dev/pawl/model"
	"github.com/pawl-dev/pawl/sandbox"
	"github.com/pawl-dev/pawl/sandbox/fence"
)

func (d *decoder) model(n node) {
	v, ok := d.text(n, "model")
	switch {
	case !ok:
	case d.claude && !strings.Contains(v, "/"):
		d.problem(Problem{d.place(n.at), fmt.Sprintf("the model %q names no provider: it has no effect", clip(v)), `say it in .agents/settings.json: "model": "anthropic/…"`})
	default:
		name, e := v, entry{key: "model", single: true}
		if file, ok := strings.CutPrefix(v, scriptedModel); ok && file != "" {
			if file, ok = d.path(n, "model", file); !ok {
				return
			}
			name = scriptedModel + file
			e.loosens = func(s *Settings) bool { return s.Model != name } // it is a program: it says which tools are called
		}
		e.apply = func(s *Settings) { s.Model = name }
		d.add(n, e)
	}
}

func (d *decoder) retries(n node) {
	var v int
	number, _ := n.value.(json.Number)
	err := json.Unmarshal([]byte(number), &v)
	switch {
	case d.claude:
		d.problem(Problem{d.place(n.keyAt), "retries has no effect in this file", "say it in .agents/settings.json"})
	case err != nil || v < 0 || v > steady.MaxRetries:
		d.wrong(n, "retries", fmt.Sprintf("a whole number from 0 (no call is tried again) to %d", steady.MaxRetries))
	default:
		d.add(n, entry{key: "retries", single: true, apply: func(s *Settings) { s.Retries = v }})
	}
}

func (d *decoder) reasoning(n node) {
	v, ok := d.text(n, "reasoning")
	level := model.ReasoningLevel(v)
	switch {
	case !ok:
	case d.claude:
		d.problem(Problem{d.place(n.keyAt), "reasoning has no effect in this file", "say it in .agents/settings.json"})
	case level != model.ReasoningDefault && !slices.Contains(model.ReasoningLevels(), level):
		d.fail(Problem{d.place(n.at), fmt.Sprintf("reasoning %q is no level", clip(v)), fmt.Sprintf("want one of %q", model.ReasoningLevels())})
	default:
		d.add(n, entry{key: "reasoning", single: true, apply: func(s *Settings) { s.Reasoning = level }})
	}
}

// providerTools are run elsewhere, unasked, with what they are told.
func (d *decoder) providerTools(n node) {
	d.texts(n, "providerTools", func(n node, v string) {
		if d.claude {
			d.problem(Problem{d.place(n.at), "providerTools has no effect in this file", "say it in .agents/settings.json"})
			return
		}
		d.listed(n, "providerTools", v, true, func(s *Settings) *[]string { return &s.ProviderTools })
	})
}

// scriptedModel begins the name of a model that is a file.
const scriptedModel = "scripted/"

func (d *decoder) compat(n node) {
	v, ok := d.boolean(n, "compat")
	switch {
	case ok && d.claude:
		d.problem(Problem{d.place(n.keyAt), "compat has no effect in this file", "say it in .agents/settings.json"})
	case ok:
		d.add(n, entry{key: "compat", single: true, apply: func(s *Settings) { s.Compat = v }})
	}
}

func (d *decoder) respectGitignore(n node) {
	if v, ok := d.boolean(n, "respectGitignore"); ok {
		d.add(n, entry{key: "respectGitignore", single: true, apply: func(s *Settings) { s.Gitignore = v }})
	}
}

// disableAllHooks takes hooks of the user's away, which may stand guard, or puts them back.
func (d *decoder) disableAllHooks(n node) {
	if v, ok := d.boolean(n, "disableAllHooks"); ok {
		d.add(n, entry{
			key: "disableAllHooks", single: true, apply: func(s *Settings) { s.disableAllHooks = v },
			loosens: func(s *Settings) bool { return s.disableAllHooks != v },
		})
	}
}

func (d *decoder) disallowedTools(n node) {
	d.texts(n, "disallowedTools", func(n node, v string) {
		d.listed(n, "disallowedTools", v, false, func(s *Settings) *[]string { return &s.DisallowedTools })
	})
}

func (d *decoder) env(n node) {
	d.textMap(n, "env", func(n node, v string) {
		name := n.name
		if name == "" || strings.ContainsAny(name, "=\x00") || strings.Contains(v, "\x00") {
			d.fail(Problem{d.place(n.keyAt), fmt.Sprintf("%q is no name or value of a variable", clip(name)), "correct it"})
			return
		}
		d.add(n, entry{
			key: "env." + name, shown: `"…"`, single: true, apply: func(s *Settings) { s.Env[name] = v },
			loosens: func(s *Settings) bool { old, ok := s.Env[name]; return !ok || old != v },
		})
	})
}

// rules reads permission rules. One that can't be understood fails if it forbids or asks; one that allows is left out.
func (d *decoder) rules(n node, verdict hook.Verdict) {
	key := "permissions." + verdict.String()
	d.texts(n, key, func(n node, v string) {
		rule := permission.Rule{Verdict: verdict, Text: v, Place: d.place(n.at).String()}
		if _, err := permission.New(permission.Config{Dir: d.root, Rules: []permission.Rule{rule}}); err != nil {
			p := Problem{d.place(n.at), fmt.Sprintf("the rule %q can't be understood", clip(v)), said(err, rule.Place)}
			if verdict == hook.Allow {
				d.problem(p)
			} else {
				d.fail(p)
			}
			return
		}
		rules := []permission.Rule{rule}
		if d.outer {
			rules = rule.From(d.root)
		}
		e := entry{key: key, same: rules[0].Text, apply: func(s *Settings) { s.Permissions.Rules = append(s.Permissions.Rules, rules...) }}
		if verdict == hook.Allow {
			e.loosens = func(*Settings) bool { return true }
		}
		d.add(n, e)
	})
}

// said is what an error says behind a place.
func said(err error, place string) string {
	s := err.Error()
	if _, rest, ok := strings.Cut(s, place+": "); ok {
		s = rest
	}
	return strings.TrimPrefix(s, "hook: permission: ")
}

func (d *decoder) mode(n node) {
	v, ok := d.text(n, "permissions.defaultMode")
	if !ok {
		return
	}
	mode := permission.Mode(v)
	if !slices.Contains(permission.Modes(), mode) {
		var names []string
		for _, m := range permission.Modes() {
			names = append(names, string(m))
		}
		p := Problem{d.place(n.at), fmt.Sprintf("there is no mode %q", clip(v)), "want one of " + strings.Join(names, ", ")}
		if d.claude {
			d.problem(p)
		} else {
			d.fail(p)
		}
		return
	}
	e := entry{key: "permissions.defaultMode", single: true, apply: func(s *Settings) { s.Permissions.Mode = mode }}
	if mode != permission.ModePlan {
		e.loosens = func(s *Settings) bool { return mode.Looser(s.Permissions.Mode) }
	}
	d.add(n, e)
}

func (d *decoder) taint(n node) {
	v, ok := d.text(n, "permissions.taint")
	if !ok {
		return
	}
	taint := permission.Taint(v)
	if !slices.Contains(permission.Taints(), taint) {
		d.fail(Problem{d.place(n.at), fmt.Sprintf("there is no taint %q", clip(v)), "want one of off, ask, deny"})
		return
	}
	d.add(n, entry{
		key: "permissions.taint", single: true, apply: func(s *Settings) { s.Permissions.Taint = taint },
		loosens: func(s *Settings) bool { return taint.Looser(s.Permissions.Taint) },
	})
}

// absolute is a path: ~ is the home directory, if there is one, anything else is relative to the project.
func absolute(root, home, v string) string {
	rest, below := strings.CutPrefix(v, "~/")
	switch {
	case home != "" && (below || v == "~"):
		return filepath.Join(home, filepath.FromSlash(strings.TrimPrefix(rest, "~")))
	case filepath.IsAbs(v):
		return filepath.Clean(v)
	}
	return filepath.Join(root, filepath.FromSlash(v))
}

// path is absolute, if it can be understood.
func (d *decoder) path(n node, key, v string) (string, bool) {
	switch {
	case strings.ContainsRune(v, 0):
		d.fail(Problem{d.place(n.at), key + " has a NUL in it", "remove it"})
		return "", false
	case (strings.HasPrefix(v, "~/") || v == "~") && d.home == "":
		d.fail(Problem{d.place(n.at), fmt.Sprintf("%s: %q: there is no home directory", key, clip(v)), "write an absolute path"})
		return "", false
	}
	return absolute(d.root, d.home, v), true
}

func (d *decoder) directories(n node) {
	const key = "permissions.additionalDirectories"
	d.texts(n, key, func(n node, v string) {
		if path, ok := d.path(n, key, v); ok {
			d.listed(n, key, path, true, func(s *Settings) *[]string { return &s.Directories })
		}
	})
}

func (d *decoder) paths(n node, name string, widens bool, list func(*Settings) *[]string) {
	key := "sandbox." + name
	d.texts(n, key, func(n node, v string) {
		if path, ok := d.path(n, key, v); ok {
			d.listed(n, key, path, widens, list)
		}
	})
}

func (d *decoder) sandboxEnabled(n node) {
	v, ok := d.boolean(n, "sandbox.enabled")
	if !ok {
		return
	}
	e := entry{key: "sandbox.enabled", single: true, apply: func(s *Settings) { s.Sandbox.Off = !v }}
	if !v {
		e.loosens = func(s *Settings) bool { return !s.Sandbox.Off }
	}
	d.add(n, e)
}

func (d *decoder) sandboxEnv(n node) {
	d.texts(n, "sandbox.env", func(n node, v string) {
		if name, _, _ := strings.Cut(v, "="); name == "" || strings.ContainsRune(v, 0) {
			d.fail(Problem{d.place(n.at), fmt.Sprintf("sandbox.env: %q has no name", clip(v)), "want NAME or NAME=value"})
			return
		}
		d.listed(n, "sandbox.env", v, true, func(s *Settings) *[]string { return &s.Sandbox.Env })
		if name, _, ok := strings.Cut(v, "="); ok {
			d.entries[len(d.entries)-1].shown = canonical(name + "=…")
		}
	})
}

// network is a limit when it names hosts, unless it says that all can be reached all the same: else the hosts would limit nothing.
func (d *decoder) network(n node) {
	d.object(n, "sandbox.network", ofNetwork)
	has := func(name string) int {
		return slices.IndexFunc(n.children, func(c node) bool { return c.name == name && c.kind != 'n' })
	}
	if hosts := has("hosts"); n.kind == '{' && hosts >= 0 && has("all") < 0 {
		only := n.children[hosts]
		only.value = false
		d.networkAll(only)
	}
}

func (d *decoder) networkAll(n node) {
	v, ok := d.boolean(n, "sandbox.network.all")
	if !ok {
		return
	}
	e := entry{key: "sandbox.network.all", single: true, apply: func(s *Settings) { s.Sandbox.Network.All = v }}
	if v {
		e.loosens = func(s *Settings) bool { return !s.Sandbox.Network.All }
	}
	d.add(n, e)
}

func (d *decoder) networkHosts(n node) {
	d.texts(n, "sandbox.network.hosts", func(n node, v string) {
		if !fence.ValidHost(v) {
			d.fail(Problem{d.place(n.at), fmt.Sprintf("sandbox.network.hosts: %q is no host", clip(v)), "want example.com, *.example.com or an address, without scheme and port"})
			return
		}
		d.listed(n, "sandbox.network.hosts", v, true, func(s *Settings) *[]string { return &s.Sandbox.Network.Hosts })
	})
}

func (d *decoder) cpu(n node) {
	const key = "sandbox.limits.cpu"
	v, ok := d.duration(n, key)
	if !ok {
		return
	}
	d.add(n, entry{
		key: key, single: true, apply: func(s *Settings) { s.Sandbox.Limits.CPU = v },
		loosens: func(s *Settings) bool { return v > cmp.Or(s.Sandbox.Limits.CPU, sandbox.DefaultCPU) },
	})
}

// limit reads a number of which more lets more happen. 0 is the sandbox's default.
func (d *decoder) limit(n node, standard uint64, field func(*Settings) *uint64) {
	key := "sandbox.limits." + n.name
	var v uint64
	number, _ := n.value.(json.Number)
	if err := json.Unmarshal([]byte(number), &v); err != nil {
		d.wrong(n, key, "a whole number, 0 or more")
		return
	}
	d.add(n, entry{
		key: key, single: true, apply: func(s *Settings) { *field(s) = v },
		loosens: func(s *Settings) bool { return cmp.Or(v, standard) > cmp.Or(*field(s), standard) },
	})
}

// duration reads a text with a unit, or a number of seconds.
func (d *decoder) duration(n node, key string) (time.Duration, bool) {
	var v time.Duration
	var err error
	switch x := n.value.(type) {
	case string:
		v, err = time.ParseDuration(x)
	case json.Number:
		var seconds float64
		if seconds, err = x.Float64(); err == nil && seconds <= 1e9 {
			v = time.Duration(seconds * float64(time.Second))
			break
		}
		err = fmt.Errorf("%s is no number of seconds", x)
	default:
		err = fmt.Errorf("it is neither a text nor a number")
	}
	if err != nil || v <= 0 {
		d.wrong(n, key, `a time such as "30s", or a number of seconds, more than 0`)
		return 0, false
	}
	return v, true
}
