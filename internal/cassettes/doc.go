// Package cassettes plays recorded exchanges with real providers to tests.
//
// Other projects record what their clients and a provider say to each other, and publish it: pydantic-ai as files of vcrpy,
// charmbracelet/fantasy as files of go-vcr. [Read] brings both into one form, [Dir] says where they are (they are no part of this
// repository), and [Serve] is a server on this machine that answers as the provider did. What is made of them is the matter of the
// tests; nothing here knows a wire format. What others sent is not what our providers send, so requests are kept here, not compared: that is what
// package model/cassette does with what it recorded itself.
package cassettes
