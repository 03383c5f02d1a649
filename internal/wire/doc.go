// Package wire appends and scans the bytes of JSON and of server-sent events
// without reflection.
//
// Every streamed delta of a model passes through here, so the package works on
// the bytes as they arrived and hands out slices of them:
//
//   - [AppendString], [AppendBase64] and [AppendCompact] write JSON to the end
//     of a buffer the caller owns.
//   - [Object] and [Array] walk a value; [Get] looks one up; [String],
//     [AppendText], [Int], [Bool] and [IsNull] read a raw value.
//   - [Read] walks a value and what is nested in it in one pass, and [Alike] knows
//     one that differs from the one before in a text: both are for what comes often.
//   - [Events] reads server-sent events from any [io.Reader].
//
// # Walking a value
//
// A cursor is a plain value, kept in a variable because Next moves it:
//
//	m := wire.Object(data)
//	for m.Next() {
//		switch string(m.Key) {
//		case "type":
//			typ = m.Value
//		case "index":
//			index = wire.Int(m.Value)
//		}
//	}
//	if err := m.Err(); err != nil {
//		return err
//	}
//
// Where data is known to be well formed, as every Value of an outer cursor is,
// the short form does:
//
//	for d := wire.Object(delta); d.Next(); {
//		…
//	}
//
// The conversion in switch string(m.Key) copies nothing.
//
// # Validation
//
// What the walk passes over is checked in full, with the grammar that
// [encoding/json.Valid] applies: no value is handed out before all of it was
// seen to be JSON. (An object or array that a [Reader] walks is seen to be that once
// it was walked.) Objects and arrays may nest 10000 deep. Strings may hold
// invalid UTF-8, as encoding/json lets them; a decoded text never does, each bad
// byte became U+FFFD. White space around a raw value never matters.
//
// # Cost
//
// One pass over an input takes time linear in its length, whatever it holds.
// Walking a nested value with [Object] and [Array] scans it again, so that reading
// something d levels deep costs at most d passes over it; a [Reader] makes one. Nothing is allocated except where a function
// says so, for an error, and for nesting deeper than 64 levels: a byte for each.
package wire
