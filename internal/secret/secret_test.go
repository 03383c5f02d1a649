package secret_test

import (
	"net/http"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pawl-dev/pawl/internal/secret"
)

func TestWhatHoldsSecretsIsKnownByItsName(t *testing.T) {
	for name, want := range map[string]bool{
		"OPENAI_API_KEY": true, "access_token": true, "X-Goog-Signature": true, "MY_APIKEY": true, "DB_PASSWORD": true, "key": true,
		"KEYBOARD": false, "MONKEY": false, "HOME": false, "XKB_KEYMAP": false, "": false,
	} {
		if secret.Named(name) != want {
			t.Errorf("%q: %v", name, !want)
		}
	}
	for name, want := range map[string]bool{"Authorization": true, "x-api-key": true, "Set-Cookie": true, "X-Goog-Api-Key": true, "Content-Type": false} {
		if secret.Header(name) != want {
			t.Errorf("%q: %v", name, !want)
		}
	}
}

func TestHeadersGiveTheirSecrets(t *testing.T) {
	got := secret.InHeaders(http.Header{"Authorization": {"Bearer 12345678"}, "X-Api-Key": {"short", "long-enough"}, "Accept": {"something/else"}})
	slices.Sort(got)
	if d := cmp.Diff([]string{"12345678", "Bearer 12345678", "long-enough"}, got); d != "" {
		t.Error(d)
	}
}

func TestPatternsAreTheCallersOwn(t *testing.T) {
	p := secret.Patterns()
	p[0] = nil
	if secret.Patterns()[0] == nil {
		t.Error("one caller changed what all others get")
	}
}
