package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"sync"
	"time"
)

// serve is a service as shops have them: what it is asked for twice with one Idempotency-Key it does once. It prints what it is asked for.
func serve(context.Context) error {
	var mu sync.Mutex
	done := map[string]bool{}
	http.HandleFunc("POST /{what}", func(w http.ResponseWriter, r *http.Request) {
		var in order
		if err := json.NewDecoder(r.Body).Decode(&in); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		mu.Lock()
		defer mu.Unlock()
		key := r.Header.Get("Idempotency-Key")
		if what := r.PathValue("what"); done[key] {
			fmt.Printf("shop: %s %s, which is done\n", what, in.Order)
		} else {
			fmt.Printf("shop: %s %s\n", what, in.Order)
		}
		done[key] = true
		_, _ = fmt.Fprint(w, "done")
	})
	server := &http.Server{Addr: *shop, ReadHeaderTimeout: time.Minute}
	return server.ListenAndServe()
}
