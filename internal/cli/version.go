package cli

import (
	"fmt"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"
)

func versionCommand(s streams, p Program) *cobra.Command {
	return &cobra.Command{
		Use:     "version",
		Short:   "Print version, commit and Go version",
		Example: "  pawl version",
		Args:    cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			v, commit := p.Version, "unknown"
			if info, ok := debug.ReadBuildInfo(); ok {
				if v == "devel" && info.Main.Version != "" && info.Main.Version != "(devel)" {
					v = info.Main.Version
				}
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
