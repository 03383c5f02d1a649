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

	"github.com/pawl-dev/pawl/serve"
)

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

// reportErrors fails the test for each error of the page that is not excused.
func (p *tab) reportErrors() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, w := range p.wrong {
		if !slices.ContainsFunc(p.excused, func(e string) bool { return strings.Contains(w, e) }) {
			p.Errorf("the page says: %s", w)
		}
	}
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

// until waits for an expression to be true. The page looks at it every few milliseconds.
func (p *tab) until(expression string) {
	p.Helper()
	look := fmt.Sprintf(`new Promise((done, failed) => {
	  const end = performance.now() + 2000;
	  const look = () => {
	    try {
	      if (%s) done(true);
	      else if (performance.now() > end) done(false);
	      else setTimeout(look, 15);
	    } catch (err) { failed(err); }
	  };
	  look();
	})`, expression)
	for end := time.Now().Add(patience); !value[bool](p, look); {
		if time.Now().After(end) {
			p.fatal("it never came about: %s", expression)
		}
	}
}

// sees waits for a text in what a selector finds.
func (p *tab) sees(selector, text string) {
	p.Helper()
	p.until(fmt.Sprintf(`[...document.querySelectorAll(%q)].some((e) => e.textContent.includes(%q))`, selector, text))
}

// click clicks an element. The page may draw the element anew between the moment when the
// browser finds it and the click; then click looks for it again.
func (p *tab) click(selector string) {
	p.Helper()
	ctx, cancel := context.WithTimeout(p.ctx, patience)
	defer cancel()
	for {
		p.until(fmt.Sprintf(`document.querySelector(%q)`, selector))
		err := chromedp.Do(ctx, chromedp.Click(chromedp.CSS(selector)))
		switch {
		case err == nil:
			return
		case !strings.Contains(err.Error(), "Could not find node with given id"):
			p.fatal("%v", err)
		}
	}
}

// row clicks the first row of the timeline that has a text, when the timeline stands still.
func (p *tab) row(text string) {
	p.Helper()
	p.sees("#timeline .row", text)
	at := value[[]float64](p, fmt.Sprintf(`(async () => {
	  const place = () => {
	    const rows = [...document.querySelectorAll("#timeline .row")];
	    const box = rows.find((e) => e.textContent.includes(%q)).querySelector(".what").getBoundingClientRect();
	    return [box.x + 8, box.y + 8];
	  };
	  for (let last = ""; ;) {
	    await %s;
	    if (last === (last = place().join())) return place();
	  }
	})()`, text, drawn))
	p.do(chromedp.MouseClickXY(at[0], at[1]))
}

// drawn is a promise that the page keeps when it has drawn itself.
const drawn = `new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(() => done(true))))`

// first goes to the first row of the list that a selector finds, by the keys gg. The page wants the second one soon:
// on a machine with much to do they are pressed again.
func (p *tab) first(list string) {
	p.Helper()
	for end := time.Now().Add(patience); ; {
		p.keys("gg")
		if value[bool](p, fmt.Sprintf(`%s.then(() => !!document.querySelector(%q))`, drawn, list+` .selected[data-i="0"]`)) {
			return
		}
		if time.Now().After(end) {
			p.fatal("gg does not lead to the first row")
		}
	}
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
	value[bool](p, drawn)
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
