package cli

import (
	"context"
	"io"
	"log/slog"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/pawl-dev/pawl/event"
	"github.com/pawl-dev/pawl/internal/cli/waiting"
	"github.com/pawl-dev/pawl/tool/mcp"
)

const (
	soon   = time.Second            // what takes no longer than this is not told of
	firstL = 10 * time.Second       // where there is no terminal: the first line about a wait, and then one whenever it took twice as long
	frame  = 200 * time.Millisecond // how often what stands at a terminal changes
)

// live shows for what a person waits: on a terminal in its last line, as long as it lasts; elsewhere by a line, once it lasts.
type live struct {
	screen *screen
	width  int // of the terminal; 0: there is none
	out    io.Writer
	stop   chan struct{}
	ended  sync.WaitGroup

	mu    sync.Mutex // guards what follows, and what is shown of a run
	waits waiting.Waits
	line  func(colour, format string, args ...any) // writes one
	told  map[told]time.Duration
	turn  int
}

// told is a wait that there were lines about.
type told struct {
	kind      waiting.Kind
	what, run string
	since     time.Time
}

// newLive begins to show; end ends it.
func newLive(s streams) *live {
	l := &live{screen: &screen{status: s.err}, stop: make(chan struct{}), told: map[told]time.Duration{}}
	every := time.Second
	if f, ok := s.err.(*os.File); ok && terminal(f) && os.Getenv("TERM") != "dumb" {
		if l.width, _ = columns(f); l.width < 20 {
			l.width = 80
		}
		every = frame
	}
	l.out = l.screen.writer(s.err)
	l.line = newProgress(l.out, l.out, false).line
	l.ended.Go(func() {
		tick := time.NewTicker(every)
		defer tick.Stop()
		for {
			select {
			case now := <-tick.C:
				l.tick(now)
			case <-l.stop:
				return
			}
		}
	})
	return l
}

// end takes away what is shown.
func (l *live) end() {
	select {
	case <-l.stop:
		return
	default:
	}
	close(l.stop)
	l.ended.Wait()
	l.screen.show("")
}

// shows has lines written as whoever shows a run writes them.
func (l *live) shows(line func(colour, format string, args ...any)) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.line = line
}

// event takes in what happened, and has it shown.
func (l *live) event(e event.Event, show func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.waits.Event(e, time.Now())
	show()
}

func (l *live) tick(now time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	all := l.waits.All()
	if l.width == 0 {
		l.lines(all, now)
		return
	}
	var texts []string
	for _, w := range all {
		if now.Sub(w.Since) >= soon || w.Kind == waiting.Retry {
			texts = append(texts, escapedLine(w.Text(now)))
		}
	}
	if len(texts) == 0 {
		l.screen.show("")
		return
	}
	const frames = "⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏"
	l.turn = (l.turn + 1) % 10
	l.screen.show(clip(string([]rune(frames)[l.turn])+" "+strings.Join(texts, " · "), l.width-1))
}

// lines are those that are due.
func (l *live) lines(all []waiting.Wait, now time.Time) {
	for _, w := range all {
		id, took := told{w.Kind, w.What, w.Run, w.Since}, now.Sub(w.Since)
		due := l.told[id] * 2
		if due == 0 {
			due = firstL
		}
		if took < due {
			continue
		}
		l.told[id] = took
		l.line("2", "… %s", clip(escapedLine(w.Text(now)), 160))
	}
}

// logger is for what starts MCP servers: it tells which.
func (l *live) logger() *slog.Logger {
	return slog.New(starts(func(server string, begun bool) {
		l.mu.Lock()
		defer l.mu.Unlock()
		if begun {
			l.waits.End(waiting.Start, server)
		} else {
			l.waits.Begin(waiting.Start, server, time.Now())
		}
	}))
}

// starts is a handler that hears which MCP servers start. What else is logged is told of by other ways.
type starts func(server string, begun bool)

func (starts) Enabled(_ context.Context, level slog.Level) bool { return level == slog.LevelInfo }
func (s starts) WithAttrs([]slog.Attr) slog.Handler             { return s }
func (s starts) WithGroup(string) slog.Handler                  { return s }

func (s starts) Handle(_ context.Context, r slog.Record) error {
	name := ""
	r.Attrs(func(a slog.Attr) bool {
		if a.Key == "server" {
			name = a.Value.String()
		}
		return name == ""
	})
	if r.Message == mcp.LogStarts || r.Message == mcp.LogStarted {
		s(name, r.Message == mcp.LogStarted)
	}
	return nil
}
