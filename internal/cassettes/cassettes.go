package cassettes

import (
	"fmt"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// The wire formats, named as in message.Origin.
const (
	Anthropic = "anthropic"        // Messages
	OpenAI    = "openai"           // Chat Completions, of whatever vendor
	Responses = "openai-responses" // Responses
	Gemini    = "gemini"           // generateContent, of the Gemini API or of Vertex AI
)

// Cassette is a file of recorded exchanges.
type Cassette struct {
	Name      string // of the file, without directory and ending
	API       string // the wire format of the first exchange that asks a model; "" if none does
	Exchanges []Exchange
}

// Exchange is one request and the answer to it.
type Exchange struct {
	Method, URL  string
	RequestBody  []byte // JSON; of vcrpy with the members in another order than they were sent in
	Status       int
	ContentType  string
	ResponseBody []byte // likewise; event streams are as they came
}

// API gives the wire format in which the exchange asks a model for a reply; "" when it asks for something else.
func (x Exchange) API() string {
	u, err := url.Parse(x.URL)
	if err != nil || x.Method != http.MethodPost {
		return ""
	}
	for ending, api := range map[string]string{
		"/v1/messages": Anthropic, "/chat/completions": OpenAI, "/responses": Responses,
		":generateContent": Gemini, ":streamGenerateContent": Gemini,
	} {
		if strings.HasSuffix(u.Path, ending) {
			return api
		}
	}
	return ""
}

// Streamed reports whether the answer is an event stream.
func (x Exchange) Streamed() bool { return strings.HasPrefix(x.ContentType, "text/event-stream") }

// Dir gives the directory of the recordings, $PAWL_FIXTURES/cassettes. It skips the test when the variable isn't set, and fails it
// when it is set and no recordings are there.
func Dir(t testing.TB) string {
	t.Helper()
	fixtures := os.Getenv("PAWL_FIXTURES")
	if fixtures == "" {
		t.Skip("no recorded exchanges: set PAWL_FIXTURES to a directory whose cassettes/ has recordings of pydantic-ai " +
			"(tests/cassettes/*/*.yaml) and charmbracelet/fantasy (providertests/testdata)")
	}
	dir := filepath.Join(fixtures, "cassettes")
	if files(dir) == nil {
		t.Fatalf("PAWL_FIXTURES=%s: there are no recordings (*.yaml) in its cassettes directory: unset it, or give the absolute path of a directory that has them", fixtures)
	}
	return dir
}

func files(dir string) []string {
	found, _ := filepath.Glob(filepath.Join(dir, "*.yaml"))
	return found
}

// All reads every cassette of [Dir], in the order of their names.
func All(t testing.TB) []Cassette {
	t.Helper()
	var all []Cassette
	for _, path := range files(Dir(t)) {
		c, err := Read(path)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, c)
	}
	return all
}

// Named reads one cassette of [Dir].
func Named(t testing.TB, name string) Cassette {
	t.Helper()
	c, err := Read(filepath.Join(Dir(t), name+".yaml"))
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// Read reads a cassette of either format.
func Read(path string) (Cassette, error) {
	data, err := os.ReadFile(path) //nolint:gosec // a test names the file
	if err != nil {
		return Cassette{}, fmt.Errorf("cassettes: %w", err)
	}
	c := Cassette{Name: strings.TrimSuffix(filepath.Base(path), ".yaml")}
	if c.Exchanges, err = parse(data); err != nil {
		return Cassette{}, fmt.Errorf("cassettes: %s: %w", path, err)
	}
	for _, x := range c.Exchanges {
		if c.API == "" {
			c.API = x.API()
		}
	}
	return c, nil
}
