package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
)

// floorServer answers as chatServer does, written by hand with net/http and encoding/json for this one conversation: no pack, no journal, no checks, nothing that could be asked of it later. What a request costs here is the price of the transport.
type floorServer struct {
	upstream string
	web      *http.Client
}

func newFloor(upstream string) *floorServer {
	return &floorServer{upstream, &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 1 << 12}}}
}

// floorTurn is what a reply of the model came to.
type floorTurn struct {
	id, name, input string // of a call
}

type floorChunk struct {
	Choices []struct {
		Delta struct {
			Content   string `json:"content"`
			ToolCalls []struct {
				ID       string `json:"id"`
				Function struct {
					Name      string `json:"name"`
					Arguments string `json:"arguments"`
				} `json:"function"`
			} `json:"tool_calls"`
		} `json:"delta"`
	} `json:"choices"`
}

func (s *floorServer) chat(w http.ResponseWriter, r *http.Request) {
	var in struct{ Message string }
	if err := json.NewDecoder(io.LimitReader(r.Body, 64<<10)).Decode(&in); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	w.Header().Set("Content-Type", "text/event-stream")
	if err := s.converse(w, r, in.Message); err != nil {
		fmt.Fprintf(w, "event: error\ndata: %s\n\n", quoted(err.Error()))
		return
	}
	_, _ = io.WriteString(w, "data: [DONE]\n\n")
}

func (s *floorServer) converse(w http.ResponseWriter, r *http.Request, said string) error {
	out := http.NewResponseController(w)
	messages := []any{map[string]any{"role": "system", "content": "You are the assistant of a shop."}, map[string]any{"role": "user", "content": said}}
	for {
		turn, err := s.generate(r, messages, func(text string) error {
			if _, err := fmt.Fprintf(w, "data: %s\n\n", quoted(text)); err != nil {
				return err
			}
			return out.Flush()
		})
		if err != nil || turn.name == "" {
			return err
		}
		resp, err := s.post(r, "/tool", []byte(turn.input))
		if err != nil {
			return err
		}
		result, err := io.ReadAll(resp.Body)
		_ = resp.Body.Close()
		if err != nil {
			return err
		}
		call := map[string]any{"id": turn.id, "type": "function", "function": map[string]any{"name": turn.name, "arguments": turn.input}}
		messages = append(messages, map[string]any{"role": "assistant", "tool_calls": []any{call}}, map[string]any{"role": "tool", "tool_call_id": turn.id, "content": string(result)})
	}
}

// generate asks the model and hands on what it says.
func (s *floorServer) generate(r *http.Request, messages []any, show func(text string) error) (turn floorTurn, err error) {
	body, err := json.Marshal(map[string]any{"model": "bench", "stream": true, "messages": messages})
	if err != nil {
		return turn, err
	}
	resp, err := s.post(r, "/v1/chat/completions", body)
	if err != nil {
		return turn, err
	}
	defer resp.Body.Close() //nolint:errcheck // it was read
	for lines := bufio.NewScanner(resp.Body); lines.Scan(); {
		data, ok := bytes.CutPrefix(lines.Bytes(), []byte("data: "))
		if !ok || string(data) == "[DONE]" {
			continue
		}
		var c floorChunk
		if err := json.Unmarshal(data, &c); err != nil {
			return turn, err
		}
		for _, choice := range c.Choices {
			for _, call := range choice.Delta.ToolCalls {
				turn = floorTurn{call.ID, call.Function.Name, call.Function.Arguments}
			}
			if choice.Delta.Content != "" {
				if err := show(choice.Delta.Content); err != nil {
					return turn, err
				}
			}
		}
	}
	return turn, nil
}

func (s *floorServer) post(r *http.Request, path string, body []byte) (*http.Response, error) {
	req, err := http.NewRequestWithContext(r.Context(), http.MethodPost, s.upstream+path, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	req.Header.Set("Content-Type", "application/json")
	resp, err := s.web.Do(req)
	if err == nil && resp.StatusCode != http.StatusOK {
		text, _ := io.ReadAll(resp.Body)
		_ = resp.Body.Close()
		return nil, fmt.Errorf("%s: %s", resp.Status, strings.TrimSpace(string(text)))
	}
	return resp, err
}
