package scripted

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/pawl-dev/pawl/errdefs"
	"github.com/pawl-dev/pawl/message"
	"github.com/pawl-dev/pawl/model"
)

// mostKept is how many conversations a model remembers.
const mostKept = 256

// prefixes has the last request of each conversation, by its key. It holds references only.
type prefixes struct {
	mu   sync.Mutex
	last map[string]model.Request
	keys []string // those of last; the one that was asked for least lately is first
}

// check fails when req does not begin with the request before it of the same conversation, and otherwise remembers it. The reason says which place moved.
func (p *prefixes) check(req model.Request) error {
	if req.CacheKey == "" {
		return nil
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	before, known := p.last[req.CacheKey]
	if known {
		if place := moved(before, req); place != "" {
			return errdefs.Validation.Errorf("the beginning of the request moved since the one before it (conversation %s): %s. A provider's cache would have to begin anew, at the full price. "+
				"Keep what was sent as it was, and put what changes behind it; a change that is meant is declared (hook.Generation.Moved, see model.Request.CacheKey), or the script has moves: true", req.CacheKey, place)
		}
	}
	if p.last == nil {
		p.last = map[string]model.Request{}
	}
	if i := slices.Index(p.keys, req.CacheKey); i >= 0 {
		p.keys = slices.Delete(p.keys, i, i+1)
	} else if len(p.keys) == mostKept {
		delete(p.last, p.keys[0])
		p.keys = slices.Delete(p.keys, 0, 1)
	}
	p.keys = append(p.keys, req.CacheKey)
	p.last[req.CacheKey] = req
	return nil
}

// moved names the first place where one of two requests does not begin with the other; "" when there is none. It goes by what is said; what is the very same is not looked at.
func moved(before, after model.Request) string {
	if before.System != after.System {
		return "the system prompt: " + differ(before.System, after.System)
	}
	for i := range max(len(before.Tools), len(after.Tools)) {
		switch {
		case i >= len(after.Tools):
			return fmt.Sprintf("tool %d, %q, is gone", i+1, before.Tools[i].Name)
		case i >= len(before.Tools):
			return fmt.Sprintf("tool %d, %q, is new", i+1, after.Tools[i].Name)
		}
		if a, b := before.Tools[i], after.Tools[i]; a.Name != b.Name {
			return fmt.Sprintf("tool %d: it was %q and is %q", i+1, a.Name, b.Name)
		} else if a.Description != b.Description {
			return fmt.Sprintf("tool %d, %q: its description: %s", i+1, a.Name, differ(a.Description, b.Description))
		} else if !bytes.Equal(a.Schema, b.Schema) {
			return fmt.Sprintf("tool %d, %q: its schema: %s", i+1, a.Name, differ(string(a.Schema), string(b.Schema)))
		}
	}
	if !slices.EqualFunc(before.ProviderTools, after.ProviderTools, func(a, b model.ProviderTool) bool { return a.Name == b.Name && bytes.Equal(a.Options, b.Options) }) {
		return "the tools that the provider runs: " + differ(fmt.Sprintf("%s", before.ProviderTools), fmt.Sprintf("%s", after.ProviderTools))
	}
	if !bytes.Equal(before.Output, after.Output) {
		return "the schema of the answer: " + differ(string(before.Output), string(after.Output))
	}
	for i := range min(before.Messages.Len(), after.Messages.Len()) {
		a, b := before.Messages.At(i), after.Messages.At(i)
		if a == b {
			continue
		}
		if x, y := said(a), said(b); x != y {
			return fmt.Sprintf("message %d of %d: %s", i+1, before.Messages.Len(), differ(x, y))
		}
	}
	return ""
}

// said is what a message says, in the journal's words: a session that was read again says the same in other messages.
func said(m message.Message) string { return string(m.AppendJSON(nil)) }

// differ shows where two texts part.
func differ(before, after string) string {
	const lead, most = 20, 60
	i := 0
	for i < len(before) && i < len(after) && before[i] == after[i] {
		i++
	}
	from := max(i-lead, 0)
	show := func(s string) string {
		text := strings.ToValidUTF8(s[from:min(len(s), from+most)], "")
		if from > 0 {
			text = "…" + text
		}
		if len(s) > from+most {
			text += "…"
		}
		return text
	}
	return fmt.Sprintf("it was %q and is %q", show(before), show(after))
}
