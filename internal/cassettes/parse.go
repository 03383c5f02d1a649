package cassettes

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"

	"github.com/goccy/go-yaml"
)

// file is what both formats have. vcrpy calls the address uri, its status has the code inside, and a body is in parsed_body when it was
// JSON, else in body, as a text or under "string". go-vcr has the body as a text and the code beside a status that is a text.
type file struct {
	Interactions []struct {
		Request struct {
			Method     string
			URI, URL   string
			Body       any
			ParsedBody any `yaml:"parsed_body"`
		}
		Response struct {
			Headers    map[string][]string
			Code       int
			Status     any
			Body       any
			ParsedBody any `yaml:"parsed_body"`
		}
	}
}

func parse(data []byte) ([]Exchange, error) {
	var f file
	if err := yaml.Unmarshal(data, &f); err != nil {
		return nil, err
	}
	if len(f.Interactions) == 0 {
		return nil, errors.New("it has no interactions: want a file of vcrpy or go-vcr")
	}
	var exchanges []Exchange
	for i, in := range f.Interactions {
		x := Exchange{Method: in.Request.Method, URL: cmp.Or(in.Request.URI, in.Request.URL), Status: in.Response.Code}
		if status, ok := in.Response.Status.(map[string]any); ok {
			code, _ := status["code"].(uint64)
			x.Status = int(code) //nolint:gosec // three digits
		}
		for name, values := range in.Response.Headers {
			if http.CanonicalHeaderKey(name) == "Content-Type" && len(values) > 0 {
				x.ContentType = values[0]
			}
		}
		var err1, err2 error
		x.RequestBody, err1 = body(in.Request.ParsedBody, in.Request.Body)
		x.ResponseBody, err2 = body(in.Response.ParsedBody, in.Response.Body)
		if err := errors.Join(err1, err2); err != nil {
			return nil, fmt.Errorf("interaction %d: %w", i+1, err)
		}
		if x.Method == "" || x.URL == "" || x.Status == 0 {
			return nil, fmt.Errorf("interaction %d: it has no method, address or status", i+1)
		}
		exchanges = append(exchanges, x)
	}
	return exchanges, nil
}

// body gives a body's bytes; nil for none.
func body(parsed, plain any) ([]byte, error) {
	if parsed != nil {
		var b bytes.Buffer
		enc := json.NewEncoder(&b)
		enc.SetEscapeHTML(false)
		err := enc.Encode(parsed)
		return bytes.TrimSpace(b.Bytes()), err
	}
	if wrapped, ok := plain.(map[string]any); ok {
		plain = wrapped["string"]
	}
	switch plain := plain.(type) {
	case nil:
		return nil, nil
	case string:
		return []byte(plain), nil
	}
	return nil, fmt.Errorf("a body of type %T", plain)
}
