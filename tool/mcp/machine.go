package mcp

import (
	"bytes"
	"context"
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"errors"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/modelcontextprotocol/go-sdk/auth/extauth"
	"github.com/modelcontextprotocol/go-sdk/oauthex"
)

// GrantClientCredentials is the OAuth.Grant of a client that logs in by itself, with a secret or a key of its own, where no person is.
const GrantClientCredentials = "client_credentials"

// assertionTime is how long what a client signs counts.
const assertionTime = 5 * time.Minute

// machine makes the library's part of a login without a person. With a key, what it sends is signed in [discovery].
func (l *login) machine() error {
	id := l.server.conf.OAuth
	secret := id.ClientSecret
	if id.PrivateKey != "" {
		key, err := readKey(id.PrivateKey)
		if err != nil {
			return err
		}
		l.found.client, l.found.key = id.ClientID, key
		secret = "(signed)" // the library wants one; it is not sent
	}
	h, err := extauth.NewClientCredentialsHandler(&extauth.ClientCredentialsHandlerConfig{
		Credentials: &oauthex.ClientCredentials{ClientID: id.ClientID, ClientSecretAuth: &oauthex.ClientSecretAuth{ClientSecret: secret}}, HTTPClient: l.client,
	})
	l.credentials = h
	return err
}

// own is Authorize of a client that needs no person. Tokens are not kept: another one is had at any time.
func (l *login) own(ctx context.Context, req *http.Request, resp *http.Response) error {
	if l.credentials == nil {
		if err := l.machine(); err != nil {
			_ = resp.Body.Close()
			return err
		}
	}
	ctx = context.WithoutCancel(ctx) // the library asks for the next token with it, too; each request has its time
	if err := l.credentials.Authorize(ctx, req, resp); err != nil {
		return err
	}
	source, err := l.credentials.TokenSource(ctx)
	if err != nil {
		return err
	}
	l.mu.Lock()
	l.source = source
	l.mu.Unlock()
	return nil
}

// readKey reads a private key: PEM, PKCS #8, P-256 or RSA.
func readKey(text string) (crypto.Signer, error) {
	block, _ := pem.Decode([]byte(text))
	if block == nil {
		return nil, errors.New("oauth.privateKey: it is no PEM")
	}
	key, err := x509.ParsePKCS8PrivateKey(block.Bytes)
	if err != nil {
		return nil, errors.New("oauth.privateKey: it is no PKCS #8")
	}
	switch key := key.(type) {
	case *ecdsa.PrivateKey:
		if key.Curve == elliptic.P256() {
			return key, nil
		}
	case *rsa.PrivateKey:
		return key, nil
	}
	return nil, errors.New("oauth.privateKey: want one of P-256 or RSA")
}

// assertion says who a client is to an authorization server (RFC 7523), signed.
func assertion(client, issuer string, key crypto.Signer, now time.Time) (string, error) {
	alg := "ES256"
	if _, ok := key.(*rsa.PrivateKey); ok {
		alg = "RS256"
	}
	part := func(v any) (string, error) {
		b, err := json.Marshal(v)
		return base64.RawURLEncoding.EncodeToString(b), err
	}
	head, err := part(map[string]any{"alg": alg, "typ": "JWT"})
	if err != nil {
		return "", err
	}
	claims, err := part(map[string]any{"iss": client, "sub": client, "aud": issuer, "iat": now.Unix(), "exp": now.Add(assertionTime).Unix(), "jti": rand.Text()})
	if err != nil {
		return "", err
	}
	sum := sha256.Sum256([]byte(head + "." + claims))
	var sig []byte
	switch key := key.(type) {
	case *ecdsa.PrivateKey:
		r, s, e := ecdsa.Sign(rand.Reader, key, sum[:])
		if err = e; err == nil {
			sig = append(r.FillBytes(make([]byte, 32)), s.FillBytes(make([]byte, 32))...)
		}
	default:
		sig, err = key.Sign(rand.Reader, sum[:], crypto.SHA256)
	}
	return head + "." + claims + "." + base64.RawURLEncoding.EncodeToString(sig), err
}

// signed gives a request for a token with the client's signature in the place of a secret. Other requests are as they were.
func (d *discovery) signed(req *http.Request) (*http.Request, error) {
	if d.key == nil || req.Method != http.MethodPost || req.Body == nil {
		return req, nil
	}
	body, err := io.ReadAll(io.LimitReader(req.Body, mostMetadata))
	_ = req.Body.Close()
	if err != nil {
		return nil, err
	}
	req = req.Clone(req.Context())
	form, err := url.ParseQuery(string(body))
	if err == nil && form.Get("grant_type") == GrantClientCredentials {
		d.mu.Lock()
		issuer := d.issuers[req.URL.String()]
		d.mu.Unlock()
		if issuer == "" {
			issuer = req.URL.Scheme + "://" + req.URL.Host
		}
		said, err := assertion(d.client, issuer, d.key, time.Now())
		if err != nil {
			return nil, err
		}
		req.Header.Del("Authorization")
		form.Del("client_secret")
		form.Set("client_id", d.client)
		form.Set("client_assertion_type", "urn:ietf:params:oauth:client-assertion-type:jwt-bearer")
		form.Set("client_assertion", said)
		body = []byte(form.Encode())
	}
	req.Body, req.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
	req.GetBody = func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(body)), nil }
	return req, nil
}

// notes remembers whose token endpoint metadata is about.
func (d *discovery) notes(body []byte) {
	var m struct {
		Issuer string `json:"issuer"`
		Token  string `json:"token_endpoint"`
	}
	if json.Unmarshal(body, &m) != nil || !strings.HasPrefix(m.Token, "http") {
		return
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.issuers == nil {
		d.issuers = map[string]string{}
	}
	d.issuers[m.Token] = m.Issuer
}
