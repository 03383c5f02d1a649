package mcp

import (
	"bytes"
	"crypto"
	"encoding/json"
	"io"
	"net/http"
	"net/url"
	"strings"
	"sync"
)

// mostMetadata is how long the metadata of an authorization server may be, in bytes.
const mostMetadata = 1 << 20

// discovery carries the requests of a login. RFC 8414 wants metadata to name the issuer that was asked for, and the library holds every server to it. A server of the protocol's version of
// 2025-03-26, which says nothing of who its authorization server is, is one itself, and there are such whose metadata at the root names an issuer with a path. That issuer is taken when it
// is of the same origin: whoever answers there could as well have no metadata, and would be sent to with the same addresses.
type discovery struct {
	base   http.RoundTripper
	origin *url.URL

	client string        // whose key is
	key    crypto.Signer // signs requests for tokens; nil: none does

	mu      sync.Mutex
	modern  bool              // the server has said who its authorization server is
	issuer  string            // that the metadata named in the place of the origin
	issuers map[string]string // by the addresses of their tokens
}

func (d *discovery) RoundTrip(req *http.Request) (*http.Response, error) {
	req, err := d.signed(req)
	if err != nil {
		return nil, err
	}
	resp, err := d.base.RoundTrip(req)
	if err != nil || resp.StatusCode != http.StatusOK || req.Method != http.MethodGet {
		return resp, err
	}
	switch path := req.URL.Path; {
	case strings.HasPrefix(path, "/.well-known/oauth-protected-resource"):
		d.mu.Lock()
		d.modern = true
		d.mu.Unlock()
	case strings.Contains(path, "/.well-known/oauth-authorization-server"), strings.Contains(path, "/.well-known/openid-configuration"):
		body, err := io.ReadAll(io.LimitReader(resp.Body, mostMetadata+1))
		_ = resp.Body.Close()
		if err != nil {
			return nil, err
		}
		d.notes(body)
		if sameOrigin(req.URL, d.origin) && strings.Count(path, "/") == 2 {
			body = d.old(body)
		}
		resp.Body, resp.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
	}
	return resp, nil
}

// old gives metadata with the origin as its issuer, if it is that of an older server.
func (d *discovery) old(body []byte) []byte {
	d.mu.Lock()
	defer d.mu.Unlock()
	var all map[string]json.RawMessage
	var issuer string
	if d.modern || json.Unmarshal(body, &all) != nil || json.Unmarshal(all["issuer"], &issuer) != nil {
		return body
	}
	u, err := url.Parse(issuer)
	if err != nil || !sameOrigin(u, d.origin) || strings.Trim(u.Path, "/") == "" {
		return body
	}
	asked, err := json.Marshal(d.asked())
	if err != nil {
		return body
	}
	all["issuer"] = asked
	changed, err := json.Marshal(all)
	if err != nil {
		return body
	}
	d.issuer = issuer
	return changed
}

func (d *discovery) asked() string { return d.origin.Scheme + "://" + d.origin.Host }

// iss is the issuer that a login came back from, as the library knows it.
func (d *discovery) iss(said string) string {
	d.mu.Lock()
	defer d.mu.Unlock()
	if said != "" && said == d.issuer {
		return d.asked()
	}
	return said
}
