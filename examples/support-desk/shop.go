package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"time"
)

// serve is the shop's service: orders are looked up, and refunds printed.
func serve(context.Context) error {
	http.HandleFunc("GET /orders/{order}", func(w http.ResponseWriter, r *http.Request) {
		_ = json.NewEncoder(w).Encode(map[string]any{"order": r.PathValue("order"), "item": "a ratchet", "cents": 4990, "state": "delivered"})
	})
	http.HandleFunc("POST /refunds", func(w http.ResponseWriter, r *http.Request) {
		var refund struct {
			Order string
			Cents int
		}
		if err := json.NewDecoder(r.Body).Decode(&refund); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		fmt.Printf("shop: paid %d.%02d back for order %s\n", refund.Cents/100, refund.Cents%100, refund.Order)
	})
	server := &http.Server{Addr: *shop, ReadHeaderTimeout: time.Minute}
	return server.ListenAndServe()
}
