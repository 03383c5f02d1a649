package main

import (
	_ "embed"
	"encoding/json"
)

// Costs are what runs cost, measured: see TestTheCostsAreWhatTheyAre, which also writes them.
type Costs struct {
	Answer   Unit `json:"answer"`   // a run without any tool, left to the workers, from its beginning to its end
	Step     Unit `json:"step"`     // one more step, with one call of a tool that gives 1 KiB
	Call     Unit `json:"call"`     // one more call in a step, beside the others
	Approval Unit `json:"approval"` // a call that somebody is asked about, more than one that nobody is
	Waited   Unit `json:"waited"`   // a run whose caller waits for it and follows it, more than one that is left to the workers

	// Of a session that was read from the start, by a worker that does not have it: bytes from the database, and statements.
	OpenBytesPerEntry float64 `json:"open_bytes_per_entry"`
	OpenReads         float64 `json:"open_reads"`

	// Bytes of a worker's memory: of one that is idle, of a run that waits in it (its workflow with its stack and its board, and its session), for the run and for each of its steps; and of a session that it keeps when the run is over.
	Idle        float64 `json:"idle"`
	Open        float64 `json:"open"`
	OpenPerStep float64 `json:"open_per_step"`
	Kept        float64 `json:"kept"`
	KeptPerStep float64 `json:"kept_per_step"`

	Pool int `json:"pool"` // connections to the database of one worker

	// How often effects were heard of, with a heartbeat timeout of 6 s.
	Heartbeats []Beat `json:"heartbeats"`
}

// Unit is what one of something costs. What is whole can be counted exactly, and a test fails when it changes; bytes, statements and requests are held to a tenth.
type Unit struct {
	Activities int `json:"activities"`
	Events     int `json:"events"`    // of Temporal's histories
	Actions    int `json:"actions"`   // that Temporal Cloud counts, without heartbeats
	Workflows  int `json:"workflows"` // histories
	Entries    int `json:"entries"`   // rows of the journal
	Appends    int `json:"appends"`   // transactions that put them there

	Leases   float64 `json:"leases"`
	Reads    float64 `json:"reads"` // other statements, by a worker that has the session
	Received float64 `json:"received_bytes"`
	Requests float64 `json:"requests"`      // of the worker to Temporal, polls included
	History  float64 `json:"history_bytes"` // in Temporal's histories
	Tables   float64 `json:"table_bytes"`
	Indexes  float64 `json:"index_bytes"`
	WAL      float64 `json:"wal_bytes"` // without the pages that are written whole after a checkpoint
}

// Beat is how often an effect was heard of.
type Beat struct {
	Timeouts float64 `json:"timeouts"` // how long the effect took, in heartbeat timeouts
	Sent     int     `json:"sent"`
}

//go:embed costs.json
var costsFile []byte

// measured are the costs that are on record.
func measured() (c Costs, err error) {
	err = json.Unmarshal(costsFile, &c)
	return c, err
}
