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
// # Reasoning
//
// Levels are reasoning_effort (Chat Completions) and reasoning.effort (Responses), in the provider's words, which are ours but for [model.ReasoningMax]:
// that is xhigh over Chat Completions, and over Responses max, or xhigh for a model of OpenAI's that has no max. Which of OpenAI's models takes which level is
// a table in this package, by names; a model whose name isn't in it takes all of them, and its server has the last word. A model that
// doesn't think (gpt-4o) takes none alone, and nothing is sent. OpenAI's own servers refuse sampling settings together with thinking, and over Chat Completions
// from GPT-5.4 on tools as well: where a level is asked for, that is an error before the call. Summaries of
// thoughts are not asked for: OpenAI refuses that to organizations that it has not verified. What comes unasked is read.
//
// # Tools that the provider runs
//
// Responses has [model.WebSearch], [model.CodeExecution] (in a container of its own, unless the options name one), file_search (the options have
// vector_store_ids), image_generation, and mcp (a server of theirs to ask: server_label, server_url, require_approval). Options are members of the tool; a "type" in them takes
// the place of ours. What they did is in the reply as [message.ProviderCall]: queries and sources, code and what it wrote, calls of MCP servers. An image is
// in the part's JSON alone. Nobody can answer an approval request of mcp here, so its options have to say what needs none. Chat Completions has no such tools.
//
// # Citations and files
//
// Annotations of a text are its Citations. OpenAI counts characters; they are bytes here.
//
// Upload gives a file to the server's files API (512 MiB at most; images with the purpose vision, all else user_data), where it stays until Discard.
// Its Provider is "openai" for both protocols, "azure" on Azure, and a [Vendor]'s name otherwise: IDs are sent to who gave them only. Responses takes images, text and PDF by
// ID; Chat Completions PDF alone.
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
