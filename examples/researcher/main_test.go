package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pawl-dev/pawl/internal/component"
	"github.com/pawl-dev/pawl/internal/readme"
	"github.com/pawl-dev/pawl/internal/testkit/tier"
	"github.com/pawl-dev/pawl/sandbox/fence"
)

func TestMain(m *testing.M) { readme.Main(m, main) }

func TestAReportHasItsSources(t *testing.T) {
	tier.SkipQuick(t, "it needs a sandbox")
	if can := fence.Probe().Hosts; !can.Holds {
		component.Absent(t, "no sandbox: "+can.Why, "apt-get install bubblewrap")
	}
	page := readme.Open(t, "examples/researcher")
	page.Run()
	files, err := filepath.Glob(filepath.Join(page.Dir, "tmp/*/report.md"))
	if err != nil || len(files) != 1 {
		t.Fatal(files, err)
	}
	report, err := os.ReadFile(files[0])
	if err != nil {
		t.Fatal(err)
	}
	for _, part := range []string{"rolled in kelp", "deeper than sharks", "http://" + page.Address["127.0.0.1:7294"] + "/pages/seals.md"} {
		if !strings.Contains(string(report), part) {
			t.Errorf("%q is not in:\n%s", part, report)
		}
	}
}
