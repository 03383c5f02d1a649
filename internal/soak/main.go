// Soak has clients at servers for a long time, while all goes wrong that can, and looks whether anything is lost, done twice, or grows. See CONTRIBUTING.md.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"time"
)

func main() {
	length := flag.Duration("for", 30*time.Minute, "how long: at least a minute")
	clients := flag.Int("clients", 16, "how many sessions at a time")
	dir := flag.String("dir", "", "where it works, and what is left of it if it fails: a `directory` that is not there yet; default: a temporary one")
	server := flag.String("serve", "", "be a server: where it is, as JSON")
	flag.Parse()
	if *server != "" {
		if err := serveAgents(*server); err != nil {
			fmt.Fprintln(os.Stderr, "soak: server:", err)
			os.Exit(1)
		}
		return
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	ok, err := soaked(ctx, *length, *clients, *dir)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "soak:", err)
	}
	if !ok || err != nil {
		os.Exit(1)
	}
}

// soaked reports whether all was well; then nothing is left of it.
func soaked(ctx context.Context, length time.Duration, clients int, dir string) (ok bool, err error) {
	if length < time.Minute || clients < 1 {
		return false, fmt.Errorf("-for %v, -clients %d: want at least a minute, and a client", length, clients)
	}
	self, err := os.Executable()
	if err != nil {
		return false, err
	}
	if dir == "" {
		if dir, err = os.MkdirTemp("", "pawl-soak"); err != nil {
			return false, err
		}
	} else if err := os.Mkdir(dir, 0o700); err != nil { // what is left of another soak is none of this one's
		return false, err
	}
	s := &soak{length: length, rest: 3 * time.Second, clients: clients, dir: dir, self: self, out: os.Stdout}
	if err := s.run(ctx); err != nil {
		return false, fmt.Errorf("%w (see %s)", err, dir)
	}
	if s.failed() {
		return false, nil
	}
	return true, os.RemoveAll(dir)
}
