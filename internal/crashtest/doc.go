// Package crashtest is the crash matrix: real processes, killed by SIGKILL at every point of a run, and resumed by new ones.
//
//	func TestNothingIsRepeatedOrLost(t *testing.T) { crashtest.Matrix(t, crashtest.Scenarios()...) }
//
// [Matrix] executes the test binary again as a child process, which plays a [Scenario] on a journal in a directory of its own. A first pass
// is left alone; it shows what the run comes to, and which points it has: before and after every append to the journal, before and after
// every effect of the engine, in the middle of every model call, before and after a tool's side effect. Then, for each point, a
// child goes there and kills itself, and further children go on until the run is over. For a sample of points one of those is killed too.
//
// Tools note their side effects in a file that Pawl knows nothing of, durably, with the call and its idempotency key. With it and the
// journal the parent checks, for every kill point:
//
//   - A side effect that must not be repeated happened once; at most once when the kill fell between tool.started and tool.finished.
//     Only then may the model be told that the outcome is unknown, and it is said of no more calls than may write at the same time.
//   - A repeatable one happened with one key, once, and once more for every kill that fell between its start and its end.
//   - No effect of the engine (a model call, a verdict of the hooks, a question) that is on record was performed again, and all
//     that had an outcome are on record in the end.
//   - Whatever Append reported is there. The transcript is valid for a provider whenever a process begins ([message.Repair] changes
//     nothing), and in the end it is the undisturbed one, message for message, but for calls whose outcome is unknown.
//   - Status, answer, steps and usage are those of the undisturbed run.
//
// # How to add a scenario
//
// Give it a name and a Build, and call Matrix from a test of your package; see [Scenarios] for examples. Build is called in every process, the
// parent's excepted, and must always build the same: what it needs from outside comes from [Process]. It decides nothing by clock or chance,
// and the ids of all calls of a scenario differ. What acts on the world goes through the Process:
//
//   - [Process.Tool] makes tools that note what they do. A tool of your own calls [Process.Effect] where its side effect would be.
//   - [Process.Model] puts a point into the middle of each model call; use [scripted.Model] below it, which has no state.
//   - The engine that Build returns is watched if it is an [engine.Performer]; those of subagents go through [Process.Engine].
//   - [Process.Point] adds points of your own: in a hook, a shell command's wrapper, a compaction.
//
// Another store than SQLite is brought by [On]. Matrix must be reached in the child as it was in the parent: call it from a test
// function, at most once with the same name of a scenario, and before anything that can't be done twice.
//
// [message.Repair]: https://pkg.go.dev/github.com/pawl-dev/pawl/message#Repair
package crashtest
