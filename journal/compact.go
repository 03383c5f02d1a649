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
	s.cut(d.Edit)
	s.edit(true, d.Edit)
	s.Context = 0
}

// cut notes what an edit takes away of the attempt's own messages.
func (s *State) cut(e message.Edit) {
	s.join()
	n := s.Messages.Len()
	own, from := min(s.own, n), min(max(e.From, 0), n)
	to := max(min(e.To, n), from)
	s.gone = append([]message.Message{}, s.gone...)
	for _, part := range [][2]int{{own, max(own, from)}, {max(own, to), n}} {
		s.gone = append(s.gone, s.Messages.Slice(part[0], part[1]).Messages()...)
	}
	s.own = len(e.Head) + max(own-from, 0)
	if own >= to { // none of them is left
		s.own = len(e.Head) + to - from
	}
}

// Said is what the attempt under way has added to the transcript, what compactions, and boards that changed it otherwise than by growing, have taken away included; ok is false when there was none: then the transcript has it all.
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
