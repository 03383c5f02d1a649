package model

import "context"

// Counter is implemented by models whose provider counts the tokens of a request without answering it. Find it with [As]. Safe for concurrent use.
type Counter interface {
	// CountTokens gives how many tokens req takes of the model's window: its system prompt, tools, messages and output schema. It is the provider's count, which some
	// of them call an estimate; it costs a call, but no tokens. It fails as Complete does.
	CountTokens(ctx context.Context, req Request) (int, error)
}
