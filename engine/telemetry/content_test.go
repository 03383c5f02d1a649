package telemetry

import (
	"strings"
	"testing"

	"github.com/pawl-dev/pawl/message"
)

// A file that only its provider has is told by its id, and is no empty one.
func TestAFileThatAProviderKeepsIsToldByItsID(t *testing.T) {
	for want, f := range map[string]message.File{
		"file_id:f-1":  {MIME: "image/png", Provider: "openai", ID: "f-1"},
		"content:eA==": {MIME: "image/png", Provider: "openai", ID: "f-1", Data: "x"},
	} {
		var got []string
		for _, kv := range file(f).AsMap() {
			got = append(got, string(kv.Key)+":"+kv.Value.AsString())
		}
		if text := strings.Join(got, " "); !strings.Contains(text, want) || strings.Contains(text, "content: ") {
			t.Error(text)
		}
	}
}
