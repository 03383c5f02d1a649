package serve_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"strings"

	"github.com/pawl-dev/pawl/agent"
	"github.com/pawl-dev/pawl/engine/loop"
	"github.com/pawl-dev/pawl/journal"
	"github.com/pawl-dev/pawl/model/scripted"
	"github.com/pawl-dev/pawl/serve"
)

// A client begins a run and reads what it says.
func Example() {
	engine, err := loop.New(loop.Config{Model: scripted.New(scripted.Text("It is five."))})
	if err != nil {
		fmt.Println(err)
		return
	}
	s, err := serve.New(serve.Of(agent.Agent{ID: "adder"}, engine, journal.Memory()), serve.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	l, err := new(net.ListenConfig).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		fmt.Println(err)
		return
	}
	served := make(chan error)
	go func() { served <- s.Serve(ctx, l) }()

	req, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://"+l.Addr().String()+"/v1/runs", strings.NewReader(`{"prompt":"How much is 2 + 3?"}`))
	if err != nil {
		fmt.Println(err)
		return
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", "text/event-stream")
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		fmt.Println(err)
		return
	}
	for lines := bufio.NewScanner(res.Body); lines.Scan(); {
		data, ok := strings.CutPrefix(lines.Text(), "data: ")
		if !ok {
			continue
		}
		var e struct{ Kind, Text string }
		if err := json.Unmarshal([]byte(data), &e); err != nil {
			fmt.Println(err)
		}
		if e.Kind == "text.delta" || e.Kind == "run.finished" {
			fmt.Printf("%s %q\n", e.Kind, e.Text)
		}
	}
	_ = res.Body.Close()
	http.DefaultClient.CloseIdleConnections()
	stop()
	fmt.Println(<-served)
	// Output:
	// text.delta "It "
	// text.delta "is "
	// text.delta "five."
	// run.finished ""
	// <nil>
}
