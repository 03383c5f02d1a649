// Web-ui serves an agent and a page of one's own to talk with it: what it says comes as it is said, and what it may not do by itself waits there for a click.
package main

import (
	"context"
	"embed"
	"flag"
	"fmt"
	"io/fs"
	"log"
	"net/http"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"time"

	"github.com/pawl-dev/pawl"
	"github.com/pawl-dev/pawl/agent"
	"github.com/pawl-dev/pawl/engine/loop"
	"github.com/pawl-dev/pawl/journal/sqlite"
	"github.com/pawl-dev/pawl/serve"
	"github.com/pawl-dev/pawl/tool"
)

func main() {
	name := flag.String("model", "scripted/examples/web-ui/model.yaml", "PROVIDER/NAME")
	addr := flag.String("addr", "127.0.0.1:7295", "where to listen")
	dir := flag.String("dir", ".", "where the journal is kept, and what is published")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, *name, *addr, *dir); err != nil {
		log.Fatal(err)
	}
}

//go:embed page
var page embed.FS

func run(ctx context.Context, name, addr, dir string) error {
	m, err := pawl.OpenModel(name)
	if err != nil {
		return err
	}
	if missing, _ := pawl.Key(name); len(missing) > 0 { // rather now than with the first prompt
		return fmt.Errorf("model %s needs a key: set %s", name, strings.Join(missing, " or "))
	}
	store, err := sqlite.Open(filepath.Join(dir, "journal.db")) //nolint:contextcheck // it takes none
	if err != nil {
		return err
	}
	defer func() { _ = store.Close() }()
	publish := tool.Func("publish", "Publish a text.", func(_ context.Context, in struct {
		Text string `json:"text"`
	},
	) (string, error) {
		return "published", os.WriteFile(filepath.Join(dir, "news.txt"), []byte(in.Text+"\n"), 0o600)
	}, tool.RequiresApproval, tool.Idempotent)
	eng, err := loop.New(loop.Config{Model: m, Tools: []tool.Tool{publish}})
	if err != nil {
		return err
	}
	editor := agent.Agent{ID: "editor", Instructions: "You write news of one sentence, and publish them."}

	server, err := serve.New(serve.Of(editor, eng, store), serve.Options{Tokens: []string{os.Getenv("PAWL_TOKEN")}})
	if err != nil {
		return err
	}
	files, err := fs.Sub(page, "page")
	if err != nil {
		return err
	}
	http.Handle("/", server) // the run API, and the inspector
	http.Handle("/chat/", http.StripPrefix("/chat", http.FileServerFS(files)))
	web := &http.Server{Addr: addr, ReadHeaderTimeout: time.Minute}
	stopped := make(chan error)
	go func() {
		<-ctx.Done()
		stopped <- server.Close() //nolint:contextcheck // ctx has ended. What runs is left at its next step, and can be resumed
		_ = web.Close()
	}()
	if err := web.ListenAndServe(); ctx.Err() == nil {
		return err
	}
	return <-stopped
}
