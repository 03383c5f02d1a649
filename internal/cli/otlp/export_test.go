package otlp

import "time"

// FlushTime is how long Close waits for a collector by default.
const FlushTime = flushTime

// SetFlushTime changes how long Close waits for a collector.
func (x *Export) SetFlushTime(d time.Duration) { x.flushTime = d }
