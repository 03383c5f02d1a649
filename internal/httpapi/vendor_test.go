package httpapi_test

import (
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/pawl-dev/pawl/errdefs"
	"github.com/pawl-dev/pawl/internal/httpapi"
	"github.com/pawl-dev/pawl/model"
)

// keeper is a round tripper with a secret of its own.
type keeper struct {
	resp *http.Response
	err  error
}

func (k keeper) RoundTrip(*http.Request) (*http.Response, error) { return k.resp, k.err }
func (k keeper) Secrets() []string                               { return []string{"secret-of-the-cloud"} }

func from(k keeper, opts ...model.Option) *httpapi.API {
	opts = append(opts, model.WithBaseURL("http://cloud.example"), model.WithHTTPClient(&http.Client{Transport: k}))
	return httpapi.New("maker", "https://maker.example", []string{"MAKER_KEY"}, opts, func(key string) (string, string) { return "X-Maker-Key", key })
}

func TestAnotherVendorDoesNotGetTheOwnersKey(t *testing.T) {
	t.Setenv("MAKER_KEY", "key-of-the-maker")
	if a := from(keeper{}); a.Provider != "maker" || a.Header.Get("X-Maker-Key") != "key-of-the-maker" {
		t.Error(a.Provider, a.Header)
	}
	a := from(keeper{}, func(e *model.Endpoint) { e.Vendor = "seller" })
	if a.Provider != "seller" || a.Header.Get("X-Maker-Key") != "" {
		t.Error(a.Provider, a.Header)
	}
}

func TestSecretsOfARoundTripperAreTakenOut(t *testing.T) {
	a := from(keeper{resp: &http.Response{StatusCode: 403, Header: http.Header{}, Body: io.NopCloser(strings.NewReader(`{"error":{"type":"t","message":"not with secret-of-the-cloud"}}`))}})
	if _, err := a.Post(t.Context(), "/x", nil, ""); err == nil || strings.Contains(err.Error(), "secret-of") || !strings.Contains(err.Error(), "[redacted]") {
		t.Error(err)
	}
}

func TestARoundTripperThatKnowsBetterIsBelieved(t *testing.T) {
	said := &model.Error{Provider: "seller", Kind: errdefs.Unauthorized, Code: "no_credentials", Message: "not with secret-of-the-cloud"}
	_, err := from(keeper{err: said}).Post(t.Context(), "/x", nil, "")
	var e *model.Error
	if !errdefs.Unauthorized.Is(err) || !errors.As(err, &e) || e == said || strings.Contains(err.Error(), "secret-of") || said.Message != "not with secret-of-the-cloud" {
		t.Error(err, said)
	}
}

func TestTheIDsOfCloudsAreFound(t *testing.T) {
	for _, name := range []string{"X-Amzn-Requestid", "Apim-Request-Id"} {
		if got := httpapi.RequestID(http.Header{name: {"id"}}); got != "id" {
			t.Errorf("%s: %q", name, got)
		}
	}
}

func TestABodysPiecesAreThoseOfItsReader(t *testing.T) {
	body := httpapi.Body{[]byte("ab"), []byte("c")}
	r := body.Reader()
	if got, ok := httpapi.Pieces(r); !ok || len(got) != 2 || &got[0][0] != &body[0][0] {
		t.Error(got, ok)
	}
	if _, err := r.Read(make([]byte, 1)); err != nil {
		t.Fatal(err)
	}
	if got, ok := httpapi.Pieces(r); ok {
		t.Errorf("somebody has read from it: %q", got)
	}
	if _, ok := httpapi.Pieces(strings.NewReader("x")); ok {
		t.Error("another reader has no pieces")
	}
}
