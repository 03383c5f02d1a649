package main

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"github.com/pawl-dev/pawl/internal/component"
	"github.com/pawl-dev/pawl/internal/readme"
	"github.com/pawl-dev/pawl/internal/testkit/tier"
)

func TestMain(m *testing.M) { readme.Main(m, main) }

func TestTheCommandsOfTheREADME(t *testing.T) {
	component.Command(t, "curl", "install curl")
	readme.Open(t, "examples/web-ui").Run()
}

const token = "the-token-of-a-test"

// start runs the program, and gives its address.
func start(t *testing.T, dir string) (url string) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	url = "http://" + l.Addr().String()
	server := readme.Command(t, "../..", "-addr", l.Addr().String(), "-dir", dir)
	server.Env, server.Stderr = append(server.Env, "PAWL_TOKEN="+token), os.Stderr
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	if err := server.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	go func() {
		_ = server.Wait() // it is killed
		close(ended)
	}()
	t.Cleanup(func() {
		_ = server.Process.Kill()
		<-ended
	})
	for range 1000 {
		if res, err := http.Get(url + "/healthz"); err == nil {
			_ = res.Body.Close()
			return url
		}
		select {
		case <-ended:
			t.Fatal("the server has ended")
		case <-time.After(20 * time.Millisecond): // another process: nothing tells that it listens
		}
	}
	t.Fatal("the server does not answer")
	return ""
}

func TestWhatIsApprovedOnThePageIsPublished(t *testing.T) {
	tier.SkipQuick(t, "it needs Chromium")
	chromium := component.Command(t, "chromium", "apt-get install chromium")
	opts := append(chromedp.DefaultExecAllocatorOptions[:len(chromedp.DefaultExecAllocatorOptions):len(chromedp.DefaultExecAllocatorOptions)], chromedp.ExecPath(chromium))
	if os.Getuid() == 0 {
		opts = append(opts, chromedp.NoSandbox)
	}
	alloc, stop := chromedp.NewExecAllocator(context.Background(), opts...)
	defer stop()
	for button, want := range map[string]struct{ says, file string }{
		"Approve": {"It is published.", "The pawl holds.\n"},
		"Reject":  {"It stays a draft.", ""},
	} {
		t.Run(button, func(t *testing.T) {
			dir := t.TempDir()
			url := start(t, dir)
			news := func() string {
				b, err := os.ReadFile(filepath.Join(dir, "news.txt"))
				if err != nil && !os.IsNotExist(err) {
					t.Fatal(err)
				}
				return string(b)
			}
			tab, closeTab := chromedp.NewContext(alloc)
			defer closeTab()
			ctx, cancel := context.WithTimeout(tab, 40*time.Second)
			defer cancel()
			if err := chromedp.Do(ctx, chromedp.Navigate(url+"/chat/")); err != nil {
				t.Fatal(err)
			}
			// until waits for an expression on the page to be true.
			until := func(expression string) {
				t.Helper()
				for {
					is, err := chromedp.Run(ctx, chromedp.Evaluate[bool](expression))
					if err != nil {
						text, _ := chromedp.Run(tab, chromedp.Evaluate[string](`document.body.innerText`))
						t.Fatalf("%s: %v\n%s", expression, err, text)
					}
					if is {
						return
					}
					time.Sleep(20 * time.Millisecond) // a browser: it has no clock of ours
				}
			}
			until(`document.readyState === 'complete'`)
			until(fmt.Sprintf(`token.value = %q, prompt.value = 'The pawl holds.', document.querySelector('form button').click(), true`, token))
			until(`document.querySelector('.asks button') !== null`)
			if news() != "" {
				t.Error("it was published before anybody said so")
			}
			until(fmt.Sprintf(`[...document.querySelectorAll('.asks button')].find((b) => b.textContent === %q).click(), true`, button))
			until(fmt.Sprintf(`[...document.querySelectorAll('.reply')].some((e) => e.textContent === %q)`, want.says))
			if news() != want.file {
				t.Errorf("published: %q", news())
			}
		})
	}
}
