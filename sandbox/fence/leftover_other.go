//go:build !linux && !darwin

package fence

import "os"

// hold is not reached: there is no fence.
func hold(string) (*os.File, error) { return nil, nil }

func sweep() {}
