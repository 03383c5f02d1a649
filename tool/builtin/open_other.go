//go:build !unix

package builtin

const dontWait = 0
