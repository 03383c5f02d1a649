//go:build race

package providertest

// race says that the race detector is on, which makes decoding ten times as slow: then the faults are a sample.
const race = true
