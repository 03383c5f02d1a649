package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"io"
	"strings"
)

// event is what a client has to know of one.
type event struct {
	Seq                      int64
	Time, Session, Run, Kind string // without a Time it is no entry
}

// readEvents reads an event stream to its end, or until each has had enough. Only what is whole counts. id is that of the event before: one that has none, as an error has, does not change it.
func readEvents(from io.Reader, id string, each func(id string, e event) bool) error {
	lines := bufio.NewReader(from)
	data := ""
	for {
		line, err := lines.ReadString('\n')
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		name, value, _ := strings.Cut(strings.TrimSuffix(line, "\n"), ":")
		value = strings.TrimPrefix(value, " ")
		switch {
		case name == "id":
			id = value
		case name == "data":
			data += value
		case line == "\n" && data != "":
			var e event
			if err := json.Unmarshal([]byte(data), &e); err != nil {
				return err
			}
			if !each(id, e) {
				return nil
			}
			data = ""
		}
	}
}
