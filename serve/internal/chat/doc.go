// Package chat has OpenAI's chat completions as they stand on the wire: requests, which are read to the last parameter, what a run says in the words of an answer, and errors.
package chat
