//go:build !race

package crashtest

const raced = false

const thinned = 1
