package main

import "github.com/pawl-dev/pawl/hook"

// safetyHooks are the checks that bind in every mode.
func safetyHooks(string) []hook.Middleware { return nil }
