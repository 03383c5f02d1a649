// Package telemetry tells OpenTelemetry what agents do: a span for each attempt of a run, for each model call, each tool call and each question to a person, one in the other; histograms of tokens and times; and, for
// who wants what was said, events. The names are those of the semantic conventions for generative AI, which are still in development: names may change here when they change there.
//
// What was said and read (prompts, replies, tool inputs and results, texts of errors) is left out unless [Config.Content] asks for it. The package uses OpenTelemetry's API alone: what becomes of spans is up to the providers, those of the
// program where none are given.
package telemetry
