package eval

import (
	"fmt"
	"maps"
	"unicode/utf8"

	"github.com/pawl-dev/pawl/pack/guard"
)

func (m *maker) contains(guard.Params) Scorer {
	texts := m.needs("patterns")
	return m.rule(func(s Sample) Score { return containing(s.Answer, texts) })
}

func (m *maker) containsAny(guard.Params) Scorer {
	texts := m.needs("patterns")
	return m.rule(func(s Sample) Score {
		if sc := containing(s.Answer, texts); sc.Value == 0 {
			return sc
		}
		return verdict("")
	})
}

func (m *maker) excludes(guard.Params) Scorer {
	texts := m.needs("patterns")
	return m.rule(func(s Sample) Score {
		for _, t := range texts {
			if containing(s.Answer, []string{t}).Pass {
				return Score{Why: fmt.Sprintf("it has %q", t)}
			}
		}
		return verdict("")
	})
}

func (m *maker) minLength(guard.Params) Scorer {
	least := m.read.Count("min", "min_characters", "min_chars")
	if least == 0 {
		m.read.Missing("min", "say how many characters are wanted")
	}
	return m.rule(func(s Sample) Score {
		n, wrong := utf8.RuneCountInString(s.Answer), ""
		if n < least {
			wrong = fmt.Sprintf("it has %d characters, at least %d are wanted", n, least)
		}
		return share(min(n, least), least, wrong)
	})
}

func (m *maker) jsonValid(p guard.Params) Scorer {
	m.read.Flag("allow_wrapped", false)
	m.read.Flag("extract_json", false)
	p = maps.Clone(p)
	p["schema"] = map[string]any{} // that all JSON fits
	s, err := m.guard("json_schema", p)
	if err != nil {
		return m.rule(func(Sample) Score { return Score{} }) // the reader tells of it
	}
	return s
}
