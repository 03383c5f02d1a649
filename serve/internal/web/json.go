package web

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"mime"
	"net/http"
	"reflect"
	"strconv"
	"time"
	"unicode/utf8"

	"github.com/pawl-dev/pawl/errdefs"
	"github.com/pawl-dev/pawl/internal/exact"
)

// Body reads a request's JSON whole, up to so many bytes. It fails with Validation for another type of content, for what is no JSON or no UTF-8, and with Overflow for what is too long.
func Body(w http.ResponseWriter, r *http.Request, most int64) ([]byte, error) {
	if kind, _, err := mime.ParseMediaType(r.Header.Get("Content-Type")); err != nil || kind != "application/json" { // a form of another site's page can't send it
		return nil, errdefs.Validation.Errorf("serve: the content type is %q: send application/json", r.Header.Get("Content-Type"))
	}
	b, err := io.ReadAll(http.MaxBytesReader(w, r.Body, most))
	_ = http.NewResponseController(w).SetReadDeadline(time.Time{}) // it was for the body, and would end what takes longer than that
	var tooLong *http.MaxBytesError
	switch {
	case errors.As(err, &tooLong):
		return nil, errdefs.Overflow.Errorf("serve: the request is longer than %d bytes, which is the limit", most)
	case err != nil:
		return nil, errdefs.Validation.Errorf("serve: the request did not come whole: %w", err)
	case !utf8.Valid(b):
		return nil, errdefs.Validation.Errorf("serve: the request is not UTF-8")
	}
	return b, nil
}

// Read reads a request's JSON object into v, whose fields are known by their exact names; others are refused, and what stands behind the object, too.
func Read(w http.ResponseWriter, r *http.Request, most int64, v any) error {
	b, err := Body(w, r, most)
	if err != nil {
		return err
	}
	return Decode(b, v)
}

// Decode is Read of bytes.
func Decode(b []byte, v any) error {
	if t := bytes.TrimLeft(b, " \t\r\n"); len(t) == 0 || t[0] != '{' {
		return errdefs.Validation.Errorf("serve: the request is no JSON object")
	}
	d := json.NewDecoder(bytes.NewReader(b))
	d.DisallowUnknownFields()
	err := d.Decode(reflect.New(reflect.TypeOf(v).Elem()).Interface()) // a member that nobody reads was meant to do something
	if err == nil {
		err = exact.Once(b)
	}
	if err == nil {
		err = exact.Unmarshal(b, v)
	}
	if err != nil {
		return errdefs.Validation.Errorf("serve: the request can't be read: %w", worded(err, b, v))
	}
	return nil
}

// Write writes v as JSON.
func Write(w http.ResponseWriter, status int, v any) {
	b, err := json.Marshal(v)
	if err != nil {
		Fail(w, nil, errdefs.Internal.Errorf("serve: the answer can't be written: %w", err))
		return
	}
	Bytes(w, status, "application/json", append(b, '\n'))
}

// Bytes writes a whole answer that no cache is to keep.
func Bytes(w http.ResponseWriter, status int, kind string, b []byte) {
	w.Header().Set("Cache-Control", "no-store")
	whole(w, status, kind, b)
}

// Cached writes a page that caches keep as control says.
func Cached(w http.ResponseWriter, control, kind string, b []byte) {
	w.Header().Set("Cache-Control", control)
	whole(w, http.StatusOK, kind, b)
}

func whole(w http.ResponseWriter, status int, kind string, b []byte) {
	h := w.Header()
	h.Set("Content-Type", kind)
	h.Set("Content-Length", strconv.Itoa(len(b)))
	h.Set("X-Content-Type-Options", "nosniff")
	w.WriteHeader(status)
	_, _ = w.Write(b) // a client that is gone needs no answer
}

// Problem is an error as it is told.
type Problem struct {
	Class   string `json:"class"`
	Message string `json:"message"`
}

// ProblemOf is what is told of an error.
func ProblemOf(err error) Problem {
	class := errdefs.Internal
	if c := errdefs.Of(err); c != nil {
		class = c
	} else if errdefs.Canceled(err) {
		return Problem{"canceled", err.Error()}
	}
	return Problem{class.Error(), err.Error()}
}

// Status is the HTTP status of an error.
func Status(err error) int {
	if c := errdefs.Of(err); c != nil {
		return c.HTTPStatus()
	}
	if errdefs.Canceled(err) {
		return 499 // as proxies call a client that went away
	}
	return http.StatusInternalServerError
}

// Fail answers with an error.
func Fail(w http.ResponseWriter, _ *http.Request, err error) {
	status := Status(err)
	if status == http.StatusTooManyRequests || status == http.StatusServiceUnavailable {
		w.Header().Set("Retry-After", "5")
	}
	Write(w, status, struct {
		Error Problem `json:"error"`
	}{ProblemOf(err)})
}
