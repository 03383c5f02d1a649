package oracle

import (
	"os"
	"strings"
	"testing"
)

// The SDKs read addresses and keys from the environment.
func TestMain(m *testing.M) {
	for _, v := range os.Environ() {
		name, _, _ := strings.Cut(v, "=")
		for _, vendor := range []string{"ANTHROPIC_", "OPENAI_", "GOOGLE_", "GEMINI_"} {
			if strings.HasPrefix(name, vendor) {
				_ = os.Unsetenv(name)
			}
		}
	}
	os.Exit(m.Run())
}
