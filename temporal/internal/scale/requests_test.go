package main

import (
	"maps"
	"sync"

	"go.temporal.io/sdk/client"
)

// requests are a client's metrics: how often it asked the server for what.
type requests struct {
	mu  sync.Mutex
	all map[string]int64 // by operation
}

// by is the handler of one operation.
type by struct {
	*requests
	client.MetricsHandler // all but counters come to nothing
	operation             string
}

func (r *requests) handler() client.MetricsHandler { return by{r, client.MetricsNopHandler, ""} }

func (b by) WithTags(tags map[string]string) client.MetricsHandler {
	if o, ok := tags["operation"]; ok {
		b.operation = o
	}
	return b
}

func (b by) Counter(name string) client.MetricsCounter {
	if name != "temporal_request" && name != "temporal_long_request" {
		return b.MetricsHandler.Counter(name)
	}
	return counting(b)
}

type counting by

func (c counting) Inc(n int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.all == nil {
		c.all = map[string]int64{}
	}
	c.all[c.operation] += n
}

func (r *requests) now() map[string]int64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	return maps.Clone(r.all)
}
