// Package errdefs names the classes of failure that a caller may branch on. Text is for people, classes are for code:
//
//	if errors.Is(err, errdefs.Conflict) { ... }
//
// A class is found through any number of wraps. An error has at most one class of its own; an error that wraps several
// (errors.Join) is of each of their classes.
package errdefs
