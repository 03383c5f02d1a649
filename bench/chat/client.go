package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// tooLong is when a client gives up a request.
const tooLong = 2 * time.Minute

// load is what the clients saw.
type load struct {
	requests     int
	errors       int
	wrong        []string // what some of the errors were
	first, total times    // of the requests without an error
	wall         time.Duration
}

// times are measured; [times.at] needs them sorted.
type times []time.Duration

// at is the time that p percent of all are not above.
func (t times) at(p int) time.Duration {
	if len(t) == 0 {
		return 0
	}
	return t[(len(t)*p+99)/100-1]
}

// ask has clients ask a chat server, each its next question when it has the whole answer to the one before, until so many requests were made. want is the right answer to the request with a number.
func ask(ctx context.Context, url string, clients, requests int, want func(number string) string) load {
	l := load{requests: requests}
	web := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: clients}, Timeout: tooLong}
	defer web.CloseIdleConnections()
	var mu sync.Mutex // guards l
	var next atomic.Int64
	var all sync.WaitGroup
	begin := time.Now()
	for range clients {
		all.Go(func() {
			var first, total times
			var wrong []string
			failed := 0
			in := bufio.NewReader(nil)
			for {
				n := next.Add(1)
				if n > int64(requests) {
					break
				}
				number := fmt.Sprintf("%06d", n)
				f, t, err := one(ctx, web, in, url, number, want(number))
				if err == nil {
					first, total = append(first, f), append(total, t)
				} else if failed++; len(wrong) < 3 {
					wrong = append(wrong, fmt.Sprintf("request %s: %v", number, err))
				}
			}
			mu.Lock()
			defer mu.Unlock()
			l.first, l.total = append(l.first, first...), append(l.total, total...)
			l.errors += failed
			l.wrong = append(l.wrong, wrong...)
		})
	}
	all.Wait()
	l.wall = time.Since(begin)
	slices.Sort(l.first)
	slices.Sort(l.total)
	l.wrong = l.wrong[:min(len(l.wrong), 5)]
	return l
}

// one asks once and reads the whole answer.
func one(ctx context.Context, web *http.Client, in *bufio.Reader, url, number, want string) (first, total time.Duration, err error) {
	begin := time.Now()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, url+"/chat", strings.NewReader(`{"message":"Where is my order? #`+number+`."}`))
	if err != nil {
		return 0, 0, err
	}
	resp, err := web.Do(req)
	if err != nil {
		return 0, 0, err
	}
	defer resp.Body.Close() //nolint:errcheck // it was read
	in.Reset(resp.Body)
	if resp.StatusCode != http.StatusOK {
		said, _ := io.ReadAll(io.LimitReader(in, 1000))
		return 0, 0, fmt.Errorf("%s: %s", resp.Status, said)
	}
	if _, err := in.Peek(1); err != nil {
		return 0, 0, fmt.Errorf("no answer: %w", err)
	}
	first = time.Since(begin)
	got, err := answer(in)
	if err == nil && got != want {
		err = fmt.Errorf("the answer is %q, want %q", got, want)
	}
	return first, time.Since(begin), err
}

// answer reads a server's events to their end. One that does not end with [DONE] is an error.
func answer(in *bufio.Reader) (string, error) {
	var text strings.Builder
	done, failed := false, false
	for {
		line, err := in.ReadSlice('\n')
		switch {
		case errors.Is(err, io.EOF) && !done:
			return "", fmt.Errorf("the answer is cut off behind %q", text.String())
		case errors.Is(err, io.EOF):
			return text.String(), nil
		case err != nil:
			return "", err
		}
		name, value, _ := strings.Cut(strings.TrimRight(string(line), "\n"), ": ")
		switch {
		case name == "event" && value == "error":
			failed = true
		case name == "data" && failed:
			return "", fmt.Errorf("the server says: %s", value)
		case name == "data" && done:
			return "", fmt.Errorf("there is more behind the end: %s", value)
		case name == "data" && value == "[DONE]":
			done = true
		case name == "data":
			var piece string
			if err := json.Unmarshal([]byte(value), &piece); err != nil {
				return "", err
			}
			text.WriteString(piece)
		}
	}
}
