package sigv4_test

import (
	"crypto/sha256"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/pawl-dev/pawl/internal/sigv4"
)

// AWS's published test suite: what its requests are signed as. (Not those whose paths have bytes that net/http doesn't send as they are, or dots that AWS's own SDKs leave.)
func TestThePublishedVectors(t *testing.T) {
	at := time.Date(2015, 8, 30, 12, 36, 0, 0, time.UTC)
	for _, tc := range []struct {
		name, method, url string
		header            http.Header
		body              string
		signed, signature string
	}{
		{"get-vanilla", "GET", "/", nil, "", "host;x-amz-date", "5fa00fa31553b73ebf1942676e86291e8372ff2a2260956d9b8aae1d763fbf31"},
		{"get-vanilla-query-order-key-case", "GET", "/?Param2=value2&Param1=value1", nil, "", "host;x-amz-date", "b97d918cfa904a5beff61c982a1b6f458b799221646efd99d3219ec94cdf2500"},
		{"get-vanilla-empty-query-key", "GET", "/?Param1=value1", nil, "", "host;x-amz-date", "a67d582fa61cc504c4bae71f336f98b97f1ea3c7a6bfe1b6e45aec72011b9aeb"},
		{"get-vanilla-utf8-query", "GET", "/?\u1234=bar", nil, "", "host;x-amz-date", "2cdec8eed098649ff3a119c94853b13c643bcf08f8b0a1d91e12c9027818dd04"},
		{"get-unreserved", "GET", "/-._~0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz", nil, "", "host;x-amz-date", "07ef7494c76fa4850883e2b006601f940f8a34d404d0cfa977f52a65bbf5f24f"},
		{"get-header-value-trim", "GET", "/", http.Header{"My-Header1": {" value1"}, "My-Header2": {` "a   b   c"`}}, "", "host;my-header1;my-header2;x-amz-date", "acc3ed3afb60bb290fc8d2dd0098b9911fcaa05412b367055dee359757a9c736"},
		{"post-vanilla", "POST", "/", nil, "", "host;x-amz-date", "5da7c1a2acd57cee7505fc6676e4e544621c30862966e37dddb68e92efbe5d6b"},
		{"post-x-www-form-urlencoded", "POST", "/", http.Header{"Content-Type": {"application/x-www-form-urlencoded"}}, "Param1=value1", "content-type;host;x-amz-date", "ff11897932ad3f4e8b18135d722051e5ac45fc38421b1da7b9d196a0fe09473a"},
	} {
		r, err := http.NewRequest(tc.method, "https://example.amazonaws.com"+tc.url, nil)
		if err != nil {
			t.Fatal(err)
		}
		for name, v := range tc.header {
			r.Header[name] = v
		}
		sigv4.Sign(r, sigv4.Credentials{AccessKeyID: "AKIDEXAMPLE", SecretAccessKey: "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY"}, sigv4.Scope{Region: "us-east-1", Service: "service"}, sha256.Sum256([]byte(tc.body)), at)
		want := "AWS4-HMAC-SHA256 Credential=AKIDEXAMPLE/20150830/us-east-1/service/aws4_request, SignedHeaders=" + tc.signed + ", Signature=" + tc.signature
		if got := r.Header.Get("Authorization"); got != want {
			t.Errorf("%s:\n got %s\nwant %s", tc.name, got, want)
		}
	}
}

func TestASessionTokenAndTheLengthAreSignedAndWhatChangesOnTheWayIsNot(t *testing.T) {
	r, err := http.NewRequest("POST", "https://bedrock-runtime.eu-central-1.amazonaws.com:443/x", strings.NewReader("{}"))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("User-Agent", "pawl")
	r.Header.Set("Authorization", "Bearer of something else")
	sigv4.Sign(r, sigv4.Credentials{AccessKeyID: "A", SecretAccessKey: "s", SessionToken: "token"}, sigv4.Scope{Region: "eu-central-1", Service: "bedrock"}, sha256.Sum256([]byte("{}")), time.Now())
	if got := r.Header.Get("Authorization"); !strings.Contains(got, "SignedHeaders=content-length;host;x-amz-date;x-amz-security-token,") {
		t.Error(got)
	}
	if r.Host != "bedrock-runtime.eu-central-1.amazonaws.com" || r.Header.Get("X-Amz-Security-Token") != "token" {
		t.Errorf("%q %v", r.Host, r.Header)
	}
}

func TestASegmentIsEscapedButForTheUnreserved(t *testing.T) {
	if got := sigv4.Escape("eu.anthropic.claude-sonnet-4-5-20250929-v1:0"); got != "eu.anthropic.claude-sonnet-4-5-20250929-v1%3A0" {
		t.Error(got)
	}
	if got := sigv4.Escape("a/b ä~"); got != "a%2Fb%20%C3%A4~" {
		t.Error(got)
	}
}
