package main

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/pawl-dev/pawl/internal/readme"
)

func TestMain(m *testing.M) { readme.Main(m, main) }

func TestTheCommandsOfTheREADME(t *testing.T) {
	page := readme.Open(t, "examples/support-desk")
	if out := page.Run(); strings.Count(out, "shop: paid") != 1 {
		t.Error(out)
	}
}

// desks are processes of the program with one journal, and the shop that they ask.
type desks struct {
	t    *testing.T
	args []string
	mu   sync.Mutex
	paid []string
}

func open(t *testing.T, args ...string) *desks {
	d := &desks{t: t}
	shop := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodPost {
			var body strings.Builder
			_, _ = fmt.Fprint(&body, r.URL.Path, " ", r.Header.Get("Idempotency-Key") != "", " ")
			_ = r.Write(&body)
			d.mu.Lock()
			d.paid = append(d.paid, body.String())
			d.mu.Unlock()
		}
		_, _ = fmt.Fprint(w, `{"state": "delivered"}`)
	}))
	t.Cleanup(shop.Close)
	d.args = append([]string{"-dir", t.TempDir(), "-shop", shop.Listener.Addr().String()}, args...)
	return d
}

// refunds are what the shop was asked for.
func (d *desks) refunds() []string {
	d.mu.Lock()
	defer d.mu.Unlock()
	return slices.Clone(d.paid)
}

func (d *desks) run(args ...string) string {
	d.t.Helper()
	out, err := readme.Command(d.t, "../..", append(slices.Clone(d.args), args...)...).CombinedOutput()
	if err != nil {
		d.t.Fatalf("%v\n%s", err, out)
	}
	return string(out)
}

func TestARefundIsMadeOnceItIsApproved(t *testing.T) {
	d := open(t)
	if out := d.run("Order 7 came broken."); !strings.Contains(out, "waits") || len(d.refunds()) != 0 {
		t.Fatalf("before anybody approved, the shop was asked for %q\n%s", d.refunds(), out)
	}
	if out := d.run(); !strings.Contains(out, "waits") || len(d.refunds()) != 0 { // nobody has answered
		t.Fatalf("%q\n%s", d.refunds(), out)
	}
	out := d.run("-approve")
	if !strings.Contains(out, "on their way") || len(d.refunds()) != 1 || !strings.HasPrefix(d.refunds()[0], "/refunds true ") || !strings.HasSuffix(d.refunds()[0], `{"order":"7","cents":4990}`) {
		t.Errorf("the shop was asked for %q\n%s", d.refunds(), out)
	}
}

func TestARefundThatIsRejectedIsNotMade(t *testing.T) {
	d := open(t)
	d.run("Order 7 came broken.")
	if out := d.run("-reject", "We repair it first."); !strings.Contains(out, "somebody will write") || len(d.refunds()) != 0 {
		t.Errorf("%q\n%s", d.refunds(), out)
	}
}

func TestASmallRefundWaitsForNobody(t *testing.T) {
	script, err := os.ReadFile("model.yaml")
	if err != nil {
		t.Fatal(err)
	}
	cheap := filepath.Join(t.TempDir(), "model.yaml")
	if err := os.WriteFile(cheap, []byte(strings.ReplaceAll(string(script), "4990", "2000")), 0o600); err != nil {
		t.Fatal(err)
	}
	d := open(t, "-model", "scripted/"+cheap)
	if out := d.run("Order 7 came broken."); strings.Contains(out, "waits") || len(d.refunds()) != 1 {
		t.Errorf("%q\n%s", d.refunds(), out)
	}
}
