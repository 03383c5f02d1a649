// Package eval measures how good an agent is, as ordinary Go tests. A [Suite] has cases, says how one is run and what scores it; [Run] runs it under go test, each case as often as you like, and fails the test where less passes than asked for, or less than
// in a baseline by more than chance:
//
//	func TestSupport(t *testing.T) {
//		eval.Run(t, eval.Suite{
//			Name:     "support",
//			Cases:    []eval.Case{{Name: "order", Prompt: "Where is order 7?", Want: "It was shipped."}},
//			How:      eval.Agent(nil, ag, engine),
//			Scorers:  []eval.Scorer{eval.Exact(), eval.ToolCalls(eval.Exactly, eval.Uses("lookup_order")...)},
//			Repeats:  5,
//			Baseline: "testdata/support.json",
//		})
//	}
//
// What scorers look at is a [Sample], which is read from the journal: so they rate sessions that are on record ([Recorded]) as they rate fresh ones. A provider that is down, or a judge that gives no verdict, is an error and never a low score. The evals of a
// PromptPack file are scorers, too: [Pack].
package eval
