package fence

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"testing"

	"github.com/pawl-dev/pawl/errdefs"
	"github.com/pawl-dev/pawl/sandbox"
	"github.com/pawl-dev/pawl/sandbox/internal/reach"
)

// resolving makes a dialer with these answers; every connection goes to addr, and where it should have gone is noted.
func resolving(p sandbox.Policy, addr string, answers ...[]string) (d *Dialer, dialled *[]string, asked *int) {
	d, dialled, asked = Dial(p), new([]string), new(int)
	connect := d.connect
	d.lookUp = func(_ context.Context, _, host string) ([]netip.Addr, error) {
		if a, err := netip.ParseAddr(host); err == nil {
			return []netip.Addr{a}, nil
		}
		if len(answers) == 0 {
			return nil, &net.DNSError{Err: "no such host", Name: host, IsNotFound: true}
		}
		var out []netip.Addr
		for _, a := range answers[min(*asked, len(answers)-1)] {
			out = append(out, netip.MustParseAddr(a))
		}
		*asked++
		return out, nil
	}
	d.connect = func(ctx context.Context, network, to string) (net.Conn, error) {
		*dialled = append(*dialled, to)
		return connect(ctx, network, addr)
	}
	return d, dialled, asked
}

func TestADialGoesToAnAddressThatWasChecked(t *testing.T) {
	srv := httptest.NewServer(http.NotFoundHandler())
	defer srv.Close()
	addr := srv.Listener.Addr().String()
	hosts := func(h ...string) sandbox.Policy { return sandbox.Policy{Network: sandbox.Network{Hosts: h}} }
	all := sandbox.Policy{Network: sandbox.Network{All: true}}
	for name, c := range map[string]struct {
		p       sandbox.Policy
		to      string
		answers [][]string
		dialled string
		class   *errdefs.Class
	}{
		"a host of the list":                    {hosts("a.com"), "a.com:80", [][]string{{"1.1.1.1"}}, "1.1.1.1:80", nil},
		"below a star":                          {hosts("*.a.com"), "x.a.com:80", [][]string{{"1.1.1.1"}}, "1.1.1.1:80", nil},
		"another host":                          {hosts("a.com"), "b.com:80", [][]string{{"1.1.1.1"}}, "", errdefs.PolicyDenied},
		"no network":                            {sandbox.Policy{}, "a.com:80", [][]string{{"1.1.1.1"}}, "", errdefs.PolicyDenied},
		"a name for this machine":               {hosts("a.com"), "a.com:80", [][]string{{"127.0.0.1"}}, "", errdefs.PolicyDenied},
		"a name for a metadata service":         {all, "a.com:80", [][]string{{"169.254.169.254"}}, "", errdefs.PolicyDenied},
		"an address of a private network":       {all, "10.0.0.1:80", nil, "", errdefs.PolicyDenied},
		"one that is named":                     {hosts("10.0.0.1"), "10.0.0.1:80", nil, "10.0.0.1:80", nil},
		"one that is named, with all":           {sandbox.Policy{Network: sandbox.Network{All: true, Hosts: []string{"10.0.0.1"}}}, "x.com:80", [][]string{{"10.0.0.1"}}, "10.0.0.1:80", nil},
		"a public one where names are allowed":  {hosts("a.com"), "1.1.1.1:80", nil, "", errdefs.PolicyDenied},
		"the good one of two":                   {hosts("a.com"), "a.com:80", [][]string{{"10.0.0.1", "1.1.1.1"}}, "1.1.1.1:80", nil},
		"an answer that changes":                {hosts("a.com"), "a.com:80", [][]string{{"1.1.1.1"}, {"127.0.0.1"}}, "1.1.1.1:80", nil},
		"localhost by name":                     {hosts("localhost"), "localhost:80", [][]string{{"127.0.0.1"}}, "127.0.0.1:80", nil},
		"localhost that isn't this machine":     {hosts("localhost"), "localhost:80", [][]string{{"10.0.0.1"}}, "", errdefs.PolicyDenied},
		"an address in another form":            {all, "[::ffff:127.0.0.1]:80", nil, "", errdefs.PolicyDenied},
		"a name that is not there":              {hosts("a.com"), "a.com:80", nil, "", errdefs.NotAvailable},
		"a public address of this machine":      {all, "9.9.9.9:80", nil, "", errdefs.PolicyDenied},
		"a name for that":                       {hosts("a.com"), "a.com:80", [][]string{{"9.9.9.9"}}, "", errdefs.PolicyDenied},
		"that in another form":                  {all, "[::ffff:9.9.9.9]:80", nil, "", errdefs.PolicyDenied},
		"a public one that is named":            {hosts("9.9.9.9"), "9.9.9.9:80", nil, "9.9.9.9:80", nil},
		"no fence":                              {sandbox.Policy{Off: true}, "10.0.0.1:80", nil, "10.0.0.1:80", nil},
		"an answer with this machine's network": {hosts("a.com"), "a.com:80", [][]string{{"0.0.0.0"}}, "", errdefs.PolicyDenied},
	} {
		d, dialled, asked := resolving(c.p, addr, c.answers...)
		d.own = func() ([]netip.Addr, error) {
			return []netip.Addr{netip.MustParseAddr("127.0.0.1"), netip.MustParseAddr("9.9.9.9")}, nil
		}
		conn, err := d.DialContext(t.Context(), "tcp", c.to)
		if err == nil {
			_ = conn.Close()
		}
		if got := strings.Join(*dialled, " "); got != c.dialled || c.class == nil != (err == nil) || err != nil && !errors.Is(err, c.class) || *asked > 1 {
			t.Errorf("%s: %q after %d questions, %v", name, got, *asked, err)
		}
	}
	if _, err := new(Dialer).DialContext(t.Context(), "tcp", "a.com:80"); !errors.Is(err, errdefs.PolicyDenied) {
		t.Error(err)
	}
	if _, err := Dial(all).DialContext(t.Context(), "udp", "a.com:80"); !errors.Is(err, errdefs.PolicyDenied) {
		t.Error(err)
	}
}

func TestTheAddressesOfThisMachineAreThoseOfItsInterfaces(t *testing.T) {
	own, err := reach.OwnAddresses()
	if err != nil {
		t.Fatal(err)
	}
	all, err := net.InterfaceAddrs()
	if err != nil || len(own) != len(all) || len(own) == 0 {
		t.Error(own, all, err)
	}
	for _, a := range own { // whatever they are, nobody gets to them by a name
		d, dialled, _ := resolving(sandbox.Policy{Network: sandbox.Network{Hosts: []string{"a.com"}}}, "", []string{a.String()})
		if _, err := d.DialContext(t.Context(), "tcp", "a.com:80"); !errors.Is(err, errdefs.PolicyDenied) || len(*dialled) > 0 {
			t.Errorf("%s: %v", a, err)
		}
		if p := (sandbox.Policy{Network: sandbox.Network{Hosts: []string{a.String()}}}).Within(sandbox.Policy{Network: sandbox.Network{All: true}}); !p.Network.None() {
			t.Error(a, "may be named by All")
		}
	}
	d, dialled, _ := resolving(sandbox.Policy{Network: sandbox.Network{All: true}}, "", []string{"1.1.1.1"})
	d.own = func() ([]netip.Addr, error) { return nil, errors.New("no list") }
	if _, err := d.DialContext(t.Context(), "tcp", "a.com:80"); !errors.Is(err, errdefs.PolicyDenied) || len(*dialled) > 0 {
		t.Error("without a list of addresses:", err)
	}
}

func TestAClientWithTheTransportReachesWhatIsAllowed(t *testing.T) {
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { _, _ = io.WriteString(w, "hello "+r.Host) }))
	defer srv.Close()
	t.Setenv("HTTP_PROXY", "http://127.0.0.1:1") // of no effect
	get := func(p sandbox.Policy) (string, error) {
		tr := Dial(p).Transport()
		defer tr.CloseIdleConnections()
		resp, err := (&http.Client{Transport: tr}).Get(srv.URL)
		if err != nil {
			return "", err
		}
		defer func() { _ = resp.Body.Close() }()
		b, err := io.ReadAll(resp.Body)
		return string(b), err
	}
	if got, err := get(sandbox.Policy{Network: sandbox.Network{Hosts: []string{"127.0.0.1"}}}); got != "hello "+srv.Listener.Addr().String() || err != nil {
		t.Error(got, err)
	}
	if _, err := get(sandbox.Policy{Network: sandbox.Network{All: true}}); !errors.Is(err, errdefs.PolicyDenied) {
		t.Error(err)
	}
}

// Nobody needs to be asked about a host that no connection would go to.
func TestWhatADialRefusesIsKnownBeforehand(t *testing.T) {
	for _, c := range []struct {
		network sandbox.Network
		host    string
		refused bool
	}{
		{sandbox.Network{All: true}, "example.com", false},
		{sandbox.Network{All: true}, "127.0.0.1", true},
		{sandbox.Network{All: true}, "localhost", true},
		{sandbox.Network{All: true}, "::ffff:127.0.0.1", true},
		{sandbox.Network{All: true}, "169.254.169.254", true},
		{sandbox.Network{All: true, Hosts: []string{"127.0.0.1"}}, "127.0.0.1", false},
		{sandbox.Network{All: true, Hosts: []string{"localhost"}}, "localhost", false},
		{sandbox.Network{Hosts: []string{"*.example.com"}}, "a.example.com", false},
		{sandbox.Network{Hosts: []string{"*.example.com"}}, "example.org", true},
		{sandbox.Network{}, "example.com", true},
	} {
		if err := Dial(sandbox.Policy{Network: c.network}).Refuses(c.host); c.refused != errdefs.PolicyDenied.Is(err) || !c.refused && err != nil {
			t.Errorf("%+v %s: %v", c.network, c.host, err)
		}
	}
	if err := Dial(sandbox.Policy{Off: true}).Refuses("127.0.0.1"); err != nil {
		t.Error(err)
	}
}
