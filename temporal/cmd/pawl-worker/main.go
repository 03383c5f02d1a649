// Command pawl-worker does the work of runs that Temporal schedules, and is pawl with Temporal in it: pawl hands over to it what needs that. See pawl-worker --help, and docs/temporal.md.
package main

import "github.com/pawl-dev/pawl/internal/cli"

// version is set by release builds: -ldflags "-X main.version=v1.2.3".
var version = "devel"

func main() { cli.Main(cli.Program{Name: "pawl-worker", Version: version, Temporal: service{}}) }
