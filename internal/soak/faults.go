package main

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"time"

	"github.com/pawl-dev/pawl/internal/crashtest"
	"github.com/pawl-dev/pawl/internal/pgtest"
)

// faults are what happens to everybody, besides what the provider does with some of the requests all the time.
type faults struct {
	provider *provider
	servers  *servers
	database *pgtest.Server
	disk     string // where the SQLite journal is; "" when it is on no disk of its own
	did      *tally
	scale    float64 // of the time between two faults
	next     int     // of the storms
}

// usual is how many of the requests to the provider fail.
const usual = 0.06

// storms is each kind of fault, in turn: so a minute has all of them.
func (f *faults) storms() []func(context.Context) error {
	all := []func(context.Context) error{f.kill, f.down, f.kill, f.restart, f.freeze}
	if f.disk != "" {
		all = append(all, f.full)
	}
	return all
}

// run goes on until ctx ends, and leaves everything mended.
func (f *faults) run(ctx context.Context) error {
	all := f.storms()
	for {
		pause(ctx, time.Duration(f.scale*float64(2*time.Second)), time.Duration(f.scale*float64(6*time.Second)))
		if ctx.Err() != nil {
			return f.alive()
		}
		if err := errors.Join(f.alive(), all[f.next%len(all)](ctx)); err != nil {
			return err
		}
		f.next++
	}
}

// alive has a mayfly there.
func (f *faults) alive() error {
	if _, m := f.servers.pair(); m != nil && !m.died() {
		return nil
	}
	f.servers.take()
	return f.servers.begin()
}

// kill kills the mayfly, with what it does, and starts another one.
func (f *faults) kill(ctx context.Context) error {
	w := f.servers.take()
	f.did.add("kill -9")
	err := w.kill()
	pause(ctx, 0, time.Second)
	return errors.Join(err, f.servers.begin())
}

// freeze stops the mayfly for longer than its leases run, and has it go on: others have its sessions by then.
func (f *faults) freeze(ctx context.Context) error {
	w := f.servers.take()
	err := freeze(w.cmd.Process)
	pause(ctx, 11*time.Second, 13*time.Second)
	if ctx.Err() == nil {
		f.did.add("frozen until its leases ran out")
	}
	if err = errors.Join(err, thaw(w.cmd.Process)); err != nil {
		return err
	}
	pause(ctx, time.Second, 2*time.Second)
	f.servers.put(w)
	return nil
}

// down has every request to the provider fail for a while, so that retries are of no use.
func (f *faults) down(ctx context.Context) error {
	f.did.add("provider down")
	f.provider.failing(1)
	defer f.provider.failing(usual)
	pause(ctx, 2*time.Second, 5*time.Second)
	return nil
}

// restart kills the database and starts it again.
func (f *faults) restart(ctx context.Context) error {
	f.did.add("database restart")
	err := f.database.Crash()
	pause(ctx, 0, 2*time.Second)
	return errors.Join(err, f.database.Recover())
}

// full fills the disk of the SQLite journal, and makes room again.
func (f *faults) full(ctx context.Context) error {
	f.did.add("full disk")
	ballast := filepath.Join(f.disk, "ballast")
	err := crashtest.Fill(ballast)
	pause(ctx, time.Second, 3*time.Second)
	return errors.Join(err, os.Remove(ballast))
}
