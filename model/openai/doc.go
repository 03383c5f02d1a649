// Package openai speaks OpenAI's two protocols: Chat Completions ([New]) and Responses ([NewResponses]).
//
// Chat Completions is what most other providers and local servers speak too, so that [Vendor] makes models of Ollama, vLLM,
// OpenRouter, DeepSeek, Groq and many more. Responses is OpenAI's own newer protocol; here it is used statelessly: nothing is stored
// at the provider, and what it would remember (encrypted reasoning, searches that it ran itself) travels in the messages.
//
// # What the wire has no place for
//
// Neither protocol marks a failed tool result: [message.ToolResult.IsError] isn't sent, and the content has to say it. Files of a tool
// result follow in a user message (Chat Completions) or are part of the result (Responses). Files of an assistant message, which
// only another provider can have made, are left out. Text files are sent as text. Everything else that can't be sent is an error of class
// errdefs.Validation before the call.
//
// # Chat Completions
//
// The output limit is max_completion_tokens on servers of OpenAI and Azure and max_tokens on all others, many of which know only that.
// Reasoning (reasoning_content, reasoning, reasoning_details) goes back, in the field that it came in, with the message that it
// came with, and never to OpenAI, which neither gives nor takes it. Arguments of a call that are no JSON object are sent as
// {"INVALID_JSON": "…"}, because many servers parse them.
//
// # Responses
//
// Every item of a reply goes back as it came. Only reasoning that would be refused is left out: that without encrypted content, which
// the provider would look for in a store, and that with nothing after it in its message. Encrypted reasoning is asked for, except of OpenAI's
// models that don't reason (gpt-4…, …-chat-latest): they fail when they are asked for it.
//
// # Prompt caches
//
// OpenAI caches what requests begin with by itself. Its own servers (not Azure's, whose older versions don't know it, nor others) are
// given [model.Request.CacheKey] as prompt_cache_key, hashed with SHA-256, so that the requests of a conversation come to the machine that has its beginning.
//
// # Errors
//
// An exhausted quota (code insufficient_quota) is of class errdefs.RateLimit, as its status 429 says; its Code tells it from a limit
// that passes by waiting. A prompt or reply that the content filter stopped with an error is errdefs.Refused.
package openai
