package oracle

import (
	"encoding/base64"
	"testing"

	"github.com/pawl-dev/pawl/internal/providertest"
)

// What the matrix's requests say, once more.
const (
	system    = "Be brief.\nBe \"kind\"."
	pngData   = "\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR"
	pdfData   = "%PDF-1.4\n%\xe2\xe3\xcf\xd3\n"
	imageURL  = "https://example.com/cat.png?a=1&b=2"
	goMod     = "module \"x\"\n"
	readInput = `{"file_path":"go.mod","é":[1.50,1e3,{}]}`

	matrixSeed = 1234567890
)

var (
	readSchema   = schema([]string{"file_path"}, map[string]string{"file_path": "string"})
	bashSchema   = schema([]string{"command"}, map[string]string{"command": "string", "timeout": "integer"})
	outputSchema = schema([]string{"n"}, map[string]string{"n": "integer"}, "additionalProperties")
	stops        = []string{"END", "\n\"stop\""}
)

// schema makes the JSON Schema of an object. What is forbidden by false is named behind.
func schema(required []string, types map[string]string, forbidden ...string) map[string]any {
	properties := map[string]any{}
	for name, kind := range types {
		properties[name] = map[string]any{"type": kind}
	}
	s := map[string]any{"type": "object", "properties": properties, "required": required}
	for _, name := range forbidden {
		s[name] = false
	}
	return s
}

func base64Of(data string) string { return base64.StdEncoding.EncodeToString([]byte(data)) }

func dataURL(kind, data string) string { return "data:" + kind + ";base64," + base64Of(data) }

// The same request, written in the vendor's types and in ours, is the same call.
func TestARequestInTheVendorsTypesIsTheSameCall(t *testing.T) {
	meant := newAllowances(byHandDiffer)
	all := 0
	for _, v := range vendors {
		found := 0
		for _, c := range providertest.Cases() {
			send := v.byHand[c.Name]
			if send == nil {
				continue
			}
			found++
			all++
			t.Run(v.name+"/"+c.Name, func(t *testing.T) {
				t.Cleanup(meant.ran)
				own, sent := asked(t, v, c.Request, false)
				if !sent {
					t.Fatal("our client refuses what the vendor's types can say")
				}
				s := answered(t, v, false)
				if err := send(t, s.client()); err != nil {
					t.Fatal(err)
				}
				theirs := s.call()
				sameCall(t, v, theirs, own, func(pointer string) bool { return meant.has(v.name, c.Name, pointer) })
			})
		}
		if found != len(v.byHand) {
			t.Errorf("%s: %d requests are written by hand, and only %d of them are in the matrix", v.name, len(v.byHand), found)
		}
	}
	meant.check(t, all, true)
}
