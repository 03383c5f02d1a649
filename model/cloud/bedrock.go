package cloud

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"io"
	"mime"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/pawl-dev/pawl/errdefs"
	"github.com/pawl-dev/pawl/internal/eventstream"
	"github.com/pawl-dev/pawl/internal/sigv4"
	"github.com/pawl-dev/pawl/internal/wire"
	"github.com/pawl-dev/pawl/model"
)

// Bedrock reaches Claude models at Amazon Bedrock, for anthropic.New: the name is a model's id, an inference profile's ("eu.anthropic.claude-sonnet-4-5-20250929-v1:0"), or
// the ARN of either. Requests go to InvokeModel and InvokeModelWithResponseStream, signed with Signature Version 4 or with an API key; model.WithKey before it gives that key. Beta features that are asked for in the
// header anthropic-beta go where Bedrock wants them.
func Bedrock(a AWS) model.Option {
	return option("bedrock", func(e *model.Endpoint, t *transport) (string, error) {
		a := a // the option may be used again
		a.Key = cmp.Or(a.Key, e.Key)
		a.BaseURL = cmp.Or(a.BaseURL, e.BaseURL)
		b := &bedrock{t: t}
		b.signer = keep(func(ctx context.Context) (signer, time.Time, error) { return a.fetch(ctx, t) })
		t.service = b
		var base string
		var err error
		b.region, base, err = a.place(t)
		return base, err
	})
}

type bedrock struct {
	t      *transport
	region string
	signer *kept[signer]
}

func (b *bedrock) prepare(ctx context.Context, c *call) error {
	if c.path != "/v1/messages" {
		return b.t.fail(errdefs.Validation, "other_protocol", "Bedrock is reached by the Messages API alone, without its counts of tokens and its files: use anthropic.New, with the id of a Claude model")
	}
	h := c.out.Header
	change := edit{add: `"anthropic_version":"bedrock-2023-05-31"`, drop: []string{"model", "stream", "anthropic_version"}}
	if betas := h.Values("Anthropic-Beta"); len(betas) > 0 {
		list := []byte(`,"anthropic_beta":`)
		for i, beta := range strings.Split(strings.Join(betas, ","), ",") {
			list = wire.AppendString(append(list, "[,"[min(i, 1)]), strings.TrimSpace(beta))
		}
		change.add += string(append(list, ']'))
	}
	var err error
	if c.body, err = change.apply(c.body); err != nil {
		return errdefs.Validation.Errorf("%s: the request: %w", b.t.vendor, err)
	}
	h.Del("Anthropic-Beta")
	h.Del("Anthropic-Version")
	c.stream = change.stream
	path := "/model/" + sigv4.Escape(change.model) + "/invoke"
	h.Set("Accept", "application/json")
	if c.stream {
		path += "-with-response-stream"
		h.Set("Accept", "application/vnd.amazon.eventstream")
		h.Set("X-Amzn-Bedrock-Accept", "application/json")
	}
	c.to(b.t.base, path, "")

	s, n, err := b.signer.get(ctx, c.refused)
	if err != nil {
		return err
	}
	c.with = n
	if s.bearer != "" {
		h.Set("Authorization", "Bearer "+s.bearer)
		return nil
	}
	hash := sha256.New()
	for _, piece := range c.body {
		hash.Write(piece)
	}
	c.out.ContentLength = c.body.Len()
	sigv4.Sign(c.out, s.keys, sigv4.Scope{Region: b.region, Service: "bedrock"}, [sha256.Size]byte(hash.Sum(nil)), time.Now())
	return nil
}

func (b *bedrock) translate(c *call, resp *http.Response) error {
	if resp.StatusCode/100 != 2 {
		return b.explain(resp)
	}
	if kind, _, _ := mime.ParseMediaType(resp.Header.Get("Content-Type")); kind != "application/vnd.amazon.eventstream" {
		return nil
	}
	resp.Header.Set("Content-Type", "text/event-stream")
	resp.Header.Del("Content-Length")
	resp.ContentLength = -1
	resp.Body = &unframed{body: resp.Body, in: eventstream.NewReader(resp.Body)}
	return nil
}

// words are what the Messages API calls AWS's failures. Of an answer with a status only those are translated that the status says too little about.
var words = map[string]string{
	"throttlingexception":         "rate_limit_error",
	"internalserverexception":     "api_error",
	"modelstreamerrorexception":   "api_error",
	"serviceunavailableexception": "overloaded_error",
	"modeltimeoutexception":       "timeout_error",
	"validationexception":         "invalid_request_error",
	"accessdeniedexception":       "permission_error",
	"modelerrorexception":         "overloaded_error",
}

// failure is an error as the Messages API has it.
func failure(kind, text string) []byte {
	b := wire.AppendString([]byte(`{"type":"error","error":{"type":`), kind)
	return append(wire.AppendString(append(b, `,"message":`...), text), `}}`...)
}

// explain gives an error the form that the Messages API has, with AWS's own word for it.
func (b *bedrock) explain(resp *http.Response) error {
	text, err := io.ReadAll(io.LimitReader(resp.Body, 1<<20))
	if err != nil {
		return err
	}
	kind, _, _ := strings.Cut(cmp.Or(resp.Header.Get("X-Amzn-Errortype"), wire.String(wire.Get(text, "__type"))), ":")
	kind = kind[strings.LastIndexByte(kind, '#')+1:]
	message := cmp.Or(wire.String(wire.Get(text, "message")), wire.String(wire.Get(text, "Message")))
	if kind != "" && wire.IsNull(wire.Get(text, "error")) {
		if kind == "ModelErrorException" { // 424, which says nothing
			kind, message = words["modelerrorexception"], kind+": "+message
		}
		text = failure(kind, message+skew(kind, message, resp.Header, time.Now()))
	}
	_ = resp.Body.Close()
	resp.Body, resp.ContentLength = io.NopCloser(bytes.NewReader(text)), int64(len(text))
	resp.Header.Del("Content-Length")
	return nil
}

// skew is what to add where a signature was refused for its time: how far the clocks are apart.
func skew(kind, text string, h http.Header, now time.Time) string {
	late := slices.Contains([]string{"RequestExpired", "RequestTimeTooSkewed", "SignatureDoesNotMatch", "InvalidSignatureException"}, kind)
	if !late && !strings.Contains(text, "Signature expired") && !strings.Contains(text, "Signature not yet current") {
		return ""
	}
	theirs, err := http.ParseTime(h.Get("Date"))
	if err != nil {
		return ""
	}
	switch apart := theirs.Sub(now).Round(time.Second); {
	case apart > time.Minute:
		return " (this machine's clock is " + apart.String() + " behind AWS's: set it)"
	case apart < -time.Minute:
		return " (this machine's clock is " + (-apart).String() + " ahead of AWS's: set it)"
	}
	return ""
}

// unframed makes server-sent events of AWS's frames, as they come.
type unframed struct {
	body io.ReadCloser
	in   *eventstream.Reader
	buf  []byte
	out  []byte // what of buf is still to be read
	text []byte // the base64 of an event, where it had escapes
	err  error
}

func (u *unframed) Close() error { return u.body.Close() }

func (u *unframed) Read(p []byte) (int, error) {
	for len(u.out) == 0 {
		if u.err != nil {
			return 0, u.err
		}
		var m eventstream.Message
		if m, u.err = u.in.Next(); u.err == nil {
			u.buf = u.buf[:0]
			u.err = u.event(m)
			u.out = u.buf
		}
	}
	n := copy(p, u.out)
	u.out = u.out[n:]
	return n, nil
}

// event writes one frame's event. An error comes after what was written.
func (u *unframed) event(m eventstream.Message) error {
	switch kind := m.Header(":message-type"); kind {
	case "event":
		if m.Header(":event-type") != "chunk" {
			return nil // of the future
		}
		return u.chunk(m.Payload)
	case "exception":
		word := m.Header(":exception-type")
		text := cmp.Or(wire.String(wire.Get(m.Payload, "message")), wire.String(wire.Get(m.Payload, "Message")))
		if original := wire.String(wire.Get(m.Payload, "originalMessage")); original != "" && original != text {
			text += " (" + original + ")"
		}
		return u.fail(word, text)
	case "error":
		return u.fail(m.Header(":error-code"), m.Header(":error-message"))
	default:
		return errdefs.NotAvailable.Errorf("bedrock: a frame of the unknown type %q", kind)
	}
}

func (u *unframed) fail(word, text string) error {
	u.buf = append(append(append(u.buf, "event: error\ndata: "...), failure(cmp.Or(words[strings.ToLower(word)], "api_error"), strings.TrimSuffix(word+": "+text, ": "))...), "\n\n"...)
	return io.EOF
}

func (u *unframed) chunk(payload []byte) error {
	raw := wire.Get(payload, "bytes")
	if len(raw) < 2 || raw[0] != '"' {
		return errdefs.NotAvailable.Errorf("bedrock: an event without bytes")
	}
	if bytes.IndexByte(raw, '\\') >= 0 {
		u.text = wire.AppendText(u.text[:0], raw)
		raw = u.text
	} else {
		raw = raw[1 : len(raw)-1]
	}
	u.buf = append(u.buf, "data: "...)
	start := len(u.buf)
	var err error
	if u.buf, err = base64.StdEncoding.AppendDecode(u.buf, raw); err != nil {
		u.buf = u.buf[:0]
		return errdefs.NotAvailable.Errorf("bedrock: an event's bytes are not base64: %w", err)
	}
	for i, c := range u.buf[start:] {
		if c == '\n' || c == '\r' { // white space between two words of JSON
			u.buf[start+i] = ' '
		}
	}
	u.buf = append(u.buf, "\n\n"...)
	return nil
}
