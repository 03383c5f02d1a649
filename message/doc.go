// Package message has the words that people, models and tools exchange.
//
// A [Message] is immutable: it is made whole by [New] and only read after that, so it is shared by reference between
// boards, sessions, forks and goroutines, and the bytes that a provider encodes it to are kept on it ([Message.Encoded]).
// A [History] is an immutable sequence of messages; appending to it gives another one that shares the old. What a hook or a
// compaction changed is an [Edit], and [Repair] makes any transcript valid for every provider.
package message
