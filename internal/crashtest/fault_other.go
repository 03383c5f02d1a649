//go:build !linux

package crashtest

import "github.com/pawl-dev/pawl/errdefs"

// FullFile and FullDisk are for Linux.
func FullFile() Fault { return Fault{} }

// FullDisk is for Linux.
func FullDisk() Fault { return Fault{} }

// CanMount tells why a disk can't be mounted.
func CanMount(string) error {
	return errdefs.NotAvailable.Errorf("crashtest: small disks are made on Linux only")
}
