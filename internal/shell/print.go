package shell

// prints gives what a program would print, if that can be told from its words and its input.
func (r *reader) prints(_ frame, _ Command) []Word { return unknown }

// script reads programs in other languages.
func (r *reader) script(_ frame, _ Command) ([]Word, bool) { return nil, false }
