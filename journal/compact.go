package journal

import (
	"slices"

	"github.com/pawl-dev/pawl/message"
)

// compact puts a summary in the place of messages, and remembers those that the attempt itself had said.
func (s *State) compact(main bool, d Compacted) {
	if !main || d.Error != "" {
		return
	}
	s.join()
	from := min(max(d.Edit.From, s.own), s.Messages.Len())
	s.gone = append(append([]message.Message{}, s.gone...), s.Messages.Slice(min(s.own, from), from).Messages()...)
	s.own = len(d.Edit.Head) + max(s.own-d.Edit.From, 0)
	s.edit(true, d.Edit)
	s.Context = 0
}

// Said is what the attempt under way has added to the transcript, what compactions have taken away included; ok is false when there was none: then the transcript has it all.
func (s State) Said() (all []message.Message, ok bool) {
	if s.gone == nil {
		return nil, false
	}
	s.join()
	return slices.Concat(s.gone, s.Messages.Slice(min(s.own, s.Messages.Len()), s.Messages.Len()).Messages()), true
}

// spent is what a compaction took. It is no step.
func (d Compacted) spent() Spent {
	s := SpentBy(ModelFinished{Usage: d.Usage, CostMicros: d.CostMicros})
	s.Steps = 0
	return s
}
