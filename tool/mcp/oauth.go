package mcp

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/auth"
	"github.com/modelcontextprotocol/go-sdk/auth/extauth"
	"github.com/modelcontextprotocol/go-sdk/oauthex"
	"golang.org/x/oauth2"

	"github.com/pawl-dev/pawl/errdefs"
	"github.com/pawl-dev/pawl/sandbox"
	"github.com/pawl-dev/pawl/sandbox/fence"
)

const (
	loginTime   = 10 * time.Minute // that a person has for a login
	oauthWait   = 30 * time.Second // for an authorization server's answer
	callbackURL = "/callback"
)

// DefaultTokens is the directory where the tokens of servers are: pawl/mcp in the user's directory for configuration. "" when there is none.
func DefaultTokens() string {
	dir, err := os.UserConfigDir()
	if err != nil {
		return ""
	}
	return filepath.Join(dir, "pawl", "mcp")
}

// Login has a person log in to a server (OAuth 2.1 with PKCE), and keeps the tokens, readable for nobody else, in the directory Options.Tokens for the clients to come. Options.Open shows the
// address. What was kept of an earlier login is replaced when the login succeeds. It waits until the person is done, 10 minutes at most, or until ctx ends.
func Login(ctx context.Context, s Server, o Options) error {
	if s.URL == "" {
		return errdefs.Validation.Errorf("mcp: login %s: only a server with a URL has a login", s.Name)
	}
	if s.OAuth.Grant != "" {
		return errdefs.Validation.Errorf("mcp: login %s: its client logs in by itself", s.Name)
	}
	if o.Open == nil {
		return errdefs.Validation.Errorf("mcp: login %s: Options.Open is needed: it shows the address to the person", s.Name)
	}
	s.Required, s.Startup, o.anew = true, loginTime, true
	c, err := Connect(ctx, []Server{s}, o)
	if err != nil {
		return err
	}
	defer func() { _ = c.Close(context.WithoutCancel(ctx)) }()
	if live := c.servers[0].current(); live != nil && live.login != nil && !live.login.done() {
		return errdefs.NotFound.Errorf("mcp: login %s: the server wants no login", s.Name)
	}
	return nil
}

// login gives the requests of one session their token: the one that was kept, refreshed when it is over, or one that a person brings.
type login struct {
	server *server
	client *http.Client
	found  *discovery

	asking sync.Mutex // one login at a time

	mu          sync.Mutex         // guards what follows
	source      oauth2.TokenSource // *source, but for a client that logs in by itself; nil: nobody has logged in
	fresh       bool               // a person did, in this session
	port        string             // that the callback is on
	credentials *extauth.ClientCredentialsHandler
	inner       *auth.AuthorizationCodeHandler
	listen      net.Listener // while a person logs in
}

// newLogin is nil for a server that the caller has given a token of its own.
func newLogin(s *server) *login {
	for name := range s.conf.Headers {
		if http.CanonicalHeaderKey(name) == "Authorization" {
			return nil
		}
	}
	l := &login{server: s}
	l.client, l.found = oauthClient(s.conf.URL)
	if s.client.opts.anew || s.conf.OAuth.Grant != "" {
		return l
	}
	if kept, err := l.load(); err == nil {
		l.source = &source{login: l, kept: kept}
	} else if !errors.Is(err, os.ErrNotExist) {
		s.warn("the tokens of its login can't be used: " + err.Error())
	}
	return l
}

// oauthClient is for authorization servers. A server names its own, and what that names is asked: so one that is elsewhere doesn't lead to what only this machine reaches.
func oauthClient(server string) (*http.Client, *discovery) {
	base := http.DefaultTransport.(*http.Transport).Clone()
	base.DisableKeepAlives = true
	u, err := url.Parse(server)
	if err != nil { // Server.Check would not have let it through
		u = &url.URL{}
	}
	if !local(u.Hostname()) {
		base.Proxy = http.ProxyFromEnvironment
		if p, err := base.Proxy(&http.Request{URL: u}); err == nil && p == nil {
			base.DialContext = fence.Dial(sandbox.Policy{Network: sandbox.Network{All: true, Hosts: []string{u.Hostname()}}}).DialContext
		}
	}
	d := &discovery{base: base, origin: u}
	return &http.Client{Transport: d, Timeout: oauthWait}, d
}

func local(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && (ip.IsLoopback() || ip.IsPrivate())
}

func (l *login) done() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.fresh
}

// TokenSource is for the library.
func (l *login) TokenSource(context.Context) (oauth2.TokenSource, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.source == nil {
		return nil, nil
	}
	return l.source, nil
}

// bearer sets the token where the library doesn't: in the older way over HTTP.
func (l *login) bearer(req *http.Request) {
	if ts, err := l.TokenSource(req.Context()); err == nil && ts != nil {
		if t, err := ts.Token(); err == nil {
			t.SetAuthHeader(req)
		}
	}
}

// Authorize is for the library: a request was refused. A token that the server does not take any more is refreshed once; then a person is needed.
func (l *login) Authorize(ctx context.Context, req *http.Request, resp *http.Response) error {
	l.asking.Lock()
	defer l.asking.Unlock()
	l.mu.Lock()
	src, _ := l.source.(*source)
	l.mu.Unlock()
	if l.server.conf.OAuth.Grant != "" {
		return l.own(ctx, req, resp)
	}
	if used := req.Header.Get("Authorization"); resp.StatusCode == http.StatusUnauthorized && src != nil {
		if again, err := src.renew(strings.TrimPrefix(used, "Bearer ")); err == nil && again { //nolint:contextcheck // a refresh is of use to the next call too
			_ = resp.Body.Close()
			return nil
		}
	}
	if l.server.client.opts.Open == nil {
		_ = resp.Body.Close()
		return errdefs.Unauthorized.Errorf("nobody is there to log in")
	}
	return l.ask(ctx, req, resp)
}

// ask has a person log in.
func (l *login) ask(ctx context.Context, req *http.Request, resp *http.Response) error {
	listen, err := (&net.ListenConfig{}).Listen(ctx, "tcp", net.JoinHostPort("127.0.0.1", l.port))
	if err != nil {
		_ = resp.Body.Close()
		return errdefs.NotAvailable.Errorf("listen for the login to come back: %w", err)
	}
	defer func() { _ = listen.Close() }()
	l.listen = listen
	if l.inner == nil {
		_, l.port, _ = net.SplitHostPort(listen.Addr().String())
		if l.inner, err = l.handler("http://" + listen.Addr().String() + callbackURL); err != nil {
			_ = resp.Body.Close()
			return err
		}
	}
	return l.inner.Authorize(ctx, req, resp)
}

// handler is the library's part of a login: discovery, registration, PKCE and the exchange of the code.
func (l *login) handler(redirect string) (*auth.AuthorizationCodeHandler, error) {
	id := l.server.conf.OAuth
	c := &auth.AuthorizationCodeHandlerConfig{
		RedirectURL: redirect, RequestRefreshToken: true, Client: l.client, AuthorizationCodeFetcher: l.fetch, NewTokenSource: l.keep,
		DynamicClientRegistrationConfig: &auth.DynamicClientRegistrationConfig{Metadata: &oauthex.ClientRegistrationMetadata{
			ClientName: "Pawl", RedirectURIs: []string{redirect}, GrantTypes: []string{"authorization_code", "refresh_token"}, ResponseTypes: []string{"code"},
		}},
	}
	switch {
	case strings.HasPrefix(id.ClientID, "https://"):
		c.ClientIDMetadataDocumentConfig = &auth.ClientIDMetadataDocumentConfig{URL: id.ClientID}
	case id.ClientID != "":
		c.PreregisteredClient = &oauthex.ClientCredentials{ClientID: id.ClientID}
		if id.ClientSecret != "" {
			c.PreregisteredClient.ClientSecretAuth = &oauthex.ClientSecretAuth{ClientSecret: id.ClientSecret}
		}
	}
	return auth.NewAuthorizationCodeHandler(c)
}

// fetch shows the person the address, and waits for the browser to come back with the code. Whoever comes without this login's state is sent away, and the login goes on.
func (l *login) fetch(ctx context.Context, args *auth.AuthorizationArgs) (*auth.AuthorizationResult, error) {
	u, err := url.Parse(args.URL)
	if err != nil {
		return nil, err
	}
	if u.Scheme != "https" && u.Scheme != "http" { // it is opened in a browser
		return nil, errdefs.PolicyDenied.Errorf("the address of the login is no web address: %q", short(args.URL, 100))
	}
	state := u.Query().Get("state")
	came := make(chan url.Values, 1)
	srv := &http.Server{ReadHeaderTimeout: oauthWait, Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		q := r.URL.Query()
		if r.Method != http.MethodGet || r.URL.Path != callbackURL || q.Get("state") != state {
			http.Error(w, "This is not the login that is waited for.", http.StatusBadRequest)
			return
		}
		select {
		case came <- q:
		default:
		}
		_, _ = fmt.Fprintln(w, "You can close this window and go back.")
	})}
	served := make(chan struct{})
	go func() {
		defer close(served)
		_ = srv.Serve(l.listen)
	}()
	defer func() {
		end, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second) // the page is still written
		defer cancel()
		if srv.Shutdown(end) != nil {
			_ = srv.Close()
		}
		<-served
	}()
	if err := l.server.client.opts.Open(ctx, args.URL); err != nil {
		return nil, fmt.Errorf("open %s: %w", args.URL, err)
	}
	select {
	case q := <-came:
		if problem := q.Get("error"); problem != "" {
			return nil, errdefs.Unauthorized.Errorf("the login was refused: %s %s", problem, q.Get("error_description"))
		}
		return &auth.AuthorizationResult{Code: q.Get("code"), State: q.Get("state"), Iss: l.found.iss(q.Get("iss"))}, nil
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// keep saves what a login brought.
func (l *login) keep(_ context.Context, c *oauth2.Config, t *oauth2.Token) (oauth2.TokenSource, error) {
	kept := kept{URL: l.server.conf.URL, ClientID: c.ClientID, ClientSecret: c.ClientSecret, TokenURL: c.Endpoint.TokenURL, AuthStyle: int(c.Endpoint.AuthStyle), Scopes: c.Scopes, Token: t}
	src := &source{login: l, kept: kept}
	l.mu.Lock()
	l.source, l.fresh = src, true
	l.mu.Unlock()
	return src, l.save(kept)
}

// kept is the file of a login.
type kept struct {
	URL          string        `json:"url"` // the only one that gets the token
	ClientID     string        `json:"client_id"`
	ClientSecret string        `json:"client_secret,omitempty"`
	TokenURL     string        `json:"token_url"`
	AuthStyle    int           `json:"auth_style,omitempty"`
	Scopes       []string      `json:"scopes,omitempty"`
	Token        *oauth2.Token `json:"token"`
}

// file is the name of a login's file: of the server's name and its URL.
func (l *login) file() (string, error) {
	dir := l.server.client.opts.Tokens
	if dir == "" {
		dir = DefaultTokens()
	}
	if dir == "" {
		return "", errdefs.NotAvailable.Errorf("there is no directory for tokens: set HOME, or Options.Tokens")
	}
	sum := sha256.Sum256([]byte(l.server.conf.URL))
	return filepath.Join(dir, strings.ToLower(l.server.conf.Name)+"-"+hex.EncodeToString(sum[:6])+".json"), nil
}

func (l *login) load() (k kept, err error) {
	path, err := l.file()
	if err != nil {
		return k, err
	}
	f, err := os.Open(path) //nolint:gosec // our own
	if err != nil {
		return k, err
	}
	defer func() { _ = f.Close() }()
	info, err := f.Stat()
	if err != nil {
		return k, err
	}
	if mode := info.Mode().Perm(); mode&0o077 != 0 && os.PathSeparator == '/' {
		return k, fmt.Errorf("%s can be read by others (%v): log in again, or chmod 600 it", path, mode)
	}
	if err := json.NewDecoder(f).Decode(&k); err != nil {
		return k, fmt.Errorf("%s: %w: log in again", path, err)
	}
	if k.URL != l.server.conf.URL || k.Token == nil {
		return k, fmt.Errorf("%s is not of this server: log in again", path)
	}
	return k, nil
}

// save replaces the file whole, so that another process never reads half of it.
func (l *login) save(k kept) error {
	path, err := l.file()
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	b, err := json.MarshalIndent(k, "", "  ") //nolint:gosec // it is the secrets' place
	if err != nil {
		return err
	}
	f, err := os.CreateTemp(filepath.Dir(path), ".login-*") // 0600
	if err != nil {
		return err
	}
	defer func() { _ = os.Remove(f.Name()) }()
	_, err = f.Write(append(b, '\n'))
	if err = errors.Join(err, f.Sync(), f.Close()); err != nil {
		return err
	}
	return os.Rename(f.Name(), path)
}

// source is a token that is refreshed when it is over. Another process may have done that already: its file is looked at first.
type source struct {
	login *login
	mu    sync.Mutex
	kept  kept
}

// Token is for the library.
func (s *source) Token() (*oauth2.Token, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.kept.Token.Valid() {
		return s.kept.Token, nil
	}
	return s.refresh()
}

// renew has another token in the place of one that the server refused; again is whether there is one now.
func (s *source) renew(refused string) (again bool, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.kept.Token.AccessToken != refused {
		return s.kept.Token.Valid(), nil
	}
	t, err := s.refresh()
	return err == nil && t.AccessToken != refused, err
}

// refresh is called with mu held.
func (s *source) refresh() (*oauth2.Token, error) {
	if k, err := s.login.load(); err == nil && k.Token.AccessToken != s.kept.Token.AccessToken {
		if s.kept = k; k.Token.Valid() {
			return k.Token, nil
		}
	}
	c := oauth2.Config{ClientID: s.kept.ClientID, ClientSecret: s.kept.ClientSecret, Endpoint: oauth2.Endpoint{TokenURL: s.kept.TokenURL, AuthStyle: oauth2.AuthStyle(s.kept.AuthStyle)}}
	ctx, cancel := context.WithTimeout(context.WithValue(context.Background(), oauth2.HTTPClient, s.login.client), oauthWait)
	defer cancel()
	t, err := c.TokenSource(ctx, &oauth2.Token{RefreshToken: s.kept.Token.RefreshToken}).Token()
	if err != nil {
		if s.kept.Token.RefreshToken == "" { // to the library: go on without a token, and be refused
			err = &oauth2.RetrieveError{ErrorCode: "invalid_grant", ErrorDescription: "the token is over"}
		}
		return nil, err
	}
	s.kept.Token = t
	if err := s.login.save(s.kept); err != nil {
		s.login.server.warn("its new token can't be kept: " + err.Error())
	}
	return t, nil
}
