package mcp_test

import (
	"context"
	"fmt"
	"io"
	"log"
	"strings"

	"github.com/pawl-dev/pawl"
	"github.com/pawl-dev/pawl/journal"
	"github.com/pawl-dev/pawl/model/scripted"
	"github.com/pawl-dev/pawl/serve/mcp"
)

func Example() {
	ctx := context.Background()
	rt, err := pawl.New(ctx, pawl.Options{Model: scripted.New(scripted.Text("Hello.")), NoProject: true, Journal: journal.Memory()})
	if err != nil {
		log.Fatal(err)
	}
	defer func() { _ = rt.Close() }()
	server, err := mcp.New(rt, mcp.Options{Tools: mcp.ReadOnly})
	if err != nil {
		log.Fatal(err)
	}
	defer func() { _ = server.Close() }()

	// A program of its own gives os.Stdin and os.Stdout, or mounts server.Handler.
	in, client := io.Pipe()
	go func() {
		_, _ = fmt.Fprintln(client, `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"c","version":"1"}}}`)
		_, _ = fmt.Fprintln(client, `{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"ask","arguments":{"prompt":"Hi!"}}}`)
	}()
	err = server.Stdio(ctx, in, writer(func(line string) {
		if strings.Contains(line, `"id":2`) {
			fmt.Println(strings.Contains(line, `"text":"Hello."`))
			_ = client.Close()
		}
	}))
	fmt.Println(err)
	// Output:
	// true
	// <nil>
}

type writer func(string)

func (w writer) Write(b []byte) (int, error) {
	w(string(b))
	return len(b), nil
}
