// Package model is the one interface to language models, and what goes through it.
//
// A [Model] answers a [Request] as a whole or as a stream. Providers lie in sub-packages (model/anthropic, model/openai,
// model/gemini), the deterministic double for tests and demos in model/scripted, prices and windows in model/catalog, retries, fallbacks and limits in
// model/resilience, the ways to Bedrock, Vertex AI and Azure in model/cloud. Whatever
// wraps a model is a [Middleware].
package model
