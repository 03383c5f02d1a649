package cloud

import (
	"cmp"
	"context"
	"crypto"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	"github.com/pawl-dev/pawl/errdefs"
)

// GCP says who calls Vertex AI, and where. What is empty is looked for.
type GCP struct {
	Project  string // "": GOOGLE_CLOUD_PROJECT, GCLOUD_PROJECT, or the project that the credentials name
	Location string // "": GOOGLE_CLOUD_LOCATION, or "global"; "us" and "eu" are the multi-regions

	// Credentials is the JSON of a service account, or what gcloud keeps for a user. Token gives access tokens itself. With neither the first counts that is there: the file that GOOGLE_APPLICATION_CREDENTIALS names,
	// gcloud's application default credentials (in CLOUDSDK_CONFIG, else ~/.config/gcloud), and the metadata server of a machine at Google (GCE_METADATA_HOST, if that says another one). Files are
	// read whenever a token is fetched. Other kinds of credentials, such as workload identity federation, are not understood: Token can bring theirs.
	Credentials []byte
	Token       func(context.Context) (Token, error)

	// BaseURL is another server in the place of https://LOCATION-aiplatform.googleapis.com: a private endpoint, a test. It gets access tokens. "": Google's own.
	BaseURL string
}

const googleScope = "https://www.googleapis.com/auth/cloud-platform"

// grant is an access token and what came with it.
type grant struct {
	token   string
	project string // that the credentials belong to; "" if they don't say
	quota   string // the project that is to be billed for calls; "" for the one that is called
}

// credentials is what Google's files say.
type credentials struct {
	Type     string `json:"type"`
	Project  string `json:"project_id"`
	Quota    string `json:"quota_project_id"`
	TokenURI string `json:"token_uri"`

	Email string `json:"client_email"` // of a service account
	Key   string `json:"private_key"`
	KeyID string `json:"private_key_id"`

	ClientID string `json:"client_id"` // of a user
	Secret   string `json:"client_secret"`
	Refresh  string `json:"refresh_token"`
}

// fetch gets a token.
func (g GCP) fetch(ctx context.Context, t *transport) (out grant, until time.Time, err error) {
	if g.Token != nil {
		token, err := g.Token(ctx)
		if err != nil {
			return out, until, t.denied("no_token", "GCP.Token gave none", err)
		}
		t.secrets.add(token.Value)
		return grant{token: token.Value}, token.Expires, nil
	}
	data, from, err := g.find()
	if err != nil {
		return out, until, t.fail(errdefs.Validation, "credentials", err.Error())
	}
	if data == nil {
		return g.metadata(ctx, t)
	}
	var c credentials
	if json.Unmarshal(data, &c) != nil { // its text would quote the file
		return out, until, t.fail(errdefs.Validation, "credentials", from+" is no JSON of Google credentials")
	}
	t.secrets.add(c.Key, c.Secret, c.Refresh)
	uri := cmp.Or(c.TokenURI, "https://oauth2.googleapis.com/token")
	var form url.Values
	switch c.Type {
	case "service_account":
		assertion, err := c.assertion(uri, time.Now())
		if err != nil {
			return out, until, t.fail(errdefs.Validation, "credentials", from+": "+err.Error())
		}
		form = url.Values{"grant_type": {"urn:ietf:params:oauth:grant-type:jwt-bearer"}, "assertion": {assertion}}
	case "authorized_user":
		form = url.Values{"grant_type": {"refresh_token"}, "client_id": {c.ClientID}, "client_secret": {c.Secret}, "refresh_token": {c.Refresh}}
	default:
		return out, until, t.fail(errdefs.Validation, "credentials", from+" has credentials of the type "+quoted(c.Type)+": service_account and authorized_user are understood; for others give GCP.Token")
	}
	token, err := t.exchange(ctx, uri, form)
	if err != nil {
		return out, until, err
	}
	return grant{token.Value, c.Project, c.Quota}, token.Expires, nil
}

// find gives the file of the credentials; nil for the metadata server.
func (g GCP) find() (data []byte, from string, err error) {
	if len(g.Credentials) > 0 {
		return g.Credentials, "GCP.Credentials", nil
	}
	if path := os.Getenv("GOOGLE_APPLICATION_CREDENTIALS"); path != "" {
		data, err = os.ReadFile(path) //nolint:gosec // the user names it
		if err != nil {
			err = fmt.Errorf("GOOGLE_APPLICATION_CREDENTIALS: %w", err)
		}
		return data, "GOOGLE_APPLICATION_CREDENTIALS", err
	}
	dir := os.Getenv("CLOUDSDK_CONFIG")
	if dir == "" {
		if runtime.GOOS == "windows" {
			dir = filepath.Join(os.Getenv("APPDATA"), "gcloud")
		} else if home, err := os.UserHomeDir(); err == nil {
			dir = filepath.Join(home, ".config", "gcloud")
		} else {
			return nil, "", nil // there is no such file
		}
	}
	data, err = os.ReadFile(filepath.Join(dir, "application_default_credentials.json")) //nolint:gosec // gcloud's own
	if errors.Is(err, fs.ErrNotExist) {
		return nil, "", nil
	}
	return data, "gcloud's application default credentials", err
}

// assertion is what a service account asks for a token with: a JSON web token, signed with its key, good for an hour.
func (c credentials) assertion(audience string, now time.Time) (string, error) {
	block, _ := pem.Decode([]byte(c.Key))
	if block == nil {
		return "", errors.New("the private key is none in PEM")
	}
	var key *rsa.PrivateKey
	if parsed, err := x509.ParsePKCS8PrivateKey(block.Bytes); err == nil {
		key, _ = parsed.(*rsa.PrivateKey)
	} else if key, err = x509.ParsePKCS1PrivateKey(block.Bytes); err != nil {
		key = nil
	}
	if key == nil || c.Email == "" {
		return "", errors.New("a service account needs client_email and an RSA private_key")
	}
	part := func(v any) string {
		b, _ := json.Marshal(v) // of texts and numbers
		return base64.RawURLEncoding.EncodeToString(b)
	}
	now = now.Add(-10 * time.Second) // where this clock is a little ahead, the token must not be of the future
	signed := part(struct {
		Alg string `json:"alg"`
		Typ string `json:"typ"`
		Kid string `json:"kid,omitempty"`
	}{"RS256", "JWT", c.KeyID}) + "." + part(struct {
		Iss   string `json:"iss"`
		Scope string `json:"scope"`
		Aud   string `json:"aud"`
		Exp   int64  `json:"exp"`
		Iat   int64  `json:"iat"`
	}{c.Email, googleScope, audience, now.Add(time.Hour).Unix(), now.Unix()})
	sum := sha256.Sum256([]byte(signed))
	signature, err := rsa.SignPKCS1v15(rand.Reader, key, crypto.SHA256, sum[:])
	if err != nil {
		return "", err
	}
	return signed + "." + base64.RawURLEncoding.EncodeToString(signature), nil
}

// metadata asks the machine's metadata server, which has three seconds: elsewhere than at Google nobody answers.
func (g GCP) metadata(ctx context.Context, t *transport) (out grant, until time.Time, err error) {
	limited, cancel := context.WithTimeout(ctx, 3*time.Second)
	defer cancel()
	get := func(path string) ([]byte, error) {
		r, err := http.NewRequestWithContext(limited, http.MethodGet, "http://"+cmp.Or(os.Getenv("GCE_METADATA_HOST"), "169.254.169.254")+"/computeMetadata/v1/"+path, nil) //nolint:gosec // who sets the variable says whom to trust, as for all programs of Google's
		if err != nil {
			return nil, err
		}
		r.Header.Set("Metadata-Flavor", "Google")
		resp, err := t.next.RoundTrip(r)
		if err != nil {
			return nil, err
		}
		defer resp.Body.Close() //nolint:errcheck // it was read
		text, err := io.ReadAll(io.LimitReader(resp.Body, 1<<20))
		if err == nil && (resp.StatusCode != http.StatusOK || resp.Header.Get("Metadata-Flavor") != "Google") {
			err = errdefs.NotAvailable.Errorf("HTTP %d", resp.StatusCode)
		}
		return text, err
	}
	text, err := get("instance/service-accounts/default/token")
	if err != nil {
		if ctx.Err() != nil {
			return out, until, ctx.Err()
		}
		e := t.fail(errdefs.Unauthorized, "no_credentials", "no Google credentials: set GOOGLE_APPLICATION_CREDENTIALS, or run: gcloud auth application-default login. There is none of their files, and no metadata server")
		e.Err = err
		return out, until, e
	}
	token, err := t.granted(text)
	if err != nil {
		return out, until, err
	}
	out = grant{token: token.Value}
	if g.project() == "" {
		if name, err := get("project/project-id"); err == nil {
			out.project = strings.TrimSpace(string(name))
		}
	}
	return out, token.Expires, nil
}

func (g GCP) project() string {
	return cmp.Or(g.Project, os.Getenv("GOOGLE_CLOUD_PROJECT"), os.Getenv("GCLOUD_PROJECT"))
}

func quoted(s string) string {
	if b, err := json.Marshal(s[:min(len(s), 100)]); err == nil {
		return string(b)
	}
	return `""`
}
