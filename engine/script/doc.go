// Package script is an engine whose run is a program in Starlark, a small language like Python: it says in which order models, tools, people and agents are asked, and what becomes of their answers.
//
//	facts = tool("search", query = board.get("topic"))
//	draft = generate("Write a report from these facts:\n" + facts)
//	if not ask("Publish it?"):
//	    fail("nobody wants it")
//
// A program has no way to the world but its builtins, no clock and no chance, so a run goes on where it was by running again with what is on record. See docs/scripts.md.
package script
