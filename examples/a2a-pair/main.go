// A2a-pair is two agents in two processes: a shop's, who sells, and a warehouse's, whom the shop's asks over A2A to set things aside.
package main

import (
	"context"
	"flag"
	"log"
	"os"
	"os/signal"
	"strings"
)

var (
	addr = flag.String("addr", "127.0.0.1:7293", "the address of the warehouse")
	name = flag.String("model", "", "PROVIDER/NAME; unless given a script")
	dir  = flag.String("dir", ".", "where the warehouse keeps stock.json")
)

func main() {
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	var err error
	if flag.NArg() == 0 {
		err = warehouse(ctx)
	} else {
		err = shop(ctx, strings.Join(flag.Args(), " "))
	}
	if err != nil {
		log.Fatal(err)
	}
}
