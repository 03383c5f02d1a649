package project

import (
	"flag"
	"testing"

	"github.com/pawl-dev/pawl/internal/stable"
)

var update = flag.Bool("update", false, "write the list of what settings may have")

// Settings are in repositories of others: what they may have today they may have tomorrow.
func TestNoKeyOfTheSettingsGoesUnawares(t *testing.T) {
	lines, err := stable.Schema(Schema())
	if err != nil {
		t.Fatal(err)
	}
	stable.Check(t, "settings.txt", lines, *update)
}
