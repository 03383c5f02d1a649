package loop

import (
	"cmp"
	"context"
	"hash/fnv"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/pawl-dev/pawl/engine"
	"github.com/pawl-dev/pawl/event"
	"github.com/pawl-dev/pawl/internal/wire"
	"github.com/pawl-dev/pawl/journal"
	"github.com/pawl-dev/pawl/message"
	"github.com/pawl-dev/pawl/model"
)

// stream takes a model's stream apart: deltas go to who listens, text is kept in case the call is cancelled.
type stream struct {
	text      []byte  // in a room
	room      *[]byte // from the first text on: a call that waits for its model needs none
	reasoning bool    // some was shown
	held      bool    // the request is not sent yet, and who listens was told so
	final     *model.Response
}

// rooms are for the text of calls, which is of no use once the call went well.
var rooms = sync.Pool{New: func() any { return new([]byte) }}

const (
	firstRoom = 512
	largeRoom = 1 << 20 // a larger one is not used again
)

func (s *stream) take(ctx context.Context, to *engine.Deltas, r model.StreamResult) {
	if r.Void != nil {
		*s = stream{text: s.text[:0], room: s.room}
		to.Again(ctx, r.Void.Error(), r.Wait)
		return
	}
	if s.held && !r.Held {
		to.Waits(ctx, "the model", 0)
	}
	if s.held = r.Held; s.held {
		to.Waits(ctx, "the rate limit", r.Wait)
		return
	}
	s.reasoning = s.reasoning || r.Reasoning != ""
	if r.Text != "" {
		s.keep(r.Text)
	}
	to.Emit(ctx, event.ReasoningDelta, "", r.Reasoning)
	to.Emit(ctx, event.TextDelta, "", r.Text)
	if !r.Final {
		return
	}
	s.final = r.Response
	if s.final == nil {
		return
	}
	if !s.reasoning { // a model that does not stream shows all of it once
		for i := range s.final.Message.Len() {
			if p, ok := s.final.Message.Part(i).(message.Reasoning); ok {
				to.Emit(ctx, event.ReasoningDelta, "", p.Text)
			}
		}
	}
	if len(s.text) == 0 {
		to.Emit(ctx, event.TextDelta, "", s.final.Message.Text())
	}
}

// keep adds to the text.
func (s *stream) keep(text string) {
	if s.room == nil {
		s.room = rooms.Get().(*[]byte)
		s.text = (*s.room)[:0]
	}
	if n := cap(s.text); n-len(s.text) < len(text) {
		s.text = slices.Grow(s.text, max(firstRoom, 2*n, len(text))) // in big steps: a delta costs nothing
	}
	s.text = append(s.text, text...)
}

// leave gives the room to the next call.
func (s *stream) leave() {
	if s.room == nil {
		return
	}
	if cap(s.text) <= largeRoom {
		*s.room = s.text
	}
	rooms.Put(s.room)
	s.room, s.text = nil, nil
}

// sane takes out of a provider's usage what would make sums wrong: budgets are kept by them.
func sane(u model.Usage) model.Usage {
	const most = 1 << 40 // tokens
	for _, n := range []*int{&u.Input, &u.Output, &u.CacheRead, &u.CacheWrite, &u.Reasoning} {
		*n = min(max(*n, 0), most)
	}
	return u
}

// few is how many calls are looked at for each.
const few = 8

// fit reports whether a reply surely is as [own] would make it.
func fit(log *journal.Log, m message.Message) bool {
	if m.Len() > 64 { // each is looked at for each
		return false
	}
	for i := range m.Len() {
		c, ok := m.Part(i).(message.ToolCall)
		if !ok {
			continue
		}
		if c.ID == "" || strings.Contains(c.ID, "/") || log != nil && log.HasCall(c.ID) || !wire.Compact([]byte(c.Input)) {
			return false
		}
		for k := range i {
			if before, ok := m.Part(k).(message.ToolCall); ok && before.ID == c.ID {
				return false
			}
		}
	}
	return true
}

// own makes a reply fit for the session: each call has an id that no call before it had, and input that is compact, so that it has the
// same bytes after it was read back from the journal. Mostly it is the message itself. With a scope each id has that in it: loops that run side by
// side can't look at what the others are about to record.
func own(log *journal.Log, m message.Message, scope string, step int) message.Message {
	if scope == "" && fit(log, m) {
		return m
	}
	calls := m.ToolCalls()
	changed := false
	var seen map[string]bool // the ids before, when there are many; a few are looked at each
	if len(calls) > few {
		seen = make(map[string]bool, len(calls))
	}
	taken := func(i int, id string) bool {
		if id == "" || seen[id] || log != nil && log.HasCall(id) {
			return true
		}
		return seen == nil && slices.ContainsFunc(calls[:i], func(c message.ToolCall) bool { return c.ID == id })
	}
	for i := range calls {
		c := &calls[i]
		if !wire.Compact([]byte(c.Input)) {
			if b, ok := wire.AppendCompact(nil, []byte(c.Input)); ok {
				c.Input, changed = string(b), true
			}
		}
		if scope != "" {
			h := fnv.New32a()
			_, _ = h.Write([]byte(scope))
			c.ID, changed = cmp.Or(c.ID, "call")+"_"+strconv.FormatUint(uint64(h.Sum32()), 36), true
		}
		if strings.Contains(c.ID, "/") { // it stands between calls, and their questions, in the names of what is below
			c.ID, changed = strings.ReplaceAll(c.ID, "/", "_"), true
		}
		if taken(i, c.ID) {
			stem := cmp.Or(c.ID, "call")
			for n := 0; taken(i, c.ID); n++ {
				c.ID = stem + "_" + strconv.Itoa(step) + "_" + strconv.Itoa(i+1)
				if n > 0 {
					c.ID += "_" + strconv.Itoa(n)
				}
			}
			changed = true
		}
		if seen != nil {
			seen[c.ID] = true
		}
	}
	if !changed {
		return m
	}
	var room [few]message.Part // the message copies them
	parts := room[:0]
	k := 0
	for i := range m.Len() {
		p := m.Part(i)
		if _, ok := p.(message.ToolCall); ok {
			p = calls[k]
			k++
		}
		parts = append(parts, p)
	}
	return message.New(m.Role(), parts...)
}
