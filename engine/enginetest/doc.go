// Package enginetest proves that an [engine.Engine], an [engine.Host] or an [engine.CheckpointStore] is one.
//
//	func TestEngine(t *testing.T) {
//		enginetest.Run(t, func(t *testing.T, w *enginetest.Work) engine.Engine {
//			eng, err := loop.New(loop.Config{Model: w.Model(), Tools: []tool.Tool{w.Tool()}})
//			...
//			return eng
//		}, enginetest.NoBranches)
//	}
//
// An engine passes all of [Run], less what it says it lacks. Each case makes an engine for some [Work], has it executed as agent.Run would, and looks at nothing
// but the contract: what it returns, what is on the board and on record, and how often each step was done. Run the suite with -race too. Its cases look for
// goroutines that are left, so they must not run in parallel with other tests.
package enginetest
