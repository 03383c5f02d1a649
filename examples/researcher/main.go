// Researcher has an agent search a library by MCP, read pages of the web, and write a report that names its sources.
package main

import (
	"context"
	"flag"
	"fmt"
	"log"
	"strings"

	"github.com/pawl-dev/pawl"
	"github.com/pawl-dev/pawl/hook/permission"
	"github.com/pawl-dev/pawl/sandbox"
	"github.com/pawl-dev/pawl/tool/mcp"
)

var (
	name = flag.String("model", "scripted/examples/researcher/model.yaml", "PROVIDER/NAME")
	dir  = flag.String("dir", ".", "where the report is written")
	addr = flag.String("addr", "127.0.0.1:7294", "the address of the library")
)

func main() {
	flag.Parse()
	var err error
	if flag.NArg() == 0 {
		err = library(context.Background())
	} else {
		err = research(context.Background(), strings.Join(flag.Args(), " "))
	}
	if err != nil {
		log.Fatal(err)
	}
}

func research(ctx context.Context, question string) error {
	m, err := pawl.OpenModel(*name)
	if err != nil {
		return err
	}
	fence := pawl.DefaultSandbox()
	fence.Network = sandbox.Network{Hosts: []string{"127.0.0.1"}} // that of the library, and no other one: for pages, and for commands
	rt, err := pawl.New(ctx, pawl.Options{
		Model:       m,
		ProjectRoot: *dir,
		Sandbox:     &fence,
		System:      "You answer questions from the library. Search it, read the pages that you need, and write report.md: the answer, then the addresses of the pages that it is from.",
		MCP:         []mcp.Server{{Name: "library", URL: "http://" + *addr + "/mcp", Required: true}},
		// Tools of servers, and pages of this machine, are asked about unless they are allowed.
		Permissions: permission.Config{Allow: []string{"mcp__library", "WebFetch(http://" + *addr + "/pages/*)"}},
	})
	if err != nil {
		return err
	}
	defer func() { _ = rt.Close() }()
	res, err := rt.Run(ctx, pawl.Request{Prompt: question})
	if err != nil {
		return err
	}
	fmt.Println(res.Text())
	return nil
}
