// Package tool is what a model can do. A tool owns its dependencies: it gets them when it is made.
//
// [Func] makes a tool of a Go function, with the JSON Schema of its input from the function's types. A [Set] holds the tools of an
// engine: it finds them by name, compiles their schemas once and checks each input before the tool sees it. The tools for
// files and commands are in tool/builtin.
package tool
