package providertest

import (
	"net/http"
	"os"
	"path/filepath"
	"testing"

	"github.com/pawl-dev/pawl/message"
	"github.com/pawl-dev/pawl/model"
)

// Key is the API key that every model under test gets.
const Key = "test-key"

// Provider is what a provider package tells of itself.
type Provider struct {
	Name string // as in message.Origin: "anthropic"
	// New makes a model. The options have a base URL on this machine and the key "test-key".
	New func(opts ...model.Option) model.Model
	// Read tells what a request for a reply, or for its count of tokens, said in neutral words. It parses with encoding/json, so that it is no copy of the encoder, and fails t
	// for a request that the provider would not take.
	Read func(t *testing.T, path string, h http.Header, body []byte) Seen
	// Dir has the fixtures: "testdata".
	Dir string
	// Lacks has the cases and abilities that this wire doesn't have, each with the reason.
	Lacks map[string]string
}

// Seen is a request in neutral words.
type Seen struct {
	Model, System     string
	Stream            bool
	Messages          []SeenMessage // without the system prompt
	Tools             []string      // their names, in order
	ToolChoice        string        // "auto" (or ""), "none", "required" or the name of a tool
	MaxTokens         int
	Temperature, TopP *float64
	TopK              *int
	Frequency         *float64 // penalty
	Presence          *float64 // penalty
	Seed              *int64
	Stop              []string
	Reasoning         string               // how much it thinks, in the provider's own words; "" when nothing is said of it
	ProviderTools     []model.ProviderTool // those that the provider runs itself, in order; Options are the members besides what makes the tool, nil for none
	Output            bool                 // the reply has to follow a JSON Schema
	Key               string               // the API key, without a word such as Bearer before it
}

// SeenMessage is one message, of role "user", "assistant" or "tool". Neighbours of one role count as one, and so do "tool" and
// "user", which some wires don't tell apart.
type SeenMessage struct {
	Role  string
	Parts []SeenPart
}

// SeenPart is one piece of a message. Which fields are set depends on Kind:
//
//	text         Text
//	reasoning    Text, Signature
//	file         MIME where the wire tells it, and Data: the bytes themselves, the URL, or the ID
//	tool_call    ID, Name, Input: JSON, or the text that stands where the arguments would; Signature if the wire has one there
//	tool_result  ID of its call, Text, IsError; Name where the wire has it. A file in a result is a part "file" after it.
//	opaque       Data: the JSON of the block
type SeenPart struct {
	Kind, Text, ID, Name, Input, Signature, MIME, Data string
	IsError                                            bool
}

// Run runs the matrix. Each case is a subtest named after it, so that -run finds it.
func Run(t *testing.T, p Provider) {
	t.Run("replies", p.replies)
	t.Run("again", p.again)
	t.Run("requests", p.requests)
	t.Run("long", p.long)
	t.Run("rates", p.rates)
	t.Run("reasoning_level", p.reasoningLevels)
	t.Run("provider_tools", p.providerTools)
	t.Run("file_id", p.fileIDs)
	t.Run("upload", p.uploads)
	t.Run("count", p.counts)
	t.Run("failures", p.failures)
	t.Run("endings", p.endings)
	t.Run("faults", p.faults)
}

// lacks reports whether the wire lacks one of the names.
func (p Provider) lacks(names ...string) bool {
	for _, n := range names {
		if _, ok := p.Lacks[n]; ok {
			return true
		}
	}
	return false
}

// skip leaves a case out that the wire lacks.
func (p Provider) skip(t *testing.T, name string) {
	t.Helper()
	if reason, ok := p.Lacks[name]; ok {
		t.Skipf("%s lacks it: %s", p.Name, reason)
	}
}

// fixture reads a file of Dir.
func (p Provider) fixture(t *testing.T, name string) []byte {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(p.Dir, name)) //nolint:gosec // the directory is the test's own
	if err != nil {
		t.Fatalf("a fixture is missing (or name it in Lacks): %v", err)
	}
	return b
}

// model makes the model under test on a server.
func (p Provider) model(s *server) model.Model {
	return p.New(model.WithBaseURL(s.URL), model.WithKey(Key))
}

// hi is a request that every model can answer.
func hi() model.Request {
	return model.Request{Messages: message.NewHistory(message.User("Hi"))}
}
