package journaltest

import "time"

// ShortenWaits makes the suite give up soon. It is for stores that are known to be broken.
func ShortenWaits() { soon, comes = time.Second, 2*time.Second }
