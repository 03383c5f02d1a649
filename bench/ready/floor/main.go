// Command floor is the same agent by hand, over net/http and encoding/json. Without a prompt it ends as soon as it is ready to be asked.
package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
)

type request struct {
	Model     string    `json:"model"`
	MaxTokens int       `json:"max_tokens"`
	Stream    bool      `json:"stream"`
	Tools     []tool    `json:"tools"`
	Messages  []message `json:"messages"`
}

type tool struct {
	Name        string          `json:"name"`
	Description string          `json:"description"`
	InputSchema json.RawMessage `json:"input_schema"`
}

type message struct {
	Role    string  `json:"role"`
	Content []block `json:"content"`
}

type block struct {
	Type      string          `json:"type"`
	Text      string          `json:"text,omitempty"`
	ID        string          `json:"id,omitempty"`
	Name      string          `json:"name,omitempty"`
	Input     json.RawMessage `json:"input,omitempty"`
	ToolUseID string          `json:"tool_use_id,omitempty"`
	Content   string          `json:"content,omitempty"`
}

type event struct {
	Type         string `json:"type"`
	ContentBlock block  `json:"content_block"`
	Delta        struct {
		Text        string `json:"text"`
		PartialJSON string `json:"partial_json"`
	} `json:"delta"`
}

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "floor:", err)
		os.Exit(1)
	}
}

func run() error {
	r := request{Model: "bench", MaxTokens: 4096, Stream: true, Tools: []tool{{"echo", "Gives back what it is given.", json.RawMessage(`{"type":"object","properties":{"value":{"type":"string"}},"required":["value"]}`)}}}
	if len(os.Args) < 2 {
		return nil
	}
	r.Messages = []message{{"user", []block{{Type: "text", Text: os.Args[1]}}}}
	for {
		reply, err := ask(r)
		if err != nil {
			return err
		}
		r.Messages = append(r.Messages, message{"assistant", reply})
		var results []block
		for _, b := range reply {
			if b.Type != "tool_use" {
				continue
			}
			var in struct {
				Value string `json:"value"`
			}
			if err := json.Unmarshal(b.Input, &in); err != nil {
				return err
			}
			results = append(results, block{Type: "tool_result", ToolUseID: b.ID, Content: in.Value})
		}
		if results == nil {
			fmt.Println(reply[0].Text)
			return nil
		}
		r.Messages = append(r.Messages, message{"user", results})
	}
}

func ask(r request) (reply []block, err error) {
	body, err := json.Marshal(r)
	if err != nil {
		return nil, err
	}
	resp, err := http.Post(os.Getenv("UPSTREAM")+"/v1/messages", "application/json", bytes.NewReader(body)) //nolint:gosec,noctx // whoever calls it names the model, and it ends with the program
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close() //nolint:errcheck // it was read
	if resp.StatusCode != http.StatusOK {
		said, _ := io.ReadAll(resp.Body)
		return nil, fmt.Errorf("%s: %s", resp.Status, said)
	}
	var text, input strings.Builder
	done := false
	for lines := bufio.NewScanner(resp.Body); lines.Scan(); {
		data, ok := bytes.CutPrefix(lines.Bytes(), []byte("data: "))
		if !ok {
			continue
		}
		var e event
		if err := json.Unmarshal(data, &e); err != nil {
			return nil, err
		}
		switch e.Type {
		case "content_block_start":
			reply = append(reply, e.ContentBlock)
			text.Reset()
			input.Reset()
		case "content_block_delta":
			text.WriteString(e.Delta.Text)
			input.WriteString(e.Delta.PartialJSON)
		case "content_block_stop":
			b := &reply[len(reply)-1]
			if b.Text = text.String(); b.Type == "tool_use" {
				b.Input = json.RawMessage(input.String())
			}
		case "message_stop":
			done = true
		}
	}
	if !done || len(reply) == 0 {
		return nil, errors.New("the stream broke off")
	}
	return reply, nil
}
