// Package sigv4 signs HTTP requests as AWS wants them: Signature Version 4, in headers.
package sigv4

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Credentials are what a request is signed with.
type Credentials struct {
	AccessKeyID     string
	SecretAccessKey string
	SessionToken    string // "" for credentials that don't end
}

// Scope is what a signature is good for.
type Scope struct {
	Region  string
	Service string // "bedrock"
}

// Sign sets the headers X-Amz-Date, X-Amz-Security-Token and Authorization of r, and its Host. payload is the SHA-256 of the body. All headers that
// are there are signed, but those that proxies and transports set anew (see unsigned); so are the host and the length of the body, if r says one.
// Whoever sends r afterwards must leave these, the path and the query as they are.
func Sign(r *http.Request, c Credentials, to Scope, payload [sha256.Size]byte, now time.Time) {
	stamp := now.UTC().Format("20060102T150405Z")
	r.Header.Del("Authorization")
	r.Header.Set("X-Amz-Date", stamp)
	if c.SessionToken != "" {
		r.Header.Set("X-Amz-Security-Token", c.SessionToken)
	}
	r.Host = host(r)
	headers, names := canonicalHeaders(r)
	canonical := strings.Join([]string{r.Method, canonicalPath(r), canonicalQuery(r), headers, names, hex.EncodeToString(payload[:])}, "\n")

	date := stamp[:len("20060102")]
	scope := date + "/" + to.Region + "/" + to.Service + "/aws4_request"
	sum := sha256.Sum256([]byte(canonical))
	key := []byte("AWS4" + c.SecretAccessKey)
	for _, part := range []string{date, to.Region, to.Service, "aws4_request", "AWS4-HMAC-SHA256\n" + stamp + "\n" + scope + "\n" + hex.EncodeToString(sum[:])} {
		h := hmac.New(sha256.New, key)
		h.Write([]byte(part))
		key = h.Sum(nil)
	}
	r.Header.Set("Authorization", "AWS4-HMAC-SHA256 Credential="+c.AccessKeyID+"/"+scope+", SignedHeaders="+names+", Signature="+hex.EncodeToString(key))
}

// unsigned are the headers that may change on the way.
var unsigned = []string{"Authorization", "User-Agent", "X-Amzn-Trace-Id", "Expect", "Transfer-Encoding", "Content-Length", "Host"}

func canonicalHeaders(r *http.Request) (lines, names string) {
	values := map[string][]string{"host": {r.Host}}
	if r.ContentLength > 0 {
		values["content-length"] = []string{strconv.FormatInt(r.ContentLength, 10)}
	}
	for name, v := range r.Header {
		if !slices.Contains(unsigned, http.CanonicalHeaderKey(name)) {
			values[strings.ToLower(name)] = v
		}
	}
	var sorted []string
	for name := range values {
		sorted = append(sorted, name)
	}
	slices.Sort(sorted)
	var b strings.Builder
	for _, name := range sorted {
		b.WriteString(name)
		b.WriteByte(':')
		for i, v := range values[name] {
			if i > 0 {
				b.WriteByte(',')
			}
			b.WriteString(oneSpaced(v))
		}
		b.WriteByte('\n')
	}
	return b.String(), strings.Join(sorted, ";")
}

// oneSpaced takes the space around v away, and of several spaces in it all but one.
func oneSpaced(v string) string {
	v = strings.TrimSpace(v)
	for strings.Contains(v, "  ") {
		v = strings.ReplaceAll(v, "  ", " ")
	}
	return v
}

// host is the host as the Host header names it: without the port that the scheme has anyway.
func host(r *http.Request) string {
	name := r.Host
	if name == "" {
		name = r.URL.Host
	}
	switch r.URL.Scheme {
	case "https":
		name = strings.TrimSuffix(name, ":443")
	case "http":
		name = strings.TrimSuffix(name, ":80")
	}
	return name
}

// canonicalPath escapes the path as it is sent once more: all of AWS but S3 wants it so.
func canonicalPath(r *http.Request) string {
	path := r.URL.EscapedPath()
	if path == "" {
		return "/"
	}
	segments := strings.Split(path, "/")
	for i, s := range segments {
		segments[i] = Escape(s)
	}
	return strings.Join(segments, "/")
}

func canonicalQuery(r *http.Request) string {
	query := r.URL.Query()
	for _, values := range query {
		slices.Sort(values)
	}
	return strings.ReplaceAll(query.Encode(), "+", "%20")
}

// Escape escapes all bytes of a path's segment but letters, digits and "-._~", as AWS's own programs do: its servers take the path of a
// request for what they check the signature of.
func Escape(segment string) string {
	const digits = "0123456789ABCDEF"
	var b strings.Builder
	for i := range len(segment) {
		switch c := segment[i]; {
		case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', '0' <= c && c <= '9', strings.IndexByte("-._~", c) >= 0:
			b.WriteByte(c)
		default:
			b.WriteByte('%')
			b.WriteByte(digits[c>>4])
			b.WriteByte(digits[c&15])
		}
	}
	return b.String()
}
