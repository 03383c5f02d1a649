package agenttest

import "time"

// ShortenWaits makes the suites give up soon. It is for pieces that are known to be broken.
func ShortenWaits() { prompt = 200 * time.Millisecond }
