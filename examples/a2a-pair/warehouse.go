package main

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"path/filepath"

	"github.com/pawl-dev/pawl"
	"github.com/pawl-dev/pawl/agent"
	"github.com/pawl-dev/pawl/engine/loop"
	"github.com/pawl-dev/pawl/errdefs"
	"github.com/pawl-dev/pawl/journal/sqlite"
	"github.com/pawl-dev/pawl/serve"
	"github.com/pawl-dev/pawl/tool"
)

// warehouse serves an agent, until ctx ends: others find it by its card, and talk to it in A2A.
func warehouse(ctx context.Context) error {
	m, err := pawl.OpenModel(cmp.Or(*name, "scripted/examples/a2a-pair/warehouse.yaml"))
	if err != nil {
		return err
	}
	store, err := sqlite.Open(filepath.Join(*dir, "warehouse.db")) //nolint:contextcheck // it takes none
	if err != nil {
		return err
	}
	defer func() { _ = store.Close() }()
	setAside := tool.Func("set_aside", "Take things out of the stock, for a customer.", take, tool.Sequential)
	eng, err := loop.New(loop.Config{Model: m, Tools: []tool.Tool{setAside}})
	if err != nil {
		return err
	}
	keeper := agent.Agent{ID: "warehouse", Instructions: "You keep a warehouse. Say how many there are left."}
	server, err := serve.New(serve.Of(keeper, eng, store), serve.Options{
		Card: agent.AgentCard{Name: "Warehouse", Description: "Sets things aside, and knows how many are left."},
	})
	if err != nil {
		return err
	}
	l, err := new(net.ListenConfig).Listen(ctx, "tcp", *addr)
	if err != nil {
		return err
	}
	return server.Serve(ctx, l)
}

// take writes the stock anew.
func take(_ context.Context, in struct {
	Item  string `json:"item"`
	Count int    `json:"count"`
},
) (string, error) {
	file := filepath.Join(*dir, "stock.json")
	text, err := os.ReadFile(file) //nolint:gosec // in the directory that whoever runs it names
	if err != nil {
		return "", err
	}
	var stock map[string]int
	if err := json.Unmarshal(text, &stock); err != nil {
		return "", err
	}
	left := stock[in.Item] - in.Count
	if in.Count < 1 || left < 0 {
		return "", errdefs.Validation.Errorf("there are %d of %s", stock[in.Item], in.Item) // what the model is told
	}
	stock[in.Item] = left
	if text, err = json.Marshal(stock); err != nil {
		return "", err
	}
	return fmt.Sprintf("%d are left", left), os.WriteFile(file, append(text, '\n'), 0o600)
}
