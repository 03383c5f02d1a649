package agent

import (
	"slices"

	"github.com/pawl-dev/pawl/engine"
	"github.com/pawl-dev/pawl/message"
)

// Artifact is what a run left in one channel of its board, under the channel's name. The parts must not be written to.
type Artifact struct {
	Name  string        `json:"name"`
	Parts message.Parts `json:"parts,omitempty"`
}

// WithArtifactChannels has the parts of all messages in these channels of the last board put into Result.Artifacts, one Artifact a channel, in the
// order of their first naming. Several calls add up. Left out without a word: "", the main channel, which Result.Messages has, and channels
// without parts.
func WithArtifactChannels(channels ...string) RunOption {
	return func(c *config) { c.artifacts = append(c.artifacts, channels...) }
}

// harvest reads the channels that were asked for; nil when none were, or none has anything.
func (t *turn) harvest(last *engine.Board) (all []Artifact) {
	for i, name := range t.artifacts {
		if name == "" || name == engine.MainChannel || slices.Contains(t.artifacts[:i], name) {
			continue
		}
		a := Artifact{Name: name}
		for _, m := range last.Channel(name).All() {
			a.Parts = slices.AppendSeq(a.Parts, m.Parts())
		}
		if len(a.Parts) > 0 {
			all = append(all, a)
		}
	}
	return all
}
