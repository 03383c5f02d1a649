package oracle

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	sdk "github.com/anthropics/anthropic-sdk-go"
	"github.com/anthropics/anthropic-sdk-go/bedrock"
	"github.com/anthropics/anthropic-sdk-go/option"
	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/aws/protocol/eventstream"
	v4 "github.com/aws/aws-sdk-go-v2/aws/signer/v4"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/google/go-cmp/cmp"

	own "github.com/pawl-dev/pawl/internal/eventstream"
	"github.com/pawl-dev/pawl/internal/sigv4"
	"github.com/pawl-dev/pawl/message"
	"github.com/pawl-dev/pawl/model"
	"github.com/pawl-dev/pawl/model/anthropic"
	"github.com/pawl-dev/pawl/model/cloud"
)

// signed signs one request twice: by AWS's SDK and by us.
func signed(t *testing.T, r *http.Request, body []byte, c sigv4.Credentials, to sigv4.Scope, at time.Time) (theirs, ours *http.Request) {
	t.Helper()
	sum := sha256.Sum256(body)
	theirs, ours = r.Clone(t.Context()), r.Clone(t.Context())
	err := v4.NewSigner().SignHTTP(t.Context(), aws.Credentials{AccessKeyID: c.AccessKeyID, SecretAccessKey: c.SecretAccessKey, SessionToken: c.SessionToken}, theirs, hex.EncodeToString(sum[:]), to.Service, to.Region, at)
	if err != nil {
		t.Fatal(err)
	}
	sigv4.Sign(ours, c, to, sum, at)
	return theirs, ours
}

func request(t *testing.T, method, address, rawPath, query string, body []byte, header http.Header) *http.Request {
	t.Helper()
	u, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	u.Path, err = url.PathUnescape(rawPath)
	if err != nil {
		t.Fatal(err)
	}
	u.RawPath, u.RawQuery = rawPath, query
	r, err := http.NewRequest(method, "https://x", nil)
	if err != nil {
		t.Fatal(err)
	}
	r.URL, r.Host, r.Header, r.ContentLength = u, "", header.Clone(), int64(len(body))
	if r.Header == nil {
		r.Header = http.Header{}
	}
	return r
}

func TestSignaturesAreThoseOfAWSsSDK(t *testing.T) {
	at := time.Date(2026, 11, 22, 23, 59, 59, 0, time.UTC)
	c := sigv4.Credentials{AccessKeyID: "AKIDEXAMPLE", SecretAccessKey: "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY"}
	same := func(what string, r *http.Request, body []byte, c sigv4.Credentials, to sigv4.Scope, at time.Time) {
		t.Helper()
		theirs, ours := signed(t, r, body, c, to, at)
		if diff := cmp.Diff(theirs.Header, ours.Header); diff != "" {
			t.Errorf("%s: %s %s %v: %s", what, r.Method, r.URL, r.Header, diff)
		}
	}
	const host = "https://bedrock-runtime.eu-central-1.amazonaws.com"
	to := sigv4.Scope{Region: "eu-central-1", Service: "bedrock"}
	for _, path := range []string{
		"", "/", "/model/eu.anthropic.claude-sonnet-4-5-20250929-v1%3A0/invoke", "/model/eu.anthropic.claude-sonnet-4-5-20250929-v1:0/invoke", "/model/arn%3Aaws%3Abedrock%3A%3A1%3Ax%2Fy/invoke-with-response-stream",
		"/a//b/", "/%C3%A4", "/a%20b", "/a+b", "/~._-", "/%25", "/a;b=c,d@e!$&'()*",
	} {
		for _, query := range []string{"", "b=2&a=1", "a=2&a=1", "a=", "a", "a=%20+%2B&%C3%A4=~", "A=1&a=1"} {
			for _, body := range []string{"", "{}", strings.Repeat("x", 1000)} {
				r := request(t, "POST", host, path, query, []byte(body), http.Header{"Content-Type": {"application/json"}, "User-Agent": {"pawl"}})
				same("table", r, []byte(body), c, to, at)
			}
		}
	}
	for _, header := range []http.Header{
		nil, {"Accept": {"a", "b"}}, {"X-Spaced": {"  a   b  "}}, {"X-Amzn-Trace-Id": {"1"}, "Expect": {"x"}, "Transfer-Encoding": {"chunked"}}, {"Authorization": {"Bearer x"}}, {"X-Empty": {""}}, {"Content-Length": {"7"}},
	} {
		same("headers", request(t, "POST", host, "/x", "", []byte("1234567"), header), []byte("1234567"), sigv4.Credentials{AccessKeyID: "A", SecretAccessKey: "s", SessionToken: "a/token+of=mine"}, to, at)
	}
	for _, address := range []string{"https://x.example:443", "https://x.example:8443", "http://x.example:80", "http://x.example:443", "http://127.0.0.1:1234"} {
		same("hosts", request(t, "GET", address, "/", "", nil, nil), nil, c, to, at)
	}

	seed := uint64(time.Now().UnixNano())
	chance := rand.New(rand.NewPCG(seed, 1))
	word := func(letters string, n int) string {
		b := make([]byte, chance.IntN(n))
		for i := range b {
			b[i] = letters[chance.IntN(len(letters))]
		}
		return string(b)
	}
	const any = "abcXYZ019-._~:/@!$&'()*+,;=% äé€"
	for range 2000 {
		var path strings.Builder
		for range chance.IntN(4) {
			path.WriteString("/" + []func(string) string{url.PathEscape, sigv4.Escape}[chance.IntN(2)](word(any, 20)))
		}
		query := url.Values{}
		for range chance.IntN(4) {
			query.Add(word(any, 6), word(any, 12))
		}
		header := http.Header{}
		for range chance.IntN(5) {
			header.Add("X-"+word("abcdef", 4)+"z", word("abc ,:;=\"", 16))
		}
		body := []byte(word(any, 300))
		keys := sigv4.Credentials{AccessKeyID: "A" + word("ABC123", 16), SecretAccessKey: word(any, 40) + "x", SessionToken: word("abc+/=", 30)}
		same(fmt.Sprintf("seed %d", seed), request(t, []string{"GET", "POST"}[chance.IntN(2)], host, path.String(), query.Encode(), body, header), body, keys,
			sigv4.Scope{Region: "r-" + word("abc123", 9), Service: word("abc", 8)}, at.Add(time.Duration(chance.IntN(1e6))*time.Second))
	}
}

// Frames of AWS's encoder, with headers of every kind.
func TestFramesOfAWSsEncoderAreUnderstood(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	chance := rand.New(rand.NewPCG(seed, 2))
	var wire bytes.Buffer
	type frame struct{ Type, Payload string }
	var want []frame
	for range 300 {
		payload := make([]byte, chance.IntN(5000))
		for i := range payload {
			payload[i] = byte(chance.Uint32())
		}
		headers := eventstream.Headers{}
		for i, v := range []eventstream.Value{
			eventstream.BoolValue(true), eventstream.BoolValue(false), eventstream.Int8Value(-1), eventstream.Int16Value(2), eventstream.Int32Value(-3), eventstream.Int64Value(4), eventstream.BytesValue(payload[:min(len(payload), 100)]),
			eventstream.TimestampValue(time.Now()),
			eventstream.UUIDValue{1, 2, 3},
			eventstream.StringValue("not this one"),
		} {
			if chance.IntN(2) == 0 {
				headers.Set(fmt.Sprintf("h%d", i), v)
			}
		}
		kind := fmt.Sprintf("kind-%d", chance.IntN(1000))
		headers.Set(":event-type", eventstream.StringValue(kind))
		if err := eventstream.NewEncoder().Encode(&wire, eventstream.Message{Headers: headers, Payload: payload}); err != nil {
			t.Fatal(err)
		}
		want = append(want, frame{kind, string(payload)})
	}
	var got []frame
	in := own.NewReader(&wire)
	for {
		m, err := in.Next()
		if err == io.EOF { //nolint:errorlint // as io.Reader has it
			break
		}
		if err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		got = append(got, frame{m.Header(":event-type"), string(m.Payload)})
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("seed %d: %s", seed, diff)
	}
}

// exchange keeps a request, and answers.
type exchange struct {
	answer func() *http.Response
	sent   *http.Request
	body   []byte
}

func (e *exchange) RoundTrip(r *http.Request) (*http.Response, error) {
	e.sent = r
	if r.Body != nil {
		var err error
		if e.body, err = io.ReadAll(r.Body); err != nil {
			return nil, err
		}
		_ = r.Body.Close()
	}
	return e.answer(), nil
}

func answering(kind string, body []byte) func() *http.Response {
	return func() *http.Response {
		return &http.Response{StatusCode: 200, Header: http.Header{"Content-Type": {kind}}, Body: io.NopCloser(bytes.NewReader(body))}
	}
}

const claudeSays = `{"id":"msg_1","type":"message","role":"assistant","model":"claude-sonnet-4-5","content":[{"type":"text","text":"Bonjour"}],"stop_reason":"end_turn","usage":{"input_tokens":3,"output_tokens":2}}`

// claudeFrames is a stream, of AWS's encoder.
func claudeFrames(t *testing.T) []byte {
	t.Helper()
	var b bytes.Buffer
	for _, event := range []string{
		`{"type":"message_start","message":{"id":"msg_1","type":"message","role":"assistant","model":"claude-sonnet-4-5","content":[],"usage":{"input_tokens":3,"output_tokens":0}}}`,
		`{"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}`,
		`{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"Bon"}}`, `{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"jour"}}`,
		`{"type":"content_block_stop","index":0}`, `{"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":{"output_tokens":2}}`, `{"type":"message_stop"}`,
	} {
		m := eventstream.Message{Payload: []byte(`{"bytes":"` + base64.StdEncoding.EncodeToString([]byte(event)) + `"}`)}
		m.Headers.Set(":message-type", eventstream.StringValue("event"))
		m.Headers.Set(":event-type", eventstream.StringValue("chunk"))
		if err := eventstream.NewEncoder().Encode(&b, m); err != nil {
			t.Fatal(err)
		}
	}
	return b.Bytes()
}

var helloAgain = model.Request{System: "Be brief.", Settings: model.Settings{MaxTokens: 100}, Messages: message.NewHistory(message.User("Hello"))}

func helloOfTheirs(name string) sdk.MessageNewParams {
	return sdk.MessageNewParams{
		Model: sdk.Model(name), MaxTokens: 100, System: []sdk.TextBlockParam{{Text: "Be brief."}}, Messages: []sdk.MessageParam{sdk.NewUserMessage(sdk.NewTextBlock("Hello"))},
	}
}

// plainSystem is a body decoded, its system prompt as a text.
func plainSystem(t *testing.T, body []byte) map[string]any {
	t.Helper()
	var m map[string]any
	if err := json.Unmarshal(body, &m); err != nil {
		t.Fatalf("%v: %s", err, body)
	}
	if list, ok := m["system"].([]any); ok && len(list) == 1 {
		m["system"] = list[0].(map[string]any)["text"]
	}
	return m
}

// What Anthropic's SDK asks Bedrock, we ask it: at the same address, with the same body, and signed by AWS's signer over what is signed of ours.
func TestBedrockIsAskedAsAnthropicsSDKAsksIt(t *testing.T) {
	t.Setenv("AWS_BEARER_TOKEN_BEDROCK", "")
	t.Setenv("AWS_ENDPOINT_URL", "")
	t.Setenv("AWS_ENDPOINT_URL_BEDROCK_RUNTIME", "")
	keys := sigv4.Credentials{AccessKeyID: "AKIDEXAMPLE", SecretAccessKey: "secret-of-mine", SessionToken: "token-of-mine"}
	for _, name := range []string{"eu.anthropic.claude-sonnet-4-5-20250929-v1:0", "arn:aws:bedrock:eu-central-1:123456789012:inference-profile/eu.anthropic.claude-x-v1:0"} {
		for _, stream := range []bool{false, true} {
			answer := answering("application/json", []byte(claudeSays))
			if stream {
				answer = answering("application/vnd.amazon.eventstream", claudeFrames(t))
			}
			theirs, ours := &exchange{answer: answer}, &exchange{answer: answer}
			client := sdk.NewClient(option.WithHTTPClient(&http.Client{Transport: theirs}), option.WithHeader("anthropic-beta", "one, two"), bedrock.WithConfig(aws.Config{
				Region: "eu-central-1", Credentials: credentials.NewStaticCredentialsProvider(keys.AccessKeyID, keys.SecretAccessKey, keys.SessionToken),
			}))
			m := anthropic.New(name, model.WithHTTPClient(&http.Client{Transport: ours}), model.WithHeader("anthropic-beta", "one, two"), cloud.Bedrock(cloud.AWS{
				Region: "eu-central-1", Credentials: func(context.Context) (cloud.AWSCredentials, error) {
					return cloud.AWSCredentials{AccessKeyID: keys.AccessKeyID, SecretAccessKey: keys.SecretAccessKey, SessionToken: keys.SessionToken}, nil
				},
			}))
			var theirText, ourText string
			if stream {
				s := client.Messages.NewStreaming(t.Context(), helloOfTheirs(name))
				for s.Next() {
					theirText += s.Current().Delta.Text
				}
				if err := s.Err(); err != nil {
					t.Fatal(err)
				}
				if err := m.CompleteStream(t.Context(), helloAgain, func(r model.StreamResult) error { ourText += r.Text; return nil }); err != nil {
					t.Fatal(err)
				}
			} else {
				r, err := client.Messages.New(t.Context(), helloOfTheirs(name))
				if err != nil {
					t.Fatal(err)
				}
				theirText = r.Content[0].Text
				own, err := m.Complete(t.Context(), helloAgain)
				if err != nil {
					t.Fatal(err)
				}
				ourText = own.Message.Text()
			}
			if ourText != theirText || ourText != "Bonjour" {
				t.Errorf("%q, %q", theirText, ourText)
			}
			if theirs.sent.URL.String() != ours.sent.URL.String() {
				t.Errorf("\ntheirs %s\nours   %s", theirs.sent.URL, ours.sent.URL)
			}
			if diff := cmp.Diff(plainSystem(t, theirs.body), plainSystem(t, ours.body)); diff != "" {
				t.Error(diff)
			}
			verifyBySDK(t, ours, keys)
		}
	}
}

// verifyBySDK signs what was signed once more, by AWS's SDK.
func verifyBySDK(t *testing.T, e *exchange, keys sigv4.Credentials) {
	t.Helper()
	at, err := time.Parse("20060102T150405Z", e.sent.Header.Get("X-Amz-Date"))
	if err != nil {
		t.Fatal(err)
	}
	again := e.sent.Clone(t.Context())
	again.Header.Del("Authorization")
	theirs, _ := signed(t, again, e.body, keys, sigv4.Scope{Region: "eu-central-1", Service: "bedrock"}, at)
	if diff := cmp.Diff(theirs.Header.Get("Authorization"), e.sent.Header.Get("Authorization")); diff != "" {
		t.Error(diff)
	}
}
