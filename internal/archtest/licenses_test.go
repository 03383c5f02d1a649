package archtest

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/pawl-dev/pawl/internal/testkit/tier"
)

var update = flag.Bool("update", false, "write docs/licenses.md")

// licenses are those that may be linked, by words that only their texts have. All let a program be given to others in binary form, with their texts beside it (scripts/notices).
var licenses = []struct {
	name string
	text *regexp.Regexp
}{
	{"Apache-2.0", regexp.MustCompile(`Apache License,? Version 2\.0`)},
	{"MPL-2.0", regexp.MustCompile(`Mozilla Public License,? [Vv]ersion 2\.0`)},
	{"ISC", regexp.MustCompile(`Permission to use, copy, modify, and(/or)? distribute this software for any purpose`)},
	{"BSD-3-Clause", regexp.MustCompile(`Redistribution and use in source and binary forms.* (Neither the name|The names? of .* may not be used|nor the names)`)},
	{"BSD-2-Clause", regexp.MustCompile(`Redistribution and use in source and binary forms`)},
	{"MIT", regexp.MustCompile(`Permission is hereby granted, free of charge, to any person obtaining a copy`)},
	{"public domain", regexp.MustCompile(`has been dedicated to the public domain`)},
	{"CC0-1.0", regexp.MustCompile(`CC0 1\.0 Universal`)},
}

// forbidding are words of licences that ask for more; a text that has one is none of the above, whatever else it has.
var forbidding = regexp.MustCompile(`(?i)GNU (Affero |Lesser |Library )?General Public License|Server Side Public License|Business Source License|Commons Clause|Elastic License|NonCommercial`)

// known are modules, of this version and no other, and files of them, that somebody has looked at: what is said of them stands in the page.
var known = map[string]string{
	"github.com/nexus-rpc/nexus-proto-annotations@v0.1.0": "none in the module (its makers' others are MIT): options of protocol buffers, which `go.temporal.io/api` needs. To be asked for upstream",
}

// aside are files that say nothing of code.
var aside = []string{"LICENSE-LOGO"}

// licensed says which licences a text is.
func licensed(text []byte) (names []string) {
	text = regexp.MustCompile(`[\s*/#]+`).ReplaceAll(text, []byte(" "))
	if forbidding.Match(text) && !bytes.Contains(text, []byte("Mozilla Public License")) { // that one names them as secondary licences
		return nil
	}
	for _, l := range licenses {
		if l.text.Match(text) && (l.name != "BSD-2-Clause" || !slices.Contains(names, "BSD-3-Clause")) {
			names = append(names, l.name)
		}
	}
	return names
}

// programs are what is released, by the directories of their modules.
var programs = []struct{ dir, pkg, name string }{{"", "./cmd/pawl", "pawl"}, {"temporal", "./cmd/pawl-worker", "pawl-worker"}}

type dependency struct {
	path, version, dir string
	of                 []string
}

// TestOnlyKnownLicencesAreLinked looks at the licence of each module that is linked into a program, on each system, as it lies in the module cache, and at docs/licenses.md, which lists them.
func TestOnlyKnownLicencesAreLinked(t *testing.T) {
	tier.SkipQuick(t, "it needs the modules of the module temporal, too")
	all := map[string]*dependency{}
	for _, p := range programs {
		for _, system := range []string{"linux", "darwin", "windows"} {
			cmd := exec.Command("go", "list", "-deps", "-f", "{{with .Module}}{{.Path}}\t{{.Version}}\t{{.Dir}}{{end}}", p.pkg)
			cmd.Dir = filepath.Join(root, p.dir)
			cmd.Env = append(os.Environ(), "GOOS="+system, "GOARCH=amd64", "CGO_ENABLED=0")
			out, err := cmd.Output()
			if err != nil {
				t.Fatalf("%s on %s: %v", p.name, system, err)
			}
			for line := range strings.Lines(string(out)) {
				f := strings.Split(strings.TrimSuffix(line, "\n"), "\t")
				if len(f) != 3 || f[0] == module || strings.HasPrefix(f[0], module+"/") {
					continue
				}
				key := f[0] + "@" + f[1]
				d := all[key]
				if d == nil {
					d = &dependency{path: f[0], version: f[1], dir: f[2]}
					all[key] = d
				}
				if !slices.Contains(d.of, p.name) {
					d.of = append(d.of, p.name)
				}
			}
		}
	}
	if len(all) < 50 {
		t.Fatalf("%d modules", len(all))
	}
	var rows []string
	for _, d := range all {
		files, err := filepath.Glob(filepath.Join(d.dir, "[LlCU][IiOoNn]*"))
		if err != nil {
			t.Fatal(err)
		}
		var names []string
		for _, file := range files {
			base := strings.ToUpper(filepath.Base(file))
			if slices.Contains(aside, base) || !strings.HasPrefix(base, "LICEN") && !strings.HasPrefix(base, "COPYING") && !strings.HasPrefix(base, "UNLICENSE") {
				continue
			}
			text, err := os.ReadFile(file)
			if err != nil {
				continue // a directory of texts of others
			}
			is := licensed(text)
			if len(is) == 0 {
				t.Errorf("%s %s: %s is no licence that may be linked", d.path, d.version, filepath.Base(file))
			}
			names = append(names, is...)
		}
		slices.Sort(names)
		if said := known[d.path+"@"+d.version]; said != "" && len(names) == 0 {
			names = []string{said}
		}
		if names = slices.Compact(names); len(names) == 0 {
			t.Errorf("%s %s has no licence", d.path, d.version)
		}
		slices.Sort(d.of)
		rows = append(rows, fmt.Sprintf("| `%s` | %s | %s | %s |\n", d.path, d.version, strings.Join(names, ", "), strings.Join(d.of, ", ")))
	}
	slices.Sort(rows)
	page := "# Licences\n\nThe modules that are linked into the programs, on Linux, macOS or Windows, with their licences as they lie in the modules. Pawl's own is in [LICENSE](../LICENSE). `./scripts/notices` writes all texts, for what is given to others in binary form.\n" +
		"This page is written by `go test ./internal/archtest -run Licences -update`; a licence that is not known there fails the test.\n\n| module | version | licence | in |\n|---|---|---|---|\n" + strings.Join(rows, "")
	file := filepath.Join(root, "docs/licenses.md")
	if *update {
		if err := os.WriteFile(file, []byte(page), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(file)
	if err != nil || string(got) != page {
		t.Errorf("docs/licenses.md is another: write it with go test ./internal/archtest -run Licences -update (%v)", err)
	}
}

func TestALicenceIsKnownByItsText(t *testing.T) {
	for text, want := range map[string]string{
		"Apache License\n   Version 2.0, January 2004":                                                                       "Apache-2.0",
		"Permission is hereby granted, free of\ncharge, to any person obtaining a copy":                                      "MIT",
		"Redistribution and use in source and binary forms, … Neither the name of X":                                         "BSD-3-Clause",
		"Redistribution and use in source and binary forms, with":                                                            "BSD-2-Clause",
		"GNU GENERAL PUBLIC LICENSE Version 3. Permission is hereby granted, free of charge, to any person obtaining a copy": "",
		"All rights reserved.": "",
	} {
		if got := strings.Join(licensed([]byte(text)), ", "); got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
}
