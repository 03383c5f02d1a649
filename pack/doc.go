// Package pack reads PromptPack files (1.4): prompts with their variables, tools, validators, parameters and agents, in one JSON file that is the single source of truth of a conversation.
//
//	p, err := pack.Load("support.pack.json") // every problem at once: a *pack.Error
//	system, err := p.Render("chat", map[string]any{"name": "Ada"})
//
// A [Pack] is a value that does not change. It knows nothing of models, engines or journals: what talks by it reads its fields. What a pack asks for and nobody does yet is in its Warnings, by
// name. Guards, which are a pack's validators at work, are in package guard below.
package pack
