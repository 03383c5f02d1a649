package sandbox

import (
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"time"
)

func TestACommandReachesTheHostsOfThePolicyByTheProxyOnly(t *testing.T) {
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "hello") }))
	defer srv.Close()
	addr := srv.Listener.Addr().String()
	each(t, func(t *testing.T, caps Capabilities) {
		p := newPlace(t)
		p.env = append(p.env, "TCP="+addr)
		if !caps.Hosts.Holds {
			if _, err := open(Policy{Root: p.in, Network: Network{Hosts: []string{"127.0.0.1"}}}, nil, caps); err == nil || !strings.Contains(err.Error(), "Network.Hosts") {
				t.Error(err)
			}
			return
		}
		before := len(descriptors(t))
		f := p.fence(caps, Policy{Network: Network{Hosts: []string{"127.0.0.1"}}})
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
		other := p.fence(caps, Policy{Network: Network{Hosts: []string{"example.com"}}})
		if out, err := p.attack(other, "proxy"); err == nil || !strings.Contains(out, "403") {
			t.Errorf("another host: %s", out)
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
