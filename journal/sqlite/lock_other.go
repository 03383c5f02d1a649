//go:build !unix

package sqlite

import (
	"errors"
	"os"
)

const haveLocks = false // leases end by their time alone

func lock(*os.File) error { return errors.ErrUnsupported }
