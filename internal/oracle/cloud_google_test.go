package oracle

import (
	"context"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"testing"

	sdk "github.com/anthropics/anthropic-sdk-go"
	"github.com/anthropics/anthropic-sdk-go/option"
	"github.com/anthropics/anthropic-sdk-go/vertex"
	"github.com/google/go-cmp/cmp"
	"golang.org/x/oauth2"
	"golang.org/x/oauth2/google"
	"google.golang.org/genai"

	"github.com/pawl-dev/pawl/model"
	"github.com/pawl-dev/pawl/model/anthropic"
	"github.com/pawl-dev/pawl/model/cloud"
	"github.com/pawl-dev/pawl/model/gemini"
)

// cloudCall is what a server of tokens was asked.
type cloudCall struct {
	Method, URI, Type string
	Form              url.Values
}

// tokens is a server that gives one, and keeps what it was asked.
func tokens(t *testing.T) (address string, all func() []cloudCall) {
	t.Helper()
	var mu sync.Mutex
	var list []cloudCall
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		form, err := url.ParseQuery(string(body))
		if err != nil {
			t.Error(err)
		}
		mu.Lock()
		list = append(list, cloudCall{r.Method, r.RequestURI, r.Header.Get("Content-Type"), form})
		mu.Unlock()
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, `{"access_token":"ya29.token","expires_in":3599,"token_type":"Bearer"}`)
	}))
	t.Cleanup(s.Close)
	return s.URL, func() []cloudCall { mu.Lock(); defer mu.Unlock(); return list }
}

const flashSays = `{"candidates":[{"content":{"role":"model","parts":[{"text":"Bonjour"}]},"finishReason":"STOP"}]}`

// asVertex asks one question by credentials of ours, so that a token is fetched.
func asVertex(t *testing.T, credentials []byte) (authorization string) {
	t.Helper()
	e := &exchange{answer: answering("application/json", []byte(flashSays))}
	only := roundTrip(func(r *http.Request) (*http.Response, error) {
		if strings.Contains(r.URL.Path, "/publishers/") {
			return e.RoundTrip(r)
		}
		return http.DefaultTransport.RoundTrip(r)
	})
	m := gemini.New("gemini-x", model.WithHTTPClient(&http.Client{Transport: only}), cloud.Vertex(cloud.GCP{Project: "p", Credentials: credentials}))
	if _, err := m.Complete(t.Context(), helloAgain); err != nil {
		t.Fatal(err)
	}
	return e.sent.Header.Get("Authorization")
}

type roundTrip func(*http.Request) (*http.Response, error)

func (f roundTrip) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// jwt takes a token apart, the times and the signature apart from the rest. (Those of PKCS #1 v1.5 are the same for the same text.)
func jwt(t *testing.T, token string) (header, claims map[string]any, lasts float64) {
	t.Helper()
	parts := strings.Split(token, ".")
	if len(parts) != 3 {
		t.Fatalf("%q is no token", token)
	}
	for i, into := range []*map[string]any{&header, &claims} {
		data, err := base64.RawURLEncoding.DecodeString(parts[i])
		if err != nil {
			t.Fatal(err)
		}
		if err := json.Unmarshal(data, into); err != nil {
			t.Fatal(err)
		}
	}
	lasts = claims["exp"].(float64) - claims["iat"].(float64)
	delete(claims, "exp")
	delete(claims, "iat")
	return header, claims, lasts
}

func TestAServiceAccountIsGrantedATokenAsByGooglesLibrary(t *testing.T) {
	address, all := tokens(t)
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	file, err := json.Marshal(map[string]string{
		"type": "service_account", "project_id": "p", "client_email": "robot@p.iam.gserviceaccount.com", "client_id": "1", "private_key_id": "key-1",
		"private_key": string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der})), "token_uri": address + "/token",
	})
	if err != nil {
		t.Fatal(err)
	}
	conf, err := google.JWTConfigFromJSON(file, "https://www.googleapis.com/auth/cloud-platform")
	if err != nil {
		t.Fatal(err)
	}
	token, err := conf.TokenSource(t.Context()).Token()
	if err != nil {
		t.Fatal(err)
	}
	if got := asVertex(t, file); got != "Bearer "+token.AccessToken {
		t.Error(got)
	}
	requests := all()
	if len(requests) != 2 {
		t.Fatalf("%d requests", len(requests))
	}
	theirHeader, theirClaims, theirs := jwt(t, requests[0].Form.Get("assertion"))
	ourHeader, ourClaims, ours := jwt(t, requests[1].Form.Get("assertion"))
	if diff := cmp.Diff(theirHeader, ourHeader) + cmp.Diff(theirClaims, ourClaims) + cmp.Diff(theirs, ours); diff != "" {
		t.Error(diff)
	}
	for i := range requests {
		requests[i].Form.Del("assertion")
	}
	if diff := cmp.Diff(requests[0], requests[1]); diff != "" {
		t.Error(diff)
	}
}

func TestAUsersLoginIsRefreshedAsByGooglesLibrary(t *testing.T) {
	address, all := tokens(t)
	file, err := json.Marshal(map[string]string{"type": "authorized_user", "client_id": "id", "client_secret": "the secret", "refresh_token": "1//refresh", "token_uri": address + "/token"})
	if err != nil {
		t.Fatal(err)
	}
	credentials, err := google.CredentialsFromJSONWithType(t.Context(), file, google.AuthorizedUser, "https://www.googleapis.com/auth/cloud-platform")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := credentials.TokenSource.Token(); err != nil {
		t.Fatal(err)
	}
	asVertex(t, file)
	requests := all()
	last := requests[len(requests)-1]
	// Their library tries the client's name and secret in a header first, where a server may want them; Google wants them in the form, or takes both.
	found := false
	for _, r := range requests[:len(requests)-1] {
		found = found || cmp.Equal(r, last)
	}
	if !found {
		theirs := requests[0]
		for name, v := range theirs.Form {
			if !cmp.Equal(last.Form[name], v) {
				t.Errorf("%s: %v, ours %v", name, v, last.Form[name])
			}
		}
		if theirs.URI != last.URI || theirs.Method != last.Method || theirs.Type != last.Type || last.Form.Get("client_id") != "id" || last.Form.Get("client_secret") != "the secret" {
			t.Errorf("%+v, ours %+v", theirs, last)
		}
	}
}

func cloudToken(context.Context) (cloud.Token, error) { return cloud.Token{Value: "ya29.token"}, nil }

func TestVertexIsAskedAsAnthropicsSDKAsksIt(t *testing.T) {
	const name = "claude-sonnet-4-5@20250929"
	for _, location := range []string{"global", "us", "eu", "us-east5"} {
		for _, stream := range []bool{false, true} {
			// What comes back is of no account here: the whole reply is understood by us in both cases, and not looked at of theirs.
			theirs, ours := &exchange{answer: answering("application/json", []byte(claudeSays))}, &exchange{answer: answering("application/json", []byte(claudeSays))}
			client := sdk.NewClient(option.WithHTTPClient(&http.Client{Transport: theirs}), option.WithMaxRetries(0), vertex.WithCredentials(t.Context(), location, "my-project", &google.Credentials{
				TokenSource: oauth2.StaticTokenSource(&oauth2.Token{AccessToken: "ya29.token"}),
			}))
			m := anthropic.New(name, model.WithHTTPClient(&http.Client{Transport: ours}), cloud.Vertex(cloud.GCP{Project: "my-project", Location: location, Token: cloudToken}))
			if stream {
				s := client.Messages.NewStreaming(t.Context(), helloOfTheirs(name))
				s.Next()
				_ = s.Close()
				if err := m.CompleteStream(t.Context(), helloAgain, func(model.StreamResult) error { return nil }); err != nil {
					t.Fatal(err)
				}
			} else {
				if _, err := client.Messages.New(t.Context(), helloOfTheirs(name)); err != nil {
					t.Fatal(err)
				}
				if _, err := m.Complete(t.Context(), helloAgain); err != nil {
					t.Fatal(err)
				}
			}
			if theirs.sent.URL.String() != ours.sent.URL.String() || theirs.sent.Header.Get("Authorization") != ours.sent.Header.Get("Authorization") {
				t.Errorf("\ntheirs %s %v\nours   %s %v", theirs.sent.URL, theirs.sent.Header, ours.sent.URL, ours.sent.Header)
			}
			if diff := cmp.Diff(plainSystem(t, theirs.body), plainSystem(t, ours.body)); diff != "" {
				t.Error(diff)
			}
		}
	}
}

// Google's own SDK asks the version v1beta1; what is behind it is the same.
func TestVertexIsAskedAsGooglesSDKAsksIt(t *testing.T) {
	for _, location := range []string{"global", "europe-west1", "us"} {
		for _, stream := range []bool{false, true} {
			theirs, ours := &exchange{answer: answering("application/json", []byte(flashSays))}, &exchange{answer: answering("application/json", []byte(flashSays))}
			client, err := genai.NewClient(t.Context(), &genai.ClientConfig{Backend: genai.BackendVertexAI, Project: "my-project", Location: location, HTTPClient: &http.Client{Transport: theirs}})
			if err != nil {
				t.Fatal(err)
			}
			m := gemini.New("gemini-2.5-flash", model.WithHTTPClient(&http.Client{Transport: ours}), cloud.Vertex(cloud.GCP{Project: "my-project", Location: location, Token: cloudToken}))
			question := genai.Text("Hello")
			if stream {
				for range client.Models.GenerateContentStream(t.Context(), "gemini-2.5-flash", question, nil) { //nolint:errcheck // what comes back is no stream
					break
				}
				err = m.CompleteStream(t.Context(), helloAgain, func(model.StreamResult) error { return nil })
			} else {
				if _, err := client.Models.GenerateContent(t.Context(), "gemini-2.5-flash", question, nil); err != nil {
					t.Fatal(err)
				}
				_, err = m.Complete(t.Context(), helloAgain)
			}
			if err != nil {
				t.Fatal(err)
			}
			if want := strings.Replace(theirs.sent.URL.String(), "/v1beta1/", "/v1/", 1); ours.sent.URL.String() != want {
				t.Errorf("\ntheirs %s\nours   %s", want, ours.sent.URL)
			}
		}
	}
}
