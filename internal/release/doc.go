// Package release holds what is promised from one version to the next: that scripts/apidiff finds what would break somebody's program, that scripts/release builds the same bytes anywhere, and that each format has its golden files.
// It has tests only.
package release
