// Package agenttest proves that what stands around a run is made as agent.Run needs it: an [agent.Decider], an [agent.Observer], an [agent.Seeder], an
// [agent.Committer].
//
//	func TestDecider(t *testing.T) {
//		agenttest.Decider(t, func(*testing.T) agent.Decider { return mydecider.New() })
//	}
//
// Each case makes the piece anew and gives it what a run can give it. Run the suites with -race: pieces are shared by runs at the same time.
package agenttest
