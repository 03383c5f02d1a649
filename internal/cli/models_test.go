package cli

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/pawl-dev/pawl/model/catalog"
)

func TestModelsListsTheWholeCatalogue(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	table, lines := w.pawl("models"), w.pawl("models", "--json")
	if table.code != exitCompleted || lines.code != exitCompleted || table.err+lines.err != "" {
		t.Fatalf("%+v %+v", table, lines)
	}
	var want, inTable, inLines []string
	for m := range catalog.Default().All() {
		want = append(want, m.Name)
	}
	for line := range strings.Lines(table.out) {
		inTable = append(inTable, strings.Fields(line)[0])
	}
	for line := range strings.Lines(lines.out) {
		var m struct{ Name string }
		if err := json.Unmarshal([]byte(line), &m); err != nil {
			t.Fatal(err)
		}
		inLines = append(inLines, m.Name)
	}
	if d := cmp.Diff([][]string{append([]string{"MODEL"}, want...), want}, [][]string{inTable, inLines}); d != "" {
		t.Error(d)
	}
}

func TestModelsAreFoundByPartsOfTheirNamesAndByWhatTheyAreCalledElsewhere(t *testing.T) {
	t.Parallel()
	c, err := catalog.Parse("t", []byte(strings.Join([]string{
		"name\taliases\twindow\tmax_output\tinput\toutput\tcache_read\tcache_write\ttiers\timages\tdocuments\treasoning\tsource\tdate\tuntil\tnote",
		"openai/gpt-1\tone\t\t\t\t\t\t\t\t\t\t\ts\t2026-01",
		"openai/gpt-10\t\t\t\t\t\t\t\t\t\t\t\ts\t2026-01",
		"gemini/flash\t\t\t\t\t\t\t\t\t\t\t\ts\t2026-01",
	}, "\n")))
	if err != nil {
		t.Fatal(err)
	}
	for filter, want := range map[string]string{
		"": "gemini/flash openai/gpt-1 openai/gpt-10", "GPT": "openai/gpt-1 openai/gpt-10", "openai/": "openai/gpt-1 openai/gpt-10", "one": "openai/gpt-1",
		"openai-responses/gpt-1": "openai/gpt-1", "google/flash-2026-01-02": "gemini/flash", "x": "",
	} {
		var names []string
		for _, m := range known(c, filter) {
			names = append(names, m.Name)
		}
		if got := strings.Join(names, " "); got != want {
			t.Errorf("%q: %s, want %s", filter, got, want)
		}
	}
	w := newWorld(t)
	if r := w.pawl("models", "no-such-model"); r.code != exitFailed || r.out != "" || !strings.Contains(r.err, `has "no-such-model" in its name`) {
		t.Errorf("%+v", r)
	}
	if r := w.pawl("models", "a", "b"); r.code != exitUsage || !strings.Contains(r.err, "one filter at most, got 2") {
		t.Errorf("%+v", r)
	}
}

func TestModelsSaysWhatIsKnownAndWhatIsNot(t *testing.T) {
	t.Parallel()
	cheap, dear := 0.25, 8.0
	models := []catalog.Model{
		{
			Name: "p/all", Aliases: []string{"a"}, Window: 1000, MaxOutput: 100, Images: catalog.Yes, Documents: catalog.No, Reasoning: catalog.Unknown, Source: "s", Date: "2026-01", Note: "<n>",
			Price: &catalog.Price{Input: 2, Output: 4.5, CacheRead: &cheap, Tiers: []catalog.Tier{{Over: 500, Input: &dear}}},
		},
		{Name: "p/free", Price: &catalog.Price{}},
		{Name: "p/over", Price: &catalog.Price{Input: 1, Output: 1}, Until: "2026-01-31"},
		{Name: "p/nothing"},
	}
	var table, lines bytes.Buffer
	if err := modelTable(&table, models, time.Date(2026, 2, 1, 0, 0, 0, 0, time.UTC)); err != nil {
		t.Fatal(err)
	}
	if err := modelLines(&lines, models); err != nil {
		t.Fatal(err)
	}
	const wantTable = `MODEL      WINDOW  OUTPUT  $/M IN  $/M OUT  TAKES
p/all      1000    100     2+      4.5+     images, reasoning?
p/free                     0       0        images?, documents?, reasoning?
p/over                                      images?, documents?, reasoning?
p/nothing                                   images?, documents?, reasoning?
`
	const unknown = `"images":null,"documents":null,"reasoning":null,"source":"","date":"","note":""}`
	const wantLines = `{"name":"p/all","aliases":["a"],"window":1000,"max_output":100,"price":{"input":2,"output":4.5,"cache_read":0.25,"cache_write":null,"tiers":[{"over":500,"input":8,"output":null,"cache_read":null,"cache_write":null}],"until":null},"images":true,"documents":false,"reasoning":null,"source":"s","date":"2026-01","note":"<n>"}
{"name":"p/free","aliases":[],"window":null,"max_output":null,"price":{"input":0,"output":0,"cache_read":null,"cache_write":null,"tiers":[],"until":null},` + unknown + `
{"name":"p/over","aliases":[],"window":null,"max_output":null,"price":{"input":1,"output":1,"cache_read":null,"cache_write":null,"tiers":[],"until":"2026-01-31"},` + unknown + `
{"name":"p/nothing","aliases":[],"window":null,"max_output":null,"price":null,` + unknown + "\n"
	if d := cmp.Diff(wantTable, table.String()); d != "" {
		t.Error(d)
	}
	if d := cmp.Diff(wantLines, lines.String()); d != "" {
		t.Error(d)
	}
}
