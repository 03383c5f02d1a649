// Package builtin has the tools for files, searches and commands: bash, with bash_output and bash_kill for commands in the background, read, write, edit, glob and grep, and web_fetch for pages.
//
// [Open] binds them to a project directory:
//
//	w, err := builtin.Open(".")
//	if err != nil { ... }
//	defer w.Close()
//	tools, err := tool.NewSet(w.Tools()...)
//
// The file tools cannot leave that directory, nor those of [WithDirectories], by no "..", absolute path or symbolic link: every one of them works through an
// [os.Root] of each, so that it also holds when the tree is changed while they run. Another directory, which the file tools only read,
// keeps the outputs of commands that are too long to be shown. What a command does is not fenced here: bash runs what it is told,
// with the rights of this process. A sandbox and permissions are the business of whoever runs the tools.
//
// Results are plain text for a model. All tools are safe for concurrent use; write and edit of one Workspace take turns.
package builtin
