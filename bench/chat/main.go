// Command chat is a load benchmark of conversations: a chat server that opens a pawl.Conversation for each request and streams its answer, a model and a tool that keep to a timetable, and clients that ask as fast as they are answered. Each is a process of its own. See bench/README.md.
package main

import (
	"context"
	_ "embed"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"time"

	"github.com/pawl-dev/pawl/bench/internal/child"
)

// The parts that this program runs itself as.
const (
	asUpstream = "upstream"
	asServer   = "server"
)

// packJSON is the pack of the server's conversations.
//
//go:embed chat.pack.json
var packJSON []byte

func main() {
	if err := do(os.Args[1:]); err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintln(os.Stderr, "chat:", err)
		os.Exit(1)
	}
}

func do(args []string) error {
	if len(args) > 0 {
		switch args[0] {
		case asUpstream:
			return upstreamMain(args[1:])
		case asServer:
			return serverMain(args[1:])
		}
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	return benchMain(ctx, args, os.Stdout)
}

// options are what the tiers have in common.
type options struct {
	profile  string
	tool     bool   // the model calls the tool once a request
	floor    bool   // the server is the one without Pawl
	perEach  int    // requests of each client
	profiles string // directory for profiles of the server; "": none
}

// columns are those of the table.
var columns = []any{"clients", "requests", "errors", "calls", "req/s", "first p50", "first p99", "total p50", "total p99", "peak", "CPU/req", "cores", "conns"}

func flagsOf(o *options, tiers *string) *flag.FlagSet {
	flags := flag.NewFlagSet("chat", flag.ContinueOnError)
	flags.StringVar(tiers, "tiers", "100,500,1000,2000", "how many clients ask at once, one tier after the other")
	flags.IntVar(&o.perEach, "requests", 10, "requests of each client")
	flags.StringVar(&o.profile, "profile", "default", "timetable of the model and the tool: "+strings.Join(profileNames(), ", "))
	flags.BoolVar(&o.tool, "tool", true, "the model calls the tool once a request; without, it answers at once")
	flags.BoolVar(&o.floor, "floor", false, "measure a server that does the same by hand, without Pawl")
	flags.StringVar(&o.profiles, "pprof", "", "directory for CPU and heap profiles of the server")
	return flags
}

func benchMain(ctx context.Context, args []string, out io.Writer) error {
	var o options
	var tiers string
	flags := flagsOf(&o, &tiers)
	if err := flags.Parse(args); err != nil {
		return err
	}
	p, ok := profiles[o.profile]
	switch {
	case flags.NArg() > 0:
		return fmt.Errorf("unknown argument %q", flags.Arg(0))
	case !ok:
		return fmt.Errorf("there is no profile %q: have one of %s", o.profile, strings.Join(profileNames(), ", "))
	case o.perEach < 1:
		return fmt.Errorf("-requests %d: want at least 1", o.perEach)
	}
	var counts []int
	for s := range strings.SplitSeq(tiers, ",") {
		n, err := strconv.Atoi(strings.TrimSpace(s))
		if err != nil || n < 1 {
			return fmt.Errorf("-tiers %s: want numbers of clients, such as 100,500", tiers)
		}
		counts = append(counts, n)
	}
	if o.profiles != "" {
		var err error
		if o.profiles, err = filepath.Abs(o.profiles); err != nil {
			return err
		}
		if err := os.MkdirAll(o.profiles, 0o750); err != nil {
			return err
		}
	}

	row := func(cells ...any) { fmt.Fprintf(out, strings.Repeat("%10v", len(cells))+"\n", cells...) }
	row(columns...)
	var failed error
	for _, n := range counts {
		t, err := run(ctx, o, n)
		if err != nil {
			return err
		}
		peak := "-"
		if t.server.Peak > 0 {
			peak = fmt.Sprintf("%d MiB", t.server.Peak>>20)
		}
		cores := "-"
		if t.wall > 0 {
			cores = fmt.Sprintf("%.2f", t.server.CPU.Seconds()/t.wall.Seconds())
		}
		row(n, t.requests, t.errors, t.model.ToolCalls, fmt.Sprintf("%.0f", float64(t.requests)/t.wall.Seconds()), ms(t.first.at(50)), ms(t.first.at(99)), ms(t.total.at(50)), ms(t.total.at(99)),
			peak, (t.server.CPU / time.Duration(t.requests)).Round(10*time.Microsecond), cores, t.model.ModelConnections)
		for _, what := range t.wrong {
			fmt.Fprintln(os.Stderr, "chat:", n, "clients:", what)
		}
		if err := t.check(o); err != nil {
			failed = errors.Join(failed, fmt.Errorf("%d clients: %w", n, err))
		}
	}
	least := p.least(o.tool)
	fmt.Fprintf(out, `
By the timetable (%s) a request takes at least %v, so N clients can't make more than N/%.2f requests a second.
first: from a request to the first byte of its answer; total: to its last. CPU/req and peak: of the chat server alone, from its start to its end; cores: how many it kept busy.
conns: connections that the server opened to the model. The model, the tool and the clients run on the same %d cores. Where the totals are well above the timetable, those are busy: requests a second and
times say then how fast this machine is, all processes together, and only CPU/req, peak and errors are about the server.
`, o.profile, least, least.Seconds(), runtime.NumCPU())
	return failed
}

func ms(d time.Duration) string { return strconv.FormatInt(d.Milliseconds(), 10) + " ms" }

// tier is what came of some clients.
type tier struct {
	load
	model  counts      // as the model and the tool saw it
	server child.Usage // of the chat server
}

// run runs a tier, with processes of its own: no tier has anything of the one before.
func run(ctx context.Context, o options, clients int) (t tier, err error) {
	dir, err := os.MkdirTemp("", "pawl-bench-")
	if err != nil {
		return t, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	pack := filepath.Join(dir, "chat.pack.json")
	if err := os.WriteFile(pack, packJSON, 0o600); err != nil {
		return t, err
	}
	model, err := child.Start(ctx, asUpstream, "-profile", o.profile, "-tool="+strconv.FormatBool(o.tool))
	if err != nil {
		return t, err
	}
	defer func() {
		_, ended := model.End()
		err = errors.Join(err, ended)
	}()
	args := []string{asServer, "-pack", pack, "-upstream", model.URL, "-floor=" + strconv.FormatBool(o.floor)}
	if o.profiles != "" {
		args = append(args, "-pprof", filepath.Join(o.profiles, "chat-"+strconv.Itoa(clients)), "-heap-at", strconv.Itoa(clients*o.perEach/2))
	}
	server, err := child.Start(ctx, args...)
	if err != nil {
		return t, err
	}
	t.load = ask(ctx, server.URL, clients, clients*o.perEach, profiles[o.profile].text)
	t.server, err = server.End()
	if err != nil {
		return t, err
	}
	t.model, err = countsOf(ctx, model.URL)
	return t, errors.Join(err, ctx.Err())
}

// check says what is wrong with a tier, however fast it was.
func (t tier) check(o options) error {
	var errs []error
	wrong := func(format string, args ...any) { errs = append(errs, fmt.Errorf(format, args...)) }
	calls, asked := int64(0), int64(t.requests)
	if o.tool {
		calls, asked = asked, 2*asked
	}
	if t.errors > 0 {
		wrong("%d of %d requests failed", t.errors, t.requests)
	}
	if t.model.ToolCalls != calls {
		wrong("the tool was called %d times, want %d for %d requests", t.model.ToolCalls, calls, t.requests)
	}
	if t.model.ModelCalls != asked {
		wrong("the model was called %d times, want %d for %d requests", t.model.ModelCalls, asked, t.requests)
	}
	if t.model.Refused > 0 {
		wrong("the model or the tool was asked wrongly %d times", t.model.Refused)
	}
	return errors.Join(errs...)
}
