package httpapi_test

import (
	"bytes"
	"io"
	"mime"
	"mime/multipart"
	"net/http"
	"runtime"
	"strings"
	"testing"

	"github.com/pawl-dev/pawl/errdefs"
	"github.com/pawl-dev/pawl/internal/httpapi"
	"github.com/pawl-dev/pawl/message"
)

func TestAFormIsReadAsItWasMade(t *testing.T) {
	data := strings.Repeat("\x00\r\n--", 1000)
	var got []string
	a := serve(t, func(w http.ResponseWriter, r *http.Request) {
		_, params, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
		form := multipart.NewReader(r.Body, params["boundary"])
		for p, next := form.NextPart(); err == nil && next == nil; p, next = form.NextPart() {
			all, _ := io.ReadAll(p)
			got = append(got, p.FormName()+"|"+p.FileName()+"|"+p.Header.Get("Content-Type")+"|"+string(all))
		}
		if r.ContentLength <= int64(len(data)) || r.Header.Get("User-Agent") != "pawl" {
			t.Errorf("%d bytes, headers %v", r.ContentLength, r.Header)
		}
	})
	f := httpapi.NewForm("a \"b\".pdf", "application/pdf", data, "purpose", "user_data", "x", "")
	resp, err := a.Do(t.Context(), http.MethodPost, "/files", f.Content(), f.Header())
	if err != nil {
		t.Fatal(err)
	}
	httpapi.Finish(resp)
	want := []string{"purpose|||user_data", "x|||", "file|a \"b\".pdf|application/pdf|" + data}
	if strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("got %.200q", got)
	}
	one, _ := io.ReadAll(f.Reader())
	two, _ := io.ReadAll(f.Reader())
	if !bytes.Equal(one, two) || int64(len(one)) != f.Len() {
		t.Errorf("%d and %d bytes of %d", len(one), len(two), f.Len())
	}
}

func TestAFormCopiesNothingOfItsFile(t *testing.T) {
	data := strings.Repeat("x", 1<<20)
	f := httpapi.NewForm("a", "image/png", data)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	n, err := io.Copy(io.Discard, f.Reader())
	runtime.ReadMemStats(&after)
	if took := after.TotalAlloc - before.TotalAlloc; err != nil || n != f.Len() || took > 256<<10 {
		t.Errorf("%d bytes, %v: reading them takes %d", n, err, took)
	}
}

func TestHeadersOfACallStandInPlaceOfTheAPIsAndForThatCallOnly(t *testing.T) {
	var got []http.Header
	a := serve(t, func(_ http.ResponseWriter, r *http.Request) { got = append(got, r.Header) })
	a.Header.Set("X-Beta", "one")
	for _, h := range []http.Header{{"X-Beta": {"one", "two"}}, nil} {
		resp, err := a.Do(t.Context(), http.MethodDelete, "/files/1", httpapi.Content{}, h)
		if err != nil {
			t.Fatal(err)
		}
		httpapi.Finish(resp)
	}
	if strings.Join(got[0]["X-Beta"], " ") != "one two" || strings.Join(got[1]["X-Beta"], " ") != "one" || got[0].Get("Content-Type") != "" {
		t.Errorf("%v", got)
	}
}

// mime.ParseMediaType takes line ends between parameters, so callers that ask it let them through.
func TestATypeIsNoSecondHeader(t *testing.T) {
	const evil = "image/png;\r\n\r\na=b"
	for _, f := range []*httpapi.Form{httpapi.NewForm("a", evil, "DATA"), httpapi.NewRelated([]byte("{}"), evil, "DATA")} {
		body, err := io.ReadAll(f.Reader())
		if err != nil || !strings.Contains(string(body), "Content-Type: image/png;a=b\r\n\r\nDATA\r\n") {
			t.Errorf("%q %v", body, err)
		}
	}
}

func TestWhatCannotBeKeptIsNotSent(t *testing.T) {
	for why, f := range map[string]message.File{
		"no data":                   {Name: "a.png", MIME: "image/png", URL: "https://example.com/a.png"},
		"MIME type":                 {Name: "a.png", MIME: "picture", Data: "x"},
		"5 bytes, and the API":      {Name: "a.png", MIME: "image/png", Data: "12345"},
		"files of at most 4: split": {Name: "a.png", MIME: "image/png", Data: "12345"},
	} {
		if err := httpapi.Uploadable("test", f, 4); !errdefs.Validation.Is(err) || !strings.Contains(err.Error(), why) || !strings.Contains(err.Error(), "a.png") {
			t.Errorf("%s: %v", why, err)
		}
	}
	if err := httpapi.Uploadable("test", message.File{MIME: "image/png", Data: "1234"}, 4); err != nil {
		t.Error(err)
	}
}
