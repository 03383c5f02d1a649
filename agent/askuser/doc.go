// Package askuser is the tool by which a model asks a person, and three ways to reach one: at a terminal, through the journal, or not at all.
//
//	ask := askuser.New(askuser.Journal())
//
// The tool owns its [Interactor]; engines and runs know nothing of it. With [Journal] a question outlives the process: it is on record before anybody sees
// it, the run parks while nobody answers, and the answer may come from another process, days later.
package askuser
