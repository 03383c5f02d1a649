package cloud_test

import (
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"hash/crc32"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"go.uber.org/goleak"

	"github.com/pawl-dev/pawl/internal/httpapi"
	"github.com/pawl-dev/pawl/message"
	"github.com/pawl-dev/pawl/model"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(closing{m}) }

type closing struct{ *testing.M }

func (c closing) Run() int {
	defer httpapi.CloseIdle()
	return c.M.Run()
}

// alone takes everything out of the environment that a cloud would be found by.
func alone(t *testing.T) (home string) {
	t.Helper()
	for _, name := range []string{
		"AWS_REGION", "AWS_DEFAULT_REGION", "AWS_PROFILE", "AWS_BEARER_TOKEN_BEDROCK", "AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN", "AWS_CONFIG_FILE", "AWS_SHARED_CREDENTIALS_FILE",
		"AWS_ENDPOINT_URL", "AWS_ENDPOINT_URL_BEDROCK_RUNTIME", "GOOGLE_CLOUD_PROJECT", "GCLOUD_PROJECT", "GOOGLE_CLOUD_LOCATION", "GOOGLE_APPLICATION_CREDENTIALS", "CLOUDSDK_CONFIG",
		"AZURE_OPENAI_ENDPOINT", "AZURE_OPENAI_API_KEY", "OPENAI_API_VERSION", "AZURE_TENANT_ID", "AZURE_CLIENT_ID", "AZURE_CLIENT_SECRET", "AZURE_AUTHORITY_HOST",
	} {
		t.Setenv(name, "")
	}
	t.Setenv("ANTHROPIC_API_KEY", "sk-of-another-vendor") // none of them may ever be sent to a cloud
	t.Setenv("OPENAI_API_KEY", "sk-of-another-vendor")
	t.Setenv("GEMINI_API_KEY", "sk-of-another-vendor")
	t.Setenv("GCE_METADATA_HOST", "127.0.0.1:1") // where nobody listens
	home = t.TempDir()
	t.Setenv("HOME", home)
	return home
}

// seen is a request as a server has it.
type seen struct {
	*http.Request
	body string
}

// server answers, and keeps what it was asked.
type server struct {
	*httptest.Server
	mu  sync.Mutex
	all []seen
}

func serve(t *testing.T, answer func(w http.ResponseWriter, r seen)) *server {
	t.Helper()
	s := &server{}
	s.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		if strings.Contains(string(body), "sk-of-another-vendor") || strings.Contains(jsonOf(r.Header), "sk-of-another-vendor") {
			t.Error("the key of another vendor was sent")
		}
		s.mu.Lock()
		s.all = append(s.all, seen{r, string(body)})
		s.mu.Unlock()
		answer(w, seen{r, string(body)})
	}))
	t.Cleanup(s.Close)
	return s
}

func (s *server) requests() []seen {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]seen(nil), s.all...)
}

func (s *server) last() seen { all := s.requests(); return all[len(all)-1] }

func jsonOf(v any) string { b, _ := json.Marshal(v); return string(b) }

// handler is a server in memory.
type handler func(r *http.Request) *http.Response

func (h handler) RoundTrip(r *http.Request) (*http.Response, error) {
	if err := r.Context().Err(); err != nil {
		return nil, err
	}
	resp := h(r)
	if r.Body != nil {
		_ = r.Body.Close()
	}
	return resp, nil
}

func answer(status int, kind, text string) *http.Response {
	return &http.Response{StatusCode: status, Header: http.Header{"Content-Type": {kind}}, Body: io.NopCloser(strings.NewReader(text)), ContentLength: int64(len(text))}
}

var hello = model.Request{System: "Be brief.", Messages: message.NewHistory(message.User("Hello"))}

// claude is a whole reply.
const claude = `{"id":"msg_1","type":"message","role":"assistant","model":"claude-sonnet-4-5-20250929","content":[{"type":"text","text":"Bonjour"}],"stop_reason":"end_turn","usage":{"input_tokens":3,"output_tokens":2}}`

// events are those of a stream.
var events = []string{
	`{"type":"message_start","message":{"id":"msg_1","model":"claude-sonnet-4-5-20250929","usage":{"input_tokens":3}}}`,
	`{"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}`,
	`{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"Bon"}}`,
	"{\"type\":\"content_block_delta\",\n \"index\":0,\"delta\":{\"type\":\"text_delta\",\"text\":\"jour\"}}", // white space with a line's end
	`{"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":{"output_tokens":2}}`,
	`{"type":"message_stop","amazon-bedrock-invocationMetrics":{"inputTokenCount":3}}`,
}

// frame is one frame of AWS's, with headers that are texts.
func frame(payload string, headers ...string) []byte {
	var h []byte
	for i := 0; i < len(headers); i += 2 {
		h = append(append(append(h, byte(len(headers[i]))), headers[i]...), 7)
		h = append(binary.BigEndian.AppendUint16(h, uint16(len(headers[i+1]))), headers[i+1]...)
	}
	b := binary.BigEndian.AppendUint32(nil, uint32(len(h)+len(payload)+16))
	b = binary.BigEndian.AppendUint32(b, uint32(len(h)))
	b = binary.BigEndian.AppendUint32(b, crc32.ChecksumIEEE(b))
	b = append(append(b, h...), payload...)
	return binary.BigEndian.AppendUint32(b, crc32.ChecksumIEEE(b))
}

func chunk(event string) []byte {
	return frame(`{"bytes":"`+base64.StdEncoding.EncodeToString([]byte(event))+`","p":"abcdef"}`, ":event-type", "chunk", ":content-type", "application/json", ":message-type", "event")
}

func framed() (all []byte) {
	for _, e := range events {
		all = append(all, chunk(e)...)
	}
	return all
}

// said is what a model says to a request, whole or in pieces.
func said(t *testing.T, m model.Model, stream bool) (text string, err error) {
	t.Helper()
	if !stream {
		r, err := m.Complete(t.Context(), hello)
		if err != nil {
			return "", err
		}
		return r.Message.Text(), nil
	}
	err = m.CompleteStream(t.Context(), hello, func(r model.StreamResult) error {
		if !r.Final {
			text += r.Text
		} else if r.Response.Message.Text() != text {
			t.Errorf("streamed %q, the whole reply is %q", text, r.Response.Message.Text())
		}
		return nil
	})
	return text, err
}
