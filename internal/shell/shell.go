// Package shell reads a shell command and says what it would execute: every simple command in it, with what wraps it peeled off, its words as far as they can be
// known, the files that it redirects to, the directory that it runs in. It executes nothing and looks at no file.
//
// It judges nothing either. package hook does: the safety check and the permission rules read commands through this package, so that what one of them sees the other sees too.
package shell

// Options is what is known of the shell that would run a command. The zero Options knows nothing.
type Options struct {
	Dir string                           // where it starts, absolute
	Env func(name string) (string, bool) // its variables
}

// Script is what a command would execute.
type Script struct {
	Commands []Command // every simple command that may run, in the order of the source: in branches, loops, functions, substitutions, sh -c and under wrappers too
	Doubts   []string  // why there may be more than Commands shows, in words for a person: "eval of $x, which is not known"; empty when nothing is hidden
}

// Command is one simple command.
type Command struct {
	Name      string   // what is executed, without its directory: "rm" for /bin/rm, \rm and 'r'm; "" when it is not known
	Path      Word     // the same as it is written
	Args      []Word   // behind the name
	By        []string // what runs it, outermost first: "sudo", "env", "xargs", "find -exec", "sh -c", "$(…)", "function f"; the wrapper is a Command of its own too
	Env       []Assign // assignments before it
	Redirects []Redirect
	Input     Input
	Dir       Word   // where it runs; not Known after a cd that could not be followed
	Source    string // as it stands, for messages
}

// Word is one argument after expansion.
type Word struct {
	Text   string // its value when Known; else the part in front that is known
	Known  bool   // the whole value is known (a Glob is: Text is the pattern)
	Glob   bool   // it has * ? or [ unquoted, so it may stand for any number of names
	Source string // as it stands
}

// Assign is NAME=value.
type Assign struct {
	Name  string
	Value Word
}

// Redirect is a file that a command's input or output is.
type Redirect struct {
	Op    string // ">", ">>", "<", "<>", ">|", "&>", …
	Path  Word
	Write bool // the file may be written
}

// Input is where a command's standard input comes from.
type Input struct {
	From []int // indexes in Script.Commands of those whose output is piped into it
	Text Word  // of a heredoc or a here-string
	Is   bool  // there is a Text
}
