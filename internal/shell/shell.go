// Package shell reads a shell command and says what it would execute: every simple command in it, with what wraps it peeled off, its words as far as they can be
// known, the files that it redirects to, the directory that it runs in. It executes nothing and looks at no file.
//
// It judges nothing either. package hook/permission does: the safety check and the permission rules read commands through this package, so that what one of them sees the other sees too;
// only the safety check asks for guesses (Options.Plain).
//
// Reading is following the script as bash would, with values that may be unknown or several: both sides of a branch, each item of a list, a loop until nothing changes any more.
// What a well-known program would print (echo, printf, base64 -d, …) is worked out, so that a script that comes out of a pipe is read too. Everything is bounded; what is over a
// bound, or can't be known, is a doubt.
package shell

import (
	"fmt"
	"slices"
	"strings"
	"sync"

	"mvdan.cc/sh/v3/syntax"

	"github.com/pawl-dev/pawl/errdefs"
)

// The bounds of a reading. What is behind one is not shown, and a doubt says so.
const (
	maxSource   = 64 << 10 // bytes of a script, and of a value
	maxSteps    = 4000     // commands looked at, repeated ones too
	maxCommands = 1000     // commands shown
	maxDepth    = 100      // scripts in scripts, wrappers in wrappers, compound commands in each other
	maxValues   = 64       // values that a variable may have
	maxChoices  = 128      // ways in which one command may be expanded
	maxWords    = 2000     // words of one command
	maxDoubts   = 8
)

// Options is what is known of the shell that would run a command. The zero Options knows nothing.
type Options struct {
	Dir string                           // where it starts, absolute
	Env func(name string) (string, bool) // its variables; false means that it is not known, and is not the same as a variable that is not set: ("", true)

	// Plain reports programs that are known not to run their words, beyond those that this package knows. With it, words of an unknown program that name one are read as a command of
	// that: a wrapper that nobody told us of. nil guesses nothing.
	Plain func(name string) bool
}

// Script is what a command would execute.
type Script struct {
	Commands  []Command // every simple command that may run, in the order of the source: in branches, loops, functions, substitutions, sh -c and under wrappers too
	Assigns   []Assign  // variables that the script itself sets: NAME=value without a command, export, declare, for, read, printf -v, ${NAME:=value}, arithmetic; of a value that is one of several, each
	Evaluates []string  // what the script has evaluated as arithmetic, or as the name of a variable, although it is not known to be a number, or a name: bash runs a command that is an index in it
	Doubts    []string  // why there may be more than Commands shows, in words for a person: "eval of $x, which is not known"; empty when nothing is hidden
}

// Command is one simple command. A command whose words may have several values is in Script.Commands once for each.
type Command struct {
	Name      string   // what is executed, without its directory: "rm" for /bin/rm, \rm and 'r'm; "" when it is not known; ":" for a redirection without a command
	Path      Word     // the same as it is written
	Args      []Word   // behind the name
	By        []string // what runs it, outermost first: "sudo", "env", "xargs", "find -exec", "sh -c", "$(…)", "function f"; the wrapper is a Command of its own too
	Env       []Assign // assignments before it
	Redirects []Redirect
	Input     Input
	Dir       Word   // where it runs; not Known after a cd that could not be followed
	Func      bool   // it calls a function or an alias of the script's own: what that runs is among the Commands, By it
	Again     bool   // Func, and it stands in what it calls: recursion
	Async     bool   // it runs beside others: in a pipe or behind &
	Source    string // as it stands, for messages
}

// Word is one argument after expansion.
type Word struct {
	Text   string // its value when Known; else the part in front that is known
	Known  bool   // the whole value is known (a Glob is: Text is the pattern)
	Glob   bool   // it has * ? or [ unquoted, so it may stand for any number of names; a "*" also stands for a value without "/" that is not known, such as a date or a number, "/**/" for any depth of directories, and "…" for a name that is one of several but not every
	Number bool   // a Glob that stands for a number
	Source string // as it stands; "" when it doesn't stand anywhere, as in what a program prints
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
	Text Word  // of a heredoc or a here-string, or of a pipe when what comes out of it is known
	Is   bool  // there is a Text
}

// parsers are kept because they hold buffers. A parser serves one reading at a time.
var parsers = sync.Pool{New: func() any { return syntax.NewParser(syntax.Variant(syntax.LangBash)) }}

// Read gives what bash would execute for command. When it is no shell script, the error is of errdefs.Validation, and the Script, never nil, has what stands before the place that can't be
// parsed, since a shell may execute that. It never panics, and takes time and memory that are bounded.
func Read(command string, o Options) (s *Script, err error) {
	r := &reader{o: o}
	r.Commands = make([]Command, 0, min(len(command)/16+2, maxCommands))
	defer func() {
		if p := recover(); p != nil { // a defect of ours or the parser's must not stop the caller, and must not pass for an answer
			r.doubt("the command could not be read (%v)", p)
			s, err = &r.Script, errdefs.Internal.Errorf("shell: read: %v", p)
		}
	}()
	f := frame{sc: newScope(nil), src: command}
	f.sc.set(dirKey, variable{alts: []Word{{Text: o.Dir, Known: o.Dir != ""}}})
	_, err = r.source(f, command)
	r.uncalled(f)
	if len(r.Evaluates) > 0 { // it may be that text, wherever it stands
		r.index(strings.ReplaceAll(command, `\`, ""))
	}
	return &r.Script, err
}

// reader is one reading.
type reader struct {
	Script
	o       Options
	steps   int
	spare   []Word                // see room
	named   bool                  // there is a function or an alias
	done    map[*syntax.Stmt]bool // bodies of functions that were called
	funcs   []function            // in the order of their definition
	files   map[string][]Word     // what the script wrote, by absolute path
	wrote   []string              // of these, one each time that what may be in it changed
	reading map[string]bool       // of these, what is being read
	subst   int                   // process substitutions so far, to name them
}

type function struct {
	name string
	body *syntax.Stmt
	src  string
}

// doubt notes that more may run than is shown.
func (r *reader) doubt(format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	if len(r.Doubts) < maxDoubts && !slices.Contains(r.Doubts, text) {
		r.Doubts = append(r.Doubts, text)
	}
}

// step counts one command; false when there were enough.
func (r *reader) step() bool {
	r.steps++
	if r.steps > maxSteps || len(r.Commands) >= maxCommands {
		r.doubt("the command is too large to be read")
		return false
	}
	return true
}

// source reads text as a script in f. What stands before an error is read.
func (r *reader) source(f frame, text string) ([]Word, error) {
	if len(text) > maxSource {
		r.doubt("a script of more than %d bytes", maxSource)
		return unknown, errdefs.Validation.Errorf("shell: read: the command has %d bytes: at most %d can be read", len(text), maxSource)
	}
	if nested(text) {
		r.doubt("too many brackets in each other")
		return unknown, errdefs.Validation.Errorf("shell: read: more than %d brackets are open at once", maxNested)
	}
	if strings.Contains(text, "\r") { // a letter to bash, space to the parser: what it takes for a comment, or for one line, may be commands
		r.doubt("a carriage return, which is no space to a shell")
		text = strings.ReplaceAll(text, "\r", carriageReturn)
	}
	f.src = text
	p := parsers.Get().(*syntax.Parser)
	var stmts []*syntax.Stmt
	var err error
	for st, e := range p.StmtsSeq(strings.NewReader(text)) {
		switch {
		case e != nil && err == nil: // no break: the parser may yield once more
			err = errdefs.Validation.Errorf("shell: read: %w", e)
		case err == nil && st != nil:
			stmts = append(stmts, st)
		}
	}
	parsers.Put(p)
	if err != nil {
		r.doubt("what can't be parsed: %v", err)
	}
	return r.stmts(f, stmts), err
}

// carriageReturn stands for one while a script is parsed.
const carriageReturn = "\ue00d"

// maxNested bounds the recursion of the parser, which has no bound of its own.
const maxNested = 400

// nested reports whether more brackets are open at once than can be parsed without a deep stack. It knows nothing of quoting: it only has to be cheap.
func nested(text string) bool {
	if len(text) <= maxNested {
		return false
	}
	if strings.Count(text, "if ") > maxNested || strings.Count(text, "`") > maxNested || strings.Count(text, "do") > 4*maxNested {
		return true
	}
	if strings.Count(text, "(")+strings.Count(text, "{")+strings.Count(text, "[") <= maxNested {
		return false
	}
	open := 0
	for i := range len(text) {
		switch text[i] {
		case '(', '{', '[':
			open++
		case ')', '}', ']':
			open = max(0, open-1)
		}
		if open > maxNested {
			return true
		}
	}
	return false
}
