// Package crashtest is the crash matrix: real processes, killed by SIGKILL at every point of a run, or left alive with a store that really
// fails, and resumed by new ones.
//
//	func TestNothingIsRepeatedOrLost(t *testing.T) { crashtest.Matrix(t, crashtest.Scenarios()...) }
//
// [Matrix] executes the test binary again as a child process, which plays a [Scenario] on a journal of its own. A first pass
// is left alone; it shows what the run comes to, and which points it has: before and after every append to the journal, before and after
// every effect of the engine, in the middle of every model call, before and after a tool's side effect. Then, for each point, a
// child goes there and kills itself, and further children go on until the run is over. For a sample of points one of those is killed too, and so it is at
// every point that only a resume has (a question about a call of unknown outcome, its second run), once for a scenario and three deaths deep.
//
// On SQLite every point is a kill point. Elsewhere, of points between which nothing is done that outlives the process the first stands for all.
//
// [Faults] is the same with another death: at the point the store begins to fail ([Fault]: a file that may not grow, a full disk, a cut socket, a lost
// answer, a killed server), and the child lives on until it ends by itself. Then the fault is mended, and further children go on.
//
// Children tell the parent what they do through a pipe that Pawl knows nothing of and no fault reaches: points, appends, and the side effects of
// tools, with the call and its idempotency key. With it and the journal the parent checks, for every point:
//
//   - A side effect that must not be repeated happened once; at most once when the death fell between tool.started and tool.finished.
//     Only then may the model be told that the outcome is unknown, and it is said of no more calls than may write at the same time.
//   - A repeatable one happened with one key, once, and at most once more in each life that found it between its start and its end. So did any one where
//     the policy is to retry. Where it is to ask, one happened once more for each time that a person was asked about it and said yes; nobody was
//     asked about one that was not lost, and what the model is told of a no is what the person said.
//   - No side effect happened before its tool.started was reported durable, or found: where that could not be written, the tool did not run.
//   - No effect of the engine (a model call, a verdict of the hooks, a question) that is on record was performed again, and all
//     that had an outcome are on record in the end. What is run for an effect outside of the process, such as a shell hook, was run once for each
//     outcome, and no more often than the effect was begun ([Scenario.Runs]).
//   - Whatever Append reported is there, and every append is there whole or not at all. The transcript is valid for a provider whenever a process
//     begins ([message.Repair] changes nothing), and in the end it is the undisturbed one, message for message, but for calls whose outcome is
//     unknown.
//   - Status, answer, steps and usage are those of the undisturbed run: no run was closed that could be resumed. What was said to a run was heard, once.
//   - A replay of every session, by the last process, finds no difference.
//   - A process whose append failed ended by itself and in time, with an error of class not_available that names the store and the place.
//
// All of that holds for every session of a case: subagents' too.
//
// # What runs side by side
//
// The n-th point of a case is not always the same where subagents work in the background, but its points are: each is named by its session,
// what is done in a session is done in an order, and so every name is come to in every process, whatever runs beside it. What must not depend on
// chance is where a run hears of what goes on beside it. So the last step of a subagent in the background waits for the run to wait for it
// ([Process.Await]); all others run free. Calls that read run side by side too; their points have the names of the calls. After a
// death not every process has the same points left: a second death is likely, not certain, and where it does not come the case still counts.
//
// # How to add a scenario
//
// Give it a name and a Build, and call Matrix from a test of your package; see [Scenarios] for examples. Build is called in every process, the
// parent's excepted, and must always build the same: what it needs from outside comes from [Process]. It decides nothing by clock or chance,
// and the ids of all calls of a scenario differ, over all its sessions. What acts on the world goes through the Process:
//
//   - [Process.Tool] makes tools that note what they do. A tool of your own calls [Process.Effect] where its side effect would be.
//   - [Process.Model] puts a point into the middle of each model call; use [scripted.Model] below it, whose replies depend on the request alone.
//   - The engine that Build returns is watched if it is an [engine.Performer]; subagents go through [Process.Task], the engines of a team's members
//     through [Process.Engine].
//   - [Process.Point] adds points of your own: in a hook, a shell command's wrapper, a compaction.
//
// Another store than SQLite is brought by [On]; PostgreSQL by [OnPostgreSQL], which also waits until the server has noticed a death. What only the
// parent can make comes to the children by [Shared]. Matrix and Faults must be reached in the child as it was in the parent: call them from a
// test function, at most once in each, and before anything that can't be done twice.
//
// [message.Repair]: https://pkg.go.dev/github.com/pawl-dev/pawl/message#Repair
package crashtest
