package archtest

import (
	"os/exec"
	"slices"
	"strings"
	"testing"
)

// small is what a program imports that runs an agent by the parts that it needs: the one that bench/ready measures.
var small = []string{"./agent", "./engine/loop", "./model/anthropic", "./tool", "./journal"}

// linked are the modules of such a program besides Pawl. It may only become less.
var linked = []string{
	"github.com/google/jsonschema-go",
	"github.com/santhosh-tekuri/jsonschema/v6",
	"golang.org/x/text",
}

// heavy are packages that it is not to have: each is paid for in size, and in time before main.
var heavy = []string{
	"net/http/pprof", "runtime/pprof", "text/template", "html/template", "go/ast", "expvar", "testing", "plugin", "encoding/gob", "encoding/xml", "database/sql", "flag",
	"go.opentelemetry.io/", "modernc.org/", "github.com/goccy/go-yaml", "github.com/jackc/", "go.starlark.net/", "github.com/spf13/", "github.com/modelcontextprotocol/", "google.golang.org/",
}

func TestAProgramWithAnAgentIsMadeOfFewModules(t *testing.T) {
	cmd := exec.Command("go", append([]string{"list", "-deps", "-f", "{{.ImportPath}} {{with .Module}}{{.Path}}{{end}}"}, small...)...)
	cmd.Dir = root
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	var modules []string
	for line := range strings.Lines(string(out)) {
		pkg, of, _ := strings.Cut(strings.TrimSpace(line), " ")
		if of != "" && of != module {
			modules = append(modules, of)
		}
		for _, h := range heavy {
			if pkg == h || strings.HasSuffix(h, "/") && strings.HasPrefix(pkg, h) {
				t.Errorf("it has %s", pkg)
			}
		}
	}
	slices.Sort(modules)
	if modules = slices.Compact(modules); !slices.Equal(modules, linked) {
		t.Errorf("it is made of %q, want %q", modules, linked)
	}
}

// Who uses Pawl as a library has no OpenTelemetry in his program, and the API alone with engine/telemetry: the SDK and the exporters are the program's.
func TestExportersAreInTheProgramOnly(t *testing.T) {
	for of, nots := range map[string][]string{
		".":                  {"go.opentelemetry.io/"},
		"./engine/telemetry": {"go.opentelemetry.io/otel/sdk", "go.opentelemetry.io/otel/exporters"},
	} {
		cmd := exec.Command("go", "list", "-deps", of)
		cmd.Dir = root
		out, err := cmd.Output()
		if err != nil {
			t.Fatal(err)
		}
		for pkg := range strings.Lines(string(out)) {
			for _, not := range append(nots, "google.golang.org/") {
				if strings.HasPrefix(pkg, not) {
					t.Errorf("%s has %s", of, pkg)
				}
			}
		}
	}
}
