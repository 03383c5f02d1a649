package inspector_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/input"
	browserlog "github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
	"go.uber.org/goleak"

	"github.com/pawl-dev/pawl/internal/component"
	"github.com/pawl-dev/pawl/serve"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// patience is how long something on the page may take to come about: a machine that has other things to do is no failure.
const patience = 40 * time.Second

// served is a server of an agent, until the test ends.
func served(t *testing.T, a serve.Agent, o serve.Options) *httptest.Server {
	t.Helper()
	s, err := serve.New(a, o)
	if err != nil {
		t.Fatal(err)
	}
	web := httptest.NewServer(s)
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
		web.Close()
	})
	return web
}

// tab is a page in a real Chromium. What goes wrong on it fails the test.
type tab struct {
	*testing.T
	ctx     context.Context
	mu      sync.Mutex
	wrong   []string
	excused []string // what may go wrong: parts of what is said of it
}

// browse opens a tab of so many pixels.
func browse(t *testing.T, width, height int64) *tab {
	t.Helper()
	path := component.Command(t, "chromium", "apt-get install chromium")
	opts := append(slices.Clone(chromedp.DefaultExecAllocatorOptions[:]), chromedp.ExecPath(path), chromedp.Flag("font-render-hinting", "none"))
	if os.Getuid() == 0 {
		opts = append(opts, chromedp.NoSandbox)
	}
	alloc, stopAlloc := chromedp.NewExecAllocator(context.Background(), opts...)
	ctx, stop := chromedp.NewContext(alloc)
	p := &tab{T: t, ctx: ctx}
	t.Cleanup(func() {
		stop()
		stopAlloc()
		p.mu.Lock()
		defer p.mu.Unlock()
		for _, w := range p.wrong {
			if !slices.ContainsFunc(p.excused, func(e string) bool { return strings.Contains(w, e) }) {
				t.Errorf("the page says: %s", w)
			}
		}
	})
	if err := chromedp.Do(ctx, chromedp.EmulateViewport(width, height)); err != nil {
		t.Fatal(err)
	}
	if err := chromedp.Listen(ctx, p.heard); err != nil {
		t.Fatal(err)
	}
	if err := chromedp.Do(ctx, chromedp.Func(func(ctx context.Context, target *chromedp.Target) error {
		_, err := cdp.Call(ctx, target, browserlog.Enable, cdp.Empty{})
		return err
	})); err != nil {
		t.Fatal(err)
	}
	p.prefers("light")
	return p
}

func (p *tab) heard(ev any) {
	var w string
	switch ev := ev.(type) {
	case *runtime.EventConsoleAPICalled:
		if slices.Contains([]string{"error", "warning", "assert"}, string(ev.Type)) {
			b, _ := json.Marshal(ev.Args)
			w = "console: " + string(b)
		}
	case *runtime.EventExceptionThrown:
		b, _ := json.Marshal(ev.ExceptionDetails)
		w = "exception: " + string(b)
	case *browserlog.EventEntryAdded:
		if ev.Entry.Level == browserlog.EntryLevelError || ev.Entry.Level == browserlog.EntryLevelWarning {
			w = fmt.Sprintf("%s: %s %s", ev.Entry.Source, ev.Entry.Text, ev.Entry.URL)
		}
	}
	if w != "" {
		p.mu.Lock()
		p.wrong = append(p.wrong, w)
		p.mu.Unlock()
	}
}

// prefers has the system be dark or light.
func (p *tab) prefers(scheme string) {
	p.Helper()
	p.do(chromedp.Func(func(ctx context.Context, target *chromedp.Target) error {
		_, err := cdp.Call(ctx, target, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: scheme}, {Name: "prefers-reduced-motion", Value: "reduce"}}})
		return err
	}))
}

func (p *tab) do(steps ...chromedp.Action[chromedp.Void]) {
	p.Helper()
	ctx, cancel := context.WithTimeout(p.ctx, patience)
	defer cancel()
	if err := chromedp.Do(ctx, steps...); err != nil {
		p.fatal("%v", err)
	}
}

func (p *tab) open(url string) {
	p.Helper()
	p.do(chromedp.Navigate(url))
}

// fatal ends the test, with a picture of what is to be seen.
func (p *tab) fatal(format string, args ...any) {
	p.Helper()
	ctx, cancel := context.WithTimeout(p.ctx, 5*time.Second)
	defer cancel()
	if b, err := chromedp.Run(ctx, chromedp.CaptureScreenshot()); err == nil {
		keep(p.T, "failed-"+p.Name(), b)
	}
	text, _ := chromedp.Run(ctx, chromedp.Evaluate[string](`document.body.innerText.slice(0, 3000)`))
	p.mu.Lock()
	wrong := strings.Join(p.wrong, "\n")
	p.mu.Unlock()
	p.Fatalf(format+"\n%s\n%s", append(args, wrong, text)...)
}

// value is what an expression gives on the page.
func value[T any](p *tab, expression string) T {
	p.Helper()
	ctx, cancel := context.WithTimeout(p.ctx, patience)
	defer cancel()
	v, err := chromedp.Run(ctx, chromedp.Evaluate[T](expression, func(e *runtime.EvaluateParams) { yes := true; e.AwaitPromise = &yes }))
	if err != nil {
		p.fatal("%s: %v", expression, err)
	}
	return v
}

// until waits for an expression to be true.
func (p *tab) until(expression string) {
	p.Helper()
	every := time.NewTicker(30 * time.Millisecond)
	defer every.Stop()
	for late := time.After(patience); ; {
		if value[bool](p, "!!("+expression+")") {
			return
		}
		select {
		case <-every.C:
		case <-late:
			p.fatal("it never came about: %s", expression)
		}
	}
}

// sees waits for a text in what a selector finds.
func (p *tab) sees(selector, text string) {
	p.Helper()
	p.until(fmt.Sprintf(`[...document.querySelectorAll(%q)].some((e) => e.textContent.includes(%q))`, selector, text))
}

func (p *tab) click(selector string) {
	p.Helper()
	p.until(fmt.Sprintf(`document.querySelector(%q)`, selector))
	p.do(chromedp.Click(chromedp.CSS(selector)))
}

// row clicks the first row of the timeline that has a text.
func (p *tab) row(text string) {
	p.Helper()
	p.sees("#timeline .row", text)
	at := value[[]float64](p, fmt.Sprintf(`(() => { const r = [...document.querySelectorAll("#timeline .row")].find((e) => e.textContent.includes(%q)).querySelector(".what").getBoundingClientRect(); return [r.x + 8, r.y + 8]; })()`, text))
	p.do(chromedp.MouseClickXY(at[0], at[1]))
}

// keys presses keys, each with its text in the one event, as keyboards do: a page that takes the key for itself has no text of it.
func (p *tab) keys(keys string) {
	p.Helper()
	p.do(chromedp.Func(func(ctx context.Context, target *chromedp.Target) error {
		for _, r := range keys {
			all := kb.Encode(r)
			down := all[0]
			for _, e := range all {
				if e.Type == kb.KeyChar {
					down.Type, down.Text, down.UnmodifiedText = kb.KeyDown, e.Text, e.UnmodifiedText
				}
			}
			for _, e := range []*input.DispatchKeyEventParams{down, all[len(all)-1]} {
				if _, err := cdp.Call(ctx, target, input.DispatchKeyEvent, *e); err != nil {
					return err
				}
			}
		}
		return nil
	}))
}

// into types a text into a field.
func (p *tab) into(selector, text string) {
	p.Helper()
	p.click(selector)
	p.keys(text)
}

const (
	enter  = kb.Enter
	escape = kb.Escape
)

// nodes is how many there are, texts among them.
func (p *tab) nodes() int {
	p.Helper()
	return value[int](p, `(() => { let n = 0; const w = document.createTreeWalker(document, NodeFilter.SHOW_ALL); while (w.nextNode()) n++; return n; })()`)
}

// picture keeps what is to be seen.
func (p *tab) picture(name string) {
	p.Helper()
	value[bool](p, `new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(() => done(true))))`)
	ctx, cancel := context.WithTimeout(p.ctx, patience)
	defer cancel()
	b, err := chromedp.Run(ctx, chromedp.CaptureScreenshot())
	if err != nil {
		p.Fatal(err)
	}
	keep(p.T, name, b)
}

// keep writes a picture where PAWL_ARTIFACTS says.
func keep(t *testing.T, name string, b []byte) {
	t.Helper()
	dir := os.Getenv("PAWL_ARTIFACTS")
	if dir == "" {
		return
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "inspector-"+name+".png"), b, 0o600); err != nil {
		t.Fatal(err)
	}
}

// blur has no field have the focus.
func blur() chromedp.Action[chromedp.Void] {
	return func(ctx context.Context, t *chromedp.Target) (chromedp.Void, error) {
		_, err := chromedp.Evaluate[bool](`(document.getElementById("timeline").focus(), true)`)(ctx, t)
		return chromedp.Void{}, err
	}
}

func (p *tab) resize(width, height int64) {
	p.Helper()
	p.do(chromedp.EmulateViewport(width, height))
}
