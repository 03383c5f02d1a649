package fence

import (
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/pawl-dev/pawl/sandbox"
)

func TestACommandReachesTheHostsOfThePolicyByTheProxyOnly(t *testing.T) {
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "hello") }))
	defer srv.Close()
	addr := srv.Listener.Addr().String()
	each(t, func(t *testing.T, caps Capabilities) {
		p := newPlace(t)
		p.env = append(p.env, "TCP="+addr)
		if !caps.Hosts.Holds {
			if _, err := open(sandbox.Policy{Root: p.in, Network: sandbox.Network{Hosts: []string{"127.0.0.1"}}}, nil, caps); err == nil || !strings.Contains(err.Error(), "Network.Hosts") {
				t.Error(err)
			}
			return
		}
		before := len(descriptors(t))
		f := p.fence(caps, sandbox.Policy{Network: sandbox.Network{Hosts: []string{"127.0.0.1"}}})
		for range 3 {
			if out, err := p.attack(f, "proxy"); err != nil {
				t.Errorf("the host is not reached: %s", out)
			}
		}
		if out, err := p.attack(f, "tcp"); err == nil {
			t.Errorf("it is reached without the proxy: %s", out)
		}
		if out, err := p.attack(f, "loopback"); err != nil {
			t.Errorf("its own servers are not reached: %s", out)
		}
		for end := time.Now().Add(time.Minute); ; time.Sleep(5 * time.Millisecond) {
			f.sys.hub.mu.Lock()
			held := len(f.sys.hub.held)
			f.sys.hub.mu.Unlock()
			if held == 0 {
				break
			}
			if time.Now().After(end) {
				t.Fatalf("listeners of %d commands that have ended are kept", held)
			}
		}
		other := p.fence(caps, sandbox.Policy{Network: sandbox.Network{Hosts: []string{"example.com"}}})
		if out, err := p.attack(other, "proxy"); err == nil || !strings.Contains(out, "403") || !strings.Contains(out, "sandbox.network.hosts") {
			t.Errorf("another host: %s", out)
		}
		// Whose refusal it was is known, though two run at once.
		var one, two, none Refused
		var both sync.WaitGroup
		for r, script := range map[*Refused]string{&one: "a.test:443", &two: "b.test:443"} {
			cmd, err := other.Command(WithRefused(t.Context(), r), "bash", "-c", `for i in 1 2; do exec 3<>/dev/tcp/127.0.0.1/${HTTP_PROXY##*:}; printf 'CONNECT `+script+` HTTP/1.1\r\nHost: x\r\n\r\n' >&3; head -1 <&3; done`)
			if err != nil {
				t.Fatal(err)
			}
			both.Go(func() {
				if out, err := p.output(cmd); err != nil || !strings.HasPrefix(out, "HTTP/1.1 403 Forbidden: sandbox: dial "+script) || !strings.Contains(out, "sandbox.network.hosts") {
					t.Errorf("%q %v", out, err)
				}
			})
		}
		both.Wait()
		if a, b := one.All(), two.All(); len(a) != 1 || len(b) != 1 || !strings.HasPrefix(a[0], "a.test:443: ") || !strings.HasPrefix(b[0], "b.test:443: ") || len(none.All()) > 0 {
			t.Errorf("%q %q", a, b)
		}
		srv.CloseClientConnections()
		if f.Close() != nil || other.Close() != nil {
			t.Error("not closed")
		}
		for end := time.Now().Add(time.Minute); len(descriptors(t)) > before; time.Sleep(5 * time.Millisecond) { // the server's
			if time.Now().After(end) {
				t.Fatalf("%d descriptors before, now %v", before, descriptors(t))
			}
		}
	})
}

// descriptors are what this process has open.
func descriptors(t *testing.T) (out []string) {
	t.Helper()
	entries, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		to, _ := os.Readlink("/proc/self/fd/" + e.Name())
		out = append(out, e.Name()+" "+to)
	}
	return out
}
