package message

import "slices"

// Repair makes any transcript valid for every provider: each call gets exactly one result, in one tool message right after the
// message that made it, in the order of the calls; results without a call go, of several results for one call the first counts,
// messages that say nothing go, and a call that has no result gets one that says so. It is for transcripts that come from outside; Pawl's
// own journal folds to a valid one by construction.
//
// Pure, idempotent, free of clock and chance, and the identity (the same History back, nothing allocated) when there is nothing to
// mend. Messages that need no mending stay the same messages, with their encodings.
func Repair(h History) History {
	for i := 0; i < h.Len(); {
		n, ok := turn(h, i)
		if !ok {
			return mend(h, i)
		}
		i += n
	}
	return h
}

// turn reports whether what begins at i is valid, and how many messages it takes: one, or a message with calls and its results.
func turn(h History, i int) (n int, ok bool) {
	m := h.At(i)
	if m.Role() == RoleTool || m.IsZero() || m.Role() == RoleAssistant && m.Blank() || m.Len() == 0 {
		return 1, false
	}
	calls := 0
	for k := range m.Len() { // an iterator would allocate, for each message of a transcript
		if _, is := m.Part(k).(ToolCall); is {
			calls++
		}
	}
	if calls == 0 {
		return 1, true
	}
	return 2, i+1 < h.Len() && answers(m, h.At(i+1), calls)
}

// answers reports whether r is the tool message of m: a result for each call, in order, and nothing else.
func answers(m, r Message, calls int) bool {
	if r.Role() != RoleTool || r.Len() != calls {
		return false
	}
	k := 0
	for i := range m.Len() {
		c, is := m.Part(i).(ToolCall)
		if !is {
			continue
		}
		if res, is := r.Part(k).(ToolResult); !is || res.Call != c.ID {
			return false
		}
		k++
	}
	return !doubled(m, calls)
}

// doubled reports whether two calls of m share an id.
func doubled(m Message, calls int) bool {
	if calls < 2 {
		return false
	}
	var few [8]string // a map would be allocated, for each message with several calls
	seen := few[:0]
	var many map[string]bool
	if calls > len(few) {
		many = make(map[string]bool, calls)
	}
	for i := range m.Len() {
		c, is := m.Part(i).(ToolCall)
		switch {
		case !is:
		case many[c.ID] || slices.Contains(seen, c.ID):
			return true
		case many != nil:
			many[c.ID] = true
		default:
			seen = append(seen, c.ID)
		}
	}
	return false
}

// mend copies h[:from] and makes the rest valid.
func mend(h History, from int) History {
	out := NewHistory(h.s[:from]...)
	for i := from; i < h.Len(); i++ {
		if n, ok := turn(h, i); ok {
			out = out.Append(h.s[i : i+n]...)
			i += n - 1
			continue
		}
		m := h.At(i)
		calls := m.ToolCalls()
		if len(calls) == 0 { // a stray tool message, or one that says nothing
			continue
		}
		m, calls = undouble(m, calls)
		out = out.Append(m, Results(gather(h, i+1, calls)...))
	}
	return out
}

// gather finds the results of calls among the tool messages from i on, up to the next assistant message.
func gather(h History, i int, calls []ToolCall) []ToolResult {
	found := make(map[string]ToolResult, len(calls))
	for ; i < h.Len() && h.At(i).Role() != RoleAssistant; i++ {
		if h.At(i).Role() != RoleTool {
			continue
		}
		for r := range Of[ToolResult](h.At(i)) {
			if _, dup := found[r.Call]; !dup {
				found[r.Call] = r
			}
		}
	}
	out := make([]ToolResult, len(calls))
	for k, c := range calls {
		r, ok := found[c.ID]
		if !ok {
			r = ToolResult{Call: c.ID, Name: c.Name, Content: "This call has no result: it was interrupted before it was answered.", IsError: true}
		}
		out[k] = r
	}
	return out
}

// undouble drops calls whose id an earlier call of the same message has: they cannot be answered apart.
func undouble(m Message, calls []ToolCall) (Message, []ToolCall) {
	if !doubled(m, len(calls)) {
		return m, calls
	}
	seen := make(map[string]bool, len(calls))
	parts := make([]Part, 0, m.Len())
	kept := calls[:0]
	for p := range m.Parts() {
		if c, ok := p.(ToolCall); ok {
			if seen[c.ID] {
				continue
			}
			seen[c.ID] = true
			kept = append(kept, c)
		}
		parts = append(parts, p)
	}
	return New(m.Role(), parts...), kept
}
