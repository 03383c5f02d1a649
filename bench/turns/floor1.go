package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/pawl-dev/pawl/bench/internal/load"
)

// f1 is the loop that one writes by hand in an afternoon: structs and encoding/json, the whole request encoded anew for each turn, a bufio.Reader and json.Unmarshal for each event.
type f1 struct{ t *load.Task }

func newF1(t *load.Task) (load.System, error) { return f1{t}, nil }

func (f f1) Open(int) load.Session { return &f1session{t: f.t} }
func (f f1) Close() error          { return nil }

type f1session struct {
	t        *load.Task
	messages []f1message
}

type f1request struct {
	Model     string      `json:"model"`
	MaxTokens int         `json:"max_tokens"`
	Stream    bool        `json:"stream"`
	System    string      `json:"system"`
	Tools     []f1tool    `json:"tools"`
	Messages  []f1message `json:"messages"`
}

type f1tool struct {
	Name        string          `json:"name"`
	Description string          `json:"description"`
	InputSchema json.RawMessage `json:"input_schema"`
}

type f1message struct {
	Role    string    `json:"role"`
	Content []f1block `json:"content"`
}

type f1block struct {
	Type      string          `json:"type"`
	Text      string          `json:"text,omitempty"`
	ID        string          `json:"id,omitempty"`
	Name      string          `json:"name,omitempty"`
	Input     json.RawMessage `json:"input,omitempty"`
	ToolUseID string          `json:"tool_use_id,omitempty"`
	Content   string          `json:"content,omitempty"`
	Source    *f1source       `json:"source,omitempty"`
}

type f1source struct {
	Type      string `json:"type"`
	MediaType string `json:"media_type"`
	Data      string `json:"data"`
}

type f1event struct {
	Type         string  `json:"type"`
	Index        int     `json:"index"`
	ContentBlock f1block `json:"content_block"`
	Delta        struct {
		Type        string `json:"type"`
		Text        string `json:"text"`
		PartialJSON string `json:"partial_json"`
		StopReason  string `json:"stop_reason"`
	} `json:"delta"`
	Usage struct {
		OutputTokens int `json:"output_tokens"`
	} `json:"usage"`
}

const (
	instructions = load.Instructions
	about        = load.About
	schema       = load.Schema
)

var f1tools = []f1tool{{load.Tool, about, json.RawMessage(schema)}}

// Ask implements [load.Session].
func (s *f1session) Ask(ctx context.Context, prompt string, said func(string)) (a load.Answer, err error) {
	var first []f1block
	if s.t.Image != "" {
		first = append(first, f1block{Type: "image", Source: &f1source{"base64", "image/png", base64Of(s.t.Image)}})
	}
	s.messages = append(s.messages, f1message{"user", append(first, f1block{Type: "text", Text: prompt})})
	for {
		body, err := json.Marshal(f1request{"bench", 4096, true, instructions, f1tools, s.messages})
		if err != nil {
			return a, err
		}
		reply, stop, err := s.turn(ctx, body, said)
		if err != nil {
			return a, err
		}
		s.messages = append(s.messages, f1message{"assistant", reply})
		if stop != "tool_use" {
			a.Text = reply[0].Text
			return a, nil
		}
		var results []f1block
		for _, b := range reply {
			if b.Type != "tool_use" {
				continue
			}
			var in struct {
				Value string `json:"value"`
			}
			if err := json.Unmarshal(b.Input, &in); err != nil {
				return a, err
			}
			a.Calls++
			results = append(results, f1block{Type: "tool_result", ToolUseID: b.ID, Content: s.t.Call(in.Value)})
		}
		s.messages = append(s.messages, f1message{"user", results})
	}
}

func (s *f1session) turn(ctx context.Context, body []byte, said func(string)) (blocks []f1block, stop string, err error) {
	resp, err := post(ctx, s.t.Upstream, body)
	if err != nil {
		return nil, "", err
	}
	defer resp.Body.Close() //nolint:errcheck // it was read
	var text, input strings.Builder
	err = lines(resp.Body, func(line []byte) error {
		var e f1event
		if err := json.Unmarshal(line, &e); err != nil {
			return err
		}
		switch e.Type {
		case "content_block_start":
			blocks = append(blocks, e.ContentBlock)
			text.Reset()
			input.Reset()
		case "content_block_delta":
			text.WriteString(e.Delta.Text)
			input.WriteString(e.Delta.PartialJSON)
			if e.Delta.Text != "" {
				said(e.Delta.Text)
			}
		case "content_block_stop":
			b := &blocks[len(blocks)-1]
			if b.Text = text.String(); b.Type == "tool_use" {
				b.Input = json.RawMessage(input.String())
			}
		case "message_delta":
			stop = e.Delta.StopReason
		}
		return nil
	})
	if err == nil && stop == "" {
		err = errors.New("the stream broke off")
	}
	return blocks, stop, err
}

// lines gives the data of each event.
func lines(from io.Reader, one func(data []byte) error) error {
	in := bufio.NewReader(from)
	for {
		line, err := in.ReadSlice('\n')
		if errors.Is(err, bufio.ErrBufferFull) { // Responses ends with an event that has the whole answer
			var rest []byte
			line = bytes.Clone(line)
			rest, err = in.ReadBytes('\n')
			line = append(line, rest...)
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("read: %w", err)
		}
		data, ok := bytes.CutPrefix(line, []byte("data: "))
		if !ok {
			continue
		}
		if err := one(data); err != nil {
			return err
		}
	}
}
