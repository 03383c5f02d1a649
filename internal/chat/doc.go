// Package chat is the conversation at a terminal that pawl chat is: what people type, what a run shows, and what it asks. It drives a pawl.Runtime and keeps nothing itself: what it shows of a session is read from the journal.
//
// What is finished is printed above the lines at the bottom that still change, once, and then belongs to the terminal, which can be scrolled; so what a delta costs does not grow with the conversation. Events come in the run's
// goroutine, are put into a list, and are taken from there some 25 times a second ([host]). A reply is cut into blocks of Markdown as it comes ([stream]): each is rendered when it is whole, and the last one, which is not, again and again.
package chat
