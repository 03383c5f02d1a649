package cloud_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/pawl-dev/pawl/errdefs"
	"github.com/pawl-dev/pawl/internal/sigv4"
	"github.com/pawl-dev/pawl/model"
	"github.com/pawl-dev/pawl/model/anthropic"
	"github.com/pawl-dev/pawl/model/cloud"
)

const sonnet = "eu.anthropic.claude-sonnet-4-5-20250929-v1:0"

var keys = func(context.Context) (cloud.AWSCredentials, error) {
	return cloud.AWSCredentials{AccessKeyID: "AKIDEXAMPLE", SecretAccessKey: "wJalrXUtnFEMI-secret", SessionToken: "session-token-of-mine"}, nil
}

// verify signs a request anew as its server has it, and compares.
func verify(t *testing.T, r seen) {
	t.Helper()
	given := r.Header.Get("Authorization")
	_, names, _ := strings.Cut(given, "SignedHeaders=")
	names, _, _ = strings.Cut(names, ",")
	again, err := http.NewRequest(r.Method, "http://"+r.Host+r.URL.EscapedPath(), nil)
	if err != nil {
		t.Fatal(err)
	}
	if again.URL.RawPath = r.URL.EscapedPath(); r.RequestURI != again.URL.RawPath {
		t.Errorf("the path is %q", r.RequestURI)
	}
	again.ContentLength = r.ContentLength
	for _, name := range strings.Split(names, ";") {
		if v := r.Header.Values(name); len(v) > 0 {
			again.Header[http.CanonicalHeaderKey(name)] = v
		}
	}
	at, err := time.Parse("20060102T150405Z", r.Header.Get("X-Amz-Date"))
	if err != nil || time.Since(at).Abs() > time.Minute {
		t.Error(at, err)
	}
	c, _ := keys(t.Context())
	sigv4.Sign(again, sigv4.Credentials{AccessKeyID: c.AccessKeyID, SecretAccessKey: c.SecretAccessKey, SessionToken: c.SessionToken}, sigv4.Scope{Region: "eu-central-1", Service: "bedrock"}, sha256.Sum256([]byte(r.body)), at)
	if got := again.Header.Get("Authorization"); got != given {
		t.Errorf("signed %s\nwant   %s", given, got)
	}
}

func TestBedrockIsAskedAsAWSWantsIt(t *testing.T) {
	alone(t)
	s := serve(t, func(w http.ResponseWriter, r seen) {
		if strings.HasSuffix(r.URL.Path, "/invoke") {
			w.Header().Set("Content-Type", "application/json")
			_, _ = io.WriteString(w, claude)
			return
		}
		w.Header().Set("Content-Type", "application/vnd.amazon.eventstream")
		_, _ = w.Write(framed())
	})
	m := anthropic.New(sonnet, model.WithHeader("anthropic-beta", "one,two"), cloud.Bedrock(cloud.AWS{Region: "eu-central-1", Credentials: keys, BaseURL: s.URL}))
	for stream, path := range map[bool]string{false: "/invoke", true: "/invoke-with-response-stream"} {
		if got, err := said(t, m, stream); err != nil || got != "Bonjour" {
			t.Fatal(got, err)
		}
		r := s.last()
		verify(t, r)
		if want := "/model/eu.anthropic.claude-sonnet-4-5-20250929-v1%3A0" + path; r.RequestURI != want || r.Method != http.MethodPost {
			t.Errorf("%s %s", r.Method, r.RequestURI)
		}
		want := `{"anthropic_version":"bedrock-2023-05-31","anthropic_beta":["one","two"],"max_tokens":32000,"system":[{"type":"text","text":"Be brief."}],"messages":[{"role":"user","content":[{"type":"text","text":"Hello"}]}]}`
		if r.body != want {
			t.Errorf("\n got %s\nwant %s", r.body, want)
		}
		for _, name := range []string{"X-Api-Key", "Anthropic-Beta", "Anthropic-Version"} {
			if r.Header.Get(name) != "" {
				t.Errorf("%s: %s", name, r.Header.Get(name))
			}
		}
		if accept := map[bool]string{false: "application/json", true: "application/vnd.amazon.eventstream"}; r.Header.Get("Accept") != accept[stream] {
			t.Error(r.Header.Get("Accept"))
		}
	}
	if can := m.Capabilities(); can.Name != "bedrock/"+sonnet || can.Provider != "anthropic" || !can.Schema {
		t.Errorf("%+v", can)
	}
}

func TestAnARNIsOneSegmentOfThePath(t *testing.T) {
	alone(t)
	s := serve(t, func(w http.ResponseWriter, _ seen) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, claude)
	})
	m := anthropic.New("arn:aws:bedrock:eu-central-1:123456789012:inference-profile/eu.anthropic.claude-x", cloud.Bedrock(cloud.AWS{Region: "eu-central-1", Credentials: keys, BaseURL: s.URL + "/base/v1/"}))
	if _, err := said(t, m, false); err != nil {
		t.Fatal(err)
	}
	verify(t, s.last())
	if got := s.last().RequestURI; got != "/base/model/arn%3Aaws%3Abedrock%3Aeu-central-1%3A123456789012%3Ainference-profile%2Feu.anthropic.claude-x/invoke" {
		t.Error(got)
	}
}

// bedrock is a model whose every stream is what body gives.
func bedrock(body func() io.Reader) model.Model {
	client := &http.Client{Transport: handler(func(*http.Request) *http.Response {
		return &http.Response{StatusCode: http.StatusOK, Header: http.Header{"Content-Type": {"application/vnd.amazon.eventstream"}}, Body: io.NopCloser(body())}
	})}
	return anthropic.New(sonnet, model.WithHTTPClient(client), cloud.Bedrock(cloud.AWS{Region: "eu-central-1", Credentials: keys}))
}

func TestAStreamComesOutHoweverItsBytesCome(t *testing.T) {
	alone(t)
	whole := framed()
	for cut := range whole {
		m := bedrock(func() io.Reader { return io.MultiReader(bytes.NewReader(whole[:cut]), bytes.NewReader(whole[cut:])) })
		if got, err := said(t, m, true); err != nil || got != "Bonjour" {
			t.Fatalf("in two parts at %d: %q %v", cut, got, err)
		}
	}
	if got, err := said(t, bedrock(func() io.Reader { return iotest.OneByteReader(bytes.NewReader(whole)) }), true); err != nil || got != "Bonjour" {
		t.Fatal(got, err)
	}
}

func TestADeltaIsHeardBeforeTheNextOneComes(t *testing.T) {
	alone(t)
	heard := make(chan string)
	r, w := io.Pipe()
	done := make(chan error, 1)
	go func() {
		for i, e := range events {
			if _, err := w.Write(chunk(e)); err != nil {
				done <- err
				return
			}
			if i == 2 {
				if got := <-heard; got != "Bon" {
					done <- errors.New(got)
					return
				}
			}
		}
		done <- w.Close()
	}()
	err := bedrock(func() io.Reader { return r }).CompleteStream(t.Context(), hello, func(r model.StreamResult) error {
		if r.Text == "Bon" {
			heard <- r.Text
		}
		return nil
	})
	if err := errors.Join(err, <-done); err != nil {
		t.Error(err)
	}
}

func TestAStreamThatIsCutOrDamagedIsAnError(t *testing.T) {
	alone(t)
	whole := framed()
	for cut := range whole {
		if got, err := said(t, bedrock(func() io.Reader { return bytes.NewReader(whole[:cut]) }), true); !errdefs.NotAvailable.Is(err) {
			t.Fatalf("cut at %d: %q %v", cut, got, err)
		}
	}
	for i := range whole {
		bad := bytes.Clone(whole)
		bad[i] ^= 4
		if got, err := said(t, bedrock(func() io.Reader { return bytes.NewReader(bad) }), true); !errdefs.NotAvailable.Is(err) {
			t.Fatalf("byte %d: %q %v", i, got, err)
		}
	}
	_, err := said(t, bedrock(func() io.Reader { return bytes.NewReader(append(bytes.Clone(whole[:40]), 'x')) }), true)
	if err == nil || !strings.Contains(err.Error(), "EOF") {
		t.Error(err)
	}
	for what, f := range map[string][]byte{
		"of the unknown type":   frame("{}", ":message-type", "gossip"),
		"an event without byte": frame("{}", ":event-type", "chunk", ":message-type", "event"),
		"are not base64":        frame(`{"bytes":"*"}`, ":event-type", "chunk", ":message-type", "event"),
	} {
		if _, err := said(t, bedrock(func() io.Reader { return bytes.NewReader(append(bytes.Clone(whole[:len(chunk(events[0]))]), f...)) }), true); err == nil || !strings.Contains(err.Error(), what) {
			t.Errorf("%s: %v", what, err)
		}
	}
}

func TestWhatAStreamDoesntKnowYetIsSkippedAndEscapesAreUnderstood(t *testing.T) {
	alone(t)
	var all []byte
	for _, e := range events {
		all = append(all, frame(`{}`, ":event-type", "of-the-future", ":message-type", "event")...)
		escaped := `\u0065` + base64.StdEncoding.EncodeToString([]byte(e))[1:] // of an "e", as all objects begin
		all = append(all, frame(`{"p":"x","bytes":"`+escaped+`"}`, ":event-type", "chunk", ":message-type", "event")...)
	}
	if got, err := said(t, bedrock(func() io.Reader { return bytes.NewReader(all) }), true); err != nil || got != "Bonjour" {
		t.Error(got, err)
	}
}

func TestAnExceptionInAStreamHasItsClass(t *testing.T) {
	alone(t)
	for _, tc := range []struct {
		frame []byte
		kind  *errdefs.Class
		text  string
	}{
		{frame(`{"message":"Too many requests"}`, ":message-type", "exception", ":exception-type", "throttlingException"), errdefs.RateLimit, "throttlingException: Too many requests"},
		{frame(`{"message":"m"}`, ":message-type", "exception", ":exception-type", "serviceUnavailableException"), errdefs.NotAvailable, "serviceUnavailableException"},
		{frame(`{"message":"m"}`, ":message-type", "exception", ":exception-type", "internalServerException"), errdefs.NotAvailable, "internalServerException"},
		{frame(`{"message":"m","originalMessage":"below"}`, ":message-type", "exception", ":exception-type", "modelStreamErrorException"), errdefs.NotAvailable, "m (below)"},
		{frame(`{"message":"m"}`, ":message-type", "exception", ":exception-type", "modelTimeoutException"), errdefs.Timeout, "modelTimeoutException"},
		{frame(`{"message":"m"}`, ":message-type", "exception", ":exception-type", "validationException"), errdefs.Validation, "validationException"},
		{frame(`{"message":"Input is too long for requested model."}`, ":message-type", "exception", ":exception-type", "validationException"), errdefs.Overflow, "too long"},
		{frame(``, ":message-type", "error", ":error-code", "InternalError", ":error-message", "An internal server error occurred"), errdefs.NotAvailable, "InternalError: An internal"},
	} {
		text, err := said(t, bedrock(func() io.Reader {
			return bytes.NewReader(slices.Concat(chunk(events[0]), chunk(events[1]), chunk(events[2]), tc.frame))
		}), true)
		if !tc.kind.Is(err) || !strings.Contains(err.Error(), tc.text) {
			t.Errorf("%s: %q %v (%v)", tc.text, text, err, errdefs.Of(err))
		}
	}
}

func TestAnAnswerOfAWSHasItsWordAndItsClass(t *testing.T) {
	alone(t)
	for _, tc := range []struct {
		status     int
		kind, body string
		class      *errdefs.Class
		want       string
	}{
		{429, "ThrottlingException:http://internal.amazon.com/", `{"message":"Too many tokens"}`, errdefs.RateLimit, "ThrottlingException: Too many tokens"},
		{400, "ValidationException", `{"message":"Input is too long for requested model."}`, errdefs.Overflow, "ValidationException"},
		{403, "", `{"__type":"com.amazon#AccessDeniedException","Message":"no"}`, errdefs.Unauthorized, "AccessDeniedException: no"},
		{404, "ResourceNotFoundException", `{"message":"Could not resolve"}`, errdefs.NotFound, "ResourceNotFoundException"},
		{424, "ModelErrorException", `{"message":"broken"}`, errdefs.NotAvailable, "ModelErrorException: broken"},
		{503, "", `oops`, errdefs.NotAvailable, "oops"},
	} {
		s := serve(t, func(w http.ResponseWriter, _ seen) {
			if tc.kind != "" {
				w.Header().Set("X-Amzn-Errortype", tc.kind)
			}
			w.Header().Set("X-Amzn-Requestid", "req-1")
			w.WriteHeader(tc.status)
			_, _ = io.WriteString(w, tc.body)
		})
		_, err := said(t, anthropic.New(sonnet, cloud.Bedrock(cloud.AWS{Region: "eu-central-1", Credentials: keys, BaseURL: s.URL})), true)
		if !tc.class.Is(err) || !strings.HasPrefix(err.Error(), "bedrock: HTTP ") || !strings.Contains(err.Error(), tc.want) || !strings.Contains(err.Error(), "(request req-1)") {
			t.Errorf("%d: %v", tc.status, err)
		}
	}
}

func TestAClockThatIsWrongIsNamed(t *testing.T) {
	alone(t)
	for offset, want := range map[time.Duration]string{17 * time.Minute: "clock is 17m0s behind", -time.Hour: "clock is 1h0m0s ahead", 0: ""} {
		s := serve(t, func(w http.ResponseWriter, _ seen) {
			w.Header().Set("X-Amzn-Errortype", "InvalidSignatureException")
			w.Header().Set("Date", time.Now().Add(offset).UTC().Format(http.TimeFormat))
			w.WriteHeader(http.StatusForbidden)
			_, _ = io.WriteString(w, `{"message":"Signature expired: 20261122T000000Z is now earlier than …"}`)
		})
		_, err := said(t, anthropic.New(sonnet, cloud.Bedrock(cloud.AWS{Region: "eu-central-1", Credentials: keys, BaseURL: s.URL})), false)
		text := strings.NewReplacer("16m59s", "17m0s", "1h0m1s", "1h0m0s", "17m1s", "17m0s", "59m59s", "1h0m0s").Replace(err.Error()) // the header has whole seconds
		if !errdefs.Unauthorized.Is(err) || want == "" && strings.Contains(text, "clock") || !strings.Contains(text, want) {
			t.Errorf("%v: %v", offset, err)
		}
	}
}

func TestCredentialsOfAWSAreLookedForInOrder(t *testing.T) {
	home := alone(t)
	s := serve(t, func(w http.ResponseWriter, _ seen) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, claude)
	})
	ask := func(a cloud.AWS, opts ...model.Option) (string, error) {
		a.BaseURL = s.URL
		if _, err := said(t, anthropic.New(sonnet, append(opts, cloud.Bedrock(a))...), false); err != nil {
			return "", err
		}
		h := s.last().Header
		got, _, _ := strings.Cut(strings.TrimPrefix(h.Get("Authorization"), "AWS4-HMAC-SHA256 Credential="), ", ")
		return got + "|" + h.Get("X-Amz-Security-Token"), nil
	}
	want := func(what, want string, a cloud.AWS, opts ...model.Option) {
		t.Helper()
		got, err := ask(a, opts...)
		got = strings.Replace(got, time.Now().UTC().Format("20060102"), "D", 1)
		if err != nil || got != want {
			t.Errorf("%s: %q %v", what, got, err)
		}
	}
	if _, err := ask(cloud.AWS{}); !errdefs.Validation.Is(err) || !strings.Contains(err.Error(), "AWS_REGION") {
		t.Error(err)
	}
	if _, err := ask(cloud.AWS{Region: "eu.evil.example/"}); !errdefs.Validation.Is(err) {
		t.Error(err)
	}
	if _, err := ask(cloud.AWS{Region: "eu-central-1"}); !errdefs.Unauthorized.Is(err) || !strings.Contains(err.Error(), "AWS_ACCESS_KEY_ID") {
		t.Error(err)
	}
	if n := len(s.requests()); n > 0 {
		t.Errorf("%d requests went out without credentials", n)
	}
	write := func(name, text string) {
		t.Helper()
		if err := os.MkdirAll(filepath.Join(home, ".aws"), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(home, ".aws", name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("config", "[default]\nregion = eu-west-1 # here\n[profile work]\nregion=eu-north-1\ns3 =\n  region = nowhere\n")
	write("credentials", "# mine\n[default]\naws_access_key_id = AKDEFAULT\naws_secret_access_key = secret+of/default=\n\n[work]\naws_access_key_id=AKWORK\naws_secret_access_key=s\naws_session_token=tok\n")
	want("the default profile", "AKDEFAULT/D/eu-west-1/bedrock/aws4_request|", cloud.AWS{})
	t.Setenv("AWS_PROFILE", "work")
	want("the profile of the environment", "AKWORK/D/eu-north-1/bedrock/aws4_request|tok", cloud.AWS{})
	want("the profile", "AKDEFAULT/D/eu-west-1/bedrock/aws4_request|", cloud.AWS{Profile: "default"})
	t.Setenv("AWS_ACCESS_KEY_ID", "AKENV")
	t.Setenv("AWS_SECRET_ACCESS_KEY", "s")
	t.Setenv("AWS_SESSION_TOKEN", "t")
	t.Setenv("AWS_REGION", "us-east-1")
	want("keys of the environment", "AKENV/D/us-east-1/bedrock/aws4_request|t", cloud.AWS{})
	t.Setenv("AWS_BEARER_TOKEN_BEDROCK", "bedrock-key")
	want("the API key of the environment", "Bearer bedrock-key|", cloud.AWS{})
	want("a named profile before the environment", "AKWORK/D/us-east-1/bedrock/aws4_request|tok", cloud.AWS{Profile: "work"})
	want("a function", "AKIDEXAMPLE/D/us-east-1/bedrock/aws4_request|session-token-of-mine", cloud.AWS{Credentials: keys})
	want("a key", "Bearer mine|", cloud.AWS{Key: "mine"})
	want("model.WithKey", "Bearer another|", cloud.AWS{}, model.WithKey("another"))
	boom := func(context.Context) (cloud.AWSCredentials, error) {
		return cloud.AWSCredentials{}, errors.New("no role")
	}
	if _, err := ask(cloud.AWS{Credentials: boom}); !errdefs.Unauthorized.Is(err) || !strings.Contains(err.Error(), "no role") {
		t.Error(err)
	}
}

func TestCredentialsThatEndAreKeptAndThoseThatWereRefusedAreNot(t *testing.T) {
	alone(t)
	asked := 0
	given := func(context.Context) (cloud.AWSCredentials, error) {
		asked++
		return cloud.AWSCredentials{AccessKeyID: "AK", SecretAccessKey: "s", SessionToken: "t", Expires: time.Now().Add(time.Hour)}, nil
	}
	expired := 0
	s := serve(t, func(w http.ResponseWriter, _ seen) {
		if expired > 0 {
			expired--
			w.Header().Set("X-Amzn-Errortype", "ExpiredTokenException")
			w.WriteHeader(http.StatusForbidden)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, claude)
	})
	m := anthropic.New(sonnet, cloud.Bedrock(cloud.AWS{Region: "eu-central-1", Credentials: given, BaseURL: s.URL}))
	for range 3 {
		if _, err := said(t, m, false); err != nil {
			t.Fatal(err)
		}
	}
	if asked != 1 {
		t.Errorf("asked %d times", asked)
	}
	expired = 1
	if _, err := said(t, m, false); err != nil || asked != 2 || len(s.requests()) != 5 || s.last().body != s.requests()[0].body {
		t.Error(err, asked, len(s.requests()))
	}
	expired = 9
	if _, err := said(t, m, false); !errdefs.Unauthorized.Is(err) || asked != 3 || len(s.requests()) != 7 {
		t.Error(err, asked, len(s.requests()))
	}
}

func TestWhatAFailureQuotesHasNoSecrets(t *testing.T) {
	alone(t)
	s := serve(t, func(w http.ResponseWriter, r seen) {
		w.Header().Set("X-Amzn-Errortype", "InvalidSignatureException")
		w.WriteHeader(http.StatusForbidden)
		_, _ = io.WriteString(w, `{"message":"The Canonical String should have been x-amz-security-token:`+r.Header.Get("X-Amz-Security-Token")+` and wJalrXUtnFEMI-secret"}`)
	})
	_, err := said(t, anthropic.New(sonnet, cloud.Bedrock(cloud.AWS{Region: "eu-central-1", Credentials: keys, BaseURL: s.URL})), false)
	if err == nil || strings.Contains(err.Error(), "session-token-of-mine") || strings.Contains(err.Error(), "wJalr") || !strings.Contains(err.Error(), "[redacted]") {
		t.Error(err)
	}
}

func TestCredentialsGoToTheCloudAlone(t *testing.T) {
	alone(t)
	var other *server
	s := serve(t, func(w http.ResponseWriter, _ seen) {
		http.Redirect(w, &http.Request{Method: "POST"}, other.URL, http.StatusTemporaryRedirect)
	})
	other = serve(t, func(http.ResponseWriter, seen) {})
	on := cloud.AWS{Region: "eu-central-1", Credentials: keys, BaseURL: s.URL}
	follows := &http.Client{} // follows redirects, with the body and without asking
	for what, opts := range map[string][]model.Option{
		"a redirect":         {model.WithHTTPClient(follows), cloud.Bedrock(on)},
		"a later base URL":   {cloud.Bedrock(on), model.WithBaseURL(other.URL)},
		"a later key":        {cloud.Bedrock(on), model.WithKey("sk-of-mine")},
		"a header":           {cloud.Bedrock(on), model.WithHeader("Authorization", "Bearer of mine")},
		"a URL with a user":  {model.WithBaseURL("http://u:p@127.0.0.1:1"), cloud.Bedrock(cloud.AWS{Region: "eu-central-1", Credentials: keys})},
		"no URL":             {cloud.Bedrock(cloud.AWS{Region: "eu-central-1", Credentials: keys, BaseURL: "ftp://x"})},
		"a URL with a query": {cloud.Bedrock(cloud.AWS{Region: "eu-central-1", Credentials: keys, BaseURL: s.URL + "?a=b"})},
	} {
		_, err := said(t, anthropic.New(sonnet, opts...), false)
		if !errdefs.Validation.Is(err) {
			t.Errorf("%s: %v", what, err)
		}
	}
	if n := len(other.requests()); n > 0 {
		t.Errorf("another host got %d requests", n)
	}
	if n := len(s.requests()); n != 1 {
		t.Errorf("the cloud got %d requests", n)
	}
	if follows.Transport != nil || follows.CheckRedirect != nil {
		t.Error("the caller's client was changed")
	}
}

func TestWhatTheCloudIsAskedCanBeReadAgain(t *testing.T) {
	alone(t)
	client := &http.Client{Transport: handler(func(r *http.Request) *http.Response {
		first, _ := io.ReadAll(r.Body)
		again, err := r.GetBody()
		if err != nil {
			t.Fatal(err)
		}
		second, _ := io.ReadAll(again)
		if diff := cmp.Diff(string(first), string(second)); diff != "" || int64(len(first)) != r.ContentLength || !json.Valid(first) {
			t.Error(diff, r.ContentLength)
		}
		return answer(200, "application/json", claude)
	})}
	if _, err := said(t, anthropic.New(sonnet, model.WithHTTPClient(client), cloud.Bedrock(cloud.AWS{Region: "eu-central-1", Credentials: keys})), false); err != nil {
		t.Error(err)
	}
}
