// Package mcp gives an agent the tools of MCP servers (Model Context Protocol): processes that are spoken to over their standard input and output, or servers over HTTP.
//
//	client, err := mcp.Connect(ctx, []mcp.Server{{Name: "files", Command: "mcp-server-filesystem", Args: []string{"."}}}, mcp.Options{Command: fence.Command})
//	defer client.Close(ctx)
//	tools := client.Tools(ctx)
//
// # Tools
//
// A tool is named mcp__SERVER__TOOL, and rules, hooks and gates know it by that name. Letters that providers don't take become "_", and a name that is too long, or
// that two tools would have, ends in a hash. A server that has resources gets one tool more, mcp__SERVER__resources, which lists and reads them. Prompts are for people and
// programs, not for models: see [Client.Prompts].
//
// The list is what the servers said when [Client.Tools] was called last. What they say later ([Client.Changed]) counts from the next call of it, so that the tools of
// a run under way, which are a part of the provider's cached prefix, stay.
//
// A server with many tools has them deferred ([Defer]): a model finds them with the tool tool_search of its loop.
//
// # What is believed
//
// What a server says of its tools are hints, and the server may be wrong. Every tool counts as OpenWorld, and permission.New asks before it runs unless a rule allows it,
// whatever the hints. ReadOnly is believed of a tool that does not also say that it destroys: it may then run beside others, and again after a crash. A server that says so of a tool
// that writes can have it run twice, which is no more than it could do by itself at the first call. Idempotent is believed in the same way. Destructive holds unless the server denies it.
//
// # When a server fails
//
// A server that does not start is a warning, unless it is Required. A connection that is lost is made again by the next call, and the call that lost it is repeated
// only when it is certain that the server did not run it, or when the tool may run again; otherwise its outcome is unknown, and the model is told so.
//
// # Questions
//
// A server may ask a person something while it works on a call (elicitation). It becomes a question on record ([engine.Inside.Ask]), so that with nobody there a run parks when the
// tool may run again; when it may not, and outside of a run, the server is told that nobody answers. Roots, sampling and logging, which the protocol has deprecated, are not offered.
package mcp
