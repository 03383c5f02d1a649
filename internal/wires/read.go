package wires

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"strings"
)

// word is what ids and names are made of: the error texts of Anthropic and OpenAI give the pattern.
var word = regexp.MustCompile(`^[a-zA-Z0-9_-]+$`)

// pairs follows calls and their results through a request.
type pairs struct {
	open []string // calls without a result
	ever map[string]bool
}

func (p *pairs) call(id string) error {
	if p.ever[id] {
		return fmt.Errorf("two calls with the id %q", id)
	}
	if p.ever == nil {
		p.ever = map[string]bool{}
	}
	p.ever[id] = true
	p.open = append(p.open, id)
	return nil
}

func (p *pairs) result(id string) error {
	for i, open := range p.open {
		if open == id {
			p.open = append(p.open[:i:i], p.open[i+1:]...)
			return nil
		}
	}
	return fmt.Errorf("a result for %q, which is no call before it", id)
}

// closed is asked where every call has to have its result.
func (p *pairs) closed() error {
	if len(p.open) > 0 {
		return fmt.Errorf("calls without a result: %q", p.open)
	}
	return nil
}

func object(raw json.RawMessage) bool { return len(raw) > 0 && raw[0] == '{' && json.Valid(raw) }

func named(name string) error {
	if !word.MatchString(name) || len(name) > 64 {
		return fmt.Errorf("the name %q of a call", name)
	}
	return nil
}

// inline reads the bytes of a data URL; any other URL is itself.
func inline(url string) (string, error) {
	rest, data := strings.CutPrefix(url, "data:")
	if !data {
		if url == "" {
			return "", errors.New("a file without a place")
		}
		return url, nil
	}
	_, text, ok := strings.Cut(rest, ";base64,")
	b, err := base64.StdEncoding.DecodeString(text)
	if !ok || err != nil {
		return "", fmt.Errorf("the data URL %.60q", url)
	}
	return string(b), nil
}
