package engine_test

import (
	"testing"

	"github.com/pawl-dev/pawl/engine"
)

func TestARunAcceptsTheMediaTypesThatItsCallerTakes(t *testing.T) {
	for name, c := range map[string]struct {
		modes []string
		mode  string
		want  bool
	}{
		"none is all":                {nil, "audio/wav", true},
		"empty is all":               {[]string{}, "audio/wav", true},
		"the same":                   {[]string{"text/plain"}, "text/plain", true},
		"one of them":                {[]string{"audio/wav", "text/plain"}, "text/plain", true},
		"in another case":            {[]string{"TEXT/Plain"}, "text/PLAIN", true},
		"with a parameter":           {[]string{" text/plain ; charset=utf-8"}, "text/plain", true},
		"asked with a parameter":     {[]string{"text/plain"}, "text/plain; charset=utf-8", true},
		"a range":                    {[]string{"text/*"}, "text/plain", true},
		"a range with a parameter":   {[]string{"Text/*;q=0.5"}, "text/plain", true},
		"everything":                 {[]string{"*/*"}, "text/plain", true},
		"another":                    {[]string{"text/html"}, "text/plain", false},
		"another range":              {[]string{"audio/*"}, "text/plain", false},
		"a type that only begins so": {[]string{"text/*"}, "textual/plain", false},
		"no media type":              {[]string{"text", ""}, "text/plain", false},
	} {
		if got := (engine.Run{OutputModes: c.modes}).Accepts(c.mode); got != c.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}
