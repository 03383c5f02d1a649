// Package user uses package bad, and its tests check both.
package user

import "example.com/tiny/bad"

// CountTwo returns how many of two calls a counter counts.
func CountTwo(limit int) int {
	c := bad.Counter{Limit: limit}
	c.Add()
	c.Add()
	return c.Count
}
