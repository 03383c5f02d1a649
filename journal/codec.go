package journal

import (
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"time"

	"github.com/pawl-dev/pawl/errdefs"
)

// Version is the version of the format that this package writes. It reads all up to it, and refuses newer ones.
const Version = 1

// kinds has a zero value of each Data, by kind. An entry's data is decoded into its type.
var kinds = func() map[Kind]reflect.Type {
	m := map[Kind]reflect.Type{}
	for _, d := range []Data{
		SessionCreated{},
		RunStarted{},
		Resumed{},
		Said{},
		Seeded{},
		Prepared{},
		ModelStarted{},
		ModelFinished{},
		ModelFailed{},
		ToolJudged{},
		Asked{},
		Answered{},
		ToolStarted{},
		ToolFinished{},
		TaskStarted{},
		CommandStarted{},
		CommandEnded{},
		Compacted{},
		Stopped{},
		Parked{},
		Board{},
		Visited{},
		Failed{},
		Timed{},
		RunFinished{},
	} {
		m[d.Kind()] = reflect.TypeOf(d)
	}
	return m
}()

var types = func() map[reflect.Type]bool {
	m := make(map[reflect.Type]bool, len(kinds))
	for _, t := range kinds {
		m[t] = true
	}
	return m
}()

// line is an entry on disk.
type line struct {
	Version int             `json:"v"`
	Seq     int64           `json:"seq"`
	Time    time.Time       `json:"time"`
	Session string          `json:"session"`
	Run     string          `json:"run,omitempty"`
	Kind    Kind            `json:"kind"`
	Key     *Key            `json:"key,omitempty"`
	Data    json.RawMessage `json:"data"`
}

// MarshalJSON writes the entry as one line of readable JSON. The same entry always gives the same bytes.
func (e Entry) MarshalJSON() ([]byte, error) {
	data, err := EncodeData(e.Data)
	if err != nil {
		return nil, err
	}
	l := line{Version: Version, Seq: e.Seq, Time: e.Time.UTC(), Session: e.Session, Run: e.Run, Kind: e.Data.Kind(), Data: data}
	if e.Key != (Key{}) {
		l.Key = &e.Key
	}
	return marshal(l)
}

// UnmarshalJSON reads what MarshalJSON wrote. An unknown kind or a newer version is refused, not skipped: what it says may matter.
func (e *Entry) UnmarshalJSON(b []byte) error {
	var l line
	if err := json.Unmarshal(b, &l); err != nil {
		return errdefs.Validation.Errorf("journal: entry: %w", err)
	}
	if l.Version < 1 {
		return errdefs.Validation.Errorf("journal: not an entry: it has no format version")
	}
	if l.Version > Version {
		return errdefs.NotAvailable.Errorf("journal: entry %d of session %s has format version %d; this program reads up to %d: use a newer one", l.Seq, l.Session, l.Version, Version)
	}
	data, err := DecodeData(l.Kind, l.Data)
	if err != nil {
		return fmt.Errorf("journal: entry %d of session %s: %w", l.Seq, l.Session, err)
	}
	*e = Entry{Seq: l.Seq, Time: l.Time.UTC(), Session: l.Session, Run: l.Run, Data: data}
	if l.Key != nil {
		e.Key = *l.Key
	}
	return nil
}

// EncodeData writes the data of an entry, for stores that keep the rest in columns. What could not be read again is refused with
// errdefs.Validation: data of a type that is not one of this package's, pointers to those too.
func EncodeData(d Data) ([]byte, error) {
	if err := known(d); err != nil {
		return nil, err
	}
	b, err := marshal(d)
	if err != nil {
		return nil, errdefs.Validation.Errorf("journal: %s can't be written as JSON: %w", d.Kind(), err)
	}
	return b, nil
}

// known refuses data that no reader would understand.
func known(d Data) error {
	if d == nil {
		return errdefs.Validation.Errorf("journal: an entry without data")
	}
	if !types[reflect.TypeOf(d)] {
		return errdefs.Validation.Errorf("journal: %T is no type of entry: use the structs of this package, by value", d)
	}
	return nil
}

// DecodeData reads what EncodeData wrote.
func DecodeData(kind Kind, b []byte) (Data, error) {
	t, ok := kinds[kind]
	if !ok {
		return nil, errdefs.NotAvailable.Errorf("kind %q is not known to this program: use a newer one", kind)
	}
	v := reflect.New(t)
	if err := json.Unmarshal(b, v.Interface()); err != nil {
		return nil, errdefs.Validation.Errorf("%s: %w", kind, err)
	}
	return v.Elem().Interface().(Data), nil
}

// Kinds lists all kinds of entry that this version knows, sorted.
func Kinds() []Kind { return slices.Sorted(maps.Keys(kinds)) }
