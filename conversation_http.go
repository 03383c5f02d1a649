package pawl

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/netip"
	"net/url"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/pawl-dev/pawl/errdefs"
	"github.com/pawl-dev/pawl/internal/httpapi"
	"github.com/pawl-dev/pawl/pack"
	"github.com/pawl-dev/pawl/sandbox"
	"github.com/pawl-dev/pawl/sandbox/fence"
	"github.com/pawl-dev/pawl/tool"
)

// HTTPTool says how a tool is answered by an HTTP call. Only URL is required. Connections are kept for a minute and a half, for all conversations whose handlers may reach the same.
type HTTPTool struct {
	// URL may have {name} for arguments of the call, in its path and its query, each escaped as one part; they are among the tool's parameters. Scheme and host stand in it as they are.
	URL    string
	Method string // default: POST; the usual ones in any case; with GET, HEAD and DELETE the arguments that URL doesn't have go into the query, else all of them are the JSON body
	// Header is sent with each call. Environment names variables whose values are sent, by header: {"Authorization": "SHOP_TOKEN"}. They are read at each call; one that is not set fails it.
	Header      http.Header
	Environment map[string]string
	// Result says which part of a JSON answer the model is told: "data.items[0].name". "" is all of it, as it is.
	Result   string
	Timeout  time.Duration // of a call, with its answer: 0 is 30 s
	MaxBytes int           // of an answer: 0 is 1 MiB; a longer one is an error
	// Allow names hosts and addresses that may be reached besides URL's own host: those that it redirects to; and, since addresses of this machine and of private networks are refused, "localhost" or such an address, be it URL's own.
	//
	// "shop.example" is that host alone, in any case; "*.shop.example" are all below it, and not itself. An address is that one, however it is written; no ranges. Every port of them may be reached: an entry has none, and no scheme or path. A host whose name
	// leads to a private address needs that address here: its name is not enough, but for "localhost".
	Allow []string
	// Idempotent says that the server takes a call twice for one: it gets the header Idempotency-Key, the same for the same call, and a call whose outcome is unknown is made again.
	Idempotent bool
}

// The defaults of HTTPTool.
const (
	httpToolTimeout = 30 * time.Second
	httpToolBytes   = 1 << 20
)

var (
	httpPlace = regexp.MustCompile(`\{([A-Za-z_][A-Za-z0-9_]*)\}`)
	httpToken = regexp.MustCompile("^[A-Za-z0-9!#$%&'*+.^_`|~-]+$")
	httpStep  = regexp.MustCompile(`^(?:\.?([A-Za-z_][A-Za-z0-9_-]*)|\[(\d+)\])`)
)

// OnToolHTTP answers a tool of the pack by an HTTP call. An answer that is not 2xx is an error to the model, with what the server says. It fails with errdefs.Validation when t is wrong.
func (c *Conversation) OnToolHTTP(name string, t HTTPTool) error {
	call, err := t.caller()
	if err == nil {
		err = t.known(c.pack.Tools[name])
	}
	if err != nil {
		return fmt.Errorf("pawl: OnToolHTTP %s: %w", name, err)
	}
	c.handle(name, handler{run: call, idempotent: t.Idempotent})
	return nil
}

// known reports whether the arguments in the address are parameters of the tool, as far as its schema says which it has.
func (t HTTPTool) known(of pack.Tool) error {
	if of.Name == "" { // the pack has no such tool: Send tells
		return nil
	}
	var schema map[string]json.RawMessage
	if err := json.Unmarshal(of.Model().Schema, &schema); err != nil {
		return nil //nolint:nilerr // what is wrong with it, the pack's own checks say
	}
	for _, open := range []string{"$ref", "$dynamicRef", "allOf", "anyOf", "oneOf", "if", "patternProperties", "dependentSchemas"} {
		if _, ok := schema[open]; ok { // there may be more of them
			return nil
		}
	}
	if more := string(schema["additionalProperties"]); more != "" && more != "false" {
		return nil
	}
	var properties map[string]json.RawMessage
	if err := json.Unmarshal(schema["properties"], &properties); err != nil {
		return nil //nolint:nilerr // as above
	}
	for _, m := range httpPlace.FindAllStringSubmatch(t.URL, -1) {
		if _, ok := properties[m[1]]; !ok {
			return errdefs.Validation.Errorf("URL %q: the tool has no parameter %s: it has %s", t.URL, m[1], cmp.Or(strings.Join(slices.Sorted(maps.Keys(properties)), ", "), "none"))
		}
	}
	return nil
}

// form says what is wrong with the parts of t that are names.
func (t HTTPTool) form() error {
	if rest := httpPlace.ReplaceAllString(t.URL, ""); strings.ContainsAny(rest, "{}") {
		return errdefs.Validation.Errorf("URL %q: want {name} for an argument, of letters, digits and _; a brace that is none is %%7B or %%7D", t.URL)
	}
	if !httpToken.MatchString(t.Method) {
		return errdefs.Validation.Errorf("Method %q: want one such as GET", t.Method)
	}
	for _, names := range [][]string{slices.Sorted(maps.Keys(t.Header)), slices.Sorted(maps.Keys(t.Environment))} {
		for _, name := range names {
			if !httpToken.MatchString(name) {
				return errdefs.Validation.Errorf("%q is no name of a header", name)
			}
		}
	}
	for _, host := range t.Allow {
		if !fence.ValidHost(host) {
			return errdefs.Validation.Errorf("Allow: %q is no host: want shop.example, *.shop.example or an address, without scheme, port and path", host)
		}
	}
	return nil
}

// caller makes what calls the server.
func (t HTTPTool) caller() (func(context.Context, json.RawMessage) (any, error), error) {
	u, err := url.Parse(httpPlace.ReplaceAllString(t.URL, "x"))
	switch {
	case err != nil:
		return nil, errdefs.Validation.Errorf("URL: %w", err)
	case u.Scheme != "http" && u.Scheme != "https" || u.Hostname() == "":
		return nil, errdefs.Validation.Errorf("URL %q: want http or https, and a host", t.URL)
	case t.Timeout < 0 || t.MaxBytes < 0:
		return nil, errdefs.Validation.Errorf("Timeout and MaxBytes: want more than 0, or 0 for the default")
	}
	if rest, _ := strings.CutPrefix(t.URL, u.Scheme+"://"); strings.Contains(strings.SplitN(rest, "/", 2)[0], "{") || u.Fragment != "" || u.User != nil {
		return nil, errdefs.Validation.Errorf("URL %q: arguments go into the path and the query; there is no fragment and no user in it", t.URL)
	}
	if _, err := pathOf(t.Result); err != nil {
		return nil, err
	}
	t.Method = cmp.Or(t.Method, http.MethodPost)
	if usual := strings.ToUpper(t.Method); slices.Contains([]string{"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"}, usual) {
		t.Method = usual
	}
	if err := t.form(); err != nil {
		return nil, err
	}
	if t.Timeout == 0 {
		t.Timeout = httpToolTimeout
	}
	if t.MaxBytes == 0 {
		t.MaxBytes = httpToolBytes
	}
	t.Header, t.Environment, t.Allow = t.Header.Clone(), maps.Clone(t.Environment), slices.Clone(t.Allow)
	own := u.Hostname()
	reach := sandbox.Network{Hosts: append(slices.Clone(t.Allow), own)}
	_, noAddress := netip.ParseAddr(own)
	if private := noAddress == nil || strings.TrimSuffix(strings.ToLower(own), ".") == "localhost"; private && !(sandbox.Network{Hosts: t.Allow}).Allows(own) {
		reach = sandbox.Network{All: true, Hosts: slices.Clone(t.Allow)} // naming an address allows it: here it has to be in Allow for that
	}
	client := &http.Client{Transport: httpTransports.to(reach), Timeout: t.Timeout, CheckRedirect: t.redirected}
	return func(ctx context.Context, input json.RawMessage) (any, error) { return t.call(ctx, client, input) }, nil
}

// httpTransports are shared by the handlers of all conversations: one that lives for a single turn would open a connection for it, and leave it behind.
var httpTransports transports

// transports are those that were used last, the last of them last: one for each thing that may be reached, since a connection that one handler may have is none that another one may use.
type transports struct {
	mu   sync.Mutex
	kept []transport
}

type transport struct {
	reach sandbox.Network
	http  *http.Transport
}

const maxTransports = 64

func (t *transports) to(reach sandbox.Network) *http.Transport {
	slices.Sort(reach.Hosts)
	reach.Hosts = slices.Compact(reach.Hosts)
	t.mu.Lock()
	defer t.mu.Unlock()
	i := slices.IndexFunc(t.kept, func(k transport) bool { return k.reach.All == reach.All && slices.Equal(k.reach.Hosts, reach.Hosts) })
	if i < 0 {
		if len(t.kept) == maxTransports {
			t.kept[0].http.CloseIdleConnections() // whoever still has it may go on; its connections end with their calls
			t.kept = slices.Delete(t.kept, 0, 1)
		}
		h := fence.Dial(sandbox.Policy{Network: reach}).Transport()
		h.MaxIdleConns, h.MaxIdleConnsPerHost = httpapi.MaxIdle, httpapi.MaxIdle
		t.kept = append(t.kept, transport{reach, h})
		return h
	}
	k := t.kept[i]
	t.kept = append(slices.Delete(t.kept, i, i+1), k)
	return k.http
}

// redirected refuses to follow a server to where it was not allowed to, and with secrets to anywhere else.
func (t HTTPTool) redirected(r *http.Request, via []*http.Request) error {
	from, to := via[0].URL, r.URL
	switch {
	case len(via) >= 10:
		return errdefs.NotAvailable.Errorf("it redirects without end")
	case from.Hostname() != to.Hostname() && !(sandbox.Network{Hosts: t.Allow}).Allows(to.Hostname()):
		return errdefs.PolicyDenied.Errorf("it redirects to %s, which is not allowed unless HTTPTool.Allow (--allow of pawl pack run) names it", to.Hostname())
	case (from.Scheme != to.Scheme || from.Host != to.Host) && len(t.Environment) > 0:
		return errdefs.PolicyDenied.Errorf("it redirects to %s://%s, which the headers from the environment are not for", to.Scheme, to.Host)
	}
	return nil
}

func (t HTTPTool) call(ctx context.Context, client *http.Client, input json.RawMessage) (any, error) {
	args := map[string]any{}
	d := json.NewDecoder(bytes.NewReader(input))
	d.UseNumber()
	if err := d.Decode(&args); err != nil {
		return nil, err
	}
	req, err := t.request(ctx, args, input)
	if err != nil {
		return nil, err
	}
	resp, err := client.Do(req)
	if err != nil {
		return nil, refused(withoutURL(err))
	}
	defer func() { _ = resp.Body.Close() }()
	body, err := io.ReadAll(io.LimitReader(resp.Body, int64(t.MaxBytes)+1))
	switch {
	case err != nil:
		return nil, errdefs.NotAvailable.Errorf("the answer broke off: %w", withoutURL(err))
	case len(body) > t.MaxBytes:
		return nil, errdefs.Validation.Errorf("the answer has more than %d bytes", t.MaxBytes)
	case resp.StatusCode < 200 || resp.StatusCode > 299:
		return tool.Result{Content: fmt.Sprintf("%d %s\n%s", resp.StatusCode, http.StatusText(resp.StatusCode), body), IsError: true}, nil // the server's own words for it have no limit
	case t.Result == "":
		return string(body), nil
	}
	return pick(body, t.Result)
}

// request makes the call. What a server is told of arguments can't lead elsewhere: they are escaped where they stand.
func (t HTTPTool) request(ctx context.Context, args map[string]any, input json.RawMessage) (*http.Request, error) {
	used, missing := map[string]bool{}, ""
	path, query, hasQuery := strings.Cut(t.URL, "?")
	fill := func(in string, escape func(string) string) string {
		return httpPlace.ReplaceAllStringFunc(in, func(place string) string {
			name := place[1 : len(place)-1]
			v, ok := args[name]
			if !ok || v == nil {
				missing = name
			}
			used[name] = true
			return escape(textOf(v))
		})
	}
	segment := func(s string) string {
		if s == "." || s == ".." || s == "" { // it would be another path
			missing = strconv.Quote(s) + " in the path"
		}
		return url.PathEscape(s)
	}
	to := fill(path, segment)
	if hasQuery {
		to += "?" + fill(query, url.QueryEscape)
	}
	if missing != "" {
		return nil, errdefs.Validation.Errorf("the address needs %s", missing)
	}
	var body io.Reader
	if t.Method == http.MethodGet || t.Method == http.MethodHead || t.Method == http.MethodDelete {
		more := url.Values{}
		for name, v := range args {
			if !used[name] {
				more.Set(name, textOf(v))
			}
		}
		if len(more) > 0 {
			to += map[bool]string{true: "&", false: "?"}[hasQuery] + more.Encode()
		}
	} else {
		body = bytes.NewReader(input)
	}
	req, err := http.NewRequestWithContext(ctx, t.Method, to, body)
	if err != nil {
		return nil, errdefs.Validation.Errorf("%w", err)
	}
	if body != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	if t.Idempotent {
		req.Header.Set("Idempotency-Key", tool.FromContext(ctx).Key)
	}
	for name, vs := range t.Header {
		req.Header[http.CanonicalHeaderKey(name)] = slices.Clone(vs)
	}
	for name, variable := range t.Environment {
		v, ok := os.LookupEnv(variable)
		if !ok {
			return nil, errdefs.Validation.Errorf("%s is not in the environment, which the header %s needs", variable, name)
		}
		req.Header.Set(name, v)
	}
	return req, nil
}

// httpRemedy is where the dialer begins to say what would allow a connection.
const httpRemedy = ": to allow it, "

// refused gives what the dialer refuses a remedy that there is here: no settings are read.
func refused(err error) error {
	if !errdefs.PolicyDenied.Is(err) || !strings.Contains(err.Error(), httpRemedy) {
		return err
	}
	var all []string
	for line := range strings.Lines(err.Error()) { // one for each address
		why, _, ok := strings.Cut(strings.TrimSuffix(line, "\n"), httpRemedy)
		if ok {
			why += httpRemedy + "name the address in HTTPTool.Allow (--allow of pawl pack run)"
		}
		all = append(all, why)
	}
	return errdefs.PolicyDenied.Errorf("%s", strings.Join(all, "\n"))
}

// withoutURL takes the address, which may have secrets, out of an error.
func withoutURL(err error) error {
	if u, ok := err.(*url.Error); ok { //nolint:errorlint // it is the outermost
		return u.Err
	}
	return err
}

// textOf is an argument as it stands in an address.
func textOf(v any) string {
	if s, ok := v.(string); ok {
		return s
	}
	b, err := json.Marshal(v)
	if err != nil {
		return ""
	}
	return string(b)
}

// pathOf reads name.member[0].member.
func pathOf(s string) (path []any, err error) {
	for rest := s; rest != ""; {
		m := httpStep.FindStringSubmatch(rest)
		if m == nil {
			return nil, errdefs.Validation.Errorf("Result %q: want names and indexes, such as data.items[0].name", s)
		}
		if rest = rest[len(m[0]):]; m[1] != "" {
			path = append(path, m[1])
			continue
		}
		i, err := strconv.Atoi(m[2])
		if err != nil {
			return nil, errdefs.Validation.Errorf("Result %q: %w", s, err)
		}
		path = append(path, i)
	}
	return path, nil
}

// pick gives a part of a JSON text.
func pick(body []byte, where string) (any, error) {
	path, err := pathOf(where)
	if err != nil {
		return nil, err
	}
	at := json.RawMessage(body)
	for _, step := range path {
		found := false
		switch step := step.(type) {
		case string:
			var o map[string]json.RawMessage
			if err := json.Unmarshal(at, &o); err == nil {
				at, found = o[step]
			}
		case int:
			var a []json.RawMessage
			if err := json.Unmarshal(at, &a); err == nil && step < len(a) {
				at, found = a[step], true
			}
		}
		if !found {
			return nil, errdefs.NotFound.Errorf("the answer has no %s", where)
		}
	}
	var text string
	if json.Unmarshal(at, &text) == nil {
		return text, nil
	}
	return at, nil
}
