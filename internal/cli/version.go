package cli

import (
	"fmt"
	"regexp"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"
)

// version is that of a release build, else the one that go install was told.
func (p Program) version() string {
	if info, ok := debug.ReadBuildInfo(); ok && p.Version == "devel" && info.Main.Version != "" && info.Main.Version != "(devel)" {
		return info.Main.Version
	}
	return p.Version
}

// released are the versions that are there for everybody to install: not those of a commit.
var released = regexp.MustCompile(`^v\d+\.\d+\.\d+(-rc\.?\d+)?$`)

func versionCommand(s streams, p Program) *cobra.Command {
	return &cobra.Command{
		Use:     "version",
		Short:   "Print version, commit and Go version",
		Example: "  pawl version",
		Args:    cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			v, commit := p.version(), "unknown"
			if info, ok := debug.ReadBuildInfo(); ok {
				for _, set := range info.Settings {
					if set.Key == "vcs.revision" {
						commit = set.Value
					}
				}
			}
			_, err := fmt.Fprintf(s.out, "%s %s\ncommit %s\n%s %s/%s\n", p.Name, v, commit, runtime.Version(), runtime.GOOS, runtime.GOARCH)
			return err
		},
	}
}
