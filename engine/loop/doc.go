// Package loop is the model-tool loop, the only one there is.
//
//	prepare → { limits → call the model → cut off, paused or empty? go on
//	            → no calls? stop hooks, done
//	            → judge the calls → run those allowed → ask about the rest → run those approved }
//
// [New] makes it of a model, tools and hooks; agent.Run drives it. What it decides stands in loop.go, what it does in perform.go.
package loop
