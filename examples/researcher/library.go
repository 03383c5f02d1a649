package main

import (
	"context"
	"embed"
	"io/fs"
	"net/http"
	"strings"
	"time"

	"github.com/pawl-dev/pawl"
	"github.com/pawl-dev/pawl/journal"
	"github.com/pawl-dev/pawl/model/scripted"
	"github.com/pawl-dev/pawl/serve/mcp"
	"github.com/pawl-dev/pawl/tool"
)

//go:embed pages
var pages embed.FS

// library serves pages, and at /mcp a tool that searches them, for whatever client of MCP.
func library(ctx context.Context) error {
	search := tool.Func("search", "Search the library. Gives the addresses of pages that have a word.", func(_ context.Context, in struct {
		Word string `json:"word"`
	},
	) (found []string, err error) {
		err = fs.WalkDir(pages, "pages", func(path string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() {
				return err
			}
			text, err := pages.ReadFile(path)
			if strings.Contains(strings.ToLower(string(text)), strings.ToLower(in.Word)) {
				found = append(found, "http://"+*addr+"/"+path)
			}
			return err
		})
		return found, err
	}, tool.ReadOnly)

	// A call of a tool is a run, under hooks and on record, so there is a Runtime; of its agent, and so of its model, nothing is offered.
	rt, err := pawl.New(ctx, pawl.Options{Model: scripted.New(), NoProject: true, NoBuiltins: true, Tools: []tool.Tool{search}, Journal: journal.Memory()})
	if err != nil {
		return err
	}
	defer func() { _ = rt.Close() }()
	server, err := mcp.New(rt, mcp.Options{Name: "library", NoAgent: true, Tools: mcp.ReadOnly})
	if err != nil {
		return err
	}
	defer func() { _ = server.Close() }()
	door, err := server.Handler(mcp.HTTP{})
	if err != nil {
		return err
	}
	http.Handle("/mcp", door)
	http.Handle("/pages/", http.FileServerFS(pages))
	web := &http.Server{Addr: *addr, ReadHeaderTimeout: time.Minute}
	return web.ListenAndServe()
}
