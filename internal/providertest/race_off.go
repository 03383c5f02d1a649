//go:build !race

package providertest

const race = false
