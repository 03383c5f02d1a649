package a2aserver

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/pawl-dev/pawl/a2a"
	"github.com/pawl-dev/pawl/errdefs"
	"github.com/pawl-dev/pawl/internal/component"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// sender sends notifications, to this machine too when local says so.
func sender(t *testing.T, local bool) *notifier {
	t.Helper()
	s := &Server{opts: Options{Logger: slog.New(slog.DiscardHandler)}}
	if local {
		s.opts.PushHosts = []string{"127.0.0.1"}
	}
	n := newNotifier(s)
	n.pause = time.Millisecond
	t.Cleanup(n.close)
	return n
}

func TestANotificationIsSentUntilItGetsThrough(t *testing.T) {
	for name, c := range map[string]struct {
		answers []int // the last one again and again
		asked   int32
		ok      bool
	}{
		"at once":                         {[]int{200}, 1, true},
		"the receiver comes back":         {[]int{503, 500, 429, 204}, 4, true},
		"the receiver never comes back":   {[]int{503}, pushTries, false},
		"the receiver does not want it":   {[]int{403}, 1, false},
		"the receiver sends it elsewhere": {[]int{307}, 1, false},
	} {
		t.Run(name, func(t *testing.T) {
			var asked, elsewhere atomic.Int32
			receiver := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if r.URL.Path == "/elsewhere" {
					elsewhere.Add(1)
					return
				}
				b, _ := io.ReadAll(r.Body)
				if string(b) != "{}" || r.Header.Get("Authorization") != "Bearer cred" || r.Header.Get("X-A2A-Notification-Token") != "tok" || r.Header.Get("Content-Type") != "application/a2a+json" {
					t.Errorf("%v %s", r.Header, b)
				}
				n := int(asked.Add(1))
				w.Header().Set("Location", "/elsewhere")
				w.WriteHeader(c.answers[min(n, len(c.answers))-1])
				_, _ = io.WriteString(w, strings.Repeat("x", 1<<20))
			}))
			defer receiver.Close()
			err := sender(t, true).deliver(t.Context(), Push{URL: receiver.URL, Scheme: "Bearer", Credentials: "cred", Token: "tok", Version: "1.0"}, []byte("{}"))
			if (err == nil) != c.ok || asked.Load() != c.asked || elsewhere.Load() != 0 {
				t.Errorf("%v, asked %d times, elsewhere %d", err, asked.Load(), elsewhere.Load())
			}
		})
	}
}

// Nothing inside is reached: not by an address, and not by a name that leads to one, which is looked at when the connection is made.
func TestNothingInsideIsReached(t *testing.T) {
	n := sender(t, false)
	for _, url := range []string{
		"https://127.0.0.1/", "https://localhost/", "https://[::1]/", "https://10.1.2.3/", "https://192.168.0.1/", "https://169.254.169.254/latest/meta-data/", "https://[fd00::1]/", "https://0.0.0.0/",
		"https://[::ffff:127.0.0.1]/", "https://100.64.0.1/", "http://client.example/", "ftp://client.example/", "https://", "client.example", "https://u:p@client.example/", "file:///etc/passwd",
	} {
		var bad *a2a.Error
		if err := n.check(&a2a.PushConfig{URL: url}); !errors.As(err, &bad) || bad.Code != a2a.CodeInvalidParams {
			t.Errorf("%s: %v", url, err)
		}
	}
	if err := n.check(&a2a.PushConfig{URL: "https://client.example/notify", Token: "t", Authentication: &a2a.Authentication{Scheme: "Bearer", Credentials: "c"}}); err != nil {
		t.Error(err)
	}
	name, err := os.Hostname()
	if err != nil {
		t.Fatal(err)
	}
	if addrs, err := net.DefaultResolver.LookupHost(t.Context(), name); err != nil || len(addrs) == 0 {
		component.Absent(t, "the name of this machine leads nowhere", "have it in /etc/hosts")
	}
	reached := atomic.Bool{}
	inside := httptest.NewTLSServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { reached.Store(true) }))
	defer inside.Close()
	_, port, _ := net.SplitHostPort(inside.Listener.Addr().String())
	url := "https://" + name + ":" + port + "/"
	if err := n.check(&a2a.PushConfig{URL: url}); err != nil {
		t.Fatalf("a name may lead anywhere: %v", err)
	}
	if again, err := n.post(t.Context(), Push{URL: url}, []byte("{}")); !errdefs.PolicyDenied.Is(err) || again || reached.Load() {
		t.Errorf("%v, again %v", err, again)
	}
}

func TestAReceiverThatDoesNotAnswerIsGivenUp(t *testing.T) {
	hold := make(chan struct{})
	receiver := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		select {
		case <-hold:
		case <-r.Context().Done():
		}
	}))
	defer receiver.Close()
	defer close(hold)
	n := sender(t, true)
	n.client.Timeout = 20 * time.Millisecond
	if err := n.deliver(t.Context(), Push{URL: receiver.URL}, []byte("{}")); err == nil {
		t.Error("it got through")
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := n.deliver(ctx, Push{URL: receiver.URL}, []byte("{}")); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}

func TestPushesAreKeptInMemory(t *testing.T) {
	s := MemoryPushes()
	want := Push{"t", "1", "https://client.example", "tok", "Bearer", "cred", "1.0", "told"}
	for _, p := range []Push{{Task: "t", ID: "1"}, want, {Task: "u", ID: "1"}} {
		if err := s.Put(t.Context(), p); err != nil {
			t.Fatal(err)
		}
	}
	for range 2 { // twice is no error
		if err := s.Delete(t.Context(), "u", "1"); err != nil {
			t.Error(err)
		}
	}
	if all, err := s.All(t.Context()); err != nil || len(all) != 1 || all[0] != want {
		t.Errorf("%+v %v", all, err)
	}
}

// An id leads to one task, but where a session has the very name of another one's run: which of them is there decides.
func TestAnIDLeadsToItsTask(t *testing.T) {
	for _, p := range []place{{"s", "s"}, {"s", "s.abc"}, {"s", "run-1"}, {"a/b", "a/b.abc"}, {"a/b", "run/1"}, {"a.b", "a.b"}, {"a.b", "a.b.c"}, {"s", "s.a.b"}, {"s", "c.d"}, {"s/c", "s/c.d"}, {"ä ö", "100%"}} {
		var found bool
		for _, q := range places(p.id()) {
			switch {
			case q.id() != p.id():
			case q == p:
				found = true
			case q.run != p.id():
				t.Errorf("%q is %+v, and %+v", p.id(), p, q)
			}
		}
		if !found {
			t.Errorf("%+v: %q does not lead to it", p, p.id())
		}
	}
}

func TestModes(t *testing.T) {
	for _, c := range []struct {
		have, accepted string
		meet           bool
	}{
		{"text/plain", "", true},
		{"text/plain", "text/*", true},
		{"text/*", "text/markdown; charset=utf-8", true},
		{"text/plain", "*/*", true},
		{"text/plain", "application/json", false},
		{"image/png", "IMAGE/PNG", true},
		{"text/plain", "textual/plain", false},
	} {
		var accepted []string
		if c.accepted != "" {
			accepted = []string{c.accepted}
		}
		if got := (modes{c.have}).meet(accepted); got != c.meet {
			t.Errorf("%s for %s: %v", c.have, c.accepted, got)
		}
	}
	if !(modes{"image/*"}).take("image/png") || (modes{"image/*"}).take("video/png") {
		t.Error("a range")
	}
}

// slow is a store that takes its time.
type slow struct{ PushStore }

func (s slow) Put(ctx context.Context, p Push) error {
	time.Sleep(time.Millisecond)
	return s.PushStore.Put(ctx, p)
}

func TestThereAreNoMorePushesThanMayBeHoweverManyAsk(t *testing.T) {
	n := sender(t, false)
	n.store = slow{MemoryPushes()}
	n.stop() // nobody is told
	var all sync.WaitGroup
	var took atomic.Int32
	for i := range 5 * mostOfTask {
		all.Go(func() {
			if _, err := n.set(t.Context(), a2a.V1, a2a.PushConfig{TaskID: "t", ID: number(int64(i)), URL: "https://client.example/"}); err == nil {
				took.Add(1)
			}
		})
	}
	all.Wait()
	if kept, err := n.of(t.Context(), "t"); err != nil || len(kept) != mostOfTask || took.Load() != mostOfTask {
		t.Errorf("%d are kept, %d were taken: %v", len(kept), took.Load(), err)
	}
}
