package cassettes_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pawl-dev/pawl/internal/cassettes"
	"github.com/pawl-dev/pawl/message"
)

// edited are conversations in which the client changed what the model had said. TestAReplyThatWasEditedGoesBackWithoutTheThoughtsThatLedToIt has
// what is to learn from them.
const edited = "test_openai_responses_thinking_with_modified_history"

func TestRequestsFromDecodedConversationsMatchTheRecordedOnes(t *testing.T) {
	requests, later := 0, 0
	for _, c := range cassettes.All(t) {
		if strings.HasSuffix(c.Name, edited) {
			continue
		}
		t.Run(c.Name, func(t *testing.T) {
			var said []message.Message
			var before []turn // what the provider has stored of the conversation
			for i, x := range c.Exchanges {
				if x.API() == "" {
					continue
				}
				want := recordedTurns(t, c, x, before)
				s := cassettes.Serve(t, []cassettes.Exchange{x})
				r, _, err := ask(t.Context(), open(t, x, s), x.Streamed(), conversation(x.API(), want, said))
				if err != nil && !failed(t, x) {
					t.Fatalf("request %d: %v", i+1, err)
				}
				if requests++; len(want) > 1 {
					later++
				}
				got := dialects[x.API()].turns(parse(t, s.Requests()[0].Body))
				recorded := answersOf(c)
				if diff := cmp.Diff(plainly(x.API(), want, recorded), plainly(x.API(), got, recorded)); diff != "" {
					t.Errorf("request %d (-recorded +sent):\n%s", i+1, diff)
				}
				if r == nil {
					continue
				}
				said = append(said, r.Message)
				before = want
				if x.API() == cassettes.Responses {
					before = sayItems(before, replyOf(t, x).Content)
				}
			}
		})
	}
	t.Logf("%d requests, %d of them with replies of the model in them", requests, later)
}

// recordedTurns reads the conversation of a recorded request. Where it goes on from what the provider stored, that comes first.
func recordedTurns(t *testing.T, c cassettes.Cassette, x cassettes.Exchange, stored []turn) []turn {
	t.Helper()
	body := parse(t, x.RequestBody)
	if body["previous_response_id"] != nil {
		return sayItems(stored, list(body["input"]))
	}
	turns := dialects[x.API()].turns(body)
	if x.API() == cassettes.Responses {
		latest(t, c, turns)
	}
	return turns
}

// latest replaces what was encrypted in a finished item by what the last event of that stream has for it: OpenAI encrypts the same
// thing anew in each, pydantic-ai sends the one back and we the other.
func latest(t *testing.T, c cassettes.Cassette, turns []turn) {
	t.Helper()
	last := map[string]string{}
	for _, x := range c.Exchanges {
		if !x.Streamed() {
			continue
		}
		ids := map[string]string{}
		for _, item := range replyOf(t, x).Content {
			ids[text(member(item)["id"])] = text(member(item)["encrypted_content"])
		}
		for _, e := range eventsOf(t, x) {
			if item := member(e["item"]); text(e["type"]) == "response.output_item.done" {
				last[text(item["encrypted_content"])] = ids[text(item["id"])]
			}
		}
	}
	for _, turn := range turns {
		for i, b := range turn.Blocks {
			if b.Signature != "" && last[b.Signature] != "" {
				turn.Blocks[i].Signature = last[b.Signature]
			}
		}
	}
}

// answersOf gives all that a provider answered.
func answersOf(c cassettes.Cassette) string {
	var b strings.Builder
	for _, x := range c.Exchanges {
		b.Write(x.ResponseBody)
	}
	return b.String()
}

// OpenAI looks a thought's successor up by its id, and refused the request in which the answer was another one.
func TestAReplyThatWasEditedGoesBackWithoutTheThoughtsThatLedToIt(t *testing.T) {
	var c cassettes.Cassette
	for _, c = range cassettes.All(t) {
		if strings.HasSuffix(c.Name, edited) {
			break
		}
	}
	asked, refused, accepted := c.Exchanges[0], c.Exchanges[1], c.Exchanges[2]
	if refused.Status != http.StatusBadRequest || accepted.Status != http.StatusOK {
		t.Fatalf("%s is another recording than it was", c.Name)
	}
	s := cassettes.Serve(t, []cassettes.Exchange{asked, accepted})
	m := open(t, asked, s)
	r, _, err := ask(t.Context(), m, false, conversation(cassettes.Responses, recordedTurns(t, c, asked, nil), nil))
	if err != nil {
		t.Fatal(err)
	}
	thought, ok := r.Message.Part(0).(message.Reasoning)
	if !ok || thought.Signature == "" {
		t.Fatalf("the reply begins with %#v", r.Message.Part(0))
	}
	changed := message.New(message.RoleAssistant, thought, message.Text{Text: "The meaning of life is 42"})
	if _, _, err := ask(t.Context(), m, false, conversation(cassettes.Responses, recordedTurns(t, c, refused, nil), []message.Message{changed})); err != nil {
		t.Fatal(err)
	}
	want := []turn{
		{"user", []block{{Kind: "text", Text: "What is the meaning of life?"}}},
		{"assistant", []block{{Kind: "text", Text: "The meaning of life is 42"}}},
		{"user", []block{{Kind: "text", Text: "Anything to add?"}}},
	}
	if diff := cmp.Diff(want, turnsResponses(parse(t, s.Requests()[1].Body))); diff != "" {
		t.Errorf("-want +sent:\n%s", diff)
	}
}
