// Command pawl runs agents that keep what they have done. See pawl --help.
package main

import "github.com/pawl-dev/pawl/internal/cli"

// version is set by release builds: -ldflags "-X main.version=v1.2.3".
var version = "devel"

func main() { cli.Main(cli.Program{Name: "pawl", Version: version}) }
