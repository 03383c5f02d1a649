package main

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"net/http"
	"os"
	"runtime/pprof"
	"sync/atomic"

	"github.com/pawl-dev/pawl"
	"github.com/pawl-dev/pawl/bench/internal/child"
	"github.com/pawl-dev/pawl/event"
	"github.com/pawl-dev/pawl/model"
	"github.com/pawl-dev/pawl/model/openai"
)

// chatServer is the server that is measured: a conversation for each request, as a program would have it that keeps nothing between requests.
type chatServer struct {
	pack  string
	model model.Model // one for all conversations
	tool  pawl.HTTPTool
}

func serverMain(args []string) (err error) {
	flags := flag.NewFlagSet(asServer, flag.ContinueOnError)
	pack := flags.String("pack", "", "pack file")
	upstream := flags.String("upstream", "", "where the model and the tool are")
	floor := flags.Bool("floor", false, "without Pawl")
	profile := flags.String("pprof", "", "what the names of profiles begin with")
	heapAt := flags.Int64("heap-at", 0, "write the heap's profile after that many requests")
	if err := flags.Parse(args); err != nil {
		return err
	}
	s := &chatServer{
		pack:  *pack,
		model: openai.New("bench", model.WithBaseURL(*upstream+"/v1"), model.WithKey("bench")),
		tool:  pawl.HTTPTool{URL: *upstream + "/tool", Allow: []string{"127.0.0.1"}},
	}
	chat := s.chat
	if *floor {
		chat = newFloor(*upstream).chat
	}
	if *profile != "" {
		f, err := os.Create(*profile + ".cpu.pprof")
		if err != nil {
			return err
		}
		if err := pprof.StartCPUProfile(f); err != nil {
			return err
		}
		defer func() {
			pprof.StopCPUProfile()
			err = errors.Join(err, f.Close(), write("allocs", *profile))
		}()
		chat = heapAfter(*heapAt, *profile, chat)
	}
	mux := http.NewServeMux()
	mux.HandleFunc("POST /chat", chat)
	return child.Serve(&http.Server{Handler: mux}) //nolint:gosec // child.Serve sets its timeout
}

// heapAfter writes the heap's profile when n requests were answered.
func heapAfter(n int64, file string, h http.HandlerFunc) http.HandlerFunc {
	var answered atomic.Int64
	return func(w http.ResponseWriter, r *http.Request) {
		h(w, r)
		if answered.Add(1) == n {
			if err := write("heap", file); err != nil {
				fmt.Fprintln(os.Stderr, "chat:", err)
			}
		}
	}
}

// write writes a profile of package pprof.
func write(name, file string) error {
	f, err := os.Create(file + "." + name + ".pprof") //nolint:gosec // where the caller says
	if err != nil {
		return err
	}
	return errors.Join(pprof.Lookup(name).WriteTo(f, 0), f.Close())
}

// chat answers {"message": "…"} by server-sent events: a JSON string for each piece of the answer, then [DONE].
func (s *chatServer) chat(w http.ResponseWriter, r *http.Request) {
	var in struct{ Message string }
	if err := json.NewDecoder(io.LimitReader(r.Body, 64<<10)).Decode(&in); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	conv, err := pawl.Open(s.pack, "chat", pawl.WithModel(s.model))
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	defer conv.Close() //nolint:errcheck // its turn is over
	if err := conv.OnToolHTTP(toolName, s.tool); err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "text/event-stream")
	out := http.NewResponseController(w)
	for e, err := range conv.Stream(r.Context(), in.Message) {
		if err != nil {
			fmt.Fprintf(w, "event: error\ndata: %s\n\n", quoted(err.Error()))
			return
		}
		if e.Delta != event.TextDelta {
			continue
		}
		if _, err := fmt.Fprintf(w, "data: %s\n\n", quoted(e.Text)); err != nil {
			return
		}
		if err := out.Flush(); err != nil {
			return
		}
	}
	_, _ = io.WriteString(w, "data: [DONE]\n\n")
}

func quoted(text string) []byte {
	b, _ := json.Marshal(text) // a string always can be
	return b
}
