// Package mcp offers a [pawl.Runtime] to MCP clients (Model Context Protocol): its agent as a tool that is given a prompt, its tools, each call of which goes the way of a model's, its skills as prompts, and the transcripts of
// sessions as resources; over standard input and output, or by streamable HTTP, with sessions of the protocol or without.
//
// Whatever a client asks for is a run in the journal, as any other. A client that cancels its request cancels the run. One that is lost leaves it open: what is on record stays, and the run goes on when its session is asked again. What waits
// for a person is asked by the client (elicitation) where that can; else the result says what waits, and the tool "answer" answers it, from any connection.
//
// Roots, sampling and logging are not offered: version 2026-07-28 of the protocol deprecates them.
package mcp
