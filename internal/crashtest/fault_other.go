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

// Mount fails.
func Mount(dir string, _ int) error { return CanMount(dir) }

// Unmount fails.
func Unmount(dir string) error { return CanMount(dir) }

// Fill fails.
func Fill(path string) error { return CanMount(path) }
