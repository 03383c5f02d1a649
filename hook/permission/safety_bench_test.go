package permission_test

import (
	"context"
	"strings"
	"testing"

	"github.com/pawl-dev/pawl/hook/permission"
)

// longCommand is 2 KB of what developers type: pipes, loops, quotes, a heredoc.
func longCommand() string {
	const part = `set -euo pipefail
cd "$PWD/sub" && go build -o bin/x ./cmd/x 2>&1 | tee build.log
for f in a b c; do sed -i "s/foo/$f/g" "src/$f.go" && git add "src/$f.go"; done
if [ -d build ]; then rm -rf build/*; else mkdir -p build; fi
cat > config.yaml <<'END'
key: value # never rm -rf /
END
find . -name '*.o' -delete; echo "done at $(date +%F)" >> log.txt
`
	return strings.Repeat(part, 2048/len(part)+1)[:2048/len(part)*len(part)] + "echo end\n"
}

func BenchmarkSafetyOfTwoKilobytes(b *testing.B) {
	home(b)
	check, params := permission.SafetyIn("/src/project"), map[string]any{"command": longCommand()}
	b.SetBytes(int64(len(longCommand())))
	b.ReportAllocs()
	for b.Loop() {
		if err := check(context.Background(), "bash", params); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/1e3/float64(b.N), "µs/op")
}

func BenchmarkSafetyOfOneCommand(b *testing.B) {
	home(b)
	check, params := permission.SafetyIn("/src/project"), map[string]any{"command": "go test ./... 2>&1 | tail -20"}
	b.ReportAllocs()
	for b.Loop() {
		if err := check(context.Background(), "bash", params); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/1e3/float64(b.N), "µs/op")
}

// What a check allocates is a gate; what time it takes is reported by the benchmarks.
func TestACheckAllocatesInProportionToTheCommand(t *testing.T) {
	home(t)
	check := permission.SafetyIn("/src/project")
	for name, c := range map[string]struct {
		command string
		most    float64
	}{
		"one command":   {"go test ./... 2>&1 | tail -20", 45},
		"two kilobytes": {longCommand(), 1500},
	} {
		params := map[string]any{"command": c.command}
		got := testing.AllocsPerRun(50, func() {
			if err := check(context.Background(), "bash", params); err != nil {
				t.Fatal(err)
			}
		})
		if got > c.most {
			t.Errorf("%s: %.0f allocations, at most %.0f", name, got, c.most)
		}
	}
}
