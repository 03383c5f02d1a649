// Package graph is an engine that runs a graph of nodes: model calls, tools, agents, approvals, functions, and graphs within graphs, joined by edges with conditions.
//
// A [Definition] is data, in Go or read from JSON or YAML by [Load]. [Compile] checks all of it and gives an [Engine], which is immutable and serves many runs at once.
//
// Nodes that are due at the same time are a wave: they run side by side, each on a board of its own, and their changes are merged by their difference from the board that the wave began with. A
// node that is due waits while another one that is due can still lead to it; so where branches of different lengths meet, the node runs once, when all are there. Edges that lead
// back, to a node that the graph comes through before, don't count for that.
//
// All that happens goes through engine.Steps under keys made from the progress of the graph, so that a run resumes anywhere and no finished node runs again.
package graph
