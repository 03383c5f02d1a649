package load

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
)

// Systems makes systems, by name.
type Systems map[string]func(*Task) (System, error)

// Main is a program's "run": it measures one system under one workload and prints the Result. args are those of the program, or what stands behind "run" in them.
func Main(ctx context.Context, args []string, systems Systems, out io.Writer) error {
	if len(args) > 0 && args[0] == "run" {
		args = args[1:]
	}
	flags := flag.NewFlagSet("run", flag.ContinueOnError)
	name := flags.String("system", "", "which system: "+strings.Join(slices.Sorted(maps.Keys(systems)), ", "))
	work := flags.String("workload", "", "which workload")
	url := flags.String("upstream", "", "base URL of the model")
	times := flags.Float64("times", 1, "how much longer the workload is")
	sessions := flags.Int("sessions", 0, "so many sessions instead of the workload's own, which are too few for a profile")
	profiles := flags.String("pprof", "", "directory for profiles")
	if err := flags.Parse(args); err != nil {
		return err
	}
	system, ok := systems[*name]
	if !ok {
		return fmt.Errorf("-system: there is no %q, but %s", *name, strings.Join(slices.Sorted(maps.Keys(systems)), ", "))
	}
	w, err := Named(*work, *times)
	if err != nil {
		return err
	}
	if *sessions > 0 {
		w.Sessions = *sessions
	}
	r, err := Run(ctx, *name, w, *url, *profiles, system)
	if err != nil {
		return err
	}
	return json.NewEncoder(out).Encode(r)
}
