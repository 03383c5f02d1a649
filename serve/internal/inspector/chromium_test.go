package inspector_test

import (
	"context"
	"os"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	browserlog "github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/chromedp"
	"go.uber.org/goleak"

	"github.com/pawl-dev/pawl/internal/component"
	"github.com/pawl-dev/pawl/internal/testkit/tier"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(testsThenClose{m}) }

// testsThenClose closes the browser after the tests, before goleak looks for goroutines.
type testsThenClose struct{ *testing.M }

func (m testsThenClose) Run() int {
	code := m.M.Run()
	chromium.close()
	return code
}

// chromium is the one browser of all tests. The first test that opens a tab starts it.
var chromium sharedBrowser

type sharedBrowser struct {
	once sync.Once
	ctx  context.Context
	stop func()
	err  error
}

// start returns the context of the running browser. Its profile is a temporary directory, so
// that neither HOME nor another run of the tests matters.
func (b *sharedBrowser) start(path string) (context.Context, error) {
	b.once.Do(func() {
		opts := append(slices.Clone(chromedp.DefaultExecAllocatorOptions[:]),
			chromedp.ExecPath(path), chromedp.Flag("font-render-hinting", "none"), chromedp.Flag("lang", "en-US"))
		if os.Getuid() == 0 {
			opts = append(opts, chromedp.NoSandbox)
		}
		allocator, stopAllocator := chromedp.NewExecAllocator(context.Background(), opts...)
		ctx, stop := chromedp.NewContext(allocator)
		b.ctx, b.stop = ctx, func() {
			// A browser that is told to close takes its files with it.
			closing, cancel := context.WithTimeout(ctx, 10*time.Second)
			defer cancel()
			_ = chromedp.Cancel(closing)
			stop()
			stopAllocator()
		}
		b.err = chromedp.Do(ctx)
	})
	return b.ctx, b.err
}

func (b *sharedBrowser) close() {
	if b.stop != nil {
		b.stop()
	}
}

// inBrowser begins a test that looks at the page in Chromium. Such tests run beside each other.
func inBrowser(t *testing.T) {
	t.Helper()
	tier.SkipQuick(t, "it needs Chromium")
	component.Command(t, "chromium", "apt-get install chromium")
	t.Parallel()
}

// browse opens a tab of so many pixels, with cookies and storage of its own. The scripts run in
// it before those of each page.
func browse(t *testing.T, width, height int64, scripts ...string) *tab {
	t.Helper()
	browser, err := chromium.start(component.Command(t, "chromium", "apt-get install chromium"))
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := chromedp.NewContext(browser, chromedp.WithNewBrowserContext())
	p := &tab{T: t, ctx: ctx}
	t.Cleanup(func() {
		stop()
		p.reportErrors()
	})
	if err := chromedp.Do(ctx, chromedp.EmulateViewport(width, height)); err != nil {
		t.Fatal(err)
	}
	if err := chromedp.Listen(ctx, p.heard); err != nil {
		t.Fatal(err)
	}
	p.do(chromedp.Func(func(ctx context.Context, target *chromedp.Target) error {
		if _, err := cdp.Call(ctx, target, browserlog.Enable, cdp.Empty{}); err != nil {
			return err
		}
		for _, s := range scripts {
			params := page.AddScriptToEvaluateOnNewDocumentParams{Source: s}
			if _, err := cdp.Call(ctx, target, page.AddScriptToEvaluateOnNewDocument, params); err != nil {
				return err
			}
		}
		// Without it only one of the tabs has the focus.
		focus := emulation.SetFocusEmulationEnabledParams{Enabled: true}
		_, err := cdp.Call(ctx, target, emulation.SetFocusEmulationEnabled, focus)
		return err
	}))
	p.prefers("light")
	return p
}

// fastClock makes the clock and the timers of a page ten times as fast. The page takes its
// notices away as late as always, so that they can be seen.
const fastClock = `(() => {
  const timeout = setTimeout, interval = setInterval, now = Date.now, start = now();
  setTimeout = (f, ms, ...args) => timeout(f, f.name === "quiet" ? ms : ms / 10, ...args);
  setInterval = (f, ms, ...args) => interval(f, ms / 10, ...args);
  Date.now = () => start + (now() - start) * 10;
})()`
