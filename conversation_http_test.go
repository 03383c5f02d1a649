package pawl_test

import (
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/pawl-dev/pawl"
	"github.com/pawl-dev/pawl/errdefs"
	"github.com/pawl-dev/pawl/message"
	"github.com/pawl-dev/pawl/model/scripted"
)

// byHTTP has look answered by HTTP, called with input, and gives what the model was told.
func byHTTP(t *testing.T, h pawl.HTTPTool, input string) string {
	t.Helper()
	c := converse(t, packOf(t, looks), scripted.New(scripted.Calls(callOf("c", "look", input)), scripted.Text("x")))
	c.OnTool("pay", func(map[string]any) (any, error) { return "x", nil })
	if err := c.OnToolHTTP("look", h); err != nil {
		t.Fatal(err)
	}
	send(t, c, "a")
	return transcript(t, c)[2]
}

func TestAToolIsAnsweredByHTTP(t *testing.T) {
	t.Setenv("SHOP_TOKEN", "s3cr3t")
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		switch {
		case strings.HasPrefix(r.URL.Path, "/long"):
			fmt.Fprint(w, strings.Repeat("x", 2000))
		case r.URL.Path == "/slow":
			<-r.Context().Done()
		case r.URL.Path == "/gone":
			http.Error(w, "no such city", http.StatusNotFound)
		case r.URL.Path == "/port":
			http.Redirect(w, r, "http://127.0.0.1:1/", http.StatusFound)
		case r.URL.Path == "/away":
			http.Redirect(w, r, "http://169.254.169.254/latest", http.StatusFound)
		default:
			fmt.Fprintf(w, `{"data": [{"seen": %q}]}`, strings.Join([]string{r.Method, r.URL.EscapedPath(), r.URL.RawQuery, string(body), r.Header.Get("Authorization"), r.Header.Get("X-A")}, " "))
		}
	}))
	defer s.Close()
	local := []string{"127.0.0.1"}
	for name, tc := range map[string]struct {
		tool        pawl.HTTPTool
		input, want string
	}{
		"post":                    {pawl.HTTPTool{URL: "/{city}/w", Result: "data[0].seen", Header: http.Header{"x-a": {"1"}}, Environment: map[string]string{"Authorization": "SHOP_TOKEN"}}, `{"city":"a/../b?c"}`, `[look = POST /a%2F..%2Fb%3Fc/w  {"city":"a/../b?c"} s3cr3t 1]`},
		"get":                     {pawl.HTTPTool{URL: "/w?q={city}", Method: "GET", Result: "data[0].seen"}, `{"city":"a&b=c","n":3}`, `[look = GET /w q=a%26b%3Dc&n=3   ]`},
		"dots":                    {pawl.HTTPTool{URL: "/a/{city}"}, `{"city":".."}`, `in the path`},
		"a part":                  {pawl.HTTPTool{URL: "/w", Method: "GET", Result: "data[0]"}, `{"city":"x"}`, `[look = {"seen":`},
		"no part":                 {pawl.HTTPTool{URL: "/w", Result: "data[1].seen"}, `{"city":"x"}`, `the answer has no data[1].seen`},
		"too long":                {pawl.HTTPTool{URL: "/long", MaxBytes: 1000}, `{"city":"x"}`, `more than 1000 bytes`},
		"too slow":                {pawl.HTTPTool{URL: "/slow", Timeout: 20 * time.Millisecond}, `{"city":"x"}`, `exceeded`},
		"an error":                {pawl.HTTPTool{URL: "/gone"}, `{"city":"x"}`, "404 Not Found\nno such city"},
		"no token":                {pawl.HTTPTool{URL: "/w", Environment: map[string]string{"A": "PAWL_TEST_UNSET"}}, `{"city":"x"}`, `PAWL_TEST_UNSET is not in the environment`},
		"elsewhere, with secrets": {pawl.HTTPTool{URL: "/port", Method: "GET", Environment: map[string]string{"X-A": "SHOP_TOKEN"}}, `{"city":"x"}`, `not for`},
		"redirected":              {pawl.HTTPTool{URL: "/away", Method: "GET"}, `{"city":"x"}`, `169.254.169.254, which is not allowed unless HTTPTool.Allow`},
	} {
		t.Run(name, func(t *testing.T) {
			tc.tool.URL, tc.tool.Allow = s.URL+tc.tool.URL, local
			if got := byHTTP(t, tc.tool, tc.input); !strings.Contains(got, tc.want) {
				t.Errorf("got  %s\nwant %s", got, tc.want)
			}
		})
	}
	t.Run("private", func(t *testing.T) {
		for _, host := range []string{"127.0.0.1", "localhost"} {
			got := byHTTP(t, pawl.HTTPTool{URL: strings.Replace(s.URL, "127.0.0.1", host, 1)}, `{"city":"x"}`)
			if strings.Contains(got, "seen") || !strings.Contains(got, host) {
				t.Errorf("%s: %s", host, got)
			}
		}
	})
}

func TestAnHTTPToolThatIsWrongIsRefused(t *testing.T) {
	c := converse(t, packOf(t, looks), scripted.New())
	for name, h := range map[string]pawl.HTTPTool{
		"no address": {}, "a file": {URL: "file:///x"}, "its host is the model's": {URL: "http://{city}/"}, "part of it": {URL: "http://a.{city}:80/x"},
		"a bad result": {URL: "http://a/", Result: "a..b"}, "less than no time": {URL: "http://a/", Timeout: -1},
	} {
		if err := c.OnToolHTTP("look", h); !errdefs.Validation.Is(err) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// A conversation that lives for one turn leaves no connection behind, and needs none of its own.
func TestHTTPToolsOfManyConversationsShareConnections(t *testing.T) {
	var opened atomic.Int64
	all := make(chan struct{})
	var inside atomic.Int64
	const conversations = 40
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if inside.Add(1) == conversations {
			close(all)
		}
		<-all // they are all there at once, the first time
		fmt.Fprint(w, "fine")
	}))
	s.Config.ConnState = func(_ net.Conn, state http.ConnState) {
		if state == http.StateNew {
			opened.Add(1)
		}
	}
	s.Start()
	defer s.Close()
	pack := packOf(t, looks)
	call := func(allow ...string) (string, error) {
		m := scripted.New(scripted.Calls(callOf("c", "look", `{"city":"x"}`)), scripted.Text("x"))
		c, err := pawl.Open(pack, "chat", pawl.WithModel(m))
		if err != nil {
			return "", err
		}
		c.OnTool("pay", func(map[string]any) (any, error) { return "x", nil })
		err = c.OnToolHTTP("look", pawl.HTTPTool{URL: s.URL, Allow: allow})
		if err == nil {
			_, err = c.Send(t.Context(), "a")
		}
		if err != nil {
			return "", errors.Join(err, c.Close())
		}
		all, err := c.Messages(t.Context())
		said := ""
		for r := range message.Of[message.ToolResult](all.At(2)) {
			said += r.Content
		}
		return said, errors.Join(err, c.Close())
	}
	for range 3 {
		var done sync.WaitGroup
		for range conversations {
			done.Go(func() {
				if got, err := call("127.0.0.1"); !strings.Contains(got, "fine") || err != nil {
					t.Error(got, err)
				}
			})
		}
		done.Wait()
		if n := opened.Load(); n > conversations {
			t.Errorf("%d conversations at a time opened %d connections", conversations, n)
		}
	}
	if got, err := call(); !strings.Contains(got, "this machine") || err != nil { // what others may reach is not there for everybody
		t.Error(got, err)
	}
}
