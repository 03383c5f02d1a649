package message

import "encoding/json"

// MarshalJSON writes the messages as a list.
func (h History) MarshalJSON() ([]byte, error) {
	b := []byte{'['}
	for i, m := range h.All() {
		if i > 0 {
			b = append(b, ',')
		}
		if !m.Role().Valid() { // it could not be read back
			_, err := m.MarshalJSON()
			return nil, err
		}
		b = m.AppendJSON(b)
	}
	return append(b, ']'), nil
}

// UnmarshalJSON reads what MarshalJSON writes.
func (h *History) UnmarshalJSON(b []byte) error {
	var ms []Message
	if err := json.Unmarshal(b, &ms); err != nil {
		return err
	}
	*h = NewHistory(ms...)
	return nil
}
