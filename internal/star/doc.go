// Package star is Starlark as engines use it: expressions of conditions and templates, and programs, bounded in what they compute, without any way to the world but the names
// that they are given. Values go between Go and Starlark as [To] and [From] say.
//
// The interpreter bounds steps alone; what one step makes or goes through is bounded here, see [Limits]. What is not counted is what the program itself takes (bound its source), and
// what builtins of the caller's make: they use a [Meter] themselves, or give little.
package star
